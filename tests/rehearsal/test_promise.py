"""What is expected of a program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import himatch as hm
from himatch.rehearsal.arena import Achieved, Judge
from himatch.rehearsal.promise import expectation
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.targets import EpisodeReference, Frame

FRAME = Frame(resolve_feature("reward", hm.get_task("hopper")), Bins.fit([np.linspace(0, 10, 50)[:, None]]), 10)


def judge(text: str) -> Judge:
    values = np.linspace(0, 10, 10, dtype=np.float32)[:, None]
    sums = values.sum(axis=0, dtype=np.float64)[None]
    reference = EpisodeReference(FRAME, values, np.array([10]), sums, sums)
    return Judge(hm.parse_target(text), reference)


def constant(value: float, steps: int = 10) -> Achieved:
    return Achieved(np.full((steps, 1), value, np.float32))


def test_episodes_that_are_all_alike_leave_no_doubt() -> None:
    found = expectation(judge("point(4)"), [[[constant(5.0)] * 8], [[constant(4.5)] * 8]], 20)
    assert (found.score, found.low, found.high) == pytest.approx((0.75, 0.75, 0.75))
    assert (found.played, found.episodes, found.checked) == (1.0, 20, 8)


def test_time_that_is_not_played_is_expected_too() -> None:
    assert expectation(judge("point(4)"), [[[constant(4.0), constant(4.0, 5)]]], 20).played == 0.75


@settings(max_examples=20)
@given(st.lists(st.floats(0, 10), min_size=2, max_size=12), st.integers(1, 40))
def test_the_score_lies_in_its_interval(values: list[float], episodes: int) -> None:
    found = expectation(judge("point(4)"), [[[constant(value) for value in values]]], episodes)
    assert 0.0 <= found.low <= found.score + 1e-9
    assert found.score <= found.high + 1e-9


def test_few_checked_episodes_leave_more_doubt() -> None:
    rng, widths = np.random.default_rng(0), {4: 0.0, 64: 0.0}
    for _ in range(10):
        values = [constant(value) for value in rng.normal(5, 1, 64)]
        for n in widths:
            found = expectation(judge("point(0)"), [[values[:n]]], 20)
            widths[n] += found.high - found.low
    assert widths[4] > 1.2 * widths[64]


def test_fresh_rollouts_lie_in_nine_of_ten_intervals() -> None:
    """Of episodes that differ as a normal distribution does."""
    rng, inside, point = np.random.default_rng(1), 0, judge("point(0)")
    for _ in range(60):
        checked, fresh = ([constant(value) for value in rng.normal(5, 1, n)] for n in (16, 20))
        found = expectation(point, [[checked]], 20)
        inside += found.low <= point.reported([one.phi for one in fresh]) <= found.high
    assert 48 <= inside <= 59


def test_where_robots_fall_a_rollout_may_though_none_did() -> None:
    """Half of the time at 0 and then at 8: a rollout that is cut has seen less of the 8."""
    rows = np.repeat([0.0, 8.0], 5).astype(np.float32)[:, None]
    checked, wanted = [[[Achieved(rows)] * 24]], judge("point(8)")
    certain, falling = (expectation(wanted, checked, 20, falls=falls) for falls in (False, True))
    assert certain.low == pytest.approx(certain.high)
    assert falling.score == certain.score
    assert falling.high > certain.high + 0.05
    assert expectation(wanted, [[[Achieved(rows[:4])] * 24]], 20, falls=True).high == pytest.approx(
        8.0
    )  # all of them fall


def test_programs_that_share_the_rollouts_out_are_pooled_in_their_parts() -> None:
    """A quarter at 1 and the rest at 5 is the target; each alone is far from it."""
    played = [[[constant(1.0)] * 4, [constant(5.0)] * 4]]
    mixed = judge("0.3*point(1)+0.7*point(5)")
    found = expectation(mixed, played, 20, parts=[[0.3, 0.7]])
    assert (found.score, found.low, found.high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    assert expectation(mixed, played, 20, parts=[[0.7, 0.3]]).score == pytest.approx(1.6)
