from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import himatch as hm
from himatch.errors import DataError, TaskError
from himatch.statistics.features import Function, Stepwise, feature_names, resolve_feature
from himatch.tasks import FeatureFunction, Task

TASK = Task(
    "arm",
    50,
    observation_width=4,
    action_width=2,
    features={
        "first": 0,
        "pair": (1, 3),
        "speed": lambda obs, act, rew: np.abs(obs[:, 2]),
        "both": lambda obs, act, rew: np.stack([obs[:, 0], act[:, 1]], axis=1),
    },
)


@pytest.fixture
def trajectory() -> hm.Trajectory:
    rng = np.random.default_rng(3)
    return hm.Trajectory(rng.normal(size=(9, 4)), rng.normal(size=(9, 2)), rng.normal(size=9))


@pytest.mark.parametrize(
    "name", ["reward", "state", "first", "pair", "speed", "both", "obs[2]", "act[1]", "first,act[0]"]
)
def test_contract(name: str, trajectory: hm.Trajectory) -> None:
    """Every feature gives one finite row a step, a name per column, and comes back from its own name."""
    feature = resolve_feature(name, TASK)
    phi = feature(trajectory)
    assert phi.shape[0] == len(trajectory)
    assert phi.dtype == np.float32
    assert len(feature.names(phi.shape[1])) == phi.shape[1]
    np.testing.assert_array_equal(resolve_feature(feature.name, TASK)(trajectory), phi)


def test_what_each_one_reads(trajectory: hm.Trajectory) -> None:
    obs, act = trajectory.observations, trajectory.actions
    expected = {
        "pair": obs[:, [1, 3]],
        "speed": np.abs(obs[:, [2]]),
        "reward,obs[3]": np.stack([trajectory.rewards, obs[:, 3]], axis=1),  # type: ignore[list-item]
        "act[1]": act[:, [1]],
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(resolve_feature(name, TASK)(trajectory), values)


def test_names() -> None:
    assert feature_names(TASK, has_rewards=True) == ("reward", "first", "pair", "speed", "both")
    assert "reward" not in feature_names(TASK, has_rewards=False)
    assert resolve_feature("pair", TASK).names(2) == ("pair[0]", "pair[1]")
    assert resolve_feature("first,obs[1]", TASK).names(2) == ("first", "obs[1]")


@pytest.mark.parametrize("name", ["speeed", "obs[4]", "act[2]", "", "first,", "obs[x]"])
def test_unknown_features_are_refused(name: str) -> None:
    with pytest.raises(TaskError, match="arm"):
        resolve_feature(name, TASK)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (np.zeros(8), "shape"),
        (np.zeros((9, 2, 2)), "shape"),
        (np.zeros((9, 0)), "shape"),
        (np.where(np.arange(9) == 4, np.nan, 0), "step 4"),
    ],
)
def test_what_a_users_function_returns_is_checked(trajectory: hm.Trajectory, output: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Function("mine", lambda obs, act, rew: output)(trajectory)


def test_what_a_users_function_raises_is_one_line(trajectory: hm.Trajectory) -> None:
    def broken(obs: np.ndarray, act: np.ndarray, rew: np.ndarray | None) -> np.ndarray:
        raise KeyError("no such column\nand more")

    with pytest.raises(DataError, match=r"^feature 'mine' failed with KeyError: .*; mend its function$") as caught:
        Function("mine", broken)(trajectory)
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="'mine' failed with ValueError: could not convert string"):
        Function("mine", lambda obs, act, rew: ["many"] * len(obs))(trajectory)  # type: ignore[arg-type, return-value]


def test_a_function_of_rewards_needs_rewards() -> None:
    double = Function("double", lambda obs, act, rew: rew * 2)  # type: ignore[operator]
    shown = Function("shown", lambda obs, act, rew: rew.cumsum())  # type: ignore[union-attr]
    without = hm.Trajectory(np.zeros((3, 4)), np.zeros((3, 2)))
    for feature in (double, shown):
        with pytest.raises(DataError, match=rf"'{feature.name}' failed with .*Error: .*the data has no rewards"):
            feature(without)
    elsewhere = Function("elsewhere", lambda obs, act, rew: obs[:, 99])
    with pytest.raises(DataError, match=r"^feature 'elsewhere' failed with IndexError: .*; mend its function$"):
        elsewhere(without)


def test_reward_needs_rewards() -> None:
    with pytest.raises(DataError, match="no rewards"):
        resolve_feature("reward", TASK)(hm.Trajectory(np.zeros((3, 4)), np.zeros((3, 2))))


def test_a_feature_step_by_step_is_the_feature_of_the_episode(trajectory: hm.Trajectory) -> None:
    feature = Stepwise(resolve_feature("both,speed", TASK))
    found = [feature(trajectory.observations[t : t + 1], trajectory.actions[t : t + 1], None) for t in range(9)]
    np.testing.assert_array_equal(np.concatenate(found), feature.feature(trajectory))


SEVERAL_STEPS: dict[str, FeatureFunction] = {
    "difference": lambda obs, act, rew: np.diff(obs[:, 0], prepend=obs[:1, 0]),
    "difference ahead": lambda obs, act, rew: np.diff(obs[:, 0], append=obs[-1:, 0]),
    "gradient": lambda obs, act, rew: np.gradient(obs[:, 0]) if len(obs) > 1 else np.zeros(1),
    "mere gradient": lambda obs, act, rew: np.gradient(obs[:, 0]),
    "centred": lambda obs, act, rew: obs[:, 0] - obs[:, 0].mean(),
    "sum": lambda obs, act, rew: np.cumsum(rew),
    "clock": lambda obs, act, rew: np.arange(len(obs)),
    "long ago": lambda obs, act, rew: obs[:, 0] - np.concatenate([np.zeros(20), obs[:, 0]])[: len(obs)],
}


@pytest.mark.parametrize("rest", [0, 5])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", SEVERAL_STEPS)
def test_a_feature_of_several_steps_is_not_known_step_by_step(name: str, batch: int, rest: int) -> None:
    """Rows of a batch are no steps of one episode, and an episode may begin at rest."""
    rng = np.random.default_rng(3)
    feature = Stepwise(Function("change", SEVERAL_STEPS[name]))

    def go_on() -> None:
        for step in range(64):
            moving = step >= rest
            feature(*(moving * rng.normal(size=shape) for shape in ((batch, 4), (batch, 2), batch)))

    with pytest.raises(
        TaskError,
        match=r"^feature 'change' looks at more than one step.*planning again, need",
    ):
        go_on()


@given(
    rows=arrays(np.float32, (70, 4), elements=st.floats(-1000, 1000, width=32)),
    batch=st.integers(1, 5),
)
def test_features_of_single_steps_are_known_whatever_the_rows(rows: np.ndarray, batch: int) -> None:
    """Also across episodes, and among rollouts that are not always the same."""
    weights = np.random.default_rng(0).normal(size=(4, 3))
    feature = Stepwise(Function("mixed", lambda obs, act, rew: obs @ weights - np.abs(obs[:, :3])))
    for first in range(70 - batch):
        some = rows[first : first + 1 + first % batch]
        feature(some, some[:, :2], None if first % 3 else some[:, 0])


def test_a_task_is_known_by_its_name(hopper: hm.TrajectoryDataset) -> None:
    assert resolve_feature("x_velocity,reward", "hopper") == resolve_feature("x_velocity,reward", hopper.task)
    with pytest.raises(TaskError, match="unknown task 'hoper'"):
        resolve_feature("x_velocity", "hoper")
