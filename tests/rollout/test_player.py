"""Acting step by step gives the actions that the logged-episode path gives for the same past."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pretended_gpu import GPU, PretendedGPU
from random_episodes import episode
from scipy import stats
from untrained import untrained

import himatch as hm
from himatch._runtime.graphs import GraphedStep
from himatch.policy import Policy
from himatch.rollout import Conditioning, Player, make_conditioner
from himatch.rollout.context import RolloutContext
from himatch.targets import Demonstration

LEARNED = {"m": 3, "target_window": 4, "look_ahead": 3}
VARIANTS: dict[str, tuple[hm.methods.Method, dict[str, Any]]] = {
    "bc": (hm.BC(), {}),
    "dt": (hm.DT(), {}),
    "cdt": (hm.CDT("x_velocity"), {}),
    "moments": (hm.MomentsDT("x_velocity", order=3), {}),
    "goal": (hm.GoalDT(), {}),
    "bdt": (hm.BDT(**LEARNED), {}),
    "bdt pseudocode": (hm.BDT(m=3, codes="pseudocode"), {}),
    "bdt public": (hm.BDT(m=3, codes="public"), {}),
    "bdt public slips": (hm.BDT(m=3, codes="public", public_mask=True, public_start=True), {"context": 13}),
    "dt-ae": (hm.DTAE(**LEARNED), {}),
    "cdt triples": (hm.CDT("x_velocity"), {"tokens": "triples"}),
    "bc triples": (hm.BC(), {"tokens": "triples"}),
    "bdt triples": (hm.BDT(**LEARNED), {"tokens": "triples"}),
    "bdt public triples": (hm.BDT(m=3, codes="public"), {"tokens": "triples"}),
    "dt-ae public": (hm.DTAE(m=3, codes="public", public_mask=True, public_start=True), {"context": 13}),
    "cdt of two features": (hm.CDT("x_velocity,z_velocity", bins=5), {}),
    "gaussian head": (hm.DT(), {"head": "gaussian"}),
    "squashed states": (hm.CDT("x_velocity"), {"head": "squashed", "tokens": "states", "activation": "gelu"}),
    "bdt states": (hm.BDT(**LEARNED), {"tokens": "states"}),
    "two heads": (hm.CDT("x_velocity"), {"heads": 2}),
    "one layer": (hm.CDT("x_velocity"), {"layers": 1}),
    "three layers": (hm.CDT("x_velocity"), {"layers": 3}),
    "meta-bc": (hm.MetaBC(m=3, encoder=(16, 16)), {}),
    "focal": (hm.FOCAL(m=3, encoder=(16, 16)), {}),
    "goal relabelled": (hm.GoalDT("x_velocity", relabel="uniform", steps_left=True), {}),
    "gcsl": (hm.GCSL(), {}),
    "udrl": (hm.UDRL("x_velocity"), {}),
    "rcp": (hm.RCP(given="advantage"), {}),
    "context of one": (hm.CDT("x_velocity"), {"context": 1}),
}
TARGETS = (4, 9)  # steps of the targets: one shorter than the rollouts and than the context, one in between


def player(
    policy: Policy, targets: list[Demonstration], target_of: np.ndarray, conditioning: Conditioning = "nominal"
) -> Player:
    conditioner = make_conditioner(conditioning, policy.run, policy.agent, targets, target_of)
    return Player(policy.agent, policy.normalizers, conditioner, target_of.shape[1])


def capture(acting: Player) -> GraphedStep[torch.Tensor]:
    """From its next step on, the whole pass is captured in one graph, as on a GPU."""
    acting._last_token = None
    acting._forward = graph = GraphedStep(acting._one_step, GPU, snapshot=acting.context.snapshot, purpose="rollouts")
    return graph


def play(acting: Player, observations: np.ndarray, achieved: np.ndarray | None = None) -> np.ndarray:
    """Actions ``(K, B, T, act)`` for observations ``(K, B, T, obs)`` and achieved features ``(T, K, B, d)``."""
    acting.reset()
    actions = []
    for step, seen in enumerate(np.moveaxis(observations, 2, 0)):
        actions.append(acting.act(torch.from_numpy(seen)).numpy().copy())
        if achieved is not None:
            acting.conditioner.achieved(achieved[step])
    return np.stack(actions, 2)


@pytest.mark.parametrize("steps", [3, 12])
@pytest.mark.parametrize("name", VARIANTS)
def test_actions_are_those_of_the_logged_path(
    name: str, steps: int, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    method, model = VARIANTS[name]
    policy = untrained(method, hopper, tmp_path, seeds=(3, 8), **model)
    rng = np.random.default_rng(0)
    targets = [hm.demo(episode(rng, count, level=1.0)) for count in TARGETS]
    target_of = np.array([[0, 1, 1], [1, 0, 1]])
    observations = rng.normal(1, 1, (2, 3, steps, 11)).astype(np.float32)
    acting = player(policy, targets, target_of)
    actions = play(acting, observations)
    for seed in range(2):
        for rollout in range(3):
            logged = hm.Trajectory(observations[seed, rollout], actions[seed, rollout])
            expected = policy.actions(logged, targets[target_of[seed, rollout]].trajectory)[seed]
            np.testing.assert_allclose(actions[seed, rollout], expected, atol=5e-6)
    np.testing.assert_array_equal(play(acting, observations), actions)  # a reset forgets everything


@pytest.mark.parametrize(
    ("name", "conditioning"),
    [
        *((name, "nominal") for name in ("bc", "cdt", "moments", "bdt", "bdt public slips", "dt-ae")),
        ("cdt", "remaining"),
    ],
)
def test_one_graph_serves_every_step(
    name: str, conditioning: Conditioning, hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that changes from step to step is frozen, before the context is full, after, and at a reset."""
    gpu = PretendedGPU(monkeypatch)
    method, model = VARIANTS[name]
    policy = untrained(method, hopper, tmp_path, seeds=(3, 8), **model)
    rng = np.random.default_rng(0)
    targets = [hm.demo(episode(rng, count, level=1.0)) for count in TARGETS]
    for target_of in (np.array([[0, 1, 1], [1, 0, 1]]), np.array([[1], [0]])):  # of other shapes
        acting, captured = (player(policy, targets, target_of, conditioning) for _ in range(2))
        acting._last_token = None  # the whole pass, as on a GPU
        graph = capture(captured)
        for _ in range(2):
            observations = rng.normal(1, 1, (*target_of.shape, 12, 11)).astype(np.float32)
            achieved = rng.normal(1, 1, (12, *target_of.shape, 1))
            expected = play(acting, observations, achieved)
            np.testing.assert_array_equal(play(captured, observations, achieved), expected)
        assert graph.how == "CUDA graph"
    assert gpu.events.count("capturing") == 2


