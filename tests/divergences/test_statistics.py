from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from himatch.divergences import Difference, Summary, interquartile_mean, leave_one_out, paired_difference, summarize
from himatch.errors import HimatchError


def widths(summary: Summary) -> tuple[float, float]:
    """Of the intervals of the mean and of the interquartile mean."""
    assert summary.low is not None
    assert summary.high is not None
    assert summary.mean_low is not None
    assert summary.mean_high is not None
    return summary.mean_high - summary.mean_low, summary.high - summary.low


def test_interquartile_mean_ignores_the_tails() -> None:
    assert interquartile_mean([-1e9, 1, 2, 3, 4, 5, 6, 1e9]) == pytest.approx(3.5)
    scores = np.random.default_rng(0).normal(size=(8, 25))
    inner = np.sort(scores.ravel())[50:150]
    assert interquartile_mean(scores) == pytest.approx(inner.mean())


def test_summary() -> None:
    scores = np.random.default_rng(0).gamma(2, size=(10, 4))
    summary = summarize([scores])
    assert (summary.mean, summary.std) == pytest.approx((scores.mean(), scores.std()))
    assert summary.iqm == pytest.approx(scipy.stats.trim_mean(scores.ravel(), 0.25))
    assert summary.count == 40
    assert summarize([scores.tolist()]) == summary


def mean(scores: NDArray[np.float64]) -> float:
    return float(scores.mean())


@pytest.mark.parametrize(("statistic", "names"), [(mean, ("mean_low", "mean_high")), (interquartile_mean, None)])
def test_a_seed_is_drawn_with_all_its_targets(
    statistic: Callable[[NDArray[np.float64]], float], names: tuple[str, str] | None
) -> None:
    """Against SciPy, which draws the numbers of seeds. Seeds that are good at everything make wide intervals."""
    rng = np.random.default_rng(0)
    scores = rng.gamma(2, size=(10, 5)) + 2 * rng.gamma(2, size=5)  # targets and seeds
    summary = summarize([scores])
    oracle = scipy.stats.bootstrap(
        (np.arange(5),), lambda seeds: statistic(scores[:, seeds]), method="percentile", rng=1, vectorized=False
    ).confidence_interval
    found = [getattr(summary, name) for name in names or ("low", "high")]
    assert found == pytest.approx([oracle.low, oracle.high], rel=0.05)


