"""Bars that are drawn come back as an expression whose target has these bars."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import himatch as hm
from himatch.errors import TargetError
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.studio.bars import drawable, expression_of, shares
from himatch.targets import Frame, parse_target

LINE = Bins((-2.0,), (10.0,), 31)
PLANE = Bins((0.0, -1.0), (3.0, 1.0), 7)
HORIZON = 1000
HEIGHT = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))


def frame(bins: Bins) -> Frame:
    return Frame(resolve_feature("x_velocity", hm.get_task("halfcheetah")), bins, HORIZON)


def redrawn(bins: Bins, heights: np.ndarray) -> np.ndarray:
    """The bars of the target that a drawing becomes."""
    target = parse_target(expression_of(bins, heights.tolist()))
    return shares(bins, target.compared(frame(bins)))


@given(st.lists(HEIGHT, min_size=31, max_size=31).filter(lambda drawn: max(drawn) > 0))
def test_a_drawn_curve_has_its_bars(drawn: list[float]) -> None:
    heights = np.array(drawn)
    np.testing.assert_allclose(redrawn(LINE, heights), heights / heights.sum(), atol=2.5 / HORIZON)


@given(st.lists(HEIGHT, min_size=49, max_size=49).filter(lambda drawn: max(drawn) > 0))
def test_a_drawn_plane_has_its_cells(drawn: list[float]) -> None:
    """Not only the marginals: a diagonal stays one."""
    heights = np.array(drawn).reshape(7, 7)
    np.testing.assert_allclose(redrawn(PLANE, heights), heights / heights.sum(), atol=2.5 / HORIZON)


def test_a_diagonal_is_no_cross() -> None:
    found = redrawn(PLANE, np.eye(7))
    np.testing.assert_array_equal(found > 0, np.eye(7) > 0)


def test_a_single_bar_is_a_uniform_part() -> None:
    heights = [0.0] * 31
    heights[10] = 3.0
    assert expression_of(LINE, heights) == f"shuffled(uniform({LINE.edges[0, 10]:.7g},{LINE.edges[0, 11]:.7g}))"


def test_heights_beyond_all_sums_are_drawn() -> None:
    heights = [1e308] * 31
    np.testing.assert_allclose(redrawn(LINE, np.array(heights)), np.full(31, 1 / 31), atol=2.5 / HORIZON)


@pytest.mark.parametrize(
    ("heights", "said"),
    [
        ([1.0] * 30, "a drawing has 31 heights"),
        ([[1.0] * 31] * 31, "a drawing has 31 heights"),
        ([[1.0], [1.0, 2.0]], "a drawing has 31 heights"),
        ([0.0] * 31, "nothing is drawn"),
        ([-1.0] + [1.0] * 30, "numbers from 0 up"),
        ([np.inf] * 31, "numbers from 0 up"),
    ],
)
def test_what_is_no_drawing_is_refused(heights: list[float], said: str) -> None:
    with pytest.raises(TargetError, match=said):
        expression_of(LINE, heights)


def test_more_than_two_features_have_a_row_each() -> None:
    bins = Bins((0.0,) * 3, (1.0,) * 3, 4)
    assert not drawable(bins)
    found = shares(bins, np.array([[0.1, 0.4, 0.9], [0.1, 0.4, 0.1]]))
    np.testing.assert_array_equal(found, [[1, 0, 0, 0], [0, 1, 0, 0], [0.5, 0, 0, 0.5]])
    with pytest.raises(TargetError, match="3 features cannot be drawn"):
        expression_of(bins, [1.0] * 4)
