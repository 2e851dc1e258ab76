"""Targets to begin with: what the training episodes did, as expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from himatch._runtime.shapes import Array64
from himatch.errors import HimatchError
from himatch.overview.content import Label, Suggestion
from himatch.runs.run import Run
from himatch.targets import EpisodeReference, Target
from himatch.types import Array

Parse = Callable[[str], Target]

LEVELS = {"slow": 0.05, "middle": 0.5, "fast": 0.95}  # of the episodes' mean values
TOTALS = {"low": 0.1, "middle": 0.5, "high": 0.9, "best seen": 1.0}
LASTED = 0.25  # of the longest episode: shorter ones fell at once, and are nothing to ask for
MOST_NUMBERS = 3  # dimensions of a feature that people write down
MOST_LABELS = 50
MIXED = 200  # episodes that mixtures are sought among, spread over the data; more take seconds


def suggestions(run: Run, reference: EpisodeReference, parse: Parse) -> list[Suggestion]:
    """Four to six targets that suit the method, each with what the data covers of it."""
    thin = thinned(reference, MIXED)
    found: dict[str, Suggestion] = {}
    for what, expression in _expressions(run, reference):
        if expression not in found:
            found[expression] = _judged(what, expression, reference, thin, parse)
    return list(found.values())


def _expressions(run: Run, reference: EpisodeReference) -> Iterator[tuple[str, str]]:
    """What each is, and the expression; the same may come twice."""
    writable = reference.frame.bins.dimensions <= MOST_NUMBERS and len(reference.lengths) > 0
    method = run.method
    if run.statistic.matched is not None and not method.imitates and writable:
        whole = {"return": reference.totals, "goal": reference.finals}.get(method.matches)
        yield from _modes(reference) if whole is None else _values(method.matches, whole)
    if run.held_out is None:
        if method.imitates:
            yield "a demonstration", f"demo({run.description['data']['source']},0)"
        return
    for group in dict.fromkeys(run.groups):  # the first of each, at most three
        place = _sound(run, reference, [i for i, name in enumerate(run.groups) if name == group])
        yield f"held-out episode ({group})", f"heldout({place})"
        if not method.imitates or place >= 2 * len(run.groups) // 3:
            return


def _sound(run: Run, reference: EpisodeReference, places: Sequence[int]) -> int:
    """The first of some held-out episodes that stays where training episodes were; a bad reading does not."""
    assert run.held_out is not None
    bins, feature = reference.frame.bins, reference.frame.feature
    for place in places:
        cells = bins.cells(feature(run.held_out[place]))
        if ((cells >= -1) & (cells <= bins.count)).all():
            return place
    return places[0]


def _modes(reference: EpisodeReference) -> Iterator[tuple[str, str]]:
    """What slow, middling and fast episodes do, and both ends in turn."""
    names = list(LEVELS) if reference.frame.bins.dimensions == 1 else ["low", "middle", "high"]
    found = [gaussian(reference.episode(episode), reference) for episode in _at_levels(reference)]
    yield from zip(names, map(_joined, found), strict=True)
    if found[0] != found[-1]:
        both = [f"0.5*{low}+0.5*{high}" for low, high in zip(found[0], found[-1], strict=True)]
        yield f"{names[0]}, then {names[-1]}", _joined(both)
        most = [f"0.8*{low}+0.2*{high}" for low, high in zip(found[0], found[-1], strict=True)]
        yield f"mostly {names[0]}", _joined(most)


def _at_levels(reference: EpisodeReference) -> list[int]:
    """Episodes at the quantiles of the mean value, among those that lasted if there are enough."""
    lasted = np.flatnonzero(reference.lengths >= LASTED * reference.lengths.max())
    chosen = lasted if len(lasted) >= len(LEVELS) else np.arange(len(reference.lengths))
    bins, starts = reference.frame.bins, np.cumsum(reference.lengths) - reference.lengths
    usual = np.clip(reference.values, bins.low, bins.high)  # one bad reading is no reason to call an episode fast
    totals = np.add.reduceat(usual, starts, dtype=np.float64)
    means = (totals / reference.lengths[:, None] / reference.spread).sum(axis=1)[chosen]
    order = chosen[np.argsort(means, kind="stable")]
    return [int(order[round(level * (len(order) - 1))]) for level in LEVELS.values()]


def gaussian(values: Array, reference: EpisodeReference) -> list[str]:
    """One Gaussian for each dimension, like most of these feature values and inside the data, in digits people write.

    An episode begins at rest, so its mean and deviation are not what it settled at.
    """
    low, middle, high = np.quantile(values.astype(np.float64), (0.25, 0.5, 0.75), axis=0)
    least = reference.frame.bins.widths / 4  # a feature that stood still is still a target
    bins = reference.frame.bins
    ends = np.maximum(reference.values.min(axis=0), bins.low), np.minimum(reference.values.max(axis=0), bins.high)
    room = np.minimum(middle - ends[0], ends[1] - middle) / 2.5
    spreads = np.maximum(np.minimum((high - low) / 1.35, room), least)  # of a normal one, 1.35 deviations
    return [f"normal({mean:.3g},{spread:.2g})" for mean, spread in zip(middle, spreads, strict=True)]


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"joint({', '.join(parts)})"


def _values(word: str, values: Array64) -> Iterator[tuple[str, str]]:
    """Returns or goals of episodes at some quantiles, ``(E, d)``: one that an episode had, in every dimension."""
    order = np.argsort(values.sum(axis=1), kind="stable")
    for what, level in TOTALS.items():
        row = values[order[round(level * (len(order) - 1))]]
        yield what, f"{word}({','.join(_inside(x, column) for x, column in zip(row, values.T, strict=True))})"


def _inside(value: float, column: Array64) -> str:
    """Few digits, but not so few that the largest total becomes one that nobody reached."""
    for digits in range(3, 9):
        text = f"{value:.{digits}g}"
        if column.min() <= float(text) <= column.max():
            return text
    return repr(float(value))


def _judged(
    what: str, expression: str, reference: EpisodeReference, thin: EpisodeReference, parse: Parse
) -> Suggestion:
    """The suggestion with what the data covers of it; unknown where no episodes are kept, or a file would be read."""
    if expression.startswith("demo(") or not len(reference.lengths):
        return Suggestion(what, expression)
    try:
        target = parse(expression)
        outside = reference.support(target).outside
        mixture = thin.mixture(target).w1 if target.matches == "distribution" else None
    except HimatchError:  # several features without a solver for their transport problem
        return Suggestion(what, expression)
    return Suggestion(what, expression, outside, mixture)


def thinned(reference: EpisodeReference, kept: int) -> EpisodeReference:
    """Some of the episodes, spread over all of them."""
    count = len(reference.lengths)
    if count <= kept:
        return reference
    chosen = np.linspace(0, count - 1, kept).round().astype(np.int64)
    owner = np.repeat(np.arange(count), reference.lengths)
    return EpisodeReference(
        reference.frame,
        reference.values[np.isin(owner, chosen)],
        reference.lengths[chosen],
        reference.totals[chosen],
        reference.finals[chosen],
    )


def labels(run: Run, reference: EpisodeReference) -> list[Label]:
    """Labels of the training episodes with a target like one of each; where there are none, groups held out."""
    known = run.description["data"].get("labels") or {}
    whole = len(reference.lengths) == run.description["data"].get("episodes")  # a bundled run keeps a part of them
    writable = whole and reference.frame.bins.dimensions <= MOST_NUMBERS and run.method.matches == "distribution"
    found = []
    for name, facts in list(known.items())[:MOST_LABELS]:
        target = _joined(gaussian(reference.episode(int(facts["example"])), reference)) if writable else None
        found.append(Label(name, int(facts["episodes"]), "training", None if run.method.imitates else target))
    if not known:
        for group in dict.fromkeys(run.groups):
            target = None if run.held_out is None else f"heldout({run.groups.index(group)})"
            found.append(Label(group, run.groups.count(group), "held-out", target))
    return found
