"""The controller: the same actions as ``match`` in a loop of one's own, for one robot and for several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from random_episodes import episode
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchError, HimatchWarning
from himatch.policy import Policy
from himatch.rollout import Conditioning
from himatch.rollout.controller import Controller
from himatch.simulation import EVALUATION_SEED
from himatch.targets import TargetLike

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*lies (where no|beyond every) training episode"),
    pytest.mark.filterwarnings("ignore:.*the policy acts on it nevertheless"),  # random numbers are beyond the limits
]

METHODS = {
    "bc": hm.BC(),
    "dt": hm.DT(),
    "cdt": hm.CDT("x_velocity"),
    "moments": hm.MomentsDT("x_velocity"),
    "bdt": hm.BDT(m=2, target_window=4, look_ahead=3),
    "meta-bc": hm.MetaBC(m=2, encoder=(8,)),
    "focal": hm.FOCAL(m=2, encoder=(8,)),
    "gcsl": hm.GCSL("x_velocity"),
    "udrl": hm.UDRL(),
    "rcp": hm.RCP(given="advantage"),
    "multi-task": hm.MultiTask("x_velocity"),
    "hipi": hm.HIPI("x_velocity"),
}


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset(fallen_hoppers(range(12), 0.3), "hopper")


@pytest.fixture
def policy(data: hm.TrajectoryDataset, tmp_path: Path) -> Policy:
    return untrained(hm.CDT("x_velocity"), data, tmp_path, seeds=(2, 7))


@pytest.mark.parametrize(
    ("name", "target"),
    [("bc", "normal(1,0.5)"), ("cdt", "normal(1,0.5)"), ("dt", "return(40)"), ("cdt", [0.5, 1.0]), ("bdt", None)],
)
def test_actions_on_logged_episodes_under_any_target(
    name: str, target: TargetLike | None, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    policy = untrained(METHODS[name], data, tmp_path, seeds=(2, 7))
    wanted = data[8] if target is None else target
    logged = policy.actions(data[3], wanted)
    controller = policy.controller(wanted, seed=7)
    one = controller.act(data[3].observations[0])  # of the same past, so far
    np.testing.assert_allclose(logged[1, 0], one, atol=2e-6)
    error = policy.action_error([data[3]], [wanted])
    half = policy.normalizers.action_half.numpy()
    np.testing.assert_allclose(error, np.square((logged - data[3].actions) / half).mean((1, 2)), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "conditioning"),
    [*((name, "nominal") for name in METHODS), *((name, "remaining") for name in ("dt", "cdt", "moments", "udrl"))],
)
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


def test_remaining_needs_a_feature_of_single_steps(tmp_path: Path) -> None:
    """Others are for nominal conditioning."""
    task = replace(hm.get_task("hopper"), features={"change": lambda obs, act, rew: np.diff(obs[:, 5], prepend=0.0)})
    data = hm.load_dataset(fallen_hoppers(range(12), 0.3), task)
    policy = untrained(hm.CDT("change"), data, tmp_path)
    assert np.isfinite(policy.match(data[3], episodes=2).w1)
    with pytest.raises(HimatchError, match="looks at more than one step"):
        policy.match(data[3], episodes=2, conditioning="remaining")
    controller = policy.controller(data[3], conditioning="remaining")
    controller.reset()
    controller.act(data[3].observations[0])
    controller.act(data[3].observations[1])
    with pytest.raises(HimatchError, match=r"^feature 'change' looks at more than one step"):  # no word about rewards
        controller.act(data[3].observations[2])


@pytest.mark.parametrize("batch", [None, 2])
def test_remaining_on_rewards_is_what_is_left(batch: int | None, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Rewards that use up the return early leave what a smaller return would have left from then on."""
    policy = untrained(hm.DT(), data, tmp_path)
    controllers = [
        policy.controller(f"return({total})", batch=batch, conditioning="remaining") for total in (900.0, 1000.0)
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
    with pytest.raises(HimatchError, match="the reward holds NaN"):
        controllers[0].act(seen[0], np.nan)
    np.testing.assert_array_equal(controllers[0].step, 12)  # refused calls leave no trace


def test_buffers_that_the_caller_writes_over_are_not_kept(policy: Policy, data: hm.TrajectoryDataset) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8, 11)).astype(np.float32)
    clean, reused = (policy.controller(data[3], conditioning="remaining") for _ in range(2))
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
        ({"noise": -1}, "0 or more, got -1"),
    ):
        with pytest.raises(HimatchError, match=message):
            policy.controller(data[3], **settings)  # type: ignore[arg-type]
    with pytest.raises(HimatchError, match=r"shape \(2, 11\), got \(11,\)"):
        policy.controller(data[3], batch=2).act(np.zeros(11))
    with pytest.raises(HimatchError, match=r"is a dataset of 12 episodes; a target is an expression, an episode"):
        policy.controller(data)


