"""Variations of programs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from himatch.rehearsal.mutations import SHORTEST, Choices, tidied, varied
from himatch.rollout.programs import Program, ProgramPart, read, written

ENTRIES = tuple(f"normal({i}, 1)" for i in range(9))
CHOICES = Choices(ENTRIES, np.ones(len(ENTRIES)))

parts = st.tuples(st.sampled_from((*ENTRIES, "target")), st.integers(1, 400))
programs = st.lists(parts, min_size=1, max_size=6).map(lambda some: tuple(ProgramPart(*part) for part in some))


def steps(program: Program) -> int:
    return sum(part.steps for part in program)


@given(programs, st.integers(0, 2**32 - 1))
def test_a_variation_is_a_program_as_long(program: Program, seed: int) -> None:
    rng, whole = np.random.default_rng(seed), steps(program)
    for _ in range(4):
        program = varied(program, CHOICES, rng)
        assert steps(program) == whole
        assert all(one.entry != other.entry for one, other in pairwise(program))
        assert len(program) == 1 or min(part.steps for part in program) >= round(SHORTEST * whole)
        assert {part.entry for part in program} <= {*ENTRIES, "target"}


@given(programs, st.integers(1, 2000))
def test_tidied_programs_stay_as_they_are(program: Program, whole: int) -> None:
    once = tidied(program, whole)
    assert steps(once) == whole
    assert tidied(once, whole) == once
    assert read(written(once)) == once


def test_every_kind_of_variation_comes_up() -> None:
    """Durations, entries, order, and more or fewer parts."""
    rng, program = np.random.default_rng(0), (ProgramPart(ENTRIES[2], 400), ProgramPart(ENTRIES[6], 600))
    found = [varied(program, CHOICES, rng) for _ in range(300)]
    entries = [tuple(part.entry for part in one) for one in found]
    assert any(e == (ENTRIES[2], ENTRIES[6]) and one != program for e, one in zip(entries, found, strict=True))
    assert (ENTRIES[6], ENTRIES[2]) in entries
    assert (ENTRIES[3], ENTRIES[6]) in entries
    assert {len(one) for one in found} >= {1, 2, 3}


def test_entries_that_end_in_falls_are_drawn_less_often() -> None:
    choices = Choices(ENTRIES, np.array([1.0] + [0.05] * 8))
    rng = np.random.default_rng(0)
    drawn = [choices.any(rng) for _ in range(400)]
    assert drawn.count(ENTRIES[0]) > 200
