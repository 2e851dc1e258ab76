"""Episodes and stretches that are far apart, in the place of all of them."""

from __future__ import annotations

import numpy as np
import pytest

import himatch as hm
from himatch.errors import TargetError
from himatch.targets import far_apart, some_episodes, some_stretches


def reference_of(*episodes: np.ndarray) -> hm.EpisodeReference:
    """Hoppers with these rewards, which the horizon does not end."""
    logged = [hm.Trajectory(np.zeros((len(v), 11)), np.zeros((len(v), 3)), v.astype(np.float32)) for v in episodes]
    return hm.EpisodeReference.of(hm.load_dataset(logged, "hopper"), "reward", horizon=100)


def test_some_are_far_apart() -> None:
    reference = reference_of(*(np.full(100, x) for x in (0, 0.1, 0.2, 5, 5.1, 9.9, 10)))
    chosen = far_apart(reference, 3)
    assert sorted(round(float(reference.episode(i)[0, 0])) for i in chosen) == [0, 5, 10]
    assert far_apart(reference, 20) == list(range(7))
    some, numbers = some_episodes(reference, 3)
    assert list(numbers) == chosen
    for place, number in enumerate(numbers):
        np.testing.assert_array_equal(some.episode(place), reference.episode(number))


def test_stretches_are_cut_one_after_another_and_not_from_the_end_of_a_fall() -> None:
    reference = reference_of(np.arange(100.0), 200 + np.arange(50.0), np.zeros(9))
    some, places = some_stretches(reference, 20, 100)
    assert sorted(places) == [(0, first) for first in range(0, 100, 20)] + [(1, 0), (1, 20)]
    assert set(some.lengths.tolist()) == {20}
    for place, (episode, first) in enumerate(places):
        np.testing.assert_array_equal(some.episode(place), reference.episode(episode)[first : first + 20])
    assert len(some_stretches(reference, 20, 4)[1]) == 4


def test_no_episode_is_long_enough() -> None:
    with pytest.raises(TargetError, match="there are no stretches of 101 steps: the longest training episode has 100"):
        some_stretches(reference_of(np.arange(100.0)), 101, 10)
    with pytest.raises(TargetError, match="has 50, and its last tenth is left out"):
        some_stretches(reference_of(np.arange(50.0)), 48, 10)
