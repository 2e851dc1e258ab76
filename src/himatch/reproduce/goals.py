"""Success rates: how often the test goals of an environment are reached."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from himatch._runtime.clock import stopwatch
from himatch.data import Split
from himatch.errors import HimatchWarning
from himatch.evaluation.goals import goals_reached, own_tests
from himatch.policy import Policy
from himatch.reproduce.jobs import Job, Options
from himatch.reproduce.measurements import provenance_of, result_of
from himatch.reproduce.results import JobResult, ResultKey, TargetScore
from himatch.reproduce.suites import SUITES


def reach(
    job: Job, keys: Sequence[ResultKey], policy: Policy, split: Split, facts: dict[str, Any], options: Options
) -> list[JobResult]:
    """One result for each key, all of the same rollouts: the goal is that of the environment, whatever is scored."""
    suite = SUITES[keys[0].suite]
    episodes = options.episodes or suite.rollouts or options.rollouts
    cases = own_tests(policy.task, episodes)
    with stopwatch() as spent, warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)
        found = goals_reached(
            policy.run,
            policy.agent,
            cases.goals,
            cases.settings,
            conditioning=keys[0].conditioning,  # type: ignore[arg-type]
            steps=suite.steps,
            temperature=policy.temperature,
        )
    provenance = provenance_of(policy, split, facts, spent)
    groups, targets = np.array(cases.groups), []
    for group in dict.fromkeys(cases.groups):
        rates, steps = (part[:, groups == group].mean(axis=1).tolist() for part in found)
        targets.append(TargetScore(group, group, [], [], [], steps, success=rates))
    seeds = list(policy.seeds)
    return [
        result_of(key, options, seeds=seeds, episodes=episodes, targets=targets, provenance=provenance) for key in keys
    ]
