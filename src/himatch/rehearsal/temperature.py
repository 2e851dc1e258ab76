"""The temperature of a stochastic policy: the one that matches training episodes best.

Held-out ones have no say, so that they still judge it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.errors import HimatchWarning
from himatch.evaluation import match_targets
from himatch.methods import Agent
from himatch.runs.run import Run
from himatch.targets import Demonstration, EpisodeReference, Target
from himatch.types import Trajectory

EPISODES = 15  # to match: typical ones, whose scores differ least for other reasons than the temperature
ROLLOUTS = 5  # for each of these episodes: of every seed that is judged by itself, else of all seeds together
FINAL_ROLLOUTS = 20  # of the last two temperatures: falls are rare, and a few rollouts may show none
FEWEST = 2  # of every seed, however many there are
START, FINAL_START = 1, 2  # seeds of initial states; evaluations have 0
TEMPERATURES = (0.0, 0.5, 0.7, 0.85)  # at 1 the falls of fast robots are rare, yet cost more than the noise brings

Progress = Callable[[int, int], None]
Scores = dict[float, NDArray[np.float64]]
"""Charged W1 by temperature, of every target and seed, ``(targets, K)``."""


def select_temperature(
    run: Run, agent: Agent, episodes: Sequence[Trajectory], *, threads: int = 0, progress: Progress | None = None
) -> dict[str, Any]:
    """The temperature whose rollouts match some of the training episodes best, with what was tried and the rule.

    One for all seeds, on the run's own feature. ``episodes`` are those that the run's reference holds. If any noise
    pays, the best temperature and the next lower one are rolled out once more, and the lower one is selected unless it
    is clearly worse.
    """
    targets = [Demonstration(episodes[i], f"training episode {i}") for i in some_episodes(run.reference())]

    def scores(temperatures: Sequence[float], rollouts: int, start: int) -> tuple[Scores, int]:
        own = max(FEWEST, math.ceil(rollouts / len(agent.seeds)))  # all seeds have a part in one mean
        found = training_scores(run, agent, targets, temperatures, own, start=start, threads=threads, progress=progress)
        return found, own

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)  # of episodes that end early, of a policy that ignores its z
        found, own = scores(TEMPERATURES, ROLLOUTS, START)
        best = min(found, key=lambda temperature: float(found[temperature].mean()))
        value, how = best, rule(targets, own)
        if lower := [temperature for temperature in TEMPERATURES if temperature < best]:
            final, own = scores((max(lower), best), FINAL_ROLLOUTS, FINAL_START)
            found, value = {**found, **final}, lowest_noise(final)
            how += f", {own} of the best and the next lower"
    tried = {f"{temperature:g}": round(float(score.mean()), 6) for temperature, score in found.items()}
    seeds = " of every seed" if len(agent.seeds) > 1 else ""
    return {"value": value, "tried": tried, "rule": f"{run.feature}, {how}{seeds}"}


def lowest_noise(scores: Scores) -> float:
    """The lowest temperature that is worse than the best by no more than a standard error of their difference."""
    best = min(scores, key=lambda temperature: float(scores[temperature].mean()))

    def level(temperature: float) -> bool:
        difference = scores[temperature] - scores[best]
        return bool(difference.mean() <= difference.std() / math.sqrt(difference.size))

    return min(temperature for temperature in scores if level(temperature))


def some_episodes(reference: EpisodeReference) -> list[int]:
    """Fifteen, spread evenly over the order of the feature's totals; of fewer all."""
    order = np.argsort(reference.totals.sum(axis=1), kind="stable")
    count = min(EPISODES, len(order))
    return [int(episode) for episode in order[((np.arange(count) + 0.5) * len(order) / count).astype(int)]]


def training_scores(
    run: Run,
    agent: Agent,
    targets: Sequence[Target],
    temperatures: Sequence[float],
    rollouts: int,
    *,
    feature: str | None = None,
    start: int = START,
    threads: int = 0,
    progress: Progress | None = None,
) -> Scores:
    """Charged W1 to the targets at each temperature, of so many rollouts of every seed for each target.

    Charged: noise that topples a robot is no better for what it did until then.
    """
    scores = {}
    for number, temperature in enumerate(temperatures):
        results = match_targets(
            run,
            agent,
            targets,
            features=(feature or run.feature,),
            episodes=rollouts,
            seed=start,
            threads=threads,
            temperature=temperature,
            progress=part_of(progress, number, len(temperatures)),
            mixtures=False,
        )[0]
        scores[temperature] = np.array([result.charged_per_seed for result in results])
    return scores


def rule(targets: Sequence[Target], rollouts: int) -> str:
    """What :func:`training_scores` are, in words."""
    return f"mean charged W1 to {len(targets)} training episodes, {rollouts} rollouts each"


def part_of(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """Progress of one of several equal parts of the work."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, parts * total)
