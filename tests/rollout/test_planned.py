"""Planned conditioning: the schedule's episodes in turn, each with its own z."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import himatch as hm
from himatch.errors import TargetError
from himatch.methods.conditioner import Conditioner
from himatch.rollout.conditioners import objection, of_statistic
from himatch.statistics.aggregators import Aggregator, DiscountedSum, Histogram
from himatch.statistics.features import resolve_feature
from himatch.statistics.information import InformationStatistic
from himatch.targets import Target
from himatch.targets.distribution import apportion

FEATURE = resolve_feature("x_velocity", hm.get_task("hopper"))


@pytest.fixture
def reference(hopper: hm.TrajectoryDataset) -> hm.EpisodeReference:
    return hm.EpisodeReference.of(hopper, FEATURE, horizon=1000)


def conditioner(
    aggregator: Aggregator,
    targets: list[Target],
    reference: hm.EpisodeReference,
    given: hm.EpisodeReference | None,
) -> Conditioner:
    statistic, target_of = InformationStatistic(FEATURE, aggregator), torch.arange(len(targets)).unsqueeze(0)
    assert objection("planned", statistic, hm.CDT("x_velocity")) is None
    return of_statistic("planned", statistic, targets, reference.frame, target_of, given)


def planned(reference: hm.EpisodeReference, targets: list[Target]) -> np.ndarray:
    """Rows ``(T, targets, bins)``."""
    bins = reference.frame.bins
    made = conditioner(Histogram(bins.count, low=bins.low, high=bins.high), targets, reference, reference)
    steps = max(len(target.values(reference.frame)) for target in targets)
    rows = [made.z(torch.tensor([[step]])) for step in range(steps)]
    return np.array([row[0].numpy() for row in rows if row is not None])


@pytest.mark.parametrize("text", ["normal(1,0.5)", "0.5*normal(0,0.3)+0.5*normal(3.5,0.3)", "uniform(0,4)"])
def test_planned_lays_out_the_schedule(text: str, reference: hm.EpisodeReference, hopper: hm.TrajectoryDataset) -> None:
    target = hm.parse_target(text)
    rows = planned(reference, [target])[:, 0]
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(1), 1.0, atol=1e-6)
    bins = reference.frame.bins
    aggregator = Histogram(bins.count, low=bins.low, high=bins.high)
    parts = reference.schedule(target, 1000)
    weights = dict(parts)
    assert len(weights) > 1
    shares = apportion([share for _, share in parts], 1000)
    assert shares.sum() == len(rows) == 1000
    first = 0
    for (number, _), share in zip(parts, shares, strict=True):
        z = aggregator(hopper[number].observations[:, [5]])
        clock = np.minimum(np.arange(first, first + share), len(z) - 1)  # the episode's own clock, its last row held
        np.testing.assert_array_equal(rows[first : first + share], z[clock])
        assert share == pytest.approx(1000 * weights[number], abs=1)
        first += share


def test_planned_for_a_training_episode_is_nominal(
    reference: hm.EpisodeReference, hopper: hm.TrajectoryDataset
) -> None:
    """An episode of the data is its own mixture."""
    bins = reference.frame.bins
    rows = planned(reference, [hm.demo(hopper[7]), hm.demo(hopper[3])])
    for place, number in enumerate((7, 3)):
        z = Histogram(bins.count, low=bins.low, high=bins.high)(hopper[number].observations[:, [5]])
        np.testing.assert_array_equal(rows[: len(z), place], z)


def test_planned_refuses_what_it_cannot_lay_out(reference: hm.EpisodeReference) -> None:
    bins, point = reference.frame.bins, hm.parse_target("point(1)")
    why = objection("planned", InformationStatistic(FEATURE, DiscountedSum()), hm.DT("x_velocity"))
    assert why == "planned conditioning lays out histograms; this policy is conditioned on another statistic"
    with pytest.raises(TargetError, match="needs the training episodes"):
        conditioner(Histogram(bins.count, low=bins.low, high=bins.high), [point], reference, given=None)
    with pytest.raises(TargetError, match="not a distribution"):
        planned(reference, [hm.parse_target("return(3)")])


@pytest.mark.parametrize("order", [(0.5, 3.5, 0.5), (3.5, 0.5, 3.5)])
def test_targets_that_follow_one_another_are_planned_one_by_one(order: tuple[float, ...]) -> None:
    """The first speed comes again at the end, which a plan of all steps together would not know."""
    rng = np.random.default_rng(0)
    episodes = [np.full((300, 1), level) + rng.normal(0, 0.01, (300, 1)) for level in np.linspace(0, 4, 9)]
    logged = [hm.Trajectory(np.tile(e, (1, 11)), np.zeros((300, 3))) for e in episodes]
    reference = hm.EpisodeReference.of(logged, FEATURE, horizon=300)
    target = hm.parse_target("point({}) for 100 then point({}) for 100 then point({})".format(*order))
    means = planned(reference, [target])[:, 0] @ reference.frame.bins.centers[0]
    for part, speed in enumerate(order):
        assert means[100 * part : 100 * (part + 1)].mean() == pytest.approx(speed, abs=0.1)


def test_an_episode_that_has_ended_is_not_followed_in_a_later_stretch() -> None:
    """The slow episodes fall after 100 steps, so from step 200 on the next slowest is what there is."""
    logged = [
        hm.Trajectory(np.full((steps, 11), level), np.zeros((steps, 3)))
        for steps, level in ((100, 0.0), (100, 0.1), (400, 1.0), (400, 3.0))
    ]
    reference = hm.EpisodeReference.of(logged, FEATURE, horizon=400)
    slow = hm.parse_target("point(0)")
    assert {episode for episode, _ in reference.schedule(slow, 100)} <= {0, 1, 2}
    assert [episode for episode, _ in reference.schedule(slow, 200, start=200)] == [2]
    assert len(reference.schedule(slow, 10, start=400)) > 0  # past all of them, something is followed nevertheless
