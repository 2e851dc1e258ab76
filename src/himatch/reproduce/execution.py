"""One job: its data, its model, its result files. What is there already is not done again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from himatch._runtime.clock import stopwatch
from himatch._runtime.devices import find_device
from himatch._runtime.files import write_json
from himatch.api import train
from himatch.data import Split, TrajectoryDataset, load_dataset
from himatch.datagen.cache import cached_dataset
from himatch.errors import DataError
from himatch.methods import Method, make_method
from himatch.policy import Policy, load
from himatch.reproduce.budgets import BUDGETS, usual_steps
from himatch.reproduce.goals import reach
from himatch.reproduce.jobs import Job, Options
from himatch.reproduce.measurements import Measure, describe, measure
from himatch.reproduce.policies import POLICIES
from himatch.reproduce.rehearsals import rehearse
from himatch.reproduce.results import SCORES, ResultKey, read_result, write_result
from himatch.reproduce.suite import Scoring
from himatch.reproduce.suites import SUITES
from himatch.reproduce.targets import split_dataset
from himatch.runs.folder import RunFolder
from himatch.training import check_same, configure

MODELS, FINISHED, LOCKS = "models", "finished.json", ".locks"
MEASURES: Mapping[Scoring, Measure] = {"distance": measure, "success": reach}


def run_job(job: Job, out: Path, options: Options, *, quiet: bool = True) -> list[Path]:
    """Train the model of a job, unless it is trained, and write the results that are missing.

    Of several processes with the same job one does it, and the others wait for it.
    """
    locks = out / LOCKS
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"{job.key}.lock"):
        return _run_job(job, out, options, quiet)


def _run_job(job: Job, out: Path, options: Options, quiet: bool) -> list[Path]:
    waiting = job.missing(out)
    if not waiting:
        return []
    dataset = job_dataset(job, options, quiet)
    split = split_dataset(dataset, job.split)
    _keep_to_one_dataset(out, job, split.train.content_hash)
    if not job.method:
        return [write_result(out, describe(key, dataset, options)) for key in waiting]
    policy, facts = trained(job, split, out, options, quiet)
    rehearse(job, waiting, policy, split, options, quiet)
    alike: dict[tuple[Scoring, str, str], list[ResultKey]] = {}
    for key in waiting:
        suite = SUITES[key.suite]
        alike.setdefault((suite.scoring, suite.targets, key.conditioning), []).append(key)
    written = []
    for (scoring, *_), keys in alike.items():
        found = MEASURES[scoring](job, keys, policy, split, facts, options)
        written += [write_result(out, result) for result in found]
    return written


def _keep_to_one_dataset(out: Path, job: Job, digest: str) -> None:
    """A table compares methods on the same data: refuse to add a row of other data."""
    for path in sorted((out / SCORES).glob(f"*-{job.task}-*.json")):
        result = read_result(path)
        suite = SUITES.get(result.suite)
        if suite is None or suite.targets == "dataset":
            continue
        if (result.task, suite.split, suite.dataset.format(task=result.task)) != (job.task, job.split, job.dataset):
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
    episodes = BUDGETS[options.budget].dataset_size(job.dataset)
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
    """The job's policy; how long its training took and, of a stochastic one, how its temperature was chosen."""
    run, device, preset = RunFolder(out / MODELS / job.key), options.device, BUDGETS[options.budget].preset
    finished = run.path / FINISHED
    method = _shortened(make_method(job.method, **dict(job.settings)), options)
    steps = options.steps or BUDGETS[options.budget].steps
    overrides = {"steps": steps, **POLICIES[job.policy], **dict(job.overrides)}
    if finished.is_file():
        check_same(run, method, split, *configure(preset, method, **overrides), tuple(range(options.seed_count)))
    else:
        begun = run.begun
        with stopwatch() as spent:
            train(
                method,
                split,
                out=run.path,
                preset=preset,
                seeds=options.seed_count,
                resume=begun,
                device=device,
                quiet=quiet,
                bin_range="all",  # the paper's protocol
                threads=options.threads,
                **overrides,
            )
        took = {"seconds": run.metrics(0)[-1]["seconds"]}
        # Of a training that was interrupted, the CPU's seconds are known of the last part alone.
        write_json(finished, took if begun else took | {"cpu_seconds": round(spent.cpu_seconds, 1)})
    policy, facts = load(run.path, device=find_device(device)), json.loads(finished.read_text())
    if selected := (policy.run.scores or {}).get("temperature"):
        facts |= {"temperature": selected["value"], "tried": selected["tried"], "chosen_by": selected["rule"]}
    return policy, facts


def _shortened(method: Method, options: Options) -> Method:
    """The method with its pretraining shortened as the training is."""
    usual = usual_steps(options.budget, method.name)
    return method if options.steps is None or usual is None else method.scaled(options.steps, usual)
