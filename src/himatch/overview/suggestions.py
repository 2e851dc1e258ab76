"""Targets to begin with: what the training episodes did, as expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64
from himatch.errors import HimatchError
from himatch.overview.content import Label, Suggestion
from himatch.runs.run import Run
from himatch.targets import EpisodeReference, Target
from himatch.types import Array

Parse = Callable[[str], Target]

ENDS = (0.05, 0.95)  # of the episodes' mean values
APART = 0.05  # of the feature's spread: targets that are nearer are the same
TOTALS = {"low": 0.1, "middle": 0.5, "high": 0.9, "best seen": 1.0}
LASTED = 0.25  # of the longest episode: shorter ones fell at once, and are nothing to ask for
MOST_NUMBERS = 3  # dimensions of a feature that people write down
MOST_LABELS = 50
MIXED = 200  # episodes that mixtures are sought among, spread over the data; more take seconds


def suggestions(run: Run, reference: EpisodeReference, parse: Parse) -> list[Suggestion]:
    """A few targets that suit the method, each with what the data covers of it."""
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
        if run.statistic.tasked:
            yield from _tasks(reference, _taken(run))
        else:
            yield from _modes(reference, _taken(run)) if whole is None else _values(method.matches, whole)
    if run.held_out is None:
        if method.imitates:
            yield "a demonstration", f"demo({run.description['data']['source']},0)"
        return
    for group in list(dict.fromkeys(run.groups))[: 3 if method.imitates else 1]:
        yield f"held-out episode ({group})", f"heldout({typical_held_out(run, reference, group)})"


def typical_held_out(run: Run, reference: EpisodeReference, group: str) -> int:
    """The held-out episode nearest to all of its group together, in W1 on the bins.

    One that stays where training episodes were, if any does: a bad reading does not.
    """
    assert run.held_out is not None
    bins, feature, held_out = reference.frame.bins, reference.frame.feature, run.held_out
    places = [place for place, name in enumerate(run.groups) if name == group]
    cells = [bins.cells(feature(held_out[place])) for place in places]
    sound = [p for p, at in zip(places, cells, strict=True) if ((at >= -1) & (at <= bins.count)).all()] or places
    group_of = EpisodeReference.of([held_out[p] for p in sound], feature, bins, reference.frame.horizon, fenced=False)
    return sound[group_of.typical(np.arange(len(sound)))]


def _taken(run: Run) -> set[str]:
    """Names that mean something else here: the user's own labels, and groups of held-out episodes."""
    return {*(run.description["data"].get("labels") or {}), *run.groups}


def _levels(taken: Collection[str]) -> list[str]:
    """What to call low, middling and high values."""
    plain = ("low", "middle", "high")
    return [f"{name} (of all)" for name in plain] if set(plain) & set(taken) else list(plain)


def _tasks(reference: EpisodeReference, taken: Collection[str]) -> Iterator[tuple[str, str]]:
    """Tasks that such episodes serve."""
    for name, number in zip(_levels(taken), _at_levels(reference), strict=True):
        yield name, _task(np.median(reference.episode(number), axis=0))


def _task(parameter: NDArray[np.floating]) -> str:
    return f"task({','.join(f'{x:.3g}' for x in parameter)})"


def _modes(reference: EpisodeReference, taken: Collection[str]) -> Iterator[tuple[str, str]]:
    """What episodes with low, middling and high values do, and both ends in turn."""
    names = _levels(taken)
    episodes = [reference.episode(number) for number in _at_levels(reference)]
    found = [gaussian(values, reference) for values in episodes]
    centres = np.stack([np.median(values, axis=0) for values in episodes])
    apart = (np.abs(centres - centres[1]) / reference.spread).max(axis=1)
    for place, (name, parts) in enumerate(zip(names, found, strict=True)):
        if place != 1 or min(apart[0], apart[2]) >= APART:  # of two kinds of episodes none is in the middle
            yield name, _joined(parts)
    if found[0] != found[-1]:
        both = [f"0.5*{low}+0.5*{high}" for low, high in zip(found[0], found[-1], strict=True)]
        yield f"{names[0]}, then {names[-1]}", _joined(both)
        most = [f"0.8*{low}+0.2*{high}" for low, high in zip(found[0], found[-1], strict=True)]
        yield f"mostly {names[0]}", _joined(most)


