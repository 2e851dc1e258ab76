"""Meta-BC and FOCAL trained: what is frozen when, what seeds and streams may not change, and what they learn."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pretended_gpu import PretendedGPU, capture
from safetensors.torch import load_file
from scipy.stats import spearmanr

import himatch as hm
from himatch.api import as_split
from himatch.errors import HimatchError
from himatch.training import PRESETS, Interrupted, Plan, configure, make_plan
from himatch.training.sampler import make_sampler
from himatch.training.update import Update

CPU = torch.device("cpu")
TINY: dict[str, Any] = {"preset": "cpu", "layers": 1, "width": 16, "batch_size": 8}
SMALL = {"m": 3, "encoder": (16, 16), "tasks": 3, "context_steps": 4, "pretrain_steps": 6}
BOTH = ("meta-bc", "focal")
each = pytest.mark.parametrize("name", BOTH)


def weights(run: Path, seed: int = 0) -> dict[str, torch.Tensor]:
    return load_file(run / f"seed-{seed}" / "last.safetensors")


def test_the_papers_sizes() -> None:
    for method in (hm.MetaBC(), hm.FOCAL()):
        model, train = configure("paper", method)
        assert (model.layers, model.width, model.context) == (3, 256, 1)
        assert (train.steps, train.batch_size, train.learning_rate) == (100_000, 256, 3e-4)
        assert method.encoder == (200, 200, 200)
        assert method.stages(train.steps, 256)[0].steps == 100_000
        assert method.presets.keys() == {"paper", "fast", "cpu"} == set(PRESETS)
    assert configure("fast", hm.MetaBC(), context=5, width=32)[0].context == 1  # their policies see single steps
    assert configure("fast", hm.CDT(), context=7)[0].context == 7


@each
def test_what_was_trained_first_does_not_move(name: str, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    method = hm.make_method(name, **SMALL)
    for steps in (2, 20):
        hm.train(method, hopper, out=tmp_path / str(steps), quiet=True, **TINY, steps=steps)
    frozen = ("encoder.", "behaviour.")
    for key, tensor in weights(tmp_path / "2").items():
        assert torch.equal(tensor, weights(tmp_path / "20")[key]) == key.startswith(frozen), key


@each
def test_the_training_episodes_embeddings_have_unit_size(
    name: str, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    policy = hm.train(hm.make_method(name, **SMALL), hopper, out=tmp_path / "run", seeds=2, quiet=True, **TINY, steps=2)
    codes = policy.embed(list(planned(hopper, policy.method, tmp_path / "other").trained_on))
    assert codes.shape == (2, 19, 3)
    torch.testing.assert_close(codes.mean(1), torch.zeros(2, 3), atol=1e-4, rtol=0)
    torch.testing.assert_close(codes.square().mean((1, 2)), torch.ones(2), atol=1e-3, rtol=0)
    (one,) = policy.only(1).embed([hopper[3]])
    torch.testing.assert_close(one[0], policy.embed([hopper[5], hopper[3]])[1, 1], atol=1e-5, rtol=1e-4)


def planned(data: hm.TrajectoryDataset, method: hm.methods.Method, out: Path, **settings: Any) -> Plan:
    return make_plan(method, lambda: as_split(data, None, None), out=out, **{"preset": "cpu", **settings}, device="cpu")


def make_update(data: hm.TrajectoryDataset, name: str, seeds: tuple[int, ...]) -> Update:
    """A policy's training with an encoder, and a clone, that nobody trained."""
    method = hm.make_method(name, **SMALL)
    plan = planned(data, method, Path("unused"), **TINY, steps=40, schedule="constant")
    agent = method.build(plan.model, plan.dims, seeds)
    sampler = make_sampler(plan.trained_on, None, plan.spec, plan.normalizers(None), CPU)
    *first, last = plan.stages
    for stage in first:
        assert stage.part is not None
        agent.freeze(stage.part)
    sampler.embed_episodes(agent)
    return Update(agent, sampler, last, plan.config, CPU)


@each
def test_stacked_seeds_reproduce_single_runs(name: str, hopper: hm.TrajectoryDataset) -> None:
    stacked = make_update(hopper, name, (4, 0, 7))
    together = torch.cat(list(stacked.run(25)))
    slow = dict(stacked.agent.named_parameters())
    for model, seed in enumerate((4, 0, 7)):
        single = make_update(hopper, name, (seed,))
        torch.testing.assert_close(torch.cat(list(single.run(25)))[:, 0], together[:, model], atol=1e-5, rtol=1e-4)
        for key, parameter in single.agent.named_parameters():
            torch.testing.assert_close(slow[key][model], parameter[0], atol=1e-5, rtol=1e-3)


