"""How many steps a second: from the times of a table, and whether rows are missing between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.wording import listed
from himatch.errors import note

GAP = 1.5  # usual intervals, from which on rows are missing between two
IRREGULAR = 0.1  # part of the intervals that are gaps, from which on none of them says anything
SECONDS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ns": 1e-9}
DIGITS = 4  # of a rate that are more than jitter

Rows = NDArray[np.int64]


def rate_of_steps(step: NDArray[Any], rows_of: Sequence[Rows], unit: str | None, where: str) -> float | None:
    """Steps a second, where the step column holds times: dates, numbers with a unit, or fractions, which are seconds.

    Whole numbers without a unit are counted steps.
    """
    intervals = np.concatenate([np.diff(step[rows]) for rows in rows_of] or [np.empty(0)])
    intervals = intervals[np.isfinite(intervals)]
    if len(intervals) == 0 or (usual := float(np.median(intervals))) <= 0:
        return None
    if unit is None and bool((intervals == np.round(intervals)).all()):
        return None
    seconds = SECONDS.get((unit or "s").lower())
    if seconds is None:
        return None
    if ((intervals > GAP * usual) | (intervals < usual / GAP)).mean() > IRREGULAR:
        if unit is not None:
            note(
                f"{where}: the times of its steps are irregular (from {intervals.min() * seconds:.3g} to "
                f"{intervals.max() * seconds:.3g} s apart), so it has no control rate; resample it, or state one "
                "(--columns.rate)"
            )
        return None
    return float(f"{1 / (usual * seconds):.{DIGITS}g}")


def note_gaps(step: NDArray[Any], rows_of: Mapping[str, Rows], where: str) -> None:
    """Warn of rows that are missing inside episodes, where the steps are regular otherwise."""
    intervals = {name: np.diff(step[rows]) for name, rows in rows_of.items()}
    everything = np.concatenate(list(intervals.values()) or [np.empty(0)])
    if len(everything) == 0:
        return
    usual = np.median(everything)
    torn = [name for name, found in intervals.items() if (found > GAP * usual).any()]
    if torn and (everything > GAP * usual).mean() <= IRREGULAR:
        note(
            f"{where}: rows are missing in {len(torn)} of {len(rows_of)} episodes ({listed(map(repr, torn))}): their "
            f"step column has gaps, the longest {everything.max() / usual:.3g} times the usual interval; steps are "
            "taken as equally long, so cut episodes there or fill the rows in"
        )
