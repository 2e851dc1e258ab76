"""The controller: the same actions as ``match`` in a loop of one's own, for one robot and for several."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from random_episodes import episode
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchError
from himatch.matching import Policy
from himatch.rollout import EVALUATION_SEED

METHODS = {
    "bc": hm.BC(),
    "dt": hm.DT(),
    "cdt": hm.CDT("x_velocity"),
    "moments": hm.MomentsDT("x_velocity"),
    "bdt": hm.BDT(m=2, target_window=4, look_ahead=3),
    "meta-bc": hm.MetaBC(m=2, encoder=(8,)),
    "focal": hm.FOCAL(m=2, encoder=(8,)),
}


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(fallen_hoppers(range(12), 0.3), "hopper")


@pytest.fixture
def policy(data: hm.TrajectoryDataset, tmp_path: Path) -> Policy:
    return untrained(hm.CDT("x_velocity"), data, tmp_path, seeds=(2, 7))


@pytest.mark.parametrize("conditioning", ["open", "closed"])
@pytest.mark.parametrize("name", METHODS)
def test_a_loop_of_ones_own_does_what_match_does(
    name: str, conditioning: str, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    policy = untrained(METHODS[name], data, tmp_path, seeds=(2, 7))
    target = hm.demo(data[3])
    for seed in policy.seeds:
        played = policy.only(seed).match(target, episodes=1, conditioning=conditioning).example  # type: ignore[arg-type]
        controller = policy.controller(target, seed=seed, conditioning=conditioning)  # type: ignore[arg-type]
        for _ in range(2):  # the second time after a reset
            env = gymnasium.make("Hopper-v5")
            seen, _ = env.reset(seed=EVALUATION_SEED)
            controller.reset()
            reward: float | None = None
            for step in range(min(8, len(played))):
                assert controller.step == step
                action = controller.act(seen, reward)
                assert action.shape == (3,)
                assert action.dtype == np.float32
                np.testing.assert_allclose(action, played.actions[step], atol=1e-4)
                seen, got, *_ = env.step(action)
                reward = float(got)


def test_a_batch_of_robots_in_step(policy: Policy, data: hm.TrajectoryDataset) -> None:
    together = policy.controller(data[3], batch=3)
    alone = [policy.controller(data[3]) for _ in range(3)]
    rng = np.random.default_rng(0)
    for _ in range(8):
        seen = rng.normal(size=(3, 11))
        actions = together.act(seen)
        assert actions.shape == (3, 3)
        for robot, controller in enumerate(alone):
            np.testing.assert_allclose(actions[robot], controller.act(seen[robot]), atol=2e-6)
    assert policy.controller(data[3], batch=1).act(seen[:1]).shape == (1, 3)


def test_the_first_seed_acts_unless_another_is_named(policy: Policy, data: hm.TrajectoryDataset) -> None:
    seen = np.ones(11)
    first, named, other = (policy.controller(data[3], seed=seed).act(seen) for seed in (None, 2, 7))
    np.testing.assert_array_equal(first, named)
    assert not np.allclose(first, other)


def test_closed_needs_a_feature_of_single_steps(tmp_path: Path) -> None:
    """Others are for targets that are told as they are."""
    task = replace(hm.get_task("hopper"), features={"change": lambda obs, act, rew: np.diff(obs[:, 5], prepend=0.0)})
    data = hm.load_dataset(fallen_hoppers(range(12), 0.3), task)
    policy = untrained(hm.CDT("change"), data, tmp_path)
    assert np.isfinite(policy.match(data[3], episodes=2).w1)
    with pytest.raises(HimatchError, match="looks at more than one step"):
        policy.match(data[3], episodes=2, conditioning="closed")
    controller = policy.controller(data[3], conditioning="closed")
    controller.reset()
    controller.act(data[3].observations[0])
    controller.act(data[3].observations[1])
    with pytest.raises(HimatchError, match="looks at more than one step"):
        controller.act(data[3].observations[2])


@pytest.mark.parametrize("batch", [None, 2])
def test_closed_on_rewards_is_told_what_is_left(batch: int | None, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Rewards that use up the return early are what a smaller return would have told from then on."""
    policy = untrained(hm.DT(), data, tmp_path)
    controllers = [
        policy.controller(f"return({total})", batch=batch, conditioning="closed") for total in (900.0, 1000.0)
    ]
    seen = np.random.default_rng(0).normal(size=(12, 11) if batch is None else (12, batch, 11))
    earned: list[float | np.ndarray | None] = [None, 50.0, np.full(batch or (), 50.0), *[0.0] * 9]
    for step, gained in enumerate(earned):
        gains = None if step == 0 else 0.0
        small, large = controllers[0].act(seen[step], gains), controllers[1].act(seen[step], gained)
        z = controllers[0]._player._z, controllers[1]._player._z
        assert z[0] is not None
        assert z[1] is not None
        if step >= 2:
            np.testing.assert_allclose(z[0], z[1], atol=1e-6)
            assert float(z[0].flatten()[0]) == pytest.approx(0.9)
    np.testing.assert_allclose(small, large, atol=1e-3)  # what differed has left the context
    with pytest.raises(HimatchError, match=r"needs the reward of the previous step: act\(observation, reward\)"):
        controllers[0].act(seen[0])
    with pytest.raises(HimatchError, match="expected one reward"):
        controllers[0].act(seen[0], [1.0, 2.0, 3.0])
    assert controllers[0].step == 12  # refused calls leave no trace


