"""Rehearsed conditioning in the benchmark: programs for the targets of a job, and what its results say of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from himatch._runtime.progress import bars
from himatch.data import Split
from himatch.errors import HimatchWarning
from himatch.policy import Policy
from himatch.rehearsal import Arena
from himatch.rehearsal.arena import AT_ONCE
from himatch.rehearsal.search import CANDIDATES, EPISODES
from himatch.reproduce.jobs import Job, Options
from himatch.reproduce.results import ResultKey
from himatch.reproduce.suites import SUITES
from himatch.reproduce.targets import additional_episodes, suite_targets
from himatch.targets import Target

Progress = Callable[[int, int], None]


def rehearse(job: Job, keys: Sequence[ResultKey], policy: Policy, split: Split, options: Options, quiet: bool) -> None:
    """Find programs for all targets of a job that are to be rehearsed; they are kept in the folder of its model.

    As many at a time as are played together: what is found is kept, and tried for the targets that follow.
    """
    suites = dict.fromkeys(key.suite for key in keys if key.conditioning == "rehearsed")
    targets = [
        place.target
        for name in suites
        for place in suite_targets(
            SUITES[name], job.task, split, options.target_seed, lambda: additional_episodes(job, options)
        )
    ]
    together = max(1, AT_ONCE // (len(policy.seeds) * CANDIDATES * EPISODES))
    with nullcontext() if quiet else bars() as begin, warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)  # what lies outside the data is in the result
        for first in range(0, len(targets), together):
            some = targets[first : first + together]
            which = f"targets {first + 1} to {first + len(some)} of {len(targets)}"
            policy.rehearse(
                some,
                seconds=None if options.rehearsal is None else options.rehearsal * len(some) / len(targets),
                episodes=options.rollouts,
                threads=options.threads,
                bar=None if begin is None else _titled(begin, which),
            )


def _titled(begin: Callable[[str], Progress], which: str) -> Callable[[str], Progress]:
    return lambda title: begin(f"{title}, {which}" if title == "rehearsing" else title)


def rehearsal_facts(policy: Policy, targets: Sequence[Target], options: Options) -> dict[str, Any]:
    """How long was searched, on which initial states, and what was promised of every target."""
    arena = Arena(policy.run, policy.agent, policy.temperature)
    frame, now = arena.reference.frame, arena.now
    found = [policy.run.programs.rehearsal(target, frame, now) for target in targets]
    searches = {(one["seconds"], one["rounds"]) for one in found}  # of targets that were searched for together, one
    return {
        "limit": options.rehearsal,
        "seconds": round(sum(seconds for seconds, _ in searches), 1),
        "initial_states": [arena.starts[0], arena.starts[-1]],
        "targets": [
            {"name": target.name, "rounds": one["rounds"], **one["expected"]}
            for target, one in zip(targets, found, strict=True)
        ],
    }
