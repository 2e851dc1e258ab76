"""The Gymnasium simulator against single environments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from himatch.errors import HimatchError, SimulationError
from himatch.simulation import make_simulator
from himatch.simulation.batched import BatchedSimulator
from himatch.simulation.gymnasium_envs import GymnasiumSimulator, MakeEnv
from himatch.tasks import Task

PENDULUM = Task(name="pendulum", env_id="Pendulum-v1", horizon=40)


class Countdown(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """Ends after as many steps as its seed says; stepping it further is a mistake."""

    observation_space = gymnasium.spaces.Box(-1, 1000, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        self.left = seed or 0
        return np.array([self.left], np.float32), {}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        assert self.left > 0, "stepped after its end"
        self.left -= 1
        return np.array([self.left], np.float32), 1.0, self.left == 0, False, {}


def test_it_gives_what_single_environments_give() -> None:
    simulator = make_simulator(PENDULUM, 3)
    assert isinstance(simulator, GymnasiumSimulator)
    envs = [gymnasium.make("Pendulum-v1", max_episode_steps=40) for _ in range(3)]
    np.testing.assert_array_equal(simulator.reset([4, 5, 6]), [env.reset(seed=4 + i)[0] for i, env in enumerate(envs)])
    rng = np.random.default_rng(0)
    for step in range(100):
        actions = rng.uniform(-2, 2, (3, 1)).astype(np.float32)
        after = simulator.step(actions)
        for i, env in enumerate(envs):
            observation, reward, terminated, truncated, _ = env.step(actions[i])
            np.testing.assert_array_equal(after.observations[i], observation)
            assert (after.rewards[i], after.terminated[i], after.truncated[i]) == (reward, terminated, truncated)
            assert truncated == (step % 40 == 39)
            if truncated:
                np.testing.assert_array_equal(simulator.reset([step], [i])[0], env.reset(seed=step)[0])
    simulator.close()


def test_it_equals_the_batched_simulator() -> None:
    batched = make_simulator("hopper", 2)
    fallback = make_simulator("hopper", 2, settings={"width": 64})  # the size of a picture: the batch has none
    assert isinstance(batched, BatchedSimulator)
    assert isinstance(fallback, GymnasiumSimulator)
    np.testing.assert_array_equal(batched.reset([0, 1]), fallback.reset([0, 1]))
    for actions in np.random.default_rng(0).uniform(-1.2, 1.2, (60, 2, 3)):
        for ours, theirs in zip(batched.step(actions), fallback.step(actions), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_environments_that_ended_are_not_stepped() -> None:
    simulator = make_simulator(Task(name="countdown", horizon=6), 4, make_env=Countdown)
    simulator.reset([2, 9, 3, 5])
    simulator.rest([3])
    for _ in range(8):
        after = simulator.step(np.zeros((4, 1)))
    assert after.observations.ravel().tolist() == [0, 3, 0, 5]
    assert after.terminated.tolist() == [True, False, True, False]
    assert after.truncated.tolist() == [False, True, False, False]  # by the task's horizon
    assert after.rewards.tolist() == [0, 0, 0, 0]
    simulator.reset([1], [2])
    after = simulator.step(np.zeros((4, 1)))
    assert after.rewards.tolist() == [0, 0, 1, 0]
    assert simulator.reset([], []).shape == (0, 1)
    assert "countdown" in repr(simulator)


def test_what_cannot_be_simulated_is_refused_by_name() -> None:
    def task(env_id: str) -> Task:
        return Task(name="test", env_id=env_id, horizon=5)

    with pytest.raises(HimatchError, match=r"the observation of FrozenLake-v1 is a Discrete space"):
        make_simulator(task("FrozenLake-v1"), 1)
    with pytest.raises(SimulationError, match="cannot make 'NoSuchEnv-v0'"):
        make_simulator(task("NoSuchEnv-v0"), 1)
    with pytest.raises(SimulationError, match=r"does not take the settings {'gravity': 3}"):
        make_simulator(PENDULUM, 1, settings={"gravity": 3})
    with pytest.raises(SimulationError, match="not both"):
        make_simulator(PENDULUM, 1, settings={"g": 3.0}, make_env=Countdown)
    mixed: list[dict[str, Any]] = [{"exclude_current_positions_from_observation": e} for e in (True, False)]
    with pytest.raises(SimulationError, match="differ in the width"):
        make_simulator("hopper", 2, settings=mixed)


@pytest.mark.parametrize("wrong", ["fails", "differs"])
def test_a_simulator_that_cannot_be_made_leaves_nothing_open(wrong: str) -> None:
    closed: list[int] = []

    class Noted(Countdown):
        def __init__(self, number: int) -> None:
            self.number = number
            if number == 2 and wrong == "fails":
                raise RuntimeError("no more licences")
            if number == 2:
                self.action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

        def close(self) -> None:
            closed.append(self.number)

    makers: list[MakeEnv] = [partial(Noted, number) for number in range(3)]
    with pytest.raises(SimulationError, match="no more licences" if wrong == "fails" else "differ in the width"):
        GymnasiumSimulator(Task(name="noted", horizon=6), makers)
    assert closed == ([0, 1] if wrong == "fails" else [0, 1, 2])


def test_each_environment_may_have_its_own_settings() -> None:
    simulator = make_simulator(PENDULUM, 2, settings=[{"g": 0.0}, {"g": 10.0}])
    first = simulator.reset([1, 1])
    np.testing.assert_array_equal(first[0], first[1])
    after = simulator.step(np.zeros((2, 1)))
    assert after.observations[0, 2] != after.observations[1, 2]


# -- environments that go wrong -------------------------------------------------------------------------------------


def broken(call: str, does: Callable[[Any], object], *, from_step: int = 0) -> MakeEnv:
    """Makes an environment whose ``call`` does that with what it should return, or with whatever it is given."""

    class Broken(Countdown):
        steps = -1

    def reset(self: Any, *, seed: int | None = None, options: object = None) -> object:
        found = Countdown.reset(self, seed=seed)
        return does(found) if call == "reset" else found

    def step(self: Any, action: NDArray[np.float32]) -> object:
        found = Countdown.step(self, action)
        self.steps += 1
        return does(found) if call == "step" and self.steps >= from_step else found

    Broken.reset, Broken.step = reset, step  # type: ignore[method-assign, assignment]
    return Broken


def failing(_: object) -> object:
    raise RuntimeError("motor bus down\nand more")


class Unseeded(Countdown):
    def reset(self) -> tuple[NDArray[np.float32], dict[str, Any]]:  # type: ignore[override]
        return super().reset(seed=5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (broken("reset", failing), r"Broken: reset\(seed=...\) failed with RuntimeError: motor bus down; mend"),
        (broken("step", failing), r"Broken: step\(action\) failed with RuntimeError: motor bus down; mend"),
        (Unseeded, r"Unseeded: reset.*failed with TypeError.*'seed'; Gymnasium's reset\(seed=...\) returns obs"),
        (broken("reset", lambda found: found[0]), "reset.*returned one ndarray; Gymnasium's returns observation, in"),
        (broken("step", lambda found: found[:4]), "step.*returned 4 values; Gymnasium's returns observation, rew"),
        (broken("reset", lambda found: (np.zeros(3), {})), r"reset.*observation of shape \(3,\), not \(1,\) as its"),
        (broken("step", lambda found: (np.zeros(2), *found[1:])), r"step.*observation of shape \(2,\), not \(1,\)"),
        (broken("step", lambda found: (found[0], "much", *found[2:])), "step.*failed with ValueError.*returns obs"),
        (broken("reset", lambda found: (found[0] * np.nan, {})), "the observation of simulation 0 .*after 0 steps;"),
        (
            broken("step", lambda found: (found[0] * np.nan, *found[1:]), from_step=2),
            "Broken: the observation of simulation 0 holds NaN .* after 3 steps; mend the environment",
        ),
        (
            broken("step", lambda found: (np.array([1e200]), *found[1:])),
            "the observation of simulation 0 holds .*beyond single precision.* after 1 steps",
        ),
        (
            broken("step", lambda found: (found[0], np.inf, *found[2:]), from_step=1),
            "Broken: the reward of simulation 0 holds NaN or infinity .* after 2 steps; mend the environment",
        ),
        (lambda: failing(None), "environment of countdown cannot be made: RuntimeError: motor bus down"),
        (lambda: 3, "gave int, no gymnasium.Env"),
    ],
)
def test_what_an_environment_does_wrong_is_one_line(make: MakeEnv, message: str) -> None:
    def play() -> None:
        simulator = make_simulator(Task(name="countdown", horizon=6), 1, make_env=make)
        simulator.reset([5])
        for _ in range(4):
            simulator.step(np.zeros((1, 1)))

    with pytest.raises(SimulationError, match=message) as caught:
        play()
    assert "\n" not in str(caught.value)


def test_what_gymnasiums_wrappers_stumble_over_is_explained() -> None:
    gymnasium.register("FourValues-v0", broken("step", lambda found: found[:4]))
    simulator = make_simulator(Task(name="four", env_id="FourValues-v0", horizon=5), 1)
    simulator.reset([3])
    with pytest.raises(SimulationError, match=r"FourValues-v0: step.*expected 5, got 4.*returns observation, reward, "):
        simulator.step(np.zeros((1, 1)))
    gymnasium.registry.pop("FourValues-v0")


def test_no_message_names_an_argument_that_matching_does_not_have() -> None:
    with pytest.raises(SimulationError, match=r"registers it first.*\(env=...\)$"):
        make_simulator(Task(name="test", env_id="NoSuchEnv-v0", horizon=5), 1)
    with pytest.raises(SimulationError, match="has no environment; register it with an env_id"):
        make_simulator(Task(name="test", horizon=5), 1)
