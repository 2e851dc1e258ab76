"""Which seed of a run is bundled: chosen on training episodes, so that held-out ones still judge it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from himatch._runtime.files import entry
from himatch.errors import HimatchError
from himatch.policy import Policy
from himatch.rehearsal.temperature import ROLLOUTS, Progress, rule, some_episodes, training_scores
from himatch.targets import EpisodeReference, Samples


@dataclass(frozen=True)
class Choice:
    """The seed, the rule that chose it, and what that rule says of every seed: the lowest score wins."""

    seed: int
    rule: str
    scores: dict[int, float]


def choose_seed(policy: Policy, feature: str | None = None, progress: Progress | None = None) -> Choice:
    """The seed with the lowest mean charged W1 to some training episodes, at the policy's temperature.

    A run folder keeps the matched feature of training episodes but not their states, so methods that imitate states are
    judged by their loss.
    """
    if len(policy.seeds) == 1:
        return Choice(policy.seeds[0], "the only one", {})
    if policy.method.imitates:
        return _by_loss(policy)
    reference = policy.reference(feature)
    if not len(reference.lengths):
        raise HimatchError(
            f"{policy.folder} holds no training episodes to choose one of its seeds by; name it (--seed)"
        )
    targets, at = training_targets(reference), policy.temperature
    scores = training_scores(policy.run, policy.agent, targets, (at,), ROLLOUTS, feature=feature, progress=progress)[at]
    return _lowest(policy, rule(targets, ROLLOUTS), scores.mean(axis=0).tolist())


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
