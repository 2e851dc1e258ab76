"""The batched simulator against Gymnasium itself, to the last bit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import DTypeLike

from himatch.errors import HimatchWarning, SimulationError
from himatch.simulation import locomotion, make_simulator
from himatch.simulation.batched import BatchedSimulator
from himatch.simulation.gymnasium_envs import GymnasiumSimulator
from himatch.simulation.models import load_model
from himatch.tasks import Task
from himatch.tasks.notices import quiet_loading
from himatch.tasks.registration import register_environments

COUNT = 2
HORIZON = 140


def task_of(env_id: str, horizon: int = HORIZON, **settings: Any) -> Task:
    return Task(name="test", env_id=env_id, horizon=horizon, env_kwargs=settings)


def gymnasium_env(env_id: str, horizon: int = HORIZON, **settings: Any) -> gymnasium.Env[Any, Any]:
    register_environments()  # Gymnasium alone does not know the paper's own
    with quiet_loading(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*out of date", DeprecationWarning)  # v4
        return gymnasium.make(env_id, max_episode_steps=horizon, **settings)


CASES: list[tuple[str, Mapping[str, Any], DTypeLike]] = [
    ("HalfCheetah-v5", {}, np.float32),
    ("HalfCheetah-v5", {"exclude_current_positions_from_observation": False, "frame_skip": 3}, np.float64),
    ("HalfCheetah-v4", {"ctrl_cost_weight": 0.3}, np.float32),
    ("Hopper-v5", {}, np.float32),
    ("Hopper-v5", {"terminate_when_unhealthy": False, "healthy_state_range": (-3, 3)}, np.float64),
    ("Hopper-v4", {"terminate_when_unhealthy": False, "healthy_reward": 2}, np.float32),
    ("Hopper-v4", {}, np.float64),
    ("Walker2d-v5", {}, np.float32),
    ("Walker2d-v4", {"reset_noise_scale": 0.02}, np.float32),
    ("Ant-v5", {"include_cfrc_ext_in_observation": False}, np.float32),
    ("Ant-v5", {"contact_force_range": (-0.5, 2.0)}, np.float64),
    ("Ant-v4", {}, np.float32),
    ("Ant-v4", {"use_contact_forces": True}, np.float32),
    ("himatch/CheetahVel-v0", {"velocity": 2.5}, np.float32),
    ("himatch/BackflipCheetah-v0", {}, np.float32),
    ("himatch/BackflipCheetah-v0", {"direction": -1.0}, np.float64),
]


@pytest.mark.parametrize(("env_id", "settings", "dtype"), CASES)
def test_every_number_is_gymnasiums(env_id: str, settings: Mapping[str, Any], dtype: DTypeLike) -> None:
    simulator = make_simulator(task_of(env_id, **settings), COUNT)
    assert isinstance(simulator, BatchedSimulator)
    envs = [gymnasium_env(env_id, **settings) for _ in range(COUNT)]
    np.testing.assert_array_equal(simulator.reset([3, 4]), [env.reset(seed=3 + i)[0] for i, env in enumerate(envs)])
    rng, seed = np.random.default_rng(0), 10
    terminations = truncations = 0
    for step in range(300):
        # Actions in and beyond the range; some stretches stand still, so that Ant lies in contact with the ground.
        actions = rng.uniform(-1.5, 1.5, (COUNT, simulator.action_width)).astype(dtype) * (step % 100 < 70)
        after = simulator.step(actions)
        for i, env in enumerate(envs):
            observation, reward, terminated, truncated, _ = env.step(actions[i])
            np.testing.assert_array_equal(after.observations[i], observation)
            assert (after.rewards[i], after.terminated[i], after.truncated[i]) == (reward, terminated, truncated)
            if terminated or truncated:
                terminations, truncations, seed = terminations + terminated, truncations + truncated, seed + 1
                np.testing.assert_array_equal(simulator.reset([seed], [i])[0], env.reset(seed=seed)[0])
    falls = "healthy_z_range" in locomotion.ENVIRONMENTS[env_id].settings
    if falls and settings.get("terminate_when_unhealthy", True):
        assert terminations
    else:
        assert truncations == COUNT * (300 // HORIZON)


@pytest.mark.parametrize("env_id", ["Hopper-v5", "Ant-v5"])
def test_the_number_of_threads_changes_nothing(env_id: str) -> None:
    results = []
    for threads in (1, 3):
        simulator = make_simulator(task_of(env_id, horizon=60), 5, threads=threads)
        simulator.reset(range(5))
        rng = np.random.default_rng(1)
        results.append([simulator.step(rng.uniform(-1, 1, (5, simulator.action_width))) for _ in range(60)])
    for one, three in zip(*results, strict=True):
        for mine, theirs in zip(one, three, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_each_simulation_may_have_its_own_settings() -> None:
    settings: list[dict[str, Any]] = [
        {"terminate_when_unhealthy": False, "ctrl_cost_weight": 0.5, "reset_noise_scale": 0.1},
        {"healthy_z_range": [1.2, 1.26], "healthy_reward": 3.0},
        {},
    ]
    simulator = make_simulator(task_of("Hopper-v5"), 3, settings=settings)
    assert isinstance(simulator, BatchedSimulator)
    envs = [gymnasium_env("Hopper-v5", **own) for own in settings]
    np.testing.assert_array_equal(simulator.reset([1, 1, 1]), [env.reset(seed=1)[0] for env in envs])
    ended = np.zeros(3, dtype=bool)
    for actions in np.random.default_rng(0).uniform(-1, 1, (50, 3, 3)).astype(np.float32):
        after = simulator.step(actions)
        for i in np.flatnonzero(~ended):
            observation, reward, terminated, _, _ = envs[i].step(actions[i])
            np.testing.assert_array_equal(after.observations[i], observation)
            assert (after.rewards[i], after.terminated[i]) == (reward, terminated)
            ended[i] = terminated
    assert ended.tolist() == [False, True, False]


def test_target_velocities_differ_between_simulations() -> None:
    velocities = np.linspace(0.0, 3.0, 4)
    simulator = make_simulator("cheetah-vel", 4, settings=[{"velocity": v} for v in velocities])
    assert isinstance(simulator, BatchedSimulator)
    simulator.reset([5] * 4)
    rewards = simulator.step(np.zeros((4, 6))).rewards
    assert len(set(rewards.tolist())) == 4
    np.testing.assert_allclose(np.diff(rewards)[1:], -1.0)  # the start is slower than all but the first


@pytest.mark.parametrize("env_id", ["Hopper-v5", "Ant-v5"])
def test_simulations_that_ended_or_rest_are_left_alone(env_id: str) -> None:
    simulator = make_simulator(task_of(env_id, horizon=12), 4, threads=2)
    alone = make_simulator(task_of(env_id, horizon=12), 1)
    simulator.reset([0, 1, 2, 3])
    alone.reset([2])
    simulator.rest([1, 3])
    assert simulator.active.tolist() == [True, False, True, False]
    resting = simulator.observations[[1, 3]]
    rng = np.random.default_rng(0)
    for step in range(12):
        if step == 5:
            simulator.rest([0])
            frozen = simulator.observations[0]
        actions = rng.uniform(-0.1, 0.1, (4, simulator.action_width))
        reference = alone.step(actions[2:3])
        actions[1] = np.nan  # what a simulation at rest is told does not matter
        after = simulator.step(actions)
        np.testing.assert_array_equal(after.observations[2], reference.observations[0])
        assert after.rewards[2] == reference.rewards[0]
        np.testing.assert_array_equal(after.observations[[1, 3]], resting)
        assert after.rewards[[1, 3]].tolist() == [0.0, 0.0]
        if step >= 5:
            np.testing.assert_array_equal(after.observations[0], frozen)
            assert not after.terminated[0]
            assert not after.truncated[0]
    assert after.truncated.tolist() == [False, False, True, False]
    assert not simulator.active.any()
    final = simulator.step(np.zeros((4, simulator.action_width)))
    np.testing.assert_array_equal(final.observations, after.observations)
    assert final.rewards.tolist() == [0.0] * 4
    assert final.truncated.tolist() == [False, False, True, False]
    started = simulator.reset([7, 8], [3, 0])
    assert simulator.active.tolist() == [True, False, False, True]
    np.testing.assert_array_equal(started[0], alone.reset([7])[0])
    np.testing.assert_array_equal(simulator.observations[[3, 0]], started)
    assert not simulator.step(np.zeros((4, simulator.action_width))).truncated[3]


def test_what_was_handed_out_does_not_change() -> None:
    simulator = make_simulator("hopper", 3)
    simulator.reset(range(3))
    after = simulator.step(np.zeros((3, 3)))
    kept = [np.array(part) for part in after]
    simulator.reset([9], [1])
    simulator.step(np.ones((3, 3)))
    for part, copy in zip(after, kept, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_what_the_batch_cannot_do_is_left_to_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_simulator("hopper", 1, settings={"width": 64}), GymnasiumSimulator)
    assert isinstance(make_simulator("hopper", 1, settings={"ctrl_cost_weight": np.float64(0.1)}), GymnasiumSimulator)
    mixed: list[dict[str, Any]] = [{"frame_skip": 2}, {}]
    assert isinstance(make_simulator("hopper", 2, settings=mixed), GymnasiumSimulator)
    monkeypatch.setattr(locomotion, "find_spec", lambda name: None)  # an older MuJoCo
    assert isinstance(make_simulator("hopper", 1), GymnasiumSimulator)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.zeros((2, 4)), r"shape \(2, 3\), got \(2, 4\)"),
        (np.zeros(3), r"shape \(2, 3\)"),
        (np.array([[0.0] * 3, [0.0, np.nan, 0.0]]), "simulation 1 holds NaN or infinity at step 1"),
        (np.full((2, 3), np.inf, dtype=np.float32), "simulation 0 holds NaN or infinity"),
        ([["a", "b", "c"]] * 2, "not numbers"),
    ],
)
def test_bad_actions_are_refused(actions: Any, message: str) -> None:
    simulator = make_simulator("hopper", 2)
    with pytest.raises(SimulationError, match="before the first step"):
        simulator.step(np.zeros((2, 3)))
    simulator.reset([0, 1])
    simulator.step([[0, 0, 0], [1, 1, 1]])
    before = simulator.observations
    with pytest.raises(SimulationError, match=message):
        simulator.step(actions)
    np.testing.assert_array_equal(simulator.observations, before)


def test_bad_requests_are_refused() -> None:
    simulator = make_simulator("hopper", 2)
    for seeds, ids, message in (
        ([0], None, "1 seeds for 2 simulations"),
        ([0, 1], [0, 0], "twice"),
        ([0], [2], "no simulation 2; they are numbered 0 to 1"),
        ([0], [-1], "no simulation -1"),
        ([-5], [0], "whole number from 0 up"),
        ([0], [0.5], "numbers of simulations"),
    ):
        with pytest.raises(SimulationError, match=message):
            simulator.reset(seeds, ids)  # type: ignore[arg-type]
    with pytest.raises(SimulationError, match="at least one"):
        make_simulator("hopper", 0)
    with pytest.raises(SimulationError, match="threads"):
        make_simulator("hopper", 1, threads=-1)
    with pytest.raises(SimulationError, match="3 settings for 2"):
        make_simulator("hopper", 2, settings=[{}] * 3)
    with pytest.raises(SimulationError, match="no environment"):
        make_simulator(Task(name="logs", horizon=3), 1)
    assert "hopper" in repr(simulator)


def test_mujoco_failing_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from mujoco.batch import SimulationError as MujocoError

    simulator = make_simulator("hopper", 2)
    assert isinstance(simulator, BatchedSimulator)
    simulator.reset([0, 1])

    def fail(*arguments: Any) -> None:
        raise MujocoError(np.array([1]), "out of memory", 2)

    monkeypatch.setitem(simulator._batch.__dict__, "step", fail)
    with pytest.raises(SimulationError, match=r"cannot go on with task hopper: .*simulation 1: out of memory"):
        simulator.step(np.zeros((2, 3)))


def test_loading_is_quiet_and_writes_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import mujoco

    monkeypatch.chdir(tmp_path)
    make_simulator("halfcheetah", 1)
    load_model("half_cheetah.xml")
    gymnasium.make("himatch/CheetahVel-v0").close()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")

    model = load_model("hopper.xml")

    def blow_up() -> None:
        data = mujoco.MjData(model)
        data.qpos[0] = np.nan
        mujoco.mj_step(model, data)

    with pytest.warns(HimatchWarning, match="MuJoCo: Nan, Inf or huge value"), quiet_loading():
        blow_up()
    heard: list[str] = []
    mujoco.set_mju_user_warning(heard.append)
    try:
        with quiet_loading():
            blow_up()
        blow_up()
    finally:
        mujoco.set_mju_user_warning(None)
    assert len(heard) == 2
    assert list(tmp_path.iterdir()) == []


def test_quiet_loading_in_several_threads_leaves_nothing_behind() -> None:
    import mujoco

    before, blocks = mujoco.get_mju_user_warning(), [quiet_loading(), quiet_loading()]
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        for thread, block in ((one, blocks[0]), (other, blocks[1])):
            thread.submit(block.__enter__).result()
        for thread, block in ((one, blocks[0]), (other, blocks[1])):  # whoever came first leaves first
            thread.submit(block.__exit__, None, None, None).result()
    assert mujoco.get_mju_user_warning() is before
