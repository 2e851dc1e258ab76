from __future__ import annotations

import numpy as np
import pytest

import himatch as hm
from himatch.statistics.bins import Bins
from himatch.statistics.features import Coordinates
from himatch.targets.resolution import resolved


def _told(values: np.ndarray) -> bool:
    rows = values.astype(np.float32)[:, None]
    return bool(resolved(rows, Bins.fit([rows]))[0])


@pytest.mark.parametrize("share", [0.001, 0.04, 0.12, 0.3, 0.5])
@pytest.mark.parametrize("mark", [-999.0, 9999.0])
def test_bins_stretched_by_a_mark_tell_nothing(share: float, mark: float) -> None:
    rng = np.random.default_rng(0)
    speeds = rng.normal(1.0, 0.5, 4000)
    assert _told(speeds)
    speeds[: round(share * 4000)] = mark
    assert not _told(speeds)


def test_bins_stretched_by_various_values_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    speeds = rng.normal(1.0, 0.5, 4000)
    speeds[:80] = rng.normal(0, 5000, 80)
    assert not _told(speeds)


def test_few_numbers_are_resolved() -> None:
    """Binary features, even where one number is rare, levels, and two modes; a constant is not."""
    rng = np.random.default_rng(0)
    for ones in (0.5, 0.9, 0.997, 0.003):
        assert _told((rng.random(4000) < ones).astype(float))
    assert _told(rng.integers(0, 3, 4000).astype(float))
    assert _told(np.where(rng.random(4000) < 0.5, 0.0, 10.0) + rng.normal(0, 0.01, 4000))
    assert not _told(np.ones(4000))


def test_a_mixture_has_no_distance_on_bins_that_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.normal(level, 0.1, (50, 1)).astype(np.float32) for level in np.linspace(0, 2, 20)]

    def binned() -> float:
        episodes = [hm.Trajectory(x, np.zeros((50, 1), np.float32)) for x in rows]
        return hm.EpisodeReference.of(episodes, Coordinates("x", (0,)), fenced=False).mixture("normal(5,0.1)").binned

    assert np.isfinite(binned())
    for x in rows:
        x[::8] = -999.0
    assert np.isnan(binned())