def test_the_interval_of_a_mean_is_that_of_the_seeds_own_means() -> None:
    scores = np.random.default_rng(0).gamma(2.0, size=(3, 60))
    summary = summarize([scores])
    theirs = scipy.stats.bootstrap((scores.mean(axis=0),), np.mean, n_resamples=20_000, method="percentile", rng=0)
    np.testing.assert_allclose((summary.mean_low, summary.mean_high), theirs.confidence_interval, rtol=0.02)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    """Targets that share their models: drawn target by target, 95 % would be about 50 %."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        scores = rng.normal(size=20) + 0.3 * rng.normal(size=(10, 20))
        summary = summarize([scores])
        assert summary.low is not None
        assert summary.high is not None
        hits += summary.low <= 0 <= summary.high
    assert 0.88 <= hits / 200 <= 0.99


def test_groups_of_a_task_share_their_draws_and_tasks_do_not() -> None:
    """A group against its mirror image: with the same seeds the average is constant, with others it is not."""
    scores = np.random.default_rng(0).normal(size=(1, 6))
    groups = [scores, -scores]
    assert widths(summarize(groups, ["hopper", "hopper"])) == pytest.approx((0, 0), abs=1e-12)
    assert widths(summarize(groups)) == pytest.approx((0, 0), abs=1e-12)
    alone = widths(summarize([scores]))
    apart = widths(summarize(groups, ["hopper", "walker2d"]))
    assert apart == pytest.approx([width / np.sqrt(2) for width in alone], rel=0.1)
    both = widths(summarize([scores, scores], ["hopper", "hopper"]))
    assert both == pytest.approx(alone)


def test_an_average_weighs_groups_alike() -> None:
    summary = summarize([[[1.0, 1.0]] * 10, [[3.0, 3.0, 3.0]]], ["hopper", "walker2d"])
    assert (summary.mean, summary.iqm, summary.low, summary.high) == (2.0, 2.0, 2.0, 2.0)
    assert (summary.std, summary.count) == (None, 23)


@pytest.mark.parametrize("groups", [[[[1.0], [3.0]]], [[[1.0], [3.0]], [[2.0, 2.5], [2.0, 2.2]]]])
def test_one_seed_has_no_interval(groups: list[list[list[float]]]) -> None:
    """Nor has an average that one enters: its noise is unknown."""
    summary = summarize(groups, range(len(groups)))
    assert (summary.low, summary.high, summary.mean_low, summary.mean_high) == (None,) * 4
    assert summary.iqm > 0


@pytest.mark.parametrize("groups", [[], [[]], [[[]]], [[[np.nan]]], [[1.0, 2.0]], [[[1.0, 2.0], [3.0]]]])
def test_no_scores(groups: list[list[list[float]]]) -> None:
    with pytest.raises(HimatchError):
        summarize(groups)


def looped(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> list[float]:
    """The interval of a paired difference, draw by draw."""
    rng, drawn = np.random.default_rng(1), []
    for _ in range(4_000):
        targets = rng.integers(len(ours), size=len(ours))
        sides = [x[targets][:, rng.integers(x.shape[1], size=x.shape[1])].mean() for x in (ours, theirs)]
        drawn.append(sides[0] - sides[1])
    return [float(bound) for bound in np.quantile(drawn, [0.025, 0.975])]


def test_a_difference_is_paired_by_target() -> None:
    """Hard targets are hard for both: they widen the interval of either mean, and not that of the difference."""
    rng = np.random.default_rng(0)
    hard = 5 * rng.gamma(2, size=(10, 1))
    ours, theirs = hard + rng.gamma(2, size=(10, 4)), hard + rng.gamma(2, size=(10, 6)) + 1
    found = paired_difference([ours], [theirs])
    assert found.mean == pytest.approx(ours.mean() - theirs.mean())
    assert [found.low, found.high] == pytest.approx(looped(ours, theirs), abs=0.06)
    level = paired_difference([hard + np.zeros(3)], [hard + np.zeros(3)])
    assert (level.low, level.high) == pytest.approx((0, 0), abs=1e-12)


def test_seeds_of_both_sides_are_drawn_apart_and_shared_by_the_groups_of_a_task() -> None:
    luck = np.random.default_rng(0).normal(size=(1, 6))
    same = paired_difference([luck], [luck])
    assert same.mean == 0
    assert same.low is not None
    assert same.low < -0.3  # the same numbers, but of models that have nothing to do with one another
    mirrored = paired_difference([luck, -luck], [luck, -luck], ["hopper", "hopper"])
    assert (mirrored.low, mirrored.high) == pytest.approx((0, 0), abs=1e-12)
    apart = paired_difference([luck, -luck], [luck, -luck], ["hopper", "walker2d"])
    assert apart.low is not None
    assert apart.low == pytest.approx(same.low / np.sqrt(2), rel=0.15)


def test_a_difference_to_one_seed_has_no_interval() -> None:
    assert paired_difference([[[1.0, 2.0]]], [[[3.0]]]) == Difference(-1.5)


@pytest.mark.parametrize(("ours", "theirs"), [([], []), ([[[1.0]]], []), ([[[1.0]]], [[[1.0], [2.0]]])])
def test_differences_need_the_same_targets(ours: list[list[list[float]]], theirs: list[list[list[float]]]) -> None:
    with pytest.raises(HimatchError, match="the same targets"):
        paired_difference(ours, theirs)


def test_targets_of_one_episode_are_resampled_together() -> None:
    """Seven copies of a target say no more than one of them."""
    rng = np.random.default_rng(0)
    ours, theirs = rng.gamma(2, size=(10, 4)), rng.gamma(2, size=(10, 4))
    once = paired_difference([ours], [theirs])
    copies = [np.repeat(x, 7, axis=0) for x in (ours, theirs)]
    together = paired_difference([copies[0]], [copies[1]], clusters=[np.repeat(np.arange(10), 7).tolist()])
    assert (together.mean, together.low, together.high) == pytest.approx((once.mean, once.low, once.high))
    apart = paired_difference([copies[0]], [copies[1]])
    assert apart.low is not None
    assert together.low is not None
    assert apart.low > together.low + 0.1
    assert paired_difference([ours], [theirs], clusters=[list("abcdefghij")]) == once
    uneven = paired_difference([[[1.0] * 2, [3.0] * 2, [5.0] * 2]], [[[0.0] * 2] * 3], clusters=[["a", "a", "b"]])
    assert (uneven.mean, uneven.low, uneven.high) == pytest.approx((3, 2, 5))
    with pytest.raises(HimatchError, match="one cluster"):
        paired_difference([ours], [theirs], clusters=[["a"]])


def test_leaving_one_target_out() -> None:
    ours, theirs = [[[1.0, 3.0], [4.0, 4.0], [9.0, 9.0]], [[0.0], [2.0]]], [[[0.0], [0.0], [0.0]], [[1.0], [1.0]]]
    found = leave_one_out(ours, theirs)
    for i, group in enumerate(found):
        for j, without in enumerate(group):
            kept = [[row for k, row in enumerate(x[i]) if k != j] for x in (ours, theirs)]
            parts = [[*x[:i], rest, *x[i + 1 :]] for x, rest in zip((ours, theirs), kept, strict=True)]
            assert without == pytest.approx(paired_difference(*parts).mean)
    assert leave_one_out([[[1.0], [2.0], [6.0]]], [[[0.0]] * 3], [["a", "a", "b"]]) == [[6.0, 1.5]]
    assert np.isnan(leave_one_out([[[1.0]]], [[[2.0]]])[0][0])
