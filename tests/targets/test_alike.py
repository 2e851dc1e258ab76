"""Targets of the same form for what was reached."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import himatch as hm
from himatch.divergences import wasserstein_samples
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.targets import Frame, Samples
from himatch.targets.distribution import Component

FRAME = Frame(resolve_feature("reward", hm.get_task("hopper")), Bins((0.0,), (10.0,)), 1000)


@settings(max_examples=30)
@given(
    st.floats(-5, 5),
    st.floats(0.5, 3),
    st.sampled_from(("normal(2,0.5)", "uniform(1,4)", "0.3*normal(1,0.2)+0.7*normal(6,1)")),
)
def test_a_target_that_is_moved_and_stretched_is_found_again(shift: float, scale: float, text: str) -> None:
    reached = hm.parse_target(text).values(FRAME) * scale + shift
    found = hm.parse_target(text).alike(reached, FRAME)
    assert found is not None
    assert wasserstein_samples(found.values(FRAME), reached) < 0.1 * scale


def test_what_was_reached_at_once_has_the_form_that_was_asked_for() -> None:
    reached = np.random.default_rng(0).normal(5, 1, (3000, 1))
    one, two = (
        hm.parse_target(text).alike(reached, FRAME) for text in ("normal(9,1)", "0.5*normal(2,1)+0.5*normal(9,1)")
    )
    assert one is not None
    assert two is not None
    assert one.name.startswith("normal(4.97,0.9")
    assert two.name.count("normal(") == 2
    assert wasserstein_samples(two.values(FRAME), reached) < 0.15


@pytest.mark.parametrize(
    ("text", "reached", "name"),
    [
        ("return(500)", [[100.0], [200.0]], "return(150)"),
        ("goal(3)", [[1.0], [2.0]], "goal(1.5)"),
        ("normal(3,1) for 100", [[1.0]] * 50 + [[3.0]] * 50, "normal(2,1) for 100"),
        ("point(3) & reward > 1", [[1.0], [2.0]], "point(1.5) & reward > 1"),
        ("reward ~ point(3)", [[1.0], [2.0]], "reward ~ point(1.5)"),
        ("shift(point(3), 1)", [[4.0], [5.0]], "shift(point(3), 4.65)"),
    ],
)
def test_other_forms(text: str, reached: list[list[float]], name: str) -> None:
    found = hm.parse_target(text).alike(np.array(reached), FRAME)
    assert found is not None
    assert found.name == name
    assert hm.parse_target(name).name == name


def test_an_episode_has_no_form() -> None:
    assert Samples(np.ones(5)).alike(np.ones((5, 1)), FRAME) is None


def test_a_part_that_is_narrower_than_its_digits_is_fitted() -> None:
    """A drawn bin of one value in ten thousand, and of values that are nearly one."""
    for values in (np.full(3, 12.15489), np.array([11.63373, 11.63374])):
        low, high = Component.fitted("uniform", values).parameters
        assert low < values.min() <= values.max() < high
