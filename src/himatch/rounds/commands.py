"""Commands slightly beyond what has been achieved: what a policy is to try next.

A method says itself what its commands are like, by what it ``matches`` and whether it ``imitates``. What has been
achieved is in the reference of the run: the episodes that it was trained on, its own rollouts among them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from himatch.errors import HimatchError
from himatch.methods import Method
from himatch.runs.run import Run
from himatch.targets import Demonstration, EpisodeReference, Goal, Patched, Return, Samples, Target, far_apart
from himatch.types import Array, Trajectory

APART = 12  # episodes that mixtures are made of
SHARES = (0.2, 0.8)  # of a mixture's first part
BEST = 0.9  # the quantile of totals where commands for a return begin

Rng = np.random.Generator
Draw = Callable[[EpisodeReference, Rng, float, int], list[Target]]
EpisodeAt = Callable[[int], Trajectory]
"""A training episode by its number in the reference."""


def check_commands(run: Run, method: Method) -> None:
    """Refuse a policy that nothing can be commanded, or of which nobody knows what it has achieved."""
    if not method.imitates and run.statistic.matched is None:
        raise HimatchError(
            f"{method.name} is conditioned on nothing: there is no command beyond what was achieved, and its own "
            "rollouts would teach it what it does already"
        )
    if not len(run.reference().lengths):
        raise HimatchError(f"{run.folder} knows no training episodes, so nothing says what lies beyond them")


def commands_beyond(run: Run, method: Method, episode: EpisodeAt, count: int, rng: Rng, beyond: float) -> list[Target]:
    """So many commands for a policy, slightly beyond its training episodes; ``beyond`` is a part of their spread.

    Distributions are episodes' values, moved either way or stretched about their mean, and mixtures of two episodes
    that are far apart. Returns lie between the best tenth and beyond the best. Goals are last values, further out.
    Policies that imitate are shown training episodes, and two that are far apart one after the other.
    """
    reference = run.reference()
    check_commands(run, method)
    if method.imitates:
        return _shown(reference, episode, rng, count)
    return _DRAW[method.matches](reference, rng, beyond, count)


def _distributions(reference: EpisodeReference, rng: Rng, beyond: float, count: int) -> list[Target]:
    pairs, bins = far_apart(reference, APART), reference.frame.bins
    found: list[Target] = []
    for number in range(count):
        place = _lasting(reference, rng)
        values, mean = reference.episode(place).astype(np.float64), reference.episode(place).mean(axis=0)
        kind = number % 3 if len(pairs) > 1 else number % 2
        if kind == 0:
            moved = rng.uniform(-1, 1, values.shape[1]) * 2 * beyond * reference.spread
            values, text = values + moved, f"episode {place} moved by {_numbers(moved)}"
        elif kind == 1:
            factor = 1 + beyond * rng.uniform(-2, 6)  # far wider than any, or a little narrower
            values, text = mean + factor * (values - mean), f"episode {place} stretched by {factor:.2f}"
        else:
            first, second = rng.choice(pairs, 2, replace=False)
            share = float(rng.uniform(*SHARES))
            values = _mixed(reference.episode(first), reference.episode(second), share, reference.frame.horizon)
            text = f"{share:.2f} of episode {first} and episode {second}"
        inside = np.clip(values, bins.low, bins.high).astype(np.float32)  # beyond its bins a policy tells nothing apart
        found.append(Samples(inside, text))
    return found


def _mixed(first: Array, second: Array, share: float, steps: int) -> NDArray[np.float64]:
    """So much of one episode and then the rest of another, repeated where they are too short; the slow one first."""
    cut = min(max(round(share * steps), 1), steps - 1)
    parts = [np.resize(first, (cut, first.shape[1])), np.resize(second, (steps - cut, second.shape[1]))]
    return np.concatenate(sorted(parts, key=lambda part: float(part.mean()))).astype(np.float64)


def _returns(reference: EpisodeReference, rng: Rng, beyond: float, count: int) -> list[Target]:
    low, best = np.quantile(reference.totals, BEST, axis=0), reference.totals.max(axis=0)
    high = best + beyond * np.ptp(reference.totals, axis=0)
    parts = (np.arange(count) + rng.uniform(size=count)) / count
    return [Return(_rounded(low + part * (high - low))) for part in parts]


def _goals(reference: EpisodeReference, rng: Rng, beyond: float, count: int) -> list[Target]:
    centre = np.median(reference.finals, axis=0)
    places = [_lasting(reference, rng) for _ in range(count)]
    factors = 1 + 2 * beyond * rng.uniform(size=count)
    return [
        Goal(_rounded(centre + factor * (reference.finals[place] - centre)))
        for place, factor in zip(places, factors, strict=True)
    ]


_DRAW: dict[str, Draw] = {"distribution": _distributions, "return": _returns, "goal": _goals}


def _shown(reference: EpisodeReference, episode: EpisodeAt, rng: Rng, count: int) -> list[Target]:
    pairs, found = far_apart(reference, APART), list[Target]()
    for number in range(count):
        place = _lasting(reference, rng)
        one: Target = Demonstration(episode(place), f"training episode {place}")
        if number % 2 and len(pairs) > 1:
            first, second = (int(place) for place in rng.choice(pairs, 2, replace=False))
            at = int(rng.uniform(*SHARES) * min(len(episode(first)), len(episode(second))))
            if at > 0:
                shown = [Demonstration(episode(place), f"training episode {place}") for place in (first, second)]
                one = Patched(shown[0], shown[1], at)
        found.append(one)
    return found


def _lasting(reference: EpisodeReference, rng: Rng) -> int:
    """A random episode; one that lasted longer is drawn more often."""
    return int(rng.choice(len(reference.lengths), p=reference.lengths / reference.lengths.sum()))


def _rounded(numbers: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{number:.4g}") for number in numbers)


def _numbers(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
