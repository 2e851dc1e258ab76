"""GraphedStep episodes: order, queue, labels, and that they replay in Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import himatch as hm
from himatch.errors import SimulationError
from himatch.simulation import make_simulator, record

Observations = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Noise:
    """Random actions that depend on the episode and the step alone."""

    def __init__(self, width: int, scale: float = 1.0, horizon: int = 1000) -> None:
        self.width, self.scale, self.horizon = width, scale, horizon
        self.calls: list[Numbers] = []

    def __call__(self, observations: Observations, episodes: Numbers, steps: Numbers) -> Observations:
        self.calls.append(episodes)
        actions = np.full((len(episodes), self.width), np.nan)  # rows of simulations at rest are not looked at
        for slot, (episode, step) in enumerate(zip(episodes, steps, strict=True)):
            if episode >= 0:
                generator = np.random.default_rng([episode, step])
                actions[slot] = self.scale * generator.uniform(-1, 1, self.width)
        observations[:] = 0.0  # a behaviour may use its argument as scratch
        return actions


def test_episodes_come_in_order_whatever_the_number_of_simulations() -> None:
    seeds = [11, 5, 7, 5, 3, 2, 19]
    expected: list[hm.Trajectory] | None = None
    for count, threads in ((7, 1), (3, 2), (1, 1), (10, 3)):
        behaviour, finished = Noise(3), [0]

        def progress(n: int, finished: list[int] = finished) -> None:
            finished[0] += n

        simulator = make_simulator("hopper", count, threads=threads)
        episodes = record(simulator, behaviour, seeds, labels=[str(s) for s in seeds], progress=progress)
        assert finished == [7]
        assert [e.label for e in episodes] == [str(s) for s in seeds]
        assert not simulator.active.any()
        assert all(e.terminated and 5 < len(e) < 200 for e in episodes)
        for i, episode in enumerate(episodes):
            assert sum((call == i).any() for call in behaviour.calls) == len(episode)
        if expected is None:
            expected = episodes
        for one, other in zip(expected, episodes, strict=True):
            np.testing.assert_array_equal(one.observations, other.observations)
            np.testing.assert_array_equal(one.actions, other.actions)
            np.testing.assert_array_equal(one.rewards, other.rewards)
            np.testing.assert_array_equal(one.final_observation, other.final_observation)


@pytest.mark.parametrize("name", ["walker2d", "cheetah-vel", "ant"])
def test_recorded_actions_replay_in_gymnasium(name: str) -> None:
    task = hm.get_task(name)
    assert task.env_id is not None
    simulator = make_simulator(name, 2)
    episodes = record(simulator, Noise(simulator.action_width, 1.3), [1, 2, 3], labels="random")
    env = gymnasium.make(task.env_id, **task.env_kwargs)
    for seed, episode in zip([1, 2, 3], episodes, strict=True):
        assert episode.label == "random"
        observation, _ = env.reset(seed=seed)
        assert episode.rewards is not None
        for t, action in enumerate(episode.actions):
            np.testing.assert_array_equal(episode.observations[t], observation.astype(np.float32))
            observation, reward, terminated, truncated, _ = env.step(action)
            assert episode.rewards[t] == np.float32(reward)
            assert (terminated or truncated) == (t == len(episode) - 1)
        assert episode.terminated == terminated
        np.testing.assert_array_equal(episode.final_observation, observation.astype(np.float32))
        assert terminated or len(episode) == task.horizon


def test_no_seeds_no_episodes() -> None:
    simulator = make_simulator("hopper", 2)
    simulator.reset([0, 1])
    assert record(simulator, Noise(3), []) == []


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.zeros((2, 4)), r"shape \(2, 3\), got \(2, 4\) \(episode 0, step 4\)"),
        ("fast", r"numbers of shape \(2, 3\) \(episode 0, step 4\)"),
        ([[0, 0, 0], [0, np.nan, 0]], "NaN or infinity in episode 1 at step 4"),
        ([[1e300, 0, 0], [0, 0, 0]], "NaN or infinity in episode 0 at step 4"),
    ],
)
def test_a_bad_behaviour_is_told_where(returned: Any, message: str) -> None:
    def behaviour(observations: Observations, episodes: Numbers, steps: Numbers) -> Any:
        return returned if steps[0] == 4 else np.zeros((2, 3))

    with pytest.raises(SimulationError, match=message):
        record(make_simulator("hopper", 2), behaviour, range(4))
    with pytest.raises(SimulationError, match="1 labels for 2 episodes"):
        record(make_simulator("hopper", 2), behaviour, [0, 1], labels=["one"])
