"""Which seed of a run is bundled, and the temperature of a stochastic policy.

Both are chosen on training episodes, so that held-out ones still judge them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from himatch._runtime.files import entry
from himatch.errors import HimatchError
from himatch.policy import Policy
from himatch.rehearsal.temperature import ROLLOUTS, Progress, best_temperature, rule, some_episodes, training_scores
from himatch.targets import EpisodeReference, Samples


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

    A run folder keeps the matched feature of training episodes but not their states, so methods that imitate states are
    judged by their loss.
    """
    stochastic = policy.agent.policy.stochastic
    if len(policy.seeds) == 1 and (policy.method.imitates or not stochastic):
        return Choice(policy.seeds[0], "the only one", {})
    if policy.method.imitates:
        return _by_loss(policy)
    reference = policy.reference(feature)
    if not len(reference.lengths):
        raise HimatchError(
            f"{policy.folder} holds no training episodes to choose one of its seeds by; name it (--seed)"
        )
    targets = training_targets(reference)
    how = rule(targets, ROLLOUTS)  # of every seed: each is judged by itself
    scores = training_scores(policy, targets, feature, rollouts=ROLLOUTS, progress=progress)
    if not stochastic:
        return _lowest(policy, how, scores[policy.temperature])
    best = best_temperature(scores)
    means = ", ".join(f"{temperature:g}: {np.mean(row):.4g}" for temperature, row in scores.items())
    said = f"{how}, at temperature {best:g}, the best of {means}"
    return replace(_lowest(policy, said, scores[best]), temperature=best)


def training_targets(reference: EpisodeReference) -> list[Samples]:
    """Some training episodes as targets, as far as a run folder holds them."""
    shown = {episode: reference.episode(episode) for episode in some_episodes(reference)}
    return [Samples(values, f"training episode {episode}", len(values)) for episode, values in shown.items()]


def _by_loss(policy: Policy) -> Choice:
    """The loss of the last weights, on training episodes where none were left to validate on."""
    scores, kind = [], "validation"
    for seed in policy.seeds:
        rows = policy.run.folder.metrics(seed)
        if not rows:
            raise HimatchError(f"{policy.folder} holds no losses of seed {seed} to choose by; name a seed (--seed)")
        kind = kind if kind in rows[-1] else "loss"
        scores.append(entry(rows[-1], float, f"{policy.folder}, metrics of seed {seed}", kind))
    name = {"validation": "validation loss", "loss": "training loss"}[kind]
    return _lowest(policy, f"{name}, since the run keeps no demonstrations", scores)


def _lowest(policy: Policy, said: str, scores: list[float]) -> Choice:
    best = int(np.argmin(np.nan_to_num(scores, nan=np.inf)))
    return Choice(policy.seeds[best], said, dict(zip(policy.seeds, scores, strict=True)))
