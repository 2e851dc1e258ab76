"""A dataset summarised: sizes, returns, lengths, and the range and spread of every feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.dataset import TrajectoryDataset
from himatch.data.inspection.report import GROUP_SIZE, DatasetReport, FeatureReport
from himatch.data.split import ranked_groups
from himatch.data.twins import copies, listed_pairs
from himatch.errors import DataError, HimatchError
from himatch.statistics.bins import PAPER_BINS, Bins
from himatch.statistics.features import feature_names, resolve_feature
from himatch.tasks.locomotion import LOCOMOTION
from himatch.tasks.registry import environment_name, has_versions

FEW_BINS = 5


def inspect_dataset(
    dataset: TrajectoryDataset, features: tuple[str, ...] | None = None, *, warnings: tuple[str, ...] = ()
) -> DatasetReport:
    """Summarise a dataset: sizes, returns, lengths, and the range and spread of every named feature."""
    if len(dataset) == 0:
        raise HimatchError("there are no episodes to inspect")
    task, lengths = dataset.task, dataset.lengths
    groups = _groups(dataset)
    reports: list[FeatureReport] = []
    failed: dict[str, str] = {}
    for name in features or feature_names(task, has_rewards=dataset.has_rewards) or ("state",):
        try:
            reports += _feature_reports(dataset, name, groups)
        except DataError as reason:
            if features:
                raise
            failed[name] = str(reason)  # nobody named this one; the others are shown
    returns = _spread(dataset.returns) if dataset.has_rewards else None
    normalized = None
    if returns is not None and task.reference_returns is not None:
        normalized = {key: task.normalized_return(value) or 0.0 for key, value in returns.items() if key != "std"}
    labels = dict(Counter(label for label in dataset.labels if label is not None))
    return DatasetReport(
        source=dataset.source,
        task=task.name,
        env_id=dataset.env_id,
        content_hash=dataset.content_hash,
        episodes=len(dataset),
        steps=dataset.steps,
        observation_width=dataset.observation_width,
        action_width=dataset.action_width,
        discrete=None if dataset.discrete is None else asdict(dataset.discrete),
        observation_names=list(dataset.observation_names),
        action_names=list(dataset.action_names),
        rate=dataset.rate,
        units=dict(dataset.units),
        mapping_files=list(dataset.mapping_files),
        megabytes=_megabytes(dataset),
        lengths=_spread(lengths),
        terminated=int(dataset.terminated.sum()),
        labels=labels,
        unlabelled=len(dataset) - sum(labels.values()),
        returns=returns,
        normalized_returns=normalized,
        sorted_returns=np.sort(dataset.returns).tolist() if dataset.has_rewards else None,
        groups=groups,
        features=reports,
        failed=failed,
        extremes=[asdict(one) for one in dataset.extremes()],
        warnings=[*warnings, *failed.values(), *_remarks(dataset, reports)],
    )


def _groups(dataset: TrajectoryDataset) -> dict[str, list[int]]:
    """Best, middle and worst episodes by return, where there are enough of them."""
    if not dataset.has_rewards or len(dataset) < 3 * GROUP_SIZE:
        return {}
    return {name: episodes.tolist() for name, episodes in ranked_groups(dataset.returns, GROUP_SIZE).items()}


def _feature_reports(dataset: TrajectoryDataset, name: str, groups: dict[str, list[int]]) -> list[FeatureReport]:
    feature = resolve_feature(name, dataset.task)
    episodes = [feature(trajectory) for trajectory in dataset]
    columns = feature.names(episodes[0].shape[1])
    bins, usual = Bins.fit(episodes), Bins.fit(episodes, fenced=True)
    everything = np.concatenate(episodes)
    filled = usual.histogram(everything)
    means = np.array([phi.mean(axis=0, dtype=np.float64) for phi in episodes])
    histograms = {"all": bins.histogram(everything)}
    for group, chosen in groups.items():
        histograms[group] = bins.histogram(np.concatenate([episodes[i] for i in chosen]))
    reports = []
    for i, column in enumerate(columns):
        values = everything[:, i]
        low, high = np.quantile(values, [0.01, 0.99])
        reports.append(
            FeatureReport(
                column,
                float(values.min()),
                float(low),
                float(values.mean(dtype=np.float64)),
                float(values.std(dtype=np.float64)),
                float(high),
                float(values.max()),
                float(means[:, i].std()),
                bins.edges[i].tolist(),
                {group: histogram[i].tolist() for group, histogram in histograms.items()},
                _count_values(values),
                (usual.low[i], usual.high[i]),
                int((filled[i] > 0).sum()),
            )
        )
    return reports


def _count_values(values: NDArray[Any]) -> int:
    """How many different values there are: 1, 2, or 3 for more."""
    low, high = values.min(), values.max()
    if low == high:
        return 1
    return 2 if bool(((values == low) | (values == high)).all()) else 3


def _spread(values: NDArray[Any]) -> dict[str, float]:
    return {
        "min": float(values.min()),
        "median": float(np.median(values)),
        "mean": float(values.mean()),
        "max": float(values.max()),
        "std": float(values.std()),
    }


def _megabytes(dataset: TrajectoryDataset) -> float:
    width = dataset.observation_width + dataset.action_width + int(dataset.has_rewards)
    return float(round(dataset.steps * width * 4 / 1e6, 1))


def _remarks(dataset: TrajectoryDataset, reports: list[FeatureReport]) -> list[str]:
    """What a user should know before training on this."""
    task, remarks = dataset.task, []
    if not dataset.has_rewards:
        remarks.append("no rewards: returns, DT on rewards and the paper's split are not available")
    if dataset.env_id is None and task.env_id is not None and has_versions(task.env_id):
        remarks.append(
            f"the source does not say which version of {environment_name(task.env_id)} it was recorded in"
            + (" (D4RL's own files: v2-era physics, nearest today v4)" if task in LOCOMOTION else "")
        )
    if (clock := dataset.packed.facts.clock) is not None:
        remarks.append(f"column {clock} is not used; name it with --columns.step {clock} to check order and rate")
    if len(dataset) < 15:
        remarks.append(f"{len(dataset)} episodes are too few for the paper's split, which needs 15")
    remarks += map(str, dataset.extremes())
    if twice := copies(dataset):
        remarks.append(
            f"{len(twice)} of {len(dataset)} episodes are copies of others; the same are "
            f"{listed_pairs(twice, dataset.episode_name)}"
        )
    remarks += [
        f"feature {report.name} is constant; it cannot tell behaviours apart"
        for report in reports
        if report.minimum == report.maximum
    ]
    remarks += chain.from_iterable(map(_remarks_on_bins, reports))
    return remarks


def _remarks_on_bins(report: FeatureReport) -> Iterator[str]:
    """How bins deal with values far from the others, where there are any."""
    low, high = report.usual
    if (low, high) != (report.edges[0], report.edges[-1]):
        yield (
            f"bins of {report.name} will span {low:.4g} to {high:.4g}, and not {report.minimum:.4g} to "
            f"{report.maximum:.4g}: values that stand alone far beyond fall into the end bins"
        )
    if 1 < report.filled < FEW_BINS and report.values > 2:
        yield (
            f"feature {report.name} fills {report.filled} of {PAPER_BINS} bins: some values are far from the others, "
            "and a policy conditioned on its distribution hardly sees these apart"
        )
