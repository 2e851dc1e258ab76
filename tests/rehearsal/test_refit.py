"""Programs fitted to what they achieved."""

from __future__ import annotations

import numpy as np
import pytest

from himatch.rehearsal.refit import Fitter
from himatch.rollout.programs import ProgramPart
from himatch.statistics.bins import Bins

BINS = Bins((0.0,), (10.0,), 20)
SPEEDS = {"slow": 1.25, "middle": 4.25, "fast": 8.25}


def rows(*parts: tuple[float, int]) -> np.ndarray:
    return np.concatenate([np.full(steps, value, np.float32) for value, steps in parts])[:, None]


def fitter(*wanted: tuple[float, int]) -> Fitter:
    return Fitter(rows(*wanted), BINS, tuple(SPEEDS), [rows((speed, 50)) for speed in SPEEDS.values()])


def test_durations_are_those_of_the_nearest_mixture_of_what_the_parts_achieved() -> None:
    """The first part is entered late and the second is faster than its entry is by itself."""
    program = (ProgramPart("slow", 50), ProgramPart("fast", 50))
    achieved = [rows((1.25, 50), (9.25, 50)), rows((1.25, 50), (9.25, 50))]
    found = fitter((1.25, 30), (9.25, 70)).durations(program, achieved)
    assert found is not None
    assert [(part.entry, part.steps) for part in found] == [("slow", 30), ("fast", 70)]


def test_parts_that_are_of_no_use_are_left_out_and_what_lacks_comes_between() -> None:
    program = (ProgramPart("slow", 50), ProgramPart("fast", 50))
    achieved = [rows((1.25, 50), (8.25, 50))]
    assert fitter((8.25, 10)).durations(program, achieved) == (ProgramPart("fast", 100),)
    found = fitter((1.25, 25), (4.25, 50), (8.25, 25)).widened(program, achieved)
    assert found is not None
    assert [(part.entry, part.steps) for part in found] == [("slow", 25), ("middle", 50), ("fast", 25)]


def test_what_lacks_comes_on_the_way_down_too() -> None:
    program = (ProgramPart("fast", 50), ProgramPart("slow", 50))
    found = fitter((1.25, 25), (4.25, 50), (8.25, 25)).widened(program, [rows((8.25, 50), (1.25, 50))])
    assert found is not None
    assert [part.entry for part in found] == ["fast", "middle", "slow"]


@pytest.mark.parametrize("steps", [0, 40, 50])
def test_a_part_that_no_episode_reached_says_nothing(steps: int) -> None:
    program = (ProgramPart("slow", 50), ProgramPart("fast", 50))
    assert fitter((8.25, 10)).durations(program, [rows((1.25, steps))]) is None
    assert fitter((8.25, 10)).widened(program, [rows((1.25, steps))]) is None


def test_one_part_has_no_durations_to_fit() -> None:
    assert fitter((8.25, 10)).durations((ProgramPart("slow", 100),), [rows((1.25, 100))]) is None
