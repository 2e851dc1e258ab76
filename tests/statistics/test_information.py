from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import himatch as hm
from himatch.errors import DataError, HimatchWarning
from himatch.statistics.features import Function
from himatch.types import Array


def presets(task: hm.Task) -> dict[str, hm.InformationStatistic]:
    return {
        "goal-based": hm.goal_based(task, "x_velocity"),
        "multi-task": hm.multi_task(task, ["x_velocity", "z_velocity", "reward"]),
        "return-based": hm.return_based(task),
        "distribution-based": hm.distribution_based(task, "x_velocity,z_velocity"),
        "moments": hm.moment_based(task, "x_velocity"),
    }


@pytest.mark.parametrize("name", ["goal-based", "multi-task", "return-based", "distribution-based", "moments"])
def test_relabelling_is_each_episode_by_itself(name: str, hopper: hm.TrajectoryDataset) -> None:
    statistic = presets(hopper.task)[name].fit(hopper)
    chosen = hopper[[3, 0, 7]]
    z = statistic.relabel(chosen)
    np.testing.assert_array_equal(z, np.concatenate([statistic(t) for t in chosen]))
    assert len(z) == chosen.steps


@pytest.mark.parametrize("name", ["goal-based", "multi-task", "return-based", "distribution-based", "moments"])
def test_checkpoint_round_trip(name: str, hopper: hm.TrajectoryDataset) -> None:
    statistic = presets(hopper.task)[name].fit(hopper)
    again = hm.InformationStatistic.from_spec(json.loads(json.dumps(statistic.spec())), hopper.task)
    np.testing.assert_array_equal(again(hopper[0]), statistic(hopper[0]))


def test_the_categories_are_what_the_table_says(hopper: hm.TrajectoryDataset) -> None:
    trajectory = hopper[5]
    assert trajectory.rewards is not None
    made = {name: statistic.fit(hopper) for name, statistic in presets(hopper.task).items()}
    np.testing.assert_array_equal(made["goal-based"](trajectory)[0], trajectory.observations[-1, [5]])
    np.testing.assert_allclose(made["return-based"](trajectory)[0], trajectory.total_reward / 1000, rtol=1e-5)
    sums = [trajectory.observations[:, 5].sum(), trajectory.observations[:, 6].sum(), trajectory.rewards.sum()]
    assert made["multi-task"](trajectory)[0].argmax() == int(np.argmax(sums))
    assert made["distribution-based"](trajectory).shape == (len(trajectory), 62)


def test_bin_ranges_come_from_what_was_fitted_only(hopper: hm.TrajectoryDataset) -> None:
    statistic = hm.distribution_based(hopper.task, "x_velocity").fit(hopper[:3])
    values = np.concatenate([t.observations[:, 5] for t in hopper[:3]])
    bins = statistic.aggregator.bins  # type: ignore[attr-defined]
    assert bins.low[0] == values.min()
    assert bins.high[0] == values.max()


@pytest.mark.parametrize("name", ["return-based", "distribution-based"])
def test_episodes_may_come_from_a_generator(name: str, hopper: hm.TrajectoryDataset) -> None:
    statistic = presets(hopper.task)[name]
    assert statistic.fit(episode for episode in hopper) == statistic.fit(hopper)


def test_where_a_feature_is_no_number_is_said(hopper: hm.TrajectoryDataset) -> None:
    bad = Function("bad", lambda obs, act, rew: np.where(obs[:, 0] == hopper[3].observations[2, 0], np.nan, 1.0))
    statistic = hm.return_based(hopper.task, bad)
    for use in (hm.distribution_based(hopper.task, bad).fit, statistic.relabel):
        with pytest.raises(DataError, match=r"^feature 'bad' returned NaN or infinity at step 2 of episode 3$"):
            use(hopper)


@dataclass(frozen=True)
class Broken:
    """An aggregator of a user's own: a number at step 3 that is none, or too few columns."""

    kind: ClassVar[str] = "broken"
    value: float = math.nan
    columns: int = 2

    def fit(self, features: Iterable[Array]) -> Broken:
        return self

    def width(self, dimensions: int) -> int:
        return 2

    def __call__(self, phi: Array) -> Array:
        z = np.zeros((len(phi), self.columns), dtype=np.float32)
        z[3] = self.value
        return z


@pytest.mark.parametrize(
    ("aggregator", "message"),
    [
        (Broken(), r"'broken' returned NaN or infinity for 'x_velocity' at step 3 of an episode of 2\d"),
        (Broken(-math.inf), "at step 3"),
        (Broken(0.0, columns=1), r"'broken' returned shape \(20, 1\)"),
    ],
)
def test_what_an_aggregator_makes_is_looked_at(aggregator: Broken, message: str, hopper: hm.TrajectoryDataset) -> None:
    statistic = hm.InformationStatistic(hm.resolve_feature("x_velocity", hopper.task), aggregator)
    with pytest.raises(DataError, match=message):
        statistic(hopper[0])
    with pytest.raises(DataError, match=message):
        statistic.relabel(hopper)


def test_the_full_trajectory_is_a_code(hopper: hm.TrajectoryDataset) -> None:
    assert hm.full_trajectory(4) == hm.LearnedStatistic(4)
    for method in (hm.BDT(m=3), hm.DTE2E(m=3), hm.MetaBC(m=3)):
        assert method.statistic(hopper.task) == hm.full_trajectory(3)


def test_nothing_to_relabel(hopper: hm.TrajectoryDataset) -> None:
    with pytest.raises(DataError):
        hm.return_based(hopper.task).relabel(hopper[:0])


@pytest.mark.parametrize("make", [hm.distribution_based, hm.moment_based, hm.goal_based])
def test_a_statistic_that_never_varies_is_noted(make: Callable[..., hm.InformationStatistic]) -> None:
    task = hm.Task("flat", 50, features={"level": 0, "speed": 1})
    rng = np.random.default_rng(0)
    seen = [np.stack([np.full(20, 2.5), rng.normal(size=20)], axis=1) for _ in range(3)]
    data = hm.load_dataset([hm.Trajectory(observations, np.zeros((20, 1))) for observations in seen], task)
    for episodes in (data, (episode for episode in data)):
        with pytest.warns(HimatchWarning, match=r"^the statistic of the feature 'level' is the same at every step"):
            make(task, "level").fit(episodes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(task, "speed").fit(data)


@dataclass(frozen=True)
class Means:
    """An aggregator of a user's own: the mean of the rest, or by mistake of the whole episode or of the past."""

    kind: ClassVar[str] = "means"
    of: str = "rest"

    def fit(self, features: Iterable[Array]) -> Means:
        return self

    def width(self, dimensions: int) -> int:
        return dimensions

    def __call__(self, phi: Array) -> Array:
        counts = np.arange(1, len(phi) + 1)[:, None]
        past, rest = np.cumsum(phi, axis=0) / counts, (np.cumsum(phi[::-1], axis=0) / counts)[::-1]
        found = {"rest": rest, "past": past, "episode": np.broadcast_to(phi.mean(axis=0), phi.shape)}[self.of]
        return found.astype(np.float32)


def test_an_aggregator_that_looks_into_the_past_is_refused(hopper: hm.TrajectoryDataset) -> None:
    feature = hm.resolve_feature("x_velocity", hopper.task)
    hm.InformationStatistic(feature, Means()).fit(hopper)
    for mistake in ("past", "episode"):
        with pytest.raises(DataError, match=r"^aggregator 'means' looks into the past: .* for step 10 and later"):
            hm.InformationStatistic(feature, Means(mistake)).fit(hopper)
