from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import himatch as hm
from himatch.divergences import wasserstein_bins
from himatch.errors import TargetError
from himatch.statistics.features import resolve_feature
from himatch.targets import Drawn, Frame, Goal, Patched, Return, Samples, Shifted, checked_values
from himatch.targets.distribution import apportion

TASK = hm.get_task("hopper")
FRAME = Frame(resolve_feature("x_velocity", TASK), hm.Bins((-1.0,), (6.0,)), 1000)
TWO = Frame(resolve_feature("x_velocity,z_velocity", TASK), hm.Bins((-1.0, -3.0), (6.0, 3.0)), 1000)


def test_a_gaussian_is_the_papers_thousand_samples() -> None:
    values = hm.parse_target("normal(2.5,0.5)").values(FRAME)
    assert values.shape == (1000, 1)
    assert values.mean() == pytest.approx(2.5, abs=0.06)
    assert values.std() == pytest.approx(0.5, abs=0.05)
    np.testing.assert_array_equal(values, hm.parse_target("normal(2.5,0.5)").values(FRAME))


def test_modes_follow_in_the_listed_order_unless_shuffled() -> None:
    text = "0.5*normal(4,0.1)+0.5*normal(1,0.1)"
    listed = hm.parse_target(text).values(FRAME)[:, 0]
    assert listed[:500].min() > 3 > listed[500:].max()
    shuffled = hm.parse_target(f"shuffled({text})").values(FRAME)[:, 0]
    np.testing.assert_array_equal(np.sort(shuffled), np.sort(listed))
    assert 150 < (shuffled[:500] > 3).sum() < 350


def test_shuffling_a_joint_target_keeps_pairs_together() -> None:
    text = "joint(normal(2,1), normal(0,1))"
    listed = hm.parse_target(text).values(TWO)
    shuffled = hm.parse_target(f"shuffled({text})").values(TWO)
    assert {tuple(row) for row in listed} == {tuple(row) for row in shuffled}


def test_returns_and_goals_reach_the_statistic_they_name() -> None:
    z = hm.return_based(TASK, "x_velocity").aggregator(hm.parse_target("return(5000)").values(FRAME))
    assert z[0, 0] == pytest.approx(5000 / 1000, rel=1e-5)
    assert z[500, 0] == pytest.approx(2.5, rel=1e-5)
    goal = hm.goal_based(TASK, "x_velocity").aggregator(hm.parse_target("goal(3.2)").values(FRAME))
    assert (goal == np.float32(3.2)).all()


def test_a_deadline_is_the_time_that_is_left() -> None:
    """A rollout lasts as long as its target, and past that its last z holds."""
    values = hm.parse_target("goal(3.2, within=80)").values(FRAME)
    z = hm.goal_based(TASK, "x_velocity", timed=True).aggregator(values)
    assert z.shape == (80, 2)
    np.testing.assert_allclose(z[[0, 79]], [[3.2, 0.079], [3.2, 0.0]], rtol=1e-6)
    z = hm.command_based(TASK, "x_velocity").aggregator(hm.parse_target("return(900, within=200)").values(FRAME))
    np.testing.assert_allclose(z[[0, 199]], [[0.9, 0.2], [0.0045, 0.001]], rtol=1e-4)
    for text in ("goal(1, within=1001)", "return(1, within=1001)"):
        with pytest.raises(TargetError, match=r"within=1001\) goes beyond the horizon, which is 1000 steps"):
            hm.parse_target(text).values(FRAME)
    for target in (Goal, Return):
        for steps in (0, -3, 2.5):
            with pytest.raises(TargetError, match=f"within is a whole number of steps, one or more, got {steps}"):
                target((1.0,), steps)  # type: ignore[arg-type]


def test_shifting_moves_raw_values_by_whole_bins(hopper: hm.TrajectoryDataset) -> None:
    target, width = hm.demo(hopper[0]), FRAME.bins.widths[0]
    for k in (-3, -1, 0, 2):
        moved = Shifted(target, k).values(FRAME)
        np.testing.assert_allclose(moved - target.values(FRAME), k * width, atol=1e-5)
    inner = hm.parse_target("normal(2.5,0.3)")
    distance = wasserstein_bins(Shifted(inner, 2).histogram(FRAME), inner.histogram(FRAME), width)
    assert distance[0] == pytest.approx(2 * width, rel=1e-3)


def test_patchwork_takes_the_first_half_of_one_and_the_second_of_the_other(hopper: hm.TrajectoryDataset) -> None:
    first, second = hopper[5], hopper[9]
    target = Patched(hm.demo(first), hm.demo(second), at=10)
    expected = np.concatenate([first.observations[:10, [5]], second.observations[10:, [5]]])
    np.testing.assert_array_equal(target.values(FRAME), expected)
    states = target.demonstration()
    assert states is not None
    np.testing.assert_array_equal(states.observations[:, [5]], expected)
    assert Patched(hm.parse_target("normal(1,1)"), hm.demo(first)).demonstration() is None
    with pytest.raises(TargetError, match="cannot switch"):
        Patched(hm.demo(first), hm.demo(second), at=500).values(FRAME)
    with pytest.raises(TargetError, match="cannot patch"):
        Patched(hm.parse_target("return(1)"), hm.demo(first))


