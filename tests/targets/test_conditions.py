"""Targets of features by name, and bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import wasserstein_distance
from test_expression import numbers
from test_sequence import longer, plain

import himatch as hm
from himatch.errors import TargetError
from himatch.statistics.features import resolve_feature
from himatch.targets import Bound, Bounded, Drawn, Frame, OfFeatures, Return, Samples, Target

TASK = hm.get_task("hopper")
ONE = Frame(resolve_feature("x_velocity", TASK), hm.Bins((-1.0,), (6.0,)), 1000)
TWO = Frame(resolve_feature("x_velocity,height", TASK), hm.Bins((-1.0, 0.0), (6.0, 2.0)), 1000)

names = st.one_of(
    st.sampled_from(["x_velocity", "height", "reward", "obs[3]", "Höhe_2"]),
    st.sampled_from(["front left", "leg.angle", "2nd", "a~b", "&", "x > 1"]),  # as tables call their columns
)
ends = st.tuples(st.booleans(), st.booleans())
bounds = st.one_of(
    st.builds(lambda name, low, ends: Bound(name, low, open=(ends[0], True)), names, numbers, ends),
    st.builds(lambda name, high, ends: Bound(name, high=high, open=(True, ends[1])), names, numbers, ends),
    st.builds(lambda name, low, more, ends: Bound(name, low, low + more, ends), names, numbers, st.floats(1, 9), ends),
)
sequences = st.recursive(plain, longer, max_leaves=3)
several = st.lists(st.tuples(names, sequences), min_size=1, max_size=3, unique_by=lambda pair: pair[0])
conditions = st.one_of(
    several.map(lambda parts: OfFeatures(tuple(parts))),
    sequences,
    st.builds(lambda total: Return((total,)), numbers),
)


@given(conditions, st.lists(bounds, max_size=3))
def test_names_parse_back(target: Target, limits: list[Bound]) -> None:
    target = Bounded(target, tuple(limits)) if limits else target
    found = hm.parse_target(target.name)
    assert found == target
    assert (found.matches, found.bounds) == (target.matches, tuple(limits))
    assert hm.parse_target(found.name.replace(" & ", "&").replace(" ~ ", "~")) == target


def test_bounds_are_written_as_one_likes() -> None:
    for text in ("1 < height < 2", "2 > height > 1", "'height'>1 & \"height\"<2"):
        target = hm.parse_target(f"{text} & point(1)", "hopper")
        held = np.array([[0.5], [1.0], [1.5], [2.0]], np.float32)
        assert np.array([bound.holds(held) for bound in target.bounds]).all(axis=0).tolist() == [0, 0, 1, 0]
    closed = hm.parse_target("point(1) & 2 >= height >= 1").bounds[0]
    assert str(closed) == "1 <= height <= 2"
    assert closed.holds(held).tolist() == [False, True, True, True]
    assert str(hm.parse_target("point(1) & 1 <= height").bounds[0]) == "height >= 1"
    assert hm.parse_target("point(1) & height <= 1.1").bounds[0].holds(np.array([[1.1]], np.float32)).all()
    with pytest.raises(TargetError, match="a bound of height needs a number"):
        Bound("height")


@given(arrays(np.float32, (7, 1), elements=st.integers(-8, 8).map(lambda i: i / 2)), st.integers(-2, 1))
def test_the_mean_violation_is_w1_to_the_nearest_distribution_in_the_range(phi: np.ndarray, low: int) -> None:
    bound = Bound("x", low, low + 1.5, (False, False))
    expected = wasserstein_distance(phi[:, 0], np.clip(phi[:, 0], low, low + 1.5))
    assert bound.violation(phi).mean() == pytest.approx(expected, abs=1e-6)
    assert (bound.violation(phi) == 0).tolist() == bound.holds(phi).tolist()


def test_of_several_numbers_each_is_bound() -> None:
    bound, phi = Bound("xy_velocity", 1.0), np.array([[2, 2], [2, 0], [-2, -3]], np.float32)
    assert bound.holds(phi).tolist() == [True, False, False]
    np.testing.assert_allclose(bound.violation(phi), [0, 1, 5])


# -- features by name ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["0.5*normal(1,1)+0.5*point(2)", "point(1) for 5 then point(2)", "return(3)", "goal(2)"]
)
def test_with_one_feature_it_is_the_target_itself(text: str) -> None:
    named, alone = hm.parse_target(f"x_velocity ~ {text} & height > 1", "hopper"), hm.parse_target(text)
    np.testing.assert_array_equal(named.values(ONE), alone.values(ONE))
    np.testing.assert_array_equal(named.compared(ONE), alone.compared(ONE))
    assert (named.matches, named.in_time) == (alone.matches, alone.in_time)
    assert len(named.stretches(ONE)) == len(alone.stretches(ONE))


def test_an_episode_and_samples_stay_what_they_are(hopper: hm.TrajectoryDataset) -> None:
    shown = OfFeatures((("x_velocity", hm.demo(hopper[3])),))
    assert shown.demonstration() is not None
    np.testing.assert_array_equal(shown.values(ONE), hopper[3].observations[:, [5]])
    few = OfFeatures((("x_velocity", Samples(np.array([1.0, 2.0]))),))
    assert len(few.compared(ONE)) == 2


def test_features_come_in_any_order() -> None:
    parts = ["x_velocity ~ normal(3,0.1)", "height ~ uniform(1,1.2)"]
    values = [hm.parse_target(" & ".join(order), "hopper").values(TWO) for order in (parts, parts[::-1])]
    np.testing.assert_array_equal(values[0], values[1])
    assert values[0].shape == (1000, 2)
    np.testing.assert_allclose(values[0].mean(axis=0), [3, 1.1], atol=0.02)


def test_features_are_drawn_independently() -> None:
    """With the same seed for each they would rise and fall together."""
    values = hm.parse_target("x_velocity ~ normal(0,1) for 500 then normal(1,1) & height ~ normal(0,1)").values(TWO)
    assert abs(np.corrcoef(values[:500].T)[0, 1]) < 0.1
    one = Drawn((np.array([0.0, 1.0]),), (np.array([1.0]),))
    drawn = OfFeatures((("x_velocity", one), ("height", one))).values(TWO)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.1


def test_every_feature_has_its_own_time(hopper: hm.TrajectoryDataset) -> None:
    target = hm.parse_target("x_velocity ~ point(1) for 4 then point(2) for 6 & height ~ 0.5*point(3)+0.5*point(4)")
    values = target.values(TWO)
    np.testing.assert_array_equal(values, np.stack([np.repeat([1, 2], [4, 6]), np.repeat([3, 4], [5, 5])], axis=1))
    assert target.in_time
    found = target.stretches(TWO)
    assert [len(part.values(TWO)) for part in found] == [4, 6]
    np.testing.assert_array_equal(np.concatenate([part.values(TWO) for part in found]), values)
    assert hm.parse_target("x_velocity ~ point(1) & height ~ point(2)").stretches(TWO)[0].values(TWO).shape == (1000, 2)
    shown = OfFeatures((("height", hm.demo(hopper[3])), ("x_velocity", hm.parse_target("point(1)"))))
    np.testing.assert_array_equal(shown.values(TWO)[:, 1], hopper[3].observations[:, 0])
    assert shown.demonstration() is None


@pytest.mark.parametrize(
    ("text", "frame", "what"),
    [
        ("height ~ point(1)", ONE, "each to be named once with ~: 'height' is not among them"),
        ("x_velocity ~ point(1)", TWO, "height, each to be named once with ~: 'height' is missing"),
        ("x_velocity ~ point(1) & height ~ point(1)", ONE, "'height' is not among them; features beside"),
    ],
)
def test_what_is_not_matched_is_refused_in_one_line(text: str, frame: Frame, what: str) -> None:
    with pytest.raises(TargetError, match=rf"^what is matched here is [^\n]*{what}[^\n]*$"):
        hm.parse_target(text, "hopper").values(frame)
