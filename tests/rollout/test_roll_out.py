"""The loop: whose episodes end when, what is kept of them, and a replay that ends where its episode did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.datagen.slots import FIRST_SEED, SEEDS
from himatch.errors import TaskError
from himatch.methods.conditioner import Conditioner
from himatch.policy import Policy
from himatch.rollout import Conditioning, Player, Rollouts, make_conditioner, roll_out
from himatch.rollout.conditioners import Scheduled
from himatch.simulation import EVALUATION_SEED, make_simulator
from himatch.statistics.features import resolve_feature

HOPPER = hm.get_task("hopper")


class Replay(Player):
    """A player that repeats given actions ``(K * B, T, act)``, whatever it sees and is conditioned on."""

    def __init__(self, policy: Policy, actions: np.ndarray, shape: tuple[int, int]) -> None:
        super().__init__(policy.agent, policy.normalizers, Conditioner(), shape[1])
        self.actions, self.shape, self.step = actions, shape, 0

    def act(self, observations: torch.Tensor, active: np.ndarray | None = None) -> torch.Tensor:
        now = min(self.step, self.actions.shape[1] - 1)
        self.step += 1
        return torch.from_numpy(self.actions[:, now]).view(*self.shape, -1)


@pytest.fixture(scope="module")
def episodes() -> list[hm.Trajectory]:
    """Hoppers that fall: episode i starts from reset seed 100 + i."""
    return fallen_hoppers(range(100, 108))


@pytest.fixture
def policy(episodes: list[hm.Trajectory], tmp_path: Path) -> Policy:
    return untrained(hm.CDT("x_velocity"), hm.load_dataset(episodes, "hopper"), tmp_path, seeds=(0, 1))


def acting(
    policy: Policy, targets: Sequence[hm.Target], target_of: np.ndarray, conditioning: Conditioning = "nominal"
) -> Player:
    conditioner = make_conditioner(conditioning, policy.run, policy.agent, targets, target_of)
    return Player(policy.agent, policy.normalizers, conditioner, target_of.shape[1])


def play(
    policy: Policy, lengths: list[int], targets: Sequence[hm.Target], conditioning: Conditioning = "nominal"
) -> Rollouts:
    target_of = np.tile(np.arange(len(targets)), (len(policy.seeds), 1))
    player = acting(policy, targets, target_of, conditioning)
    steps = np.tile(np.array(lengths), (len(policy.seeds), 1))
    seeds = np.tile(np.arange(100, 100 + len(targets)), (len(policy.seeds), 1))
    return roll_out(
        player, make_simulator("hopper", target_of.size), steps, seeds, resolve_feature("x_velocity", HOPPER)
    )


def test_a_replay_repeats_its_episodes_to_the_bit(policy: Policy, episodes: list[hm.Trajectory]) -> None:
    longest = max(map(len, episodes))
    actions = np.zeros((8, longest, 3), np.float32)
    for i, episode in enumerate(episodes):
        actions[i, : len(episode)] = episode.actions
    lengths, seeds = np.full((2, 4), 1000), np.arange(100, 108).reshape(2, 4)
    played = roll_out(Replay(policy, actions, (2, 4)), make_simulator("hopper", 8), lengths, seeds)
    for i, episode in enumerate(episodes):
        again = played.trajectory(i // 4, i % 4)
        assert again.terminated == episode.terminated
        for name in ("observations", "actions", "rewards", "final_observation"):
            np.testing.assert_array_equal(getattr(again, name), getattr(episode, name), err_msg=name)


def test_evaluation_starts_where_no_dataset_does() -> None:
    assert EVALUATION_SEED >= FIRST_SEED + SEEDS


def test_hoppers_fall_before_the_target_ends(policy: Policy, episodes: list[hm.Trajectory]) -> None:
    played = play(policy, [1000] * 6, [hm.demo(episode) for episode in episodes[:6]])
    assert played.terminated.all()
    assert (played.lengths < 1000).all()
    for place in np.ndindex(2, 6):
        trajectory = played.trajectory(*place)
        assert len(trajectory) == played.lengths[place]
        assert trajectory.terminated
        assert np.all(played.rewards[place][len(trajectory) :] == 0)
        # Gymnasium's Hopper is unhealthy at the end and nowhere before it.
        healthy = (trajectory.observations[:, 0] > 0.7) & (np.abs(trajectory.observations[:, 1]) < 0.2)
        assert healthy.all()
        final = trajectory.final_observation
        assert final is not None
        assert not (final[0] > 0.7 and abs(final[1]) < 0.2)


def test_each_rollout_is_as_long_as_its_target(policy: Policy, episodes: list[hm.Trajectory]) -> None:
    lengths = [3, 6, 1, 5]
    played = play(policy, lengths, [hm.demo(episode) for episode in episodes[:4]])
    np.testing.assert_array_equal(played.lengths, [lengths, lengths])
    assert not played.terminated.any()
    whole = play(policy, [1000] * 4, [hm.demo(episode) for episode in episodes[:4]])
    for place in np.ndindex(2, 4):
        cut, full = played.trajectory(*place), whole.trajectory(*place)
        np.testing.assert_allclose(cut.observations, full.observations[: len(cut)], atol=1e-5)
        assert cut.final_observation is not None
        np.testing.assert_allclose(cut.final_observation, full.observations[len(cut)], atol=1e-4)


def test_the_horizon_ends_what_the_target_does_not(policy: Policy, episodes: list[hm.Trajectory]) -> None:
    player = acting(policy, [hm.demo(episodes[0])], np.zeros((2, 1), np.int64))
    simulator = make_simulator(replace(HOPPER, horizon=6), 2)
    left: list[int] = []
    played = roll_out(player, simulator, np.full((2, 1), 50), np.full((2, 1), 100), progress=left.append)
    np.testing.assert_array_equal(played.lengths, 6)
    assert not played.terminated.any()
    assert played.observations.shape == (2, 1, 6, 11)
    assert left == [2, 2, 2, 2, 2, 0]


@pytest.mark.parametrize("conditioning", ["nominal", "remaining"])
def test_together_is_the_same_as_one_at_a_time(
    conditioning: Conditioning, policy: Policy, episodes: list[hm.Trajectory]
) -> None:
    targets: list[hm.Target] = [hm.demo(episode) for episode in episodes[:3]]
    together = play(policy, [12, 8, 10], targets, conditioning)
    for number, seed in enumerate(policy.seeds):
        one = policy.only(seed)
        for place, (target, length) in enumerate(zip(targets, (12, 8, 10), strict=True)):
            alone = roll_out(
                acting(one, [target], np.zeros((1, 1), np.int64), conditioning),
                make_simulator("hopper", 1),
                np.array([[length]]),
                np.array([[100 + place]]),
                resolve_feature("x_velocity", HOPPER),
            )
            for name in ("observations", "actions"):
                np.testing.assert_allclose(
                    getattr(together.trajectory(number, place), name), getattr(alone.trajectory(0, 0), name), atol=1e-4
                )


def test_remaining_rollouts_count_what_they_achieved(policy: Policy, episodes: list[hm.Trajectory]) -> None:
    """The actions under `remaining` are those of the logged path under the z that its own past leaves."""
    targets: list[hm.Target] = [hm.demo(episodes[0])]
    played = play(policy, [9], targets, "remaining")
    assert isinstance(policy.statistic, hm.InformationStatistic)
    bins = policy.statistic.aggregator.bins  # type: ignore[attr-defined]
    target = episodes[0].observations[:, [5]]
    for seed in range(2):
        own = played.trajectory(seed, 0)
        counts = np.cumsum(np.eye(bins.count)[bins.indices(own.observations[:, [5]])[:, 0]], axis=0)
        done = np.concatenate([np.zeros((1, bins.count)), counts[:-1]])
        rest = np.maximum(len(target) * bins.histogram(target)[0] - done, 0)
        rows = (rest / rest.sum(1, keepdims=True)).astype(np.float32)
        player = Player(policy.agent, policy.normalizers, Scheduled([rows], torch.zeros(2, 1, dtype=torch.int64)), 1)
        for step in range(len(own)):
            seen = torch.from_numpy(played.observations[:, :, step])
            np.testing.assert_allclose(player.act(seen)[seed, 0].numpy(), own.actions[step], atol=1e-5)


class Parts(gymnasium.Env):  # type: ignore[type-arg]
    """Observations in parts, of which ``b`` comes first in the code."""

    observation_space = spaces.Dict({"b": spaces.Box(-9.0, 9.0, (2,)), "a": spaces.Box(-9.0, 9.0, (1,))})
    action_space = spaces.Box(-1.0, 1.0, (1,))

    def reset(self, **_: Any) -> Any:
        return {"b": np.array([1.0, 2.0], np.float32), "a": np.array([3.0], np.float32)}, {}


def test_observations_in_parts_are_refused_with_what_mends_it() -> None:
    task = hm.Task("parts", 5, observation_width=3, action_width=1)
    with pytest.raises(TaskError, match=r"is a Dict space; himatch .*FlattenObservation makes one of .*alphabet"):
        make_simulator(task, 1, make_env=Parts)
    simulator = make_simulator(task, 1, make_env=lambda: gymnasium.wrappers.FlattenObservation(Parts()))
    np.testing.assert_array_equal(simulator.reset([0]), [[3.0, 1.0, 2.0]])


def test_only_rollouts_that_go_on_are_computed(policy: Policy) -> None:
    target = hm.parse_target("point(0)")
    all_of_them, some = (acting(policy, [target], np.zeros((2, 3), np.int64)) for _ in range(2))
    active = np.array([True, False, True, False, True, True])
    rng = np.random.default_rng(0)
    for _ in range(7):
        seen = torch.from_numpy(rng.normal(size=(2, 3, 11)).astype(np.float32))
        expected, found = all_of_them.act(seen).view(6, 3), some.act(seen, active).view(6, 3)
        np.testing.assert_allclose(found[active], expected[active], atol=1e-6)
