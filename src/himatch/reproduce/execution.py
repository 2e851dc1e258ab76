"""One job: its data, its model, its rollouts, its result files. What is there already is not done again."""

from __future__ import annotations

import datetime
import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock

from himatch._runtime.devices import find_device
from himatch._runtime.files import read_rows, write_json
from himatch._runtime.tensors import versions
from himatch.data import Split, TrajectoryDataset, load_dataset
from himatch.data.minari import find_folder
from himatch.data.split import ranked_groups
from himatch.datagen.cache import cached_dataset
from himatch.errors import DataError, HimatchWarning
from himatch.evaluation.match import match_targets
from himatch.evaluation.result import MatchResult
from himatch.evaluation.temperature import best_temperature, rule, some_episodes, training_scores
from himatch.methods import Method, make_method
from himatch.policy import Policy
from himatch.reproduce.jobs import Job, Options, Question
from himatch.reproduce.results import SCORES, JobResult, TargetScore, read_result, write_result
from himatch.reproduce.suites import BUDGETS, SUITES, usual_steps
from himatch.reproduce.targets import PATCHWORKS, Asked, split_dataset, suite_targets
from himatch.runs.folder import METRICS, RUN, seed_folder
from himatch.runs.loader import load
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.targets import Demonstration
from himatch.training import check_same, configure, train

MODELS, FINISHED, LOCKS = "models", "finished.json", ".locks"
ADDITIONAL_SEED = 1_000_003  # of episodes beside the dataset


def run_job(job: Job, out: Path, options: Options, *, quiet: bool = True) -> list[Path]:
    """Train the model of a job, unless it is trained, and answer what is not answered yet.

    Of several processes with the same job one does it, and the others wait for it.
    """
    locks = out / LOCKS
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"{job.key}.lock"):
        return _run_job(job, out, options, quiet)


def _run_job(job: Job, out: Path, options: Options, quiet: bool) -> list[Path]:
    waiting = job.open_questions(out)
    if not waiting:
        return []
    dataset = job_dataset(job, options, quiet)
    split = split_dataset(dataset, job.split)
    _keep_to_one_dataset(out, job, split.train.content_hash)
    if not job.method:
        return [write_result(out, _look_at(job, question, dataset, options)) for question in waiting]
    policy, facts = trained(job, split, out, options, quiet)
    alike: dict[tuple[str, str], list[Question]] = {}
    for question in waiting:
        alike.setdefault((SUITES[question.suite].targets, question.conditioning), []).append(question)
    written = []
    for questions in alike.values():
        written += [write_result(out, r) for r in _answers(job, questions, policy, split, facts, options)]
    return written


def _keep_to_one_dataset(out: Path, job: Job, digest: str) -> None:
    """A table compares methods on the same data: refuse to add a row of other data."""
    for path in sorted((out / SCORES).glob(f"*-{job.task}-*.json")):
        result = read_result(path)
        suite = SUITES.get(result.suite)
        if suite is None or (result.task, suite.split) != (job.task, job.split) or suite.targets == "dataset":
            continue
        if (before := result.provenance["data"]["hash"]) != digest:
            raise DataError(
                f"{out} holds results of {job.task} on other data (sha256 {before[:12]}, now {digest[:12]}); "
                "choose another --out (himatch report takes several folders)"
            )
        return


# -- data -----------------------------------------------------------------------------------------------------------


def job_dataset(job: Job, options: Options, quiet: bool) -> TrajectoryDataset:
    """The user's data where some was named, else the set that himatch makes, of the budget's size."""
    if options.data is not None:
        return load_dataset(find_data(Path(options.data), job), job.task)
    budget = BUDGETS[options.budget]
    sizes = {"cheetah-vel": budget.velocity_episodes, "halfcheetah-run-backflip": budget.flip_episodes}
    episodes = sizes.get(job.dataset, budget.episodes)
    return load_dataset(
        cached_dataset(job.dataset, options.cache, episodes=episodes, threads=options.threads, quiet=quiet)
    )


def find_data(given: Path, job: Job) -> Path:
    """The file or folder named, or inside a folder of several the one named like the dataset."""
    if not given.is_dir() or (given / "data").is_dir() or (given / "metadata.json").is_file():
        return given
    wanted = job.dataset.replace("-", "_")
    for path in sorted(given.iterdir()):
        if path.name.replace("-", "_").startswith(wanted):
            return path
    raise DataError(f"{given} holds no dataset for {job.task}; expected a file or folder named {job.dataset}*")


# -- the model ------------------------------------------------------------------------------------------------------