@each
def test_resuming_at_any_step_is_the_same_run(name: str, hopper: hm.TrajectoryDataset) -> None:
    whole, first, second = (make_update(hopper, name, (0, 1)) for _ in range(3))
    list(whole.run(30))
    list(first.run(13))
    second.restore({key: tensor.clone() for key, tensor in first.snapshot().items()})
    second.step = 13
    list(second.run(30))
    for (key, one), other in zip(second.agent.named_parameters(), whole.agent.parameters(), strict=True):
        assert torch.equal(one, other), key


@each
def test_a_run_interrupted_while_the_policy_learns_ends_in_the_same_bits(
    name: str, hopper: hm.TrajectoryDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was trained first comes back with the state, and is what windows are relabelled with."""
    method = hm.make_method(name, **SMALL)
    settings: dict[str, Any] = {**TINY, "steps": 12, "seeds": 2, "quiet": True}
    hm.train(method, hopper, out=tmp_path / "whole", **settings)
    step, left = Update._one_step, 6 * len(method.stages(12, 8)) + 5

    def signalled(self: Update) -> None:
        nonlocal left
        step(self)
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(Update, "_one_step", signalled)
        with pytest.raises(Interrupted, match="stopped at step 5 of 12"):
            hm.train(method, hopper, out=tmp_path / "parts", **settings)
    hm.train(method, hopper, out=tmp_path / "parts", resume=True, **settings)
    for seed in (0, 1):
        for key, tensor in weights(tmp_path / "whole", seed).items():
            assert torch.equal(tensor, weights(tmp_path / "parts", seed)[key]), key


@each
def test_streamed_training_is_the_same_training(name: str, hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    hm.write_minari(hopper, tmp_path / "hopper-v0")
    mapped = hm.load_dataset(tmp_path / "hopper-v0", "hopper", mmap=tmp_path / "map")
    for out, data in ((tmp_path / "a", hopper), (tmp_path / "b", mapped)):
        hm.train(hm.make_method(name, **SMALL), data, out=out, quiet=True, **TINY, steps=12)
    for key, tensor in weights(tmp_path / "a").items():
        torch.testing.assert_close(tensor, weights(tmp_path / "b")[key], msg=key)


@each
def test_a_captured_step_is_the_step(name: str, hopper: hm.TrajectoryDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a step is decided in Python: what a graph holds is the whole of it."""
    plain, captured = make_update(hopper, name, (0, 1)), make_update(hopper, name, (0, 1))
    expected = torch.cat(list(plain.run(9)))
    gpu = PretendedGPU(monkeypatch)
    capture(captured)
    losses = torch.cat(list(captured.run(9)))
    assert captured.how == "compiled CUDA graph"
    assert gpu.events.count("capturing") == 1
    assert torch.equal(losses, expected)
    for (key, one), other in zip(captured.agent.named_parameters(), plain.agent.parameters(), strict=True):
        assert torch.equal(one, other), key


# -- what they learn ------------------------------------------------------------------------------------------------

STEPS = 20


def turning(sign: float, rng: np.random.Generator, label: str | None) -> hm.Trajectory:
    """States say nothing; the right action is the task's sign, which only what is earned tells."""
    actions = np.clip(0.6 * sign + rng.normal(0, 0.1, (STEPS, 1)), -1, 1)
    states = rng.uniform(-1, 1, (STEPS + 1, 2))
    return hm.Trajectory(states[:-1], actions, sign * actions[:, 0], states[-1], label=label)


@pytest.fixture(scope="module", params=["labelled", "episodes alone"])
def two_tasks(request: pytest.FixtureRequest) -> hm.TrajectoryDataset:
    rng = np.random.default_rng(0)
    signs = np.where(np.arange(60) % 2, 1.0, -1.0)
    labels = {1.0: "right", -1.0: "left"} if request.param == "labelled" else {}
    episodes = [turning(sign, rng, labels.get(float(sign))) for sign in signs]
    return hm.load_dataset(episodes, hm.Task("turning", STEPS, 2, 1, -1.0, 1.0, features={"x": 0}))


@pytest.mark.parametrize(("name", "solves"), [("meta-bc", True), ("focal", True), ("bc", False)])
def test_two_tasks_from_one_demonstration(
    name: str, solves: bool, two_tasks: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    settings = {} if name == "bc" else {"m": 2, "encoder": (32, 32), "pretrain_steps": 400}
    policy = hm.train(
        hm.make_method(name, **settings),
        two_tasks,
        out=tmp_path / "run",
        preset="cpu",
        steps=400,
        learning_rate=3e-3,
        layers=1,
        width=32,
        context=1,
        batch_size=64,
        quiet=True,
    )
    rng = np.random.default_rng(1)
    states = rng.uniform(-1, 1, (50, 2))
    for sign in (-1.0, 1.0):
        controller = policy.controller(turning(sign, rng, None), batch=50)
        right = sign * controller.act(states)[:, 0]
        assert (right > 0.4).all() == solves
    if not solves:
        assert np.abs(right).max() < 0.4  # whoever does not know the task had better do little


def test_focal_earns_more_than_it_was_shown(tmp_path: Path) -> None:
    """Behaviour that is right on average is bettered where one is allowed to move away from it."""
    rng = np.random.default_rng(0)
    episodes = []
    for number in range(60):
        sign = 1.0 if number % 2 else -1.0
        actions = np.clip(0.2 * sign + rng.normal(0, 0.5, (STEPS, 1)), -1, 1)
        states = rng.normal(0, 1, (STEPS, 2))
        label = "right" if number % 2 else "left"
        episodes.append(hm.Trajectory(states, actions, sign * actions[:, 0], states[-1], label=label))
    data = hm.load_dataset(episodes, hm.Task("turning", STEPS, 2, 1, -1.0, 1.0, features={"x": 0}))
    found = {}
    for alpha, divergence in ((100.0, 0.01), (1.0, 2.0)):
        method = hm.FOCAL(m=2, encoder=(32, 32), pretrain_steps=150, target_divergence=divergence, alpha=alpha)
        settings: dict[str, Any] = {"steps": 600, "layers": 1, "width": 32, "batch_size": 64, "schedule": "constant"}
        policy = hm.train(method, data, out=tmp_path / str(divergence), preset="cpu", quiet=True, **settings)
        earned = [sign * policy.actions(data[i])[0, :, 0].mean() for i, sign in ((0, -1.0), (1, 1.0))]
        found[divergence] = float(np.mean(earned))
    assert 0.1 < found[0.01] < 0.4  # as shown
    assert found[2.0] > found[0.01] + 0.25


def test_embeddings_are_ordered_as_the_tasks_are(tmp_path: Path) -> None:
    """Tasks along a line, of which no single step tells the place: kept-out episodes lie along a line too."""
    rng = np.random.default_rng(0)

    def episode(place: float) -> hm.Trajectory:
        states = np.stack([place + rng.normal(0, 0.3, STEPS), rng.normal(0, 1, STEPS)], axis=1)
        label = f"{place:.1f}"
        return hm.Trajectory(states, rng.uniform(-1, 1, (STEPS, 1)), -np.abs(states[:, 0] - place), label=label)

    places = [tenth / 10 for tenth in range(21)]
    data = hm.load_dataset([episode(p) for p in places for _ in range(4)], hm.Task("line", STEPS, 2, 1, -1.0, 1.0))
    method = hm.MetaBC(m=4, encoder=(32, 32), pretrain_steps=300)
    policy = hm.train(method, data, out=tmp_path / "run", preset="cpu", steps=1, width=16, quiet=True)
    kept_out = [episode(place) for place in places]
    codes = policy.embed(kept_out)[0].double().numpy()
    _, _, directions = np.linalg.svd(codes - codes.mean(axis=0), full_matrices=False)
    assert abs(spearmanr(codes @ directions[0], places).statistic) >= 0.9


# -- what they cannot do --------------------------------------------------------------------------------------------


@each
def test_what_cannot_be_learned_or_imitated_is_said_in_one_line(
    name: str, hopper: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    method = hm.make_method(name, **SMALL)

    def changed(**settings: Any) -> hm.TrajectoryDataset:
        parts = (
            {"observations": e.observations, "actions": e.actions, "rewards": e.rewards} | settings for e in hopper
        )
        return hm.load_dataset([hm.Trajectory(**part) for part in parts], "hopper")

    policy = hm.train(method, hopper, out=tmp_path / "run", quiet=True, **TINY, steps=2)
    unrewarded = hm.Trajectory(hopper[0].observations, hopper[0].actions)
    for call, message in (
        (
            lambda: hm.train(method, changed(rewards=None), out=tmp_path / "a", **TINY),
            f"{name} reads rewards and .* none",
        ),
        (
            lambda: hm.train(method, changed(label="one"), out=tmp_path / "b", **TINY),
            "20 training episodes are all of one",
        ),
        (lambda: policy.match("normal(0,1)"), "imitates demonstrations, and normal.0,1. is none; give demo"),
        (lambda: policy.controller("return(3)"), "imitates demonstrations"),
        (lambda: policy.match(unrewarded), f"{name} reads rewards, and .* none"),
    ):
        with pytest.raises(HimatchError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_other_methods_embed_nothing(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = hm.train(hm.BC(), hopper, out=tmp_path / "run", quiet=True, preset="cpu", steps=1, width=16)
    with pytest.raises(HimatchError, match="bc embeds no whole episodes; meta-bc and focal do"):
        policy.embed([hopper[0]])
