"""The promise: what to expect of a program before it is played, from episodes of the rehearsal that chose nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import norm as normal
from scipy.stats import t as student

from himatch.rehearsal.arena import Achieved, Judge, phis
from himatch.rollout.expected import Expected
from himatch.targets.distribution import apportion

LEVEL = 0.9
NEARER = 0.7  # of the score: a target that is not nearer than that to what is achieved is not worth naming
DRAWS, FEW_DRAWS = 200, 40  # of one feature, and of several, whose transport takes long
SEED = 0


Checked = Sequence[Sequence[Sequence[Achieved]]]
"""Episodes ``[k][j]`` of every program j of seed k; most seeds have one program."""


def expectation(
    judge: Judge,
    played: Checked,
    episodes: int,
    parts: Sequence[Sequence[float]] | None = None,
    falls: bool = False,
) -> Expected:
    """What so many rollouts will score, from checked episodes.

    Episodes are drawn again and again from those checked. That is as if these were all there are; the interval is
    widened for their being few, by the factor that a mean of so many draws would have (Student's). Where robots fall,
    as ``falls`` says, some of the rollouts may though none of the few did: the rate is drawn from what is known of it.
    Where several programs share the rollouts out, program j plays ``parts[k][j]`` of them.
    """
    rng, counts = np.random.default_rng(SEED), [[episodes]] * len(played)
    if parts is not None:
        counts = [apportion(own, episodes).tolist() for own in parts]
    checked, several = len(played[0][0]), played[0][0][0].phi.shape[1] > 1

    def drawn(k: int) -> list[Achieved]:
        draw = partial(_drawn_falling, judge.steps) if falls else _drawn
        return [one for own, count in zip(played[k], counts[k], strict=True) for one in draw(own, count, rng)]

    draws = [
        float(np.mean([judge.reported(phis(drawn(k))) for k in range(len(played))]))
        for _ in range(FEW_DRAWS if several else DRAWS)
    ]
    centre = float(np.median(draws))
    if parts is None:
        usual = [list(own) for (own,) in played]
    else:
        usual = [
            [own[i % len(own)] for own, count in zip(some, each, strict=True) for i in range(count)]
            for some, each in zip(played, counts, strict=True)
        ]
    # Fewer rollouts are further off than many of them pooled.
    whole = parts is None and episodes >= checked
    middle = float(np.mean([judge.reported(phis(own)) for own in usual])) if whole else centre
    low, high = np.quantile(draws, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    few = float(student.ppf(0.5 + LEVEL / 2, max(1, checked - 1)) / normal.ppf(0.5 + LEVEL / 2))
    wider = few * float(np.sqrt((1.0 + episodes / checked) * checked / max(1, checked - 1)))
    lasted = float(np.mean([[judge.lasted(one) for one in own] for own in usual]))
    held = float(np.mean([[one.held for one in own] for own in usual])) if judge.target.bounds else None
    found = Expected(
        middle,
        max(0.0, middle - wider * (centre - float(low))),
        middle + wider * (float(high) - centre),
        lasted,
        episodes,
        checked,
        held=held,
    )
    nearest = judge.nearest([phis(own) for own in usual])
    if nearest is None:
        return found
    score = float(np.mean([judge.of(nearest).reported(phis(own)) for own in usual]))
    return replace(found, nearest=nearest.name, nearest_score=score) if score < NEARER * found.low else found


def _drawn(own: Sequence[Achieved], count: int, rng: np.random.Generator) -> list[Achieved]:
    return [own[i] for i in rng.integers(len(own), size=count)]


def _drawn_falling(steps: int, own: Sequence[Achieved], count: int, rng: np.random.Generator) -> list[Achieved]:
    """The same where any episode may end early, at Jeffreys' rate; where none did, a whole one is cut somewhere."""
    whole, ended = ([one for one in own if (len(one.phi) >= steps) is lasted] for lasted in (True, False))
    if not whole:
        return _drawn(ended, count, rng)
    fallen = int(rng.binomial(count, rng.beta(len(ended) + 0.5, len(whole) + 0.5)))
    some = _drawn(ended or whole, fallen, rng)
    if not ended:
        some = [one._replace(phi=one.phi[: rng.integers(1, len(one.phi) + 1)]) for one in some]
    return [*_drawn(whole, count - fallen, rng), *some]
