"""What a job measures: rollouts of its policy under the targets of a suite, or the distributions of a dataset."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from himatch._runtime.clock import Spent, stopwatch
from himatch._runtime.devices import device_name
from himatch._runtime.source import source_tree
from himatch._runtime.tensors import versions
from himatch.data import Split, TrajectoryDataset
from himatch.data.minari import find_folder
from himatch.data.split import ranked_groups
from himatch.errors import HimatchWarning
from himatch.evaluation.distances import whole_range
from himatch.evaluation.result import MatchResult
from himatch.policy import Policy
from himatch.reproduce.jobs import Job, Options
from himatch.reproduce.rehearsals import rehearsal_facts
from himatch.reproduce.results import JobResult, ResultKey, TargetScore
from himatch.reproduce.suites import SUITES
from himatch.reproduce.targets import SuiteTarget, additional_episodes, suite_targets
from himatch.runs.references import referenced_features
from himatch.simulation.simulator import available_cpus
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.targets import EpisodeReference

Measure = Callable[[Job, Sequence[ResultKey], Policy, Split, dict[str, Any], Options], list[JobResult]]
"""Makes results that share their targets and conditioning."""


def measure(
    job: Job, keys: Sequence[ResultKey], policy: Policy, split: Split, facts: dict[str, Any], options: Options
) -> list[JobResult]:
    """Results that share their targets and conditioning: rolled out once, compared on the feature of each."""
    suite = SUITES[keys[0].suite]
    beside: dict[str, Any] = {}

    def additional() -> TrajectoryDataset:
        dataset = additional_episodes(job, options)
        beside["target_data"] = _named(dataset)  # himatch's own, whatever was trained on
        return dataset

    targets = suite_targets(suite, job.task, split, options.target_seed, additional)
    if options.recorded_at != "t":
        beside["recorded_at"] = options.recorded_at
    if suite.targets == "unseen":
        beside["target_seed"] = options.target_seed
    if keys[0].conditioning == "rehearsed":
        beside["rehearsal"] = rehearsal_facts(policy, [place.target for place in targets], options)
    features = tuple(dict.fromkeys(key.feature for key in keys))
    for feature in features:
        if feature not in referenced_features(policy.run.folder):  # it is conditioned on another one
            policy.add_reference(EpisodeReference.of(split.train, feature, fenced=False))
    with stopwatch() as spent, warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)  # what lies outside the data is in the result
        results = policy.match_features(
            [place.target for place in targets],
            episodes=options.rollouts,
            conditioning=keys[0].conditioning,  # type: ignore[arg-type]
            features=features,
            threads=options.threads,
            recorded_at=options.recorded_at,
        )
    found = dict(zip(features, results, strict=True))
    provenance = provenance_of(policy, split, facts, spent) | beside
    return [
        result_of(
            key,
            options,
            seeds=list(policy.seeds),
            episodes=options.rollouts,
            targets=[_score(place, result) for place, result in zip(targets, found[key.feature], strict=True)],
            provenance=provenance,
        )
        for key in keys
    ]


def describe(key: ResultKey, dataset: TrajectoryDataset, options: Options) -> JobResult:
    """Suite ``data``: how a feature is distributed over the best, middle, worst and all episodes."""
    feature = resolve_feature(key.feature, dataset.task)
    groups = {**ranked_groups(dataset.returns), "all": np.arange(len(dataset))}
    bins = Bins.fit(feature(episode) for episode in dataset)
    targets = []
    for group, episodes in groups.items():
        chosen = dataset[episodes]
        values = np.concatenate([feature(episode) for episode in chosen])
        target = TargetScore(
            name=f"{group} episodes",
            group=group,
            w1=[],
            energy=[],
            returns=_floats([chosen.returns.mean()]),
            lengths=_floats([chosen.lengths.mean()]),
            histograms=histograms(bins, values),
        )
        targets.append(target)
    return result_of(key, options, seeds=[], episodes=0, targets=targets, provenance=_provenance(dataset))


def result_of(key: ResultKey, options: Options, **found: Any) -> JobResult:
    """The result of a key, from what was found."""
    place = key.suite, key.task, key.method, key.feature, key.conditioning
    return JobResult(*place, options.budget, **found, policy=key.policy)


def _score(place: SuiteTarget, result: MatchResult) -> TargetScore:
    of_all = TargetScore(
        name=place.target.name,
        group=place.group,
        w1=[],
        energy=[],
        returns=_floats(result.returns.mean(1)),
        lengths=_floats(result.lengths.mean(1)),
        target_return=place.held_against,
        played=_floats(result.played_per_seed),
        spread=_floats(result.spread),
        outside=result.outside,
    )
    if place.target.matches == "goal":
        unit = whole_range(result.spread, in_spreads=False)
        return replace(of_all, missed=_floats(result.error_per_seed / unit))
    if place.target.matches == "return":
        return of_all
    return replace(
        of_all,
        w1=_floats(result.binned_per_seed),
        energy=_floats(result.energy_per_seed),
        reference=None if result.mixture is None else result.mixture.binned,
        exact_reference=None if result.mixture is None else result.mixture.w1,
        exact=_floats(result.w1_per_seed),
        within_episode=_floats(result.within_episode_per_seed),
        in_order=_floats(result.in_order_per_seed) if len(result.stretches) > 1 else None,
        shift=place.shift,
        ordering=place.ordering,
        histograms=histograms(
            result.frame.bins, result.values, np.concatenate([result.pooled(k) for k in range(len(result.seeds))])
        ),
    )


def histograms(bins: Bins, target: np.ndarray, rollouts: np.ndarray | None = None) -> dict[str, Any]:
    """Shares of the target's and the rollouts' values on the bins, for figures."""
    parts = {"target": target} | ({} if rollouts is None else {"rollouts": rollouts})
    found: dict[str, Any] = {"edges": [_floats(row) for row in bins.edges]}
    for name, values in parts.items():
        indices = bins.indices(values)
        flat = np.ravel_multi_index(tuple(indices.T.astype(np.int64)), (bins.count,) * bins.dimensions)
        shares = np.bincount(flat, minlength=bins.count**bins.dimensions) / len(flat)
        found[name] = shares.reshape((bins.count,) * bins.dimensions).tolist()
    return found


def provenance_of(policy: Policy, split: Split, facts: dict[str, Any], spent: Spent) -> dict[str, Any]:
    """What a result says of a policy that was rolled out, and of what that took."""
    return _provenance(split.train) | {
        "training": {**policy.description["train"], **policy.description["model"], **facts},
        "method": policy.description["method"],
        "rollout_seconds": round(spent.seconds, 2),
        "rollout_cpu_seconds": round(spent.cpu_seconds, 2),
        "device": device_name(policy.device),
        "cores": available_cpus(),
        "trained_with": policy.description["versions"],
    }


def _provenance(dataset: TrajectoryDataset) -> dict[str, Any]:
    date = datetime.date.today().isoformat()
    return {"data": _named(dataset), "source": source_tree(), "versions": versions(), "date": date}


def _named(dataset: TrajectoryDataset) -> dict[str, Any]:
    """Which data these are."""
    folder = find_folder(Path(dataset.source))
    said = None if folder is None else folder.metadata.get("himatch")
    return {
        "name": dataset.name,
        "made_by_himatch": isinstance(said, dict) and "recipe" in said,  # it writes other people's data, too
        "hash": dataset.content_hash,
        "episodes": len(dataset),
        "steps": dataset.steps,
        "env_id": dataset.env_id,
    }


def _floats(values: Sequence[float] | np.ndarray) -> list[float]:
    return [float(value) for value in values]
