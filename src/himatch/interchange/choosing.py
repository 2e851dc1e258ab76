"""Which seed of a run is bundled, and at which temperature a Gaussian head acts.

Both are chosen on training episodes, so that held-out ones still judge them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from himatch.data.split import ranked_groups
from himatch.errors import HimatchError
from himatch.files import reading
from himatch.matching import Policy
from himatch.policy import run_folder as files
from himatch.policy.baselines import TaskMethod
from himatch.policy.methods import LearnedMethod
from himatch.targets import EpisodeReference, Samples

GROUP = 5  # episodes each: the best, those in the middle, and some spread over all
ROLLOUTS = 5  # of every seed for each of these episodes
START = 1  # other initial states than those of the evaluation that follows
TEMPERATURES = (0.5, 0.7, 0.85, 1.0)  # the spread that a network learns holds its own errors, too

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Choice:
    """The seed, the rule that chose it, and what that rule says of every seed: the lowest score wins.

    ``temperature`` is the one with the lowest mean score of all seeds, where the head is Gaussian.
    """

    seed: int
    rule: str
    scores: dict[int, float]
    temperature: float | None = None


def choose_seed(policy: Policy, feature: str | None = None, progress: Progress | None = None) -> Choice:
    """The seed (and temperature) with the lowest mean W1 to some training episodes.

    A run folder keeps the matched feature of training episodes but not their states, so that methods that are told
    states are judged by their loss.
    """
    sampled = policy.agent.policy.sampled
    if len(policy.seeds) == 1 and not sampled:
        return Choice(policy.seeds[0], "the only one", {})
    if isinstance(policy.method, LearnedMethod | TaskMethod):
        return _by_loss(policy)
    reference = policy.reference(feature)
    if not len(reference.lengths):
        raise HimatchError(
            f"{policy.folder} holds no training episodes to choose one of its seeds by; name it (--seed)"
        )
    targets = training_targets(reference)
    rule = f"mean W1 to {len(targets)} training episodes, {ROLLOUTS} rollouts each"
    tried = TEMPERATURES if sampled else (policy.temperature,)
    scores: dict[float, list[float]] = {}
    before = policy.temperature
    try:
        for number, temperature in enumerate(tried):
            policy.temperature = temperature
            told = part_of(progress, number, len(tried))
            results = policy.match_all(targets, episodes=ROLLOUTS, feature=feature, seed=START, progress=told)
            scores[temperature] = np.mean([result.w1_per_seed for result in results], axis=0).tolist()
    finally:
        policy.temperature = before
    if not sampled:
        return _lowest(policy, rule, scores[before])
    best = min(scores, key=lambda temperature: float(np.mean(scores[temperature])))
    means = ", ".join(f"{temperature:g}: {np.mean(row):.4g}" for temperature, row in scores.items())
    return replace(
        _lowest(policy, f"{rule}, at temperature {best:g}, the best of {means}", scores[best]), temperature=best
    )


def training_targets(reference: EpisodeReference) -> list[Samples]:
    """Some training episodes as targets, as far as a run folder holds them."""
    shown = {episode: episode_values(reference, episode) for episode in some_episodes(reference)}
    return [Samples(values, f"training episode {episode}", len(values)) for episode, values in shown.items()]


def some_episodes(reference: EpisodeReference) -> list[int]:
    """The five with the largest total of the feature, the five in the middle of that order, five spread over others."""
    totals = reference.totals.sum(axis=1)
    ranked, order = ranked_groups(totals, GROUP), np.argsort(totals, kind="stable")
    chosen = list(dict.fromkeys([*ranked["best"].tolist(), *ranked["middle"].tolist()]))
    others = order[~np.isin(order, chosen)]
    spread = np.linspace(0, len(others) - 1, min(GROUP, len(others))).round().astype(int)
    return chosen + [int(episode) for episode in others[spread]]


def episode_values(reference: EpisodeReference, episode: int) -> NDArray[np.float32]:
    """The feature of an episode, step by step, ``(T, d)``: the centres of its bins."""
    end = int(reference.lengths[: episode + 1].sum())
    indices = reference.indices[end - int(reference.lengths[episode]) : end]
    bins = reference.context.bins
    return bins.centers[np.arange(bins.dimensions), indices].astype(np.float32)


def part_of(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """Progress of one of several equal parts of the work."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, parts * total)


def _by_loss(policy: Policy) -> Choice:
    """The loss of the weights that were kept, on training episodes where none were left to validate on."""
    scores, kind = [], "validation"
    for seed in policy.seeds:
        path = files.seed_folder(policy.folder, seed) / files.METRICS
        if not path.is_file():
            raise HimatchError(f"{path} is missing, so that no seed can be chosen by its loss; name one (--seed)")
        with reading(str(path)):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            kind = kind if kind in rows[-1] else "loss"
            losses = [float(row[kind]) for row in rows]
            scores.append(min(losses) if policy.method.validated and kind == "validation" else losses[-1])
    name = {"validation": "validation loss", "loss": "training loss"}[kind]
    return _lowest(policy, f"{name}, since the run keeps no demonstrations", scores)


def _lowest(policy: Policy, rule: str, scores: list[float]) -> Choice:
    best = int(np.argmin(np.nan_to_num(scores, nan=np.inf)))
    return Choice(policy.seeds[best], rule, dict(zip(policy.seeds, scores, strict=True)))