def _at_levels(reference: EpisodeReference) -> list[int]:
    """Episodes at both ends of the mean value and one in the middle, among those that lasted if there are enough.

    In the middle of all steps, not of all episodes: where these are of two kinds, the median episode is one of a kind.
    It is the one nearest in W1 to the median of all values.
    """
    lasted = np.flatnonzero(reference.lengths >= LASTED * reference.lengths.max())
    chosen = lasted if len(lasted) >= len(ENDS) + 1 else np.arange(len(reference.lengths))
    bins, starts = reference.frame.bins, np.cumsum(reference.lengths) - reference.lengths
    usual = np.clip(reference.values, bins.low, bins.high)  # one bad reading is no reason to call an episode fast
    totals = np.add.reduceat(usual, starts, dtype=np.float64)
    means = (totals / reference.lengths[:, None] / reference.spread).sum(axis=1)[chosen]
    order = chosen[np.argsort(means, kind="stable")]
    low, high = (int(order[round(level * (len(order) - 1))]) for level in ENDS)
    centre = np.median(reference.values, axis=0).astype(np.float64)
    away = np.abs(reference.frame.bins.centers - centre[:, None]) / reference.spread[:, None]
    distances = np.einsum("edb,db->e", reference.histograms[chosen], away)
    return [low, int(chosen[np.argmin(distances)]), high]


def gaussian(values: Array, reference: EpisodeReference) -> list[str]:
    """One Gaussian for each dimension, like most of these feature values and inside the data, in digits people write.

    An episode begins at rest, so its mean and deviation are not what it settled at.
    """
    return _gaussian(np.quantile(values.astype(np.float64), (0.25, 0.5, 0.75), axis=0), reference)


def _gaussian(quartiles: Array64, reference: EpisodeReference) -> list[str]:
    low, middle, high = quartiles
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
    """Labels of training episodes with a target like a typical one of each; where there are none, groups held out."""
    known = run.description["data"].get("labels") or {}
    if known:
        return [
            Label(name, int(facts["episodes"]), "training", _named(run, name) or _usual(run, reference, facts))
            for name, facts in list(known.items())[:MOST_LABELS]
        ]
    kept = run.description["split"].get("usual") or {}  # of a bundled model, which has no held-out episodes any more
    found = []
    for group in dict.fromkeys(run.groups):
        target = _usual(run, reference, kept.get(group, {}))
        if run.held_out is not None:
            target = f"heldout({typical_held_out(run, reference, group)})"
        found.append(Label(group, run.groups.count(group), "held-out", target))
    return found


def _named(run: Run, label: str) -> str | None:
    """The task that a label names, for policies that go by these."""
    parameter = run.statistic.named_by(label)
    return None if parameter is None else _task(parameter)


def _usual(run: Run, reference: EpisodeReference, facts: Mapping[str, Any]) -> str | None:
    """A target like what the episodes of a label usually do, where the run says and people could write it down."""
    if "quartiles" not in facts or run.method.imitates or reference.frame.bins.dimensions > MOST_NUMBERS:
        return None
    if run.statistic.tasked:
        return _task(np.array(facts["quartiles"])[1])
    if run.method.matches == "distribution":
        return _joined(_gaussian(np.array(facts["quartiles"]), reference))
    word, whole = ("total", reference.totals) if run.method.matches == "return" else ("final", reference.finals)
    columns = zip(facts[word], whole.T, strict=True)
    return f"{run.method.matches}({','.join(_inside(x, column) for x, column in columns)})"