def test_a_reset_forgets_what_is_no_number(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity"), hopper, tmp_path)
    rng = np.random.default_rng(0)
    acting = player(policy, [hm.demo(episode(rng, 9, level=1.0))], np.zeros((1, 2), np.int64))
    acting._last_token = None
    observations = rng.normal(1, 1, (1, 2, 7, 11)).astype(np.float32)
    expected = play(acting, observations)
    assert np.isnan(play(acting, np.full_like(observations, np.nan))).all()
    np.testing.assert_array_equal(play(acting, observations), expected)


def test_every_part_of_the_past_matters(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison above would see a window that is off by one: each number seen within it reaches the action."""
    # Actions would carry on what was seen before the window.
    put = RolloutContext.put_actions
    monkeypatch.setattr(RolloutContext, "put_actions", lambda self, actions: put(self, torch.zeros_like(actions)))
    policy = untrained(hm.CDT("x_velocity"), hopper, tmp_path)
    rng = np.random.default_rng(0)
    observations = rng.normal(1, 1, (1, 1, 9, 11)).astype(np.float32)
    target = hm.demo(episode(rng, 9, level=1.0))
    target_of = np.zeros((1, 1), np.int64)
    last = play(player(policy, [target], target_of), observations)[0, 0, -1]
    for step in range(9):
        other = observations.copy()
        other[0, 0, step] += 1.0
        changed = play(player(policy, [target], target_of), other)[0, 0, -1]
        assert (np.abs(changed - last).max() > 1e-4) == (step >= 9 - policy.context)
    elsewhere = play(player(policy, [hm.demo(episode(rng, 9, level=3.0))], target_of), observations)[0, 0, -1]
    assert np.abs(elsewhere - last).max() > 1e-3


def test_z_of_a_target_is_clipped_to_the_training_support(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """What training never showed is clipped; of a training episode that is nothing."""
    policy = untrained(hm.CDT("x_velocity"), hopper, tmp_path)
    rng = np.random.default_rng(0)
    observations, target_of = rng.normal(1, 1, (1, 1, 9, 11)).astype(np.float32), np.zeros((1, 1), np.int64)
    strange = Demonstration(replace(hopper[3], observations=np.where(hopper[3].observations > 1, 99.0, -99.0)))
    known = policy.run.normalizers
    for target, changes in ((strange, True), (hm.demo(hopper[3]), False)):
        players = [player(policy, [target], target_of)]
        policy.run.normalizers = replace(known, support=None)
        players.append(player(policy, [target], target_of))
        policy.run.normalizers = known
        clipped, whole = (play(acting, observations) for acting in players)
        assert (np.abs(clipped - whole).max() > 1e-3) == changes


@pytest.mark.parametrize("graphed", [False, True])
@pytest.mark.parametrize("name", ["bc", "cdt", "cdt triples", "bdt", "bdt public slips", "meta-bc", "context of one"])
def test_rollouts_apart_begin_again_one_by_one(
    name: str, graphed: bool, hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each does what it would do alone, on a CPU and in one CUDA graph, before its context is full and after."""
    method, model = VARIANTS[name]
    policy = untrained(method, hopper, tmp_path, **model)
    rng = np.random.default_rng(0)
    targets = [hm.demo(episode(rng, count, level=1.0)) for count in (4, 9, 12)]
    conditioner = make_conditioner("nominal", policy.run, policy.agent, targets, np.arange(3)[None])
    together = Player(policy.agent, policy.normalizers, conditioner, 3, apart=True)
    alone = [player(policy, [target], np.zeros((1, 1), np.int64)) for target in targets]
    if graphed:
        PretendedGPU(monkeypatch)
        capture(together)
    steps = np.zeros(3, np.int64)
    for step in range(20):
        begun = np.flatnonzero([step == 13, step in (2, 9), step in (3, 13)])
        together.reset(begun)
        steps[begun] = 0
        for rollout in begun:
            alone[rollout].reset()
        np.testing.assert_array_equal(together.clock[0], steps)
        seen = torch.from_numpy(rng.normal(1, 1, (1, 3, 11)).astype(np.float32))
        actions = together.act(seen).numpy().copy()
        for rollout, acting in enumerate(alone):
            np.testing.assert_allclose(actions[:, [rollout]], acting.act(seen[:, [rollout]]), atol=5e-6)
        steps += 1


def test_one_rollout_does_not_see_another(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity"), hopper, tmp_path, seeds=(0, 1))
    rng = np.random.default_rng(0)
    targets = [hm.demo(episode(rng, 7, level=level)) for level in (0.0, 2.0)]
    observations = rng.normal(1, 1, (2, 40, 7, 11)).astype(np.float32)
    target_of = rng.integers(2, size=(2, 40))
    together = play(player(policy, targets, target_of), observations)
    for rollout in (0, 17, 39):
        part = slice(rollout, rollout + 1)
        alone = play(player(policy, targets, target_of[:, part]), observations[:, part])
        np.testing.assert_allclose(together[:, part], alone, atol=1e-5)


def gaussian_player(policy: Policy, batch: int, seed: int, temperature: float = 1.0) -> Player:
    target_of = np.zeros((len(policy.seeds), batch), np.int64)
    rng = np.random.default_rng(0)
    target = hm.demo(episode(rng, 9, level=1.0))
    conditioner = make_conditioner("nominal", policy.run, policy.agent, [target], target_of)
    return Player(policy.agent, policy.normalizers, conditioner, batch, seed, temperature)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_a_gaussian_head_samples_actions(temperature: float, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Many rollouts that see the same spread as the Gaussian that the head describes, cut at the ends of the range."""
    policy = untrained(hm.CDT("x_velocity"), hopper, tmp_path, head="gaussian")
    with torch.no_grad():
        for parameter in policy.agent.policy.predict.parameters():
            parameter.mul_(0.2)  # so that most actions lie inside their range
    seen = torch.tensor(np.random.default_rng(1).normal(1, 1, 11), dtype=torch.float32).expand(1, 4000, 11)
    acting, outputs = gaussian_player(policy, 4000, 0, temperature), []
    policy.agent.policy.register_forward_hook(lambda *call: outputs.append(call[2]))
    acting._last_token = None
    first, second = (acting.act(seen).numpy()[0].copy() for _ in range(2))
    mean, log_std = (x.detach().numpy() for x in policy.agent.policy.gaussian(outputs[0][0, 0, 0]))
    low, high = (np.array(bound) for bound in (hopper.task.action_low, hopper.task.action_high))
    actions = (first - low) / (high - low) * 2 - 1
    for coordinate in range(3):
        oracle = stats.norm(mean[coordinate], temperature * np.exp(log_std[coordinate]))
        inside = np.abs(actions[:, coordinate]) < 1 - 1e-6
        assert inside.mean() == pytest.approx(oracle.cdf(1) - oracle.cdf(-1), abs=0.03)
        cut = stats.truncnorm((-1 - oracle.mean()) / oracle.std(), (1 - oracle.mean()) / oracle.std(), *oracle.args)
        assert inside.sum() > 200
        assert stats.kstest(actions[inside, coordinate], cut.cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(first[:, 0], second[:, 0])[0, 1]) < 0.1
    mean_action = gaussian_player(policy, 4000, 0, temperature=0.0).act(seen).numpy()[0]
    assert np.ptp(mean_action, axis=0).max() < 1e-5


def test_sampled_actions_follow_from_the_seed(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.DT(), hopper, tmp_path, seeds=(3, 8), head="gaussian")
    observations = np.random.default_rng(1).normal(1, 1, (2, 3, 6, 11)).astype(np.float32)
    first, again, other = (play(gaussian_player(policy, 3, seed), observations) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    focal = untrained(hm.FOCAL(m=3, encoder=(16, 16)), hopper, tmp_path / "focal", seeds=(3, 8))
    one, two = (play(gaussian_player(focal, 3, seed), observations) for seed in (5, 6))
    np.testing.assert_array_equal(one, two)  # an actor-critic is used by its mean action


def test_noise_is_not_frozen_into_a_graph(
    hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PretendedGPU(monkeypatch)
    policy = untrained(hm.CDT("x_velocity"), hopper, tmp_path, head="gaussian")
    acting, captured = (gaussian_player(policy, 3, 5) for _ in range(2))
    acting._last_token = None
    capture(captured)
    observations = np.random.default_rng(1).normal(1, 1, (1, 3, 8, 11)).astype(np.float32)
    np.testing.assert_array_equal(play(captured, observations), play(acting, observations))
