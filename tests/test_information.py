from __future__ import annotations

import json

import numpy as np
import pytest

import himatch as hm
from himatch.aggregators import DiscountedSum, LearnedAggregator
from himatch.errors import DataError
from himatch.features import LearnedFeature, State


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


def test_full_trajectory_reads_windows_of_states(hopper: hm.TrajectoryDataset) -> None:
    statistic = hm.full_trajectory(m=4, window=8)
    windows = statistic.windows(hopper[0])
    assert windows.shape == (20, 8, 11)
    assert statistic.width == 4
    np.testing.assert_array_equal(windows[3], hopper[0].observations[3:11])
    np.testing.assert_array_equal(windows[-1], np.repeat(hopper[0].observations[-1:], 8, axis=0))


def test_learned_features_are_summed_over_the_window() -> None:
    statistic = hm.LearnedStatistic(LearnedFeature(State(), 16), DiscountedSum(), window=20)
    assert statistic.width == 16
    assert statistic.window == 20
    for feature, aggregator in (
        (State(), DiscountedSum()),
        (LearnedFeature(State(), 2), LearnedAggregator(2, 3)),
    ):
        with pytest.raises(DataError, match="either"):
            hm.LearnedStatistic(feature, aggregator)  # type: ignore[arg-type]


def test_nothing_to_relabel(hopper: hm.TrajectoryDataset) -> None:
    with pytest.raises(DataError):
        hm.return_based(hopper.task).relabel(hopper[:0])
