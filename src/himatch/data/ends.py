"""Where episodes end in flat columns: lengths, an episode column, or flags, which cannot always be trusted.

Version 0 files of D4RL have no ``timeouts``, replay files have wrong ones; where ``next_observations[t]`` differs from
``observations[t + 1]`` an episode ended, whatever the flags say.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.checks import StepColumn, flat_column
from himatch.data.wording import listed
from himatch.errors import DataError, note
from himatch.types import Array

Flags = NDArray[np.bool_]

LENGTHS = "lengths"
EPISODE = ("episode", "episode_id", "episode_ids")
TERMINATED = ("terminals", "terminations", "terminated")
TRUNCATED = ("timeouts", "truncations", "truncated")
DONE = ("dones", "done")  # Gym's old flag, which is both in one


def flag_columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The end flags among the columns, under the names they have there."""
    found = (next((name for name in names if name in columns), None) for names in (TERMINATED, TRUNCATED, DONE))
    return {name: columns[name] for name in found if name is not None}


@dataclass(frozen=True)
class EndFlags:
    """What the flags say: where an episode terminated and where it timed out, ``(steps,)`` each.

    ``undecided`` if they are ``dones`` alone, which do not tell the one from the other.
    """

    terminals: Flags | None
    timeouts: Flags | None
    undecided: bool

    @classmethod
    def read(cls, columns: Mapping[str, StepColumn], where: str) -> EndFlags:
        """Read the flags among the columns."""
        flags = {n: _flags(flat_column(c, n, where), n, where) for n, c in flag_columns(columns).items()}
        terminals, timeouts, dones = (
            next((flags[name] for name in names if name in flags), None) for names in (TERMINATED, TRUNCATED, DONE)
        )
        undecided = terminals is None and timeouts is None and dones is not None
        if dones is not None and terminals is None:
            terminals = dones if timeouts is None else dones & ~timeouts
        elif dones is not None and terminals is not None and timeouts is None:
            timeouts = dones & ~terminals
        return cls(terminals, timeouts, undecided)

    def terminated(self, last: NDArray[np.int64], horizon: int | None) -> Flags:
        """Whether each of the episodes with these last steps terminated; ``dones`` at the horizon are time-outs."""
        if self.terminals is None:
            return np.zeros(len(last), dtype=bool)
        ended = self.terminals[last]
        if self.undecided and horizon is not None:
            ended &= np.diff(last, prepend=-1) < horizon
        return ended


def _flags(values: Array, name: str, where: str) -> Flags:
    """Numbers as flags; NaN would be true."""
    finite = np.isfinite(values)
    if not finite.all():
        raise DataError(
            f"{where}: {name} hold NaN or infinity in step {int(np.argmin(finite))}; "
            "write 1 there if an episode ended so, else 0"
        )
    return values.astype(bool)


def stated_ends(columns: Mapping[str, StepColumn], steps: int, where: str) -> Flags | None:
    """Which steps are the last of an episode by ``lengths`` or by an episode column, ``(steps,)``, if one is there."""
    if LENGTHS in columns:
        last = np.cumsum(_lengths(np.asarray(columns[LENGTHS][...]), steps, where)) - 1
        ends = np.zeros(steps, dtype=bool)
        ends[last] = True
        return ends
    name = next((name for name in EPISODE if name in columns), None)
    if name is None:
        return None
    if columns[name].shape[:1] != (steps,):
        raise DataError(f"{where}: {steps} observations but {name} has shape {tuple(columns[name].shape)}")
    ids = flat_column(columns[name], name, where)
    if ids.dtype.kind == "V" or (ids.dtype.kind == "O" and not all(isinstance(one, Hashable) for one in ids)):
        raise DataError(f"{where}: {name} must hold a number or a name a step (type {ids.dtype})")
    if (unknown := np.flatnonzero(ids != ids)).size:  # NaN, which is not even itself
        raise DataError(f"{where}: {name} is NaN in step {unknown[0]}; give every step the number of its episode")
    ends = np.append(ids[1:] != ids[:-1], True)
    seen = set()
    for end in np.flatnonzero(ends):
        if ids[end] in seen:
            raise DataError(
                f"{where}: {name} {listed([ids[end]])} comes back in step {end} after another one; sort the steps or "
                "give every episode its own number"
            )
        seen.add(ids[end])
    return ends


