from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import himatch as hm
from himatch.errors import DataError
from himatch.types import concatenate


def make(steps: int = 5, **changes: object) -> hm.Trajectory:
    fields: dict[str, object] = {
        "observations": np.arange(steps * 2.0).reshape(steps, 2),
        "actions": np.zeros((steps, 1)),
        "rewards": np.ones(steps),
        "final_observation": np.array([100.0, 101.0]),
        "terminated": True,
    }
    return hm.Trajectory(**{**fields, **changes})  # type: ignore[arg-type]


def test_arrays_are_read_only_single_precision() -> None:
    trajectory = make()
    assert trajectory.observations.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        trajectory.observations[0, 0] = 3


@pytest.mark.parametrize("zeros", [partial(np.zeros, dtype=np.float32), np.zeros, torch.zeros])
def test_a_buffer_may_be_filled_anew_for_the_next_episode(zeros: Callable[[tuple[int, ...]], Any]) -> None:
    shapes = {"observations": (4, 2), "actions": (4, 1), "rewards": (4,), "final_observation": (2,)}
    buffers = {name: zeros(shape) for name, shape in shapes.items()}
    episodes = []
    for number in range(3):
        for buffer in buffers.values():
            buffer[:] = number
        episodes.append(hm.Trajectory(**buffers))
    for number, episode in enumerate(episodes):
        for name in buffers:
            assert (getattr(episode, name) == number).all()


def test_what_nobody_changes_is_not_copied(tmp_path: Path) -> None:
    fixed = np.zeros((4, 2), dtype=np.float32)
    fixed.flags.writeable = False
    assert np.shares_memory(hm.Trajectory(fixed, fixed).observations, fixed)
    np.save(tmp_path / "log.npy", fixed)
    for mode in ("r", "c", "r+"):
        mapped = np.load(tmp_path / "log.npy", mmap_mode=mode)  # type: ignore[arg-type]
        episode = hm.Trajectory(mapped[1:], mapped[1:])
        assert np.shares_memory(episode.observations, mapped)
        assert not episode.observations.flags.writeable
    whole = make(5)
    assert np.shares_memory(whole[1:3].observations, whole.observations)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": np.zeros((5,))}, "shape"),
        ({"observations": np.zeros((0, 2)), "actions": np.zeros((0, 1))}, "no steps"),
        ({"actions": np.zeros((4, 1))}, "5 observations but 4 actions"),
        ({"rewards": np.zeros(6)}, "6 rewards"),
        ({"observations": np.where(np.arange(10) == 6, np.nan, 0.0).reshape(5, 2)}, "step 3"),
        ({"rewards": np.array([0, 0, np.inf, 0, 0])}, "step 2"),
        ({"observations": np.full((5, 2), 1e300)}, "infinity"),
        ({"final_observation": np.zeros(3)}, "3 numbers"),
        ({"actions": np.array([["a"]] * 5)}, "not numbers"),
    ],
)
def test_bad_episodes_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        make(**changes)


def test_a_cut_ends_with_the_observation_that_follows() -> None:
    cut = make()[1:3]
    assert len(cut) == 2
    assert not cut.terminated
    np.testing.assert_array_equal(cut.final_observation, [6, 7])
    whole = make()[:]
    assert whole.terminated
    np.testing.assert_array_equal(whole.final_observation, [100, 101])


def test_an_empty_or_strided_cut_is_refused() -> None:
    for cut in (slice(3, 3), slice(0, 5, 2)):
        with pytest.raises(DataError):
            make()[cut]


def test_patchwork() -> None:
    joined = concatenate(make(4)[:2], make(6))
    assert len(joined) == 8
    assert joined.terminated
    assert joined.total_reward == 8.0
    with pytest.raises(DataError, match="width"):
        concatenate(make(), make(observations=np.zeros((5, 3)), final_observation=None))


def test_repr_says_what_it_is() -> None:
    assert repr(make(label="run")) == "Trajectory(5 steps, obs 2, act 1, return 5.0, terminated, label 'run')"


def test_return_needs_rewards() -> None:
    with pytest.raises(DataError, match="no rewards"):
        _ = make(rewards=None).total_reward
