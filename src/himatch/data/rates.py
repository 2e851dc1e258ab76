"""How many steps a second: from the times of a table, and whether rows are missing between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.facts import SAME_RATE
from himatch.data.wording import counted, listed
from himatch.errors import note

GAP = 1.5  # usual intervals, from which on rows are missing between two
IRREGULAR = 0.1  # part of the intervals that are gaps, from which on none of them says anything
SECONDS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ns": 1e-9}
EPOCHS = {"ms": 1e12, "us": 1e15, "ns": 1e18}  # from 2001 to 2286
OTHER, FEWEST = 1.1, 5  # times the usual interval, over so many, is another rate
DIGITS = 4  # of a rate that are more than jitter

Rows = NDArray[np.int64]


def rate_of_steps(
    step: NDArray[Any], rows_of: Mapping[str, Rows], unit: str | None, given: float | None, where: str
) -> float | None:
    """Steps a second, where the step column holds times: dates, numbers with a unit, or fractions, which are seconds.

    Whole numbers without a unit are counted steps, unless they are so large that they count from 1970. A rate that is
    ``given`` is kept, and times of another are noted.
    """
    found = {name: found[np.isfinite(found)] for name, rows in rows_of.items() if len(found := np.diff(step[rows]))}
    intervals = np.concatenate([*found.values(), np.empty(0)])
    if len(intervals) == 0 or (usual := float(np.median(intervals))) <= 0:
        return given
    if unit is None and bool((intervals == np.round(intervals)).all()):
        unit = _since_1970(step)
        if unit is None:
            return given
    seconds = SECONDS.get((unit or "s").lower())
    if seconds is None:
        return given
    others = _other_rates(found, usual)
    if others:
        if given is None:
            rates = " and ".join(f"{1 / (one * seconds):.3g}" for one in _ends(others))
            note(
                f"{where}: {counted(len(others), 'episode')} ({listed(map(repr, others))}) "
                f"{'was' if len(others) == 1 else 'were'} recorded at {rates} Hz, the others at "
                f"{1 / (usual * seconds):.3g} Hz, so it has no control rate; resample them to one, or state it for all "
                "of them (--columns.rate)"
            )
        return given
    if ((intervals > GAP * usual) | (intervals < usual / GAP)).mean() > IRREGULAR:
        if unit is not None and given is None:
            note(
                f"{where}: the times of its steps are irregular (from {intervals.min() * seconds:.3g} to "
                f"{intervals.max() * seconds:.3g} s apart), so it has no control rate; resample it, or state one "
                "(--columns.rate)"
            )
        return given
    measured = float(f"{1 / (usual * seconds):.{DIGITS}g}")
    if given is None:
        return measured
    note_other_rate(given, measured, "the times of its steps say", where)
    return given


def _since_1970(step: NDArray[Any]) -> str | None:
    """What times of this century are counted in: the numbers of a clock are large, those of steps are not."""
    finite = step[np.isfinite(step)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    return next((unit for unit, least in EPOCHS.items() if least <= middle < 10 * least), None)


def holds_times(step: NDArray[Any], unit: str | None) -> bool:
    """Whether a step column holds times: numbers with a unit, fractions, or so large that they count from 1970."""
    return unit is not None or _since_1970(step) is not None or bool((step[np.isfinite(step)] % 1 != 0).any())


def note_other_rate(given: float, measured: float | None, who: str, where: str) -> None:
    """Warn of a rate that somebody states and the source does not."""
    if measured is not None and abs(given - measured) > SAME_RATE * measured:
        note(
            f"{where}: {given:g} Hz is stated as its rate, {who} {measured:g} Hz; {given:g} Hz is kept (--columns.rate)"
        )


def _other_rates(intervals: Mapping[str, NDArray[Any]], usual: float) -> dict[str, float]:
    """The usual interval of each episode whose own is regular, and another than that of all."""
    others = {}
    for name, found in intervals.items():
        own = float(np.median(found)) if len(found) >= FEWEST else usual
        if own > 0 and not usual / OTHER < own < usual * OTHER:
            regular = ((found <= GAP * own) & (found >= own / GAP)).mean() >= 1 - IRREGULAR
            others.update({name: own} if regular else {})
    return others


def _ends(others: Mapping[str, float]) -> list[float]:
    """The shortest and the longest interval, or the one that there is."""
    low, high = min(others.values()), max(others.values())
    return [low] if high < low * OTHER else [high, low]


def note_gaps(step: NDArray[Any], rows_of: Mapping[str, Rows], unit: str | None, where: str) -> None:
    """Warn of rows that are missing inside episodes, where the steps are regular otherwise."""
    intervals = {name: np.diff(step[rows]) for name, rows in rows_of.items()}
    everything = np.concatenate(list(intervals.values()) or [np.empty(0)])
    if len(everything) == 0:
        return
    usual = np.median(everything)
    if unit is not None or bool(
        (everything != np.round(everything)).any()
    ):  # times; an episode of another rate misses nothing
        others = _other_rates(intervals, float(usual))
        intervals = {name: found for name, found in intervals.items() if name not in others}
    torn = [name for name, found in intervals.items() if (found > GAP * usual).any()]
    if torn and (everything > GAP * usual).mean() <= IRREGULAR:
        note(
            f"{where}: rows are missing in {counted(len(torn), 'episode')} ({listed(map(repr, torn))}): the step "
            f"column has gaps, the longest {everything.max() / usual:.3g} times the usual interval; steps are "
            "taken as equally long, so cut episodes there or fill the rows in"
        )