def test_buffers_that_the_caller_writes_over_are_not_kept(policy: Policy, data: hm.TrajectoryDataset) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8, 11)).astype(np.float32)
    clean, reused = (policy.controller(data[3], conditioning="closed") for _ in range(2))
    buffer = np.zeros(11, np.float32)
    for row in rows:
        buffer[:] = row
        expected, action = clean.act(row), reused.act(buffer)
        np.testing.assert_array_equal(expected, action)
        buffer[:], action[:] = 99.0, 99.0


def test_ants_may_show_more_than_the_policy_sees(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ants = hm.load_dataset([episode(rng, 12, 27, 8) for _ in range(4)], "ant")
    policy = untrained(hm.CDT("x_velocity"), ants, tmp_path)
    seen = rng.normal(size=105)
    whole, prefix = (policy.controller(ants[0]).act(x) for x in (seen, seen[:27]))
    np.testing.assert_array_equal(whole, prefix)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.full(11, np.nan), "NaN or infinity"),
        (np.full(11, np.inf), "NaN or infinity"),
        (np.zeros(12), r"shape \(11,\), got \(12,\)"),
        (np.zeros((1, 11)), r"shape \(11,\), got \(1, 11\)"),
        (0.0, r"shape \(11,\), got \(\)"),
        (["north"] * 11, "no array"),
        ([[1.0], [1.0, 2.0]], "no array"),
    ],
)
def test_observations_nobody_can_act_on(
    observation: object, message: str, policy: Policy, data: hm.TrajectoryDataset
) -> None:
    controller = policy.controller(data[3])
    with pytest.raises(HimatchError, match=message):
        controller.act(observation)  # type: ignore[arg-type]
    assert controller.step == 0


def test_controllers_that_cannot_be_made(policy: Policy, data: hm.TrajectoryDataset) -> None:
    for settings, message in (
        ({"batch": 0}, "at least one robot, got 0"),
        ({"batch": -2}, "at least one robot"),
        ({"seed": 3}, "has the seeds 2, 7, not 3"),
        ({"conditioning": "ajar"}, "got 'ajar'"),
    ):
        with pytest.raises(HimatchError, match=message):
            policy.controller(data[3], **settings)  # type: ignore[arg-type]
    with pytest.raises(HimatchError, match=r"shape \(2, 11\), got \(11,\)"):
        policy.controller(data[3], batch=2).act(np.zeros(11))