# -- robots with targets and clocks of their own ------------------------------------------------------------------


def actions_apart(
    controller: Controller, alone: list[Controller], steps: int, begin: Callable[[int], list[int]] = lambda step: []
) -> None:
    """Every robot of a batch acts as a controller of its own does, some beginning again now and then."""
    rng = np.random.default_rng(0)
    for step in range(steps):
        begun = begin(step)
        controller.reset(robots=begun)
        for robot in begun:
            alone[robot].reset()
        np.testing.assert_array_equal(controller.step, [one.step for one in alone])
        seen, rewards = rng.normal(size=(len(alone), 11)), rng.normal(size=len(alone))
        actions = controller.act(seen, None if step == 0 else rewards)
        for robot, one in enumerate(alone):
            reward = None if one.step == 0 else rewards[robot]
            np.testing.assert_allclose(actions[robot], one.act(seen[robot], reward), atol=2e-6)


@pytest.mark.parametrize(
    ("name", "conditioning"),
    [("cdt", "nominal"), ("cdt", "remaining"), ("dt", "remaining"), ("bdt", "nominal"), ("focal", "nominal")],
)
def test_each_robot_has_its_own_target_and_episode(
    name: str, conditioning: Conditioning, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    policy = untrained(METHODS[name], data, tmp_path, seeds=(2, 7))
    targets = [data[number] for number in (3, 8, 3)]
    together = policy.controller(targets, conditioning=conditioning)
    assert together.batch == 3
    alone = [policy.controller(target, conditioning=conditioning) for target in targets]
    actions_apart(together, alone, 14, lambda step: {2: [1], 3: [0, 1], 9: [2]}.get(step, []))
    together.reset()
    np.testing.assert_array_equal(together.step, 0)


def test_planned_targets_side_by_side(policy: Policy, data: hm.TrajectoryDataset) -> None:
    targets: list[TargetLike] = ["normal(0.2,0.1)", data[3], "0.5*normal(0,0.1)+0.5*normal(0.5,0.1)"]
    together = policy.controller(targets, batch=3, conditioning="planned")
    actions_apart(together, [policy.controller(one, conditioning="planned") for one in targets], 8, lambda s: [s % 3])


def test_robots_are_chosen_by_numbers_or_a_mask(policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller = policy.controller(data[3], batch=3)
    for robots, steps in (([0, 2], [0, 1, 0]), (np.array([False, True, False]), [1, 0, 1]), (1, [1, 0, 1]), ([], 1)):
        controller.reset()
        controller.act(np.ones((3, 11)))
        controller.reset(robots=robots)
        np.testing.assert_array_equal(controller.step, steps)
    for wrong in ([3], [True, False], [0.5], ["left"]):
        with pytest.raises(HimatchError, match="robots are numbers below 3, or a mask of 3"):
            controller.reset(robots=wrong)


@pytest.mark.parametrize(
    ("name", "conditioning"), [("cdt", "nominal"), ("cdt", "remaining"), ("bdt", "nominal"), ("focal", "nominal")]
)
def test_another_target_in_mid_episode(
    name: str, conditioning: Conditioning, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    """Z is as if it had been the target from the beginning; context and clock go on."""
    policy = untrained(METHODS[name], data, tmp_path)
    changed, kept, other = (policy.controller(data[number], conditioning=conditioning) for number in (3, 3, 8))
    for step, row in enumerate(np.random.default_rng(0).normal(size=(12, 11))):
        if step == 4:
            changed.retarget(data[8])
        assert changed.step == step
        action, same, _ = (controller.act(row) for controller in (changed, kept, other))
        assert np.allclose(action, same, atol=1e-6) == (step < 4)
        given = [
            c._player._z if c._player._target_states is None else c._player._target_states for c in (changed, other)
        ]
        assert np.array_equal(*given) == (step >= 4)  # type: ignore[call-overload]
    assert isinstance(changed.target, hm.Target)
    shown = changed.target.demonstration()
    assert shown is not None
    np.testing.assert_array_equal(shown.observations, data[8].observations)


def test_another_target_for_some_robots(policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller = policy.controller(["point(0)", "point(1)", "point(2)"])
    controller.act(np.ones((3, 11)))
    controller.retarget("normal(1,0.2)", robots=[1])
    controller.retarget(["point(3)", "point(4)"], robots=[True, False, True])
    assert isinstance(controller.target, tuple)
    names = [target.name for target in controller.target]
    assert names == ["point(3)", "normal(1,0.2)", "point(4)"]
    with pytest.raises(HimatchError, match=r"2 targets for 3 robot\(s\); give one, or one for each"):
        controller.retarget(["point(0)", "point(1)"])
    with pytest.raises(HimatchError, match=r"2 targets for 3 robot\(s\)"):
        policy.controller(["point(0)", "point(1)"], batch=3)
    with pytest.raises(AttributeError):
        controller.target = "point(1)"  # type: ignore[misc, assignment]
    numbers = policy.controller([0.1, 0.2, 0.3])  # samples of one target
    assert isinstance(numbers.target, hm.Target)
    assert [target.name for target in controller.target] == names


def test_a_vector_environment_that_begins_again_by_itself(policy: Policy, data: hm.TrajectoryDataset) -> None:
    same = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}
    envs = gymnasium.make_vec("Hopper-v5", 2, "sync", vector_kwargs=same, max_episode_steps=6)
    controller = policy.controller([data[3], data[8]], conditioning="remaining")
    seen, _ = envs.reset(seed=0)
    lengths, rewards = np.zeros(2, int), None
    for _ in range(15):
        np.testing.assert_array_equal(controller.step, lengths)
        seen, rewards, terminated, truncated, _ = envs.step(controller.act(seen, rewards))
        controller.reset(robots=terminated | truncated)
        lengths = np.where(terminated | truncated, 0, lengths + 1)
    envs.close()


def test_noise_of_ones_own(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    policy = untrained(hm.CDT("x_velocity"), data, tmp_path, seeds=(2,), head="gaussian")
    policy.temperature = 0.85
    first, same, again, other = (policy.controller(data[3], noise=noise).act(np.ones(11)) for noise in (None, 2, 5, 6))
    np.testing.assert_array_equal(first, same)  # by default that of the weights
    assert not np.allclose(first, again)
    assert not np.allclose(again, other)


def test_targets_that_the_data_does_not_cover_are_noted(policy: Policy) -> None:
    with pytest.warns(HimatchWarning, match=r"100% of normal\(40,1\) lies where no training episode goes") as caught:
        policy.controller("normal(40,1)", batch=3)
    assert len(caught) == 1


@pytest.mark.parametrize("failed", [3.4e38, -1e30, 1e300])
def test_a_sensor_that_failed_does_not_reach_the_context(
    failed: float, policy: Policy, data: hm.TrajectoryDataset
) -> None:
    seen = data[0].observations
    controller, undisturbed = (policy.controller("point(0)", seed=7) for _ in range(2))
    broken = seen[1].astype(np.float64)
    broken[8] = failed
    controller.act(seen[0])
    undisturbed.act(seen[0])
    with pytest.raises(HimatchError, match=r"obs\[8\] of the observation is -?[\d.]+e\+|holds NaN or infinity"):
        controller.act(broken)
    np.testing.assert_array_equal(controller.act(seen[1]), undisturbed.act(seen[1]))


def test_a_demonstration_that_is_over_is_noted(policy: Policy, data: hm.TrajectoryDataset) -> None:
    controller = policy.controller("point(0)", batch=2)
    for _ in range(3):
        controller.act(np.stack([data[0].observations[0]] * 2))
    controller.reset(1)
    with pytest.warns(HimatchWarning, match="lasts 3 steps, and this is step 3") as caught:
        controller.retarget(data[0][:3])
    assert len(caught) == 1  # the second robot is at its beginning