def test_a_drawn_histogram_has_the_drawn_shares() -> None:
    edges, weights = np.linspace(-1, 6, 8), np.array([0, 1, 2, 0, 4, 2, 1.0])
    target = Drawn((edges,), (weights,))
    counts, _ = np.histogram(target.values(FRAME)[:, 0], bins=edges)
    np.testing.assert_array_equal(counts, weights / weights.sum() * 1000)


def test_a_drawn_bar_is_filled_evenly() -> None:
    """One wide bar is the uniform distribution, against SciPy's."""
    values = Drawn((np.array([-1.0, 3.0, 4.0]),), (np.array([2.0, 0.0]),)).values(FRAME)[:, 0]
    assert stats.kstest(values, "uniform", (-1, 4)).statistic < 0.001


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20).filter(lambda w: sum(w) > 1e-3), st.integers(0, 2000))
def test_apportionment(weights: list[float], total: int) -> None:
    counts = apportion(weights, total)
    exact = np.array(weights) / sum(weights) * total
    assert counts.sum() == total
    assert (counts >= 0).all()
    assert (np.abs(counts - exact) < 1 + 1e-6).all()


@pytest.mark.parametrize("text", ["normal(1,1)", "return(3)", "goal(2)"])
def test_targets_must_have_the_features_width(text: str) -> None:
    with pytest.raises(TargetError, match="2"):
        hm.parse_target(text).values(TWO)
    with pytest.raises(TargetError):
        Samples(np.zeros(5)).values(TWO)
    with pytest.raises(TargetError):
        Drawn((np.array([0.0, 1.0]),), (np.array([1.0]),)).values(TWO)


@pytest.mark.parametrize("samples", [np.array([]), np.array([np.nan]), np.zeros((2, 2, 2)), np.zeros((3, 0))])
def test_bad_samples_are_refused(samples: np.ndarray) -> None:
    with pytest.raises(TargetError):
        Samples(samples)


def test_whatever_a_user_hands_over_becomes_a_target(hopper: hm.TrajectoryDataset) -> None:
    ready = hm.parse_target("return(1)")
    assert hm.as_target(ready) is ready
    assert hm.as_target("normal(1,1)").name == "normal(1,1)"
    episode = hopper[0]
    assert hm.as_target(episode).demonstration() is episode
    few = hm.as_target([1.0, 2.0])
    np.testing.assert_array_equal(few.compared(FRAME), [[1], [2]])
    np.testing.assert_array_equal(few.values(FRAME), np.repeat([[1], [2]], FRAME.horizon // 2, axis=0))


def test_what_is_no_target_is_said_to_be_none(hopper: hm.TrajectoryDataset) -> None:
    for wrong in (hopper, ["normal(1,1)", "normal(2,1)"], {"mean": 3}, None, 3.0):
        with pytest.raises(TargetError, match=r"^a target is an expression, .*, not \w+; several"):
            hm.as_target(wrong)  # type: ignore[arg-type]


class Own(hm.Target):
    """A user's own target, whose values are what they are."""

    name = "own"

    def __init__(self, found: object) -> None:
        self.found = found

    def values(self, frame: Frame) -> np.ndarray:
        return self.found  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([[1.0], [2.0]], r"\(T, d\), got list"),
        (np.zeros(5), r"\(T, d\), got shape \(5,\)"),
        (np.zeros((0, 1)), r"\(T, d\), got shape \(0, 1\)"),
        (np.zeros((5, 2)), "2 columns, the feature x_velocity has 1"),
        (np.array([[1.0], [np.nan]]), "NaN or infinity at step 1"),
    ],
)
def test_what_a_target_of_ones_own_gives_is_looked_at(found: object, message: str) -> None:
    with pytest.raises(TargetError, match=f"^own: its values .*{message}"):
        checked_values(Own(found), FRAME)


@given(st.integers(1, 400), st.integers(1, 60), st.integers(0, 9))
def test_samples_last_an_episode_in_their_order_and_proportions(count: int, horizon: int, seed: int) -> None:
    samples = np.random.default_rng(seed).normal(size=count).astype(np.float32)
    frame = replace(FRAME, horizon=horizon)
    target = Samples(samples)
    values = target.values(frame)[:, 0]
    assert len(values) == horizon
    places = [int(np.flatnonzero(samples == value)[0]) for value in values]
    assert places == sorted(places)
    assert stats.ks_2samp(values, samples).statistic <= 1 / horizon + 1e-9
    moved = Shifted(target, 2)
    np.testing.assert_allclose(moved.compared(frame)[:, 0], samples + 2 * frame.bins.widths[0], rtol=1e-6)
    np.testing.assert_allclose(moved.values(frame)[:, 0], values + 2 * frame.bins.widths[0], rtol=1e-6)
