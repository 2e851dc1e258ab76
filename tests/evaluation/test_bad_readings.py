"""One bad reading must make neither a policy deaf nor its score perfect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import himatch as hm
from himatch.errors import HimatchWarning
from himatch.methods.normalizers import Normalizers, usual_moments


@pytest.fixture
def dirty() -> hm.TrajectoryDataset:
    """Forty episodes that go at one of several speeds, and one reading of 9999."""
    rng = np.random.default_rng(0)
    episodes = []
    for number in range(40):
        speed = np.full((50, 1), number % 5, np.float32) + rng.normal(0, 0.1, (50, 1)).astype(np.float32)
        seen = speed.copy()
        if number == 7:
            seen[3, 0] = 9999.0
        episodes.append(hm.Trajectory(seen, speed / 5, np.zeros(50, np.float32)))
    return hm.load_dataset(episodes)


def test_bins_and_scales_are_those_of_the_usual_readings(dirty: hm.TrajectoryDataset) -> None:
    statistic = hm.distribution_based(dirty.task, "obs[0]").fit(dirty)
    assert statistic.bins is not None
    assert statistic.bins.high[0] < 5
    z = statistic.relabel(dirty)
    assert len(np.unique(z[::50].argmax(axis=1))) >= 5  # speeds are told apart
    papers = hm.distribution_based(dirty.task, "obs[0]").from_minimum_to_maximum().fit(dirty)
    assert papers.bins is not None
    assert papers.bins.high[0] == 9999
    assert len(np.unique(papers.relabel(dirty)[::50].argmax(axis=1))) == 1
    assert Normalizers.fit(dirty).state_std[0] == pytest.approx(np.sqrt(2), rel=0.05)


@pytest.mark.parametrize(("share", "mark"), [(0.04, -999), (0.1, 9999), (0.28, -999)])
def test_sentinels_are_no_targets_and_stretch_no_bins(dirty: hm.TrajectoryDataset, share: float, mark: float) -> None:
    """A number that marks missing readings, in every episode."""
    rng = np.random.default_rng(1)
    lost = hm.load_dataset(
        [
            hm.Trajectory(np.where(rng.random((50, 1)) < share, mark, e.observations).astype(np.float32), e.actions)
            for e in dirty
        ]
    )
    reference = hm.EpisodeReference.of(lost, "obs[0]")
    assert reference.values.min() > -1
    statistic = hm.distribution_based(lost.task, "obs[0]").fit(lost)
    assert statistic.bins is not None
    assert -1 < statistic.bins.low[0] < statistic.bins.high[0] < 5
    assert len(np.unique(statistic.relabel(lost)[::50].argmax(axis=1))) >= 5  # speeds are told apart
    assert reference.frame.bins == statistic.bins
    papers = hm.distribution_based(lost.task, "obs[0]").from_minimum_to_maximum().fit(lost)
    assert papers.bins is not None
    assert np.ptp([papers.bins.low[0], papers.bins.high[0]]) > 999
    if share < 0.1:
        assert reference.mixture("normal(2,0.1)").w1 < 0.2


@pytest.mark.parametrize(("method", "step"), [(hm.GoalDT("obs[0]"), 49), (hm.MomentsDT("obs[0]"), 20)])
def test_a_reading_leaves_statistics_in_feature_units_their_scale(
    method: hm.Method, step: int, dirty: hm.TrajectoryDataset
) -> None:
    """Scaled by a deviation of thousands, all other z would look alike."""

    def scale(readings: int) -> list[float]:
        seen = [episode.observations.copy() for episode in dirty]
        seen[7][3] = seen[7][4]
        for number in range(readings):
            seen[number][step] = 9999.0 + number
        data = hm.load_dataset([hm.Trajectory(s, e.actions) for s, e in zip(seen, dirty, strict=True)])
        statistic = method.statistic(data.task).fit(data)
        z = statistic.relabel(data)
        assert z is not None
        found = method.z_scale(z, statistic, data.lengths, 50)
        assert found.std is not None
        return found.std.tolist()

    assert scale(1)[0] == pytest.approx(scale(0)[0], rel=0.1)
    assert scale(1)[-1] < 2 * scale(0)[-1]
    assert scale(6)[0] < 50  # in one of seven episodes, too many to be told from the others


def test_a_statistic_that_moves_only_far_away_keeps_a_scale() -> None:
    """The last reward is 100 or 0, the others are 0: what goals are made of is no bad reading."""
    rng = np.random.default_rng(0)
    z = np.repeat(np.where(rng.random(100) < 0.03, 100.0, 0.0), 30)[:, None].astype(np.float32)
    mean, std = usual_moments(z)
    assert std.isfinite().all()
    assert mean.isfinite().all()


def test_a_warning_of_deaf_policies_names_the_reading_first(
    dirty: hm.TrajectoryDataset, tmp_path: pytest.TempPathFactory
) -> None:
    settings: dict[str, Any] = {"steps": 2, "width": 16, "tokens": "pairs", "head": "tanh", "quiet": True}
    with pytest.warns(HimatchWarning) as caught:
        hm.train(hm.CDT("obs[0]"), dirty, out=f"{tmp_path}/run", **settings)
    (said,) = [str(one.message) for one in caught if "IGNORES ITS CONDITIONING" in str(one.message)]
    assert "(1) obs[0] has 1 extreme value, such as 9999, the others lie between -0." in said
    assert "--drop-extremes" in said


def test_training_names_the_reading_and_distances_do_not_vanish(
    dirty: hm.TrajectoryDataset, tmp_path: pytest.TempPathFactory
) -> None:
    with pytest.warns(
        HimatchWarning,
        match=r"obs\[0\] has 1 extreme value, .*: 9999 in episode 7, step 3; it is trained on with them, and bins",
    ):
        policy = hm.train(hm.CDT("obs[0]"), dirty, out=f"{tmp_path}/run", preset="cpu", steps=200, quiet=True)
    reference = policy.reference()
    slow, fast = reference.mixture("normal(0,0.1)"), reference.mixture("normal(8,0.1)")
    assert slow.w1 < 0.1
    assert 3.5 < fast.w1 < 4.5
    assert reference.mixture("normal(2,0.1)").w1 < 0.1  # a bad reading is nothing that an episode did
    assert reference.spread[0] == pytest.approx(4.2, abs=0.2)  # a reading in two thousand is beyond its 99 %
    score = policy.score(list(dirty[:5]))
    assert score["sensitivity"][0] > 1.5