def trained(job: Job, split: Split, out: Path, options: Options, quiet: bool) -> tuple[Policy, dict[str, Any]]:
    """The job's policy; how long its training took and, where it acts by chance, how its temperature was chosen."""
    folder, device, preset = out / MODELS / job.key, options.device, BUDGETS[options.budget].preset
    method = _shortened(make_method(job.method, **dict(job.settings)), options)
    overrides = {"steps": options.steps or BUDGETS[options.budget].steps, "head": options.head, **dict(job.overrides)}
    if (folder / FINISHED).is_file():
        check_same(folder, method, split, configure(preset, method, **overrides), tuple(range(options.seed_count)))
    else:
        train(
            method,
            split,
            out=folder,
            preset=preset,
            seeds=options.seed_count,
            resume=(folder / RUN).is_file(),
            device=device,
            quiet=quiet,
            **overrides,
        )
        write_json(folder / FINISHED, {"seconds": read_rows(seed_folder(folder, 0) / METRICS)[-1]["seconds"]})
    policy, facts = load(folder, device=find_device(device)), json.loads((folder / FINISHED).read_text())
    if policy.agent.policy.sampled:
        if "temperature" not in facts:
            facts |= _temperature(policy, split, options)
            write_json(folder / FINISHED, facts)
        policy.temperature = facts["temperature"]
    return policy, facts


def _shortened(method: Method, options: Options) -> Method:
    """The method with the steps of its pretraining, where it has its own, changed as those of the training are."""
    own = getattr(method, "pretrain_steps", None)
    usual = usual_steps(options.budget, method.name)
    if options.steps is None or own is None or usual is None:
        return method
    return replace(method, pretrain_steps=max(1, round(own * options.steps / usual)))  # type: ignore[call-arg]


def _temperature(policy: Policy, split: Split, options: Options) -> dict[str, Any]:
    """A temperature for each model, lest one that suits some methods judge them all; by training episodes alone.

    On the policy's own feature, whatever it is asked first.
    """
    feature = policy.feature
    chosen = some_episodes(policy.reference(feature))
    targets = [Demonstration(split.train[i], f"training episode {i}") for i in chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)
        scores = training_scores(policy, targets, feature, threads=options.threads)
    tried = {f"{temperature:g}": round(float(np.mean(row)), 6) for temperature, row in scores.items()}
    return {"temperature": best_temperature(scores), "tried": tried, "chosen_by": f"{feature}, {rule(targets)}"}


# -- answers --------------------------------------------------------------------------------------------------------


def _answers(
    job: Job, questions: Sequence[Question], policy: Policy, split: Split, facts: dict[str, Any], options: Options
) -> list[JobResult]:
    """Answers to questions about the same targets: rolled out once, compared on the feature of each question."""
    suite = SUITES[questions[0].suite]
    beside: dict[str, Any] = {}

    def additional() -> TrajectoryDataset:
        extra = cached_dataset(
            job.dataset,
            options.cache,
            episodes=2 * PATCHWORKS,
            seed=ADDITIONAL_SEED,
            threads=options.threads,
            quiet=True,
        )
        dataset = load_dataset(extra)
        beside["target_data"] = _named(dataset)  # himatch's own, whatever was trained on
        return dataset

    asked = suite_targets(suite, job.task, split, additional)
    features = tuple(dict.fromkeys(question.feature for question in questions))
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)  # what lies outside the data is in the result
        results = match_targets(
            policy,
            [a.target for a in asked],
            episodes=options.rollouts,
            conditioning=questions[0].conditioning,  # type: ignore[arg-type]
            features=features,
            threads=options.threads,
        )
    elapsed = time.perf_counter() - started
    found = dict(zip(features, results, strict=True))
    provenance = _provenance(split.train) | {
        **beside,
        "training": {**policy.description["train"], **policy.description["model"], **facts},
        "method": policy.description["method"],
        "rollout_seconds": round(elapsed, 2),
        "device": torch.cuda.get_device_name(policy.device) if policy.device.type == "cuda" else "cpu",
        "trained_with": policy.description["versions"],
    }
    return [
        _result(
            job,
            question,
            options,
            seeds=list(policy.seeds),
            episodes=options.rollouts,
            targets=[_score(a, r) for a, r in zip(asked, found[question.feature], strict=True)],
            provenance=provenance,
        )
        for question in questions
    ]


def _result(job: Job, question: Question, options: Options, **found: Any) -> JobResult:
    """The answer to a question, from what was found."""
    named = question.suite, job.task, question.name, question.feature, question.conditioning, options.budget
    return JobResult(*named, **found)


def _score(asked: Asked, result: MatchResult) -> TargetScore:
    demonstration = asked.target.demonstration()
    rewarded = demonstration is not None and demonstration.rewards is not None
    return TargetScore(
        name=asked.target.name,
        group=asked.group,
        w1=_floats(result.w1_per_seed),
        energy=_floats(result.energy_per_seed),
        returns=_floats(result.returns.mean(1)),
        lengths=_floats(result.lengths.mean(1)),
        target_return=demonstration.total_reward if rewarded and demonstration is not None else None,
        reference=result.reference,
        outside=result.outside,
        shift=asked.shift,
        ordering=asked.ordering,
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


def _look_at(job: Job, question: Question, dataset: TrajectoryDataset, options: Options) -> JobResult:
    """Suite ``data``: how a feature is distributed over the best, middle, worst and all episodes."""
    feature = resolve_feature(question.feature, dataset.task)
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
    provenance = _provenance(dataset)
    return _result(job, question, options, seeds=[], episodes=0, targets=targets, provenance=provenance)


def _provenance(dataset: TrajectoryDataset) -> dict[str, Any]:
    return {"data": _named(dataset), "versions": versions(), "date": datetime.date.today().isoformat()}


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