def _lengths(lengths: NDArray[np.int64], steps: int, where: str) -> NDArray[np.int64]:
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not len(lengths):
        raise DataError(f"{where}: lengths must be whole numbers, one per episode")
    if (lengths < 1).any():
        raise DataError(f"{where}: episode {int(np.argmin(lengths))} has no steps; drop it from the data")
    total = sum(lengths.tolist())  # NumPy's sum could overflow into a number that fits
    if total != steps:
        raise DataError(f"{where}: lengths add up to {total} steps, but there are {steps} observations")
    return lengths


def flagged_ends(flags: EndFlags, steps: int, jumps: Flags | None, horizon: int | None, where: str) -> Flags:
    """Which steps are the last of an episode by the flags, ``(steps,)``; the very last always is.

    Parameters
    ----------
    jumps
        Where the next observation is not the one that follows in the file, if that can be believed.
    horizon
        The task's longest episode.
    """
    terminals = np.zeros(steps, dtype=bool) if flags.terminals is None else flags.terminals
    ends = terminals.copy()
    if flags.timeouts is None:
        if jumps is None and horizon is None and not flags.undecided:
            raise DataError(
                f"{where}: cannot tell where episodes end: neither timeouts nor next_observations are there; "
                "name the task, so that its horizon can be used"
            )
        if jumps is not None:
            ends |= jumps
        if horizon is not None:
            _cut_at_horizon(ends, horizon, where)
    else:
        ends |= flags.timeouts
        if jumps is not None:
            _repair(ends, flags.timeouts & ~terminals, jumps, horizon, where)
    ends[-1] = True
    return ends


def no_ends(columns: Mapping[str, object], where: str) -> DataError:
    """The complaint about a file that says nothing about the ends of its episodes."""
    return DataError(
        f"{where}: cannot tell where episodes end; add lengths (one for each episode), the episode of each step "
        f"({', '.join(EPISODE)}) or flags ({', '.join((*TERMINATED, *TRUNCATED, *DONE))}); "
        f"found: {listed(sorted(columns))}"
    )


def _cut_at_horizon(ends: Flags, horizon: int, where: str) -> None:
    start, before = 0, int(ends.sum())
    for end in [*np.flatnonzero(ends), len(ends) - 1]:
        ends[start + horizon - 1 : end : horizon] = True
        start = end + 1
    cuts = int(ends.sum()) - before
    if cuts:
        note(
            f"{where}: no time-outs in it ({', '.join(TRUNCATED)}), so episodes are cut at the task's horizon of "
            f"{horizon} steps, in {cuts} places; if they ended elsewhere, add lengths or an episode column"
        )


def _repair(ends: Flags, timeouts: Flags, jumps: Flags, horizon: int | None, where: str) -> None:
    """Add ends that the flags miss and drop time-outs in the middle of an episode, in place."""
    missing = jumps & ~ends
    ends |= missing
    suspects = timeouts & ~jumps
    suspects[-1] = False
    dropped, start = 0, 0
    # If most time-outs run on, the file's next_observations do so on purpose: leave the flags alone.
    if horizon is not None and 2 * suspects.sum() <= timeouts[:-1].sum():
        last = np.flatnonzero(ends)
        for end, next_end in zip(last, [*last[1:], len(ends) - 1], strict=True):
            if suspects[end] and next_end - start < horizon:
                ends[end] = False
                dropped += 1
            else:
                start = int(end) + 1
    if missing.any() or dropped:
        note(
            f"{where}: episode ends repaired from next_observations: {int(missing.sum())} added, "
            f"{dropped} time-outs inside an episode ignored"
        )
