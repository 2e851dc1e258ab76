"""The temperature of a stochastic policy: the one that matches training episodes best.

Held-out ones have no say, so that they still judge it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from himatch.data.split import ranked_groups
from himatch.errors import HimatchWarning
from himatch.policy import Policy
from himatch.targets import Demonstration, EpisodeReference, Target
from himatch.types import Trajectory

GROUP = 5  # episodes each: the best, those in the middle, and some spread over all
ROLLOUTS = 5  # for each of these episodes: of every seed that is judged by itself, else of all seeds together
FEWEST = 2  # of every seed, however many there are
START = 1  # other initial states than those of the evaluation that follows
TEMPERATURES = (0.0, 0.5, 0.7, 0.85, 1.0)  # the spread that a network learns holds its own errors, too

Progress = Callable[[int, int], None]


def select_temperature(
    policy: Policy, episodes: Sequence[Trajectory], *, threads: int = 0, progress: Progress | None = None
) -> dict[str, Any]:
    """The temperature whose rollouts match some of the training episodes best, with what was tried and the rule.

    One for all seeds, on the policy's own feature. ``episodes`` are those that the policy's reference holds.
    """
    chosen = some_episodes(policy.reference())
    targets = [Demonstration(episodes[i], f"training episode {i}") for i in chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)  # of episodes that end early, of a policy that ignores its z
        rollouts = max(FEWEST, math.ceil(ROLLOUTS / len(policy.seeds)))  # all seeds have a part in one mean
        scores = training_scores(policy, targets, rollouts=rollouts, threads=threads, progress=progress)
    tried = {f"{temperature:g}": round(float(np.mean(row)), 6) for temperature, row in scores.items()}
    said = f"{policy.feature}, {rule(targets, rollouts)}{' of every seed' if len(policy.seeds) > 1 else ''}"
    return {"value": best_temperature(scores), "tried": tried, "rule": said}


def some_episodes(reference: EpisodeReference) -> list[int]:
    """The five with the largest total of the feature, the five in the middle of that order, five spread over others."""
    totals = reference.totals.sum(axis=1)
    ranked, order = ranked_groups(totals, GROUP), np.argsort(totals, kind="stable")
    chosen = list(dict.fromkeys([*ranked["best"].tolist(), *ranked["middle"].tolist()]))
    others = order[~np.isin(order, chosen)]
    spread = np.linspace(0, len(others) - 1, min(GROUP, len(others))).round().astype(int)
    return chosen + [int(episode) for episode in others[spread]]


def training_scores(
    policy: Policy,
    targets: Sequence[Target],
    feature: str | None = None,
    *,
    rollouts: int,
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[float, list[float]]:
    """Mean charged W1 of every seed to the targets at each temperature; without a Gaussian head there is one.

    ``rollouts`` are those of a seed for each target. Charged: noise that topples a robot is no better for what it did
    until then.
    """
    before = policy.temperature
    tried = TEMPERATURES if policy.agent.policy.stochastic else (before,)
    scores: dict[float, list[float]] = {}
    try:
        for number, policy.temperature in enumerate(tried):
            part = part_of(progress, number, len(tried))
            results = policy.match_all(
                targets, episodes=rollouts, feature=feature, seed=START, threads=threads, progress=part
            )
            scores[policy.temperature] = np.mean([result.charged_per_seed for result in results], axis=0).tolist()
    finally:
        policy.temperature = before
    return scores


def rule(targets: Sequence[Target], rollouts: int) -> str:
    """What :func:`training_scores` are, in words."""
    return f"mean charged W1 to {len(targets)} training episodes, {rollouts} rollouts each"


def best_temperature(scores: dict[float, list[float]]) -> float:
    """The one with the lowest mean over all seeds."""
    return min(scores, key=lambda temperature: float(np.mean(scores[temperature])))


def part_of(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """Progress of one of several equal parts of the work."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, parts * total)
