"""Which row of a suite is chosen where held-out targets have no say: the one that matches training episodes best.

    python benchmarks/chosen.py imitation --methods bdt --all-variants --budget fast --out DIR

takes the models that `himatch benchmark` trained in DIR, and trains those that are missing. Fifteen training episodes
of each task, spread evenly over the feature's totals, are targets, as in the selection of temperatures; scores are
charged W1 of rollouts from initial states of their own. The lowest average over tasks is chosen. What is done is kept
in DIR/chosen.json, and the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from himatch._runtime.files import write_json
from himatch._runtime.source import source_tree
from himatch.data import Split
from himatch.policy import Policy
from himatch.rehearsal.temperature import START, some_episodes, training_scores
from himatch.reproduce import Options, plan_jobs
from himatch.reproduce.execution import job_dataset, trained
from himatch.reproduce.specification import display_name
from himatch.reproduce.targets import split_dataset
from himatch.runs.references import referenced_features
from himatch.targets import Demonstration, EpisodeReference


def measure(policy: Policy, split: Split, feature: str, rollouts: int, threads: int) -> list[float]:
    """Charged W1 of every seed, averaged over training episodes."""
    if feature not in referenced_features(policy.run.folder):
        policy.add_reference(EpisodeReference.of(split.train, feature, fenced=False))
    chosen = some_episodes(policy.run.reference(feature))
    targets = [Demonstration(split.train[i], f"training episode {i}") for i in chosen]
    scores = training_scores(
        policy.run,
        policy.agent,
        targets,
        (policy.temperature,),
        rollouts,
        feature=feature,
        start=START,
        threads=threads,
    )
    return [round(float(mean), 6) for mean in scores[policy.temperature].mean(axis=0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite")
    parser.add_argument("--methods", nargs="+", required=True)
    parser.add_argument("--budget", default="fast")
    parser.add_argument("--tasks", nargs="+", default=[])
    parser.add_argument("--feature", default="x_velocity")
    parser.add_argument("--all-variants", action="store_true")
    parser.add_argument("--rollouts", type=int, default=5)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--cache")
    parser.add_argument("--device")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    own = {"seeds": given.seeds, "cache": given.cache, "device": given.device, "threads": given.threads}
    chosen = {"tasks": tuple(given.tasks), "methods": tuple(given.methods), "all_variants": given.all_variants}
    options = Options(given.budget, **own, **chosen)
    path = given.out / "chosen.json"
    facts = {"suite": given.suite, "feature": given.feature, "rollouts": given.rollouts, "source": source_tree()}
    known: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    scores = known.get("scores", {}) if {name: known.get(name) for name in facts} == facts else {}
    rows: dict[str, dict[str, float]] = {}
    for job in plan_jobs([given.suite], options):
        if job.key not in scores:
            split = split_dataset(job_dataset(job, options, True), job.split)
            policy, _ = trained(job, split, given.out, options, True)
            scores[job.key] = measure(policy, split, given.feature, given.rollouts, given.threads)
            write_json(path, {**facts, "scores": scores})
        mean = float(np.mean(scores[job.key]))
        name = f"{display_name(job.results[0].method)} ({job.policy})"
        rows.setdefault(name, {})[job.task] = mean
        print(f"{mean:.3f}  {job.task} {name}", flush=True)
    tasks = {task for row in rows.values() for task in row}
    print("average over tasks:")
    whole = [(float(np.mean(list(row.values()))), name) for name, row in rows.items() if set(row) == tasks]
    for mean, name in sorted(whole):
        print(f"{mean:.3f}  {name}")


if __name__ == "__main__":
    main()
