"""Rehearsed conditioning in the benchmark: programs for the targets of a job, and what its results say of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from himatch._runtime.progress import bars
from himatch.data import Split
from himatch.errors import HimatchWarning
from himatch.policy import Policy
from himatch.rehearsal import Arena
from himatch.reproduce.jobs import Job, Options
from himatch.reproduce.results import ResultKey
from himatch.reproduce.suites import SUITES
from himatch.reproduce.targets import additional_episodes, suite_targets
from himatch.runs.programs import target_key
from himatch.targets import Target


def rehearse(job: Job, keys: Sequence[ResultKey], policy: Policy, split: Split, options: Options, quiet: bool) -> None:
    """Find programs for all targets of a job that are to be rehearsed; they are kept in the folder of its model."""
    suites = dict.fromkeys(key.suite for key in keys if key.conditioning == "rehearsed")
    places = [
        place
        for name in suites
        for place in suite_targets(
            SUITES[name], job.task, split, options.target_seed, lambda: additional_episodes(job, options)
        )
    ]
    if not places:
        return
    frame = policy.reference().frame  # suites share targets: one that is moved by no bin is as it was
    targets = list({target_key(place.target, frame): place.target for place in places}.values())
    with nullcontext() if quiet else bars() as begin, warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)  # what lies outside the data is in the result
        policy.rehearse(
            targets, seconds=options.rehearsal, episodes=options.rollouts, threads=options.threads, bar=begin
        )


def rehearsal_facts(policy: Policy, targets: Sequence[Target], options: Options) -> dict[str, Any]:
    """How long was searched, on which initial states, and what was promised of every target."""
    arena = Arena(policy.run, policy.agent, policy.temperature)
    frame, now = arena.reference.frame, arena.now
    found = [policy.run.programs.rehearsal(target, frame, now) for target in targets]
    # Of targets that were searched for together, one.
    searches = {(one["seconds"], one.get("cpu_seconds", 0.0), one["rounds"]) for one in found}
    return {
        "limit": options.rehearsal,
        "seconds": round(sum(seconds for seconds, *_ in searches), 1),
        "cpu_seconds": round(sum(cpu for _, cpu, _ in searches), 1),
        "initial_states": [arena.starts[0], arena.starts[-1]],
        "targets": [
            {"name": target.name, "rounds": one["rounds"], **one["expected"]}
            for target, one in zip(targets, found, strict=True)
        ],
    }
