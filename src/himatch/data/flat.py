"""The flat layout of D4RL: all steps in a row, with flags that say where episodes end.

The flags cannot always be trusted. Version 0 files have no ``timeouts``, replay files have wrong ones; where
``next_observations[t]`` differs from ``observations[t + 1]`` an episode ended, whatever the flags say.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from himatch.data.checks import Column, check_columns, flat_column, listed, observation_columns
from himatch.data.packed import BLOCK, Allocate, Packed
from himatch.errors import DataError, HimatchWarning
from himatch.files import reading
from himatch.tasks import Task
from himatch.types import Array

Flags = NDArray[np.bool_]


def read_d4rl(path: Path, task: Task | None, allocate: Allocate) -> Packed:
    """Read a D4RL HDF5 file."""
    where = str(path)
    # No chunk cache: every chunk is read once, and HDF5 would hold on to megabytes of freed ones.
    with reading(where), h5py.File(path, "r", rdcc_nbytes=0) as file:
        columns: dict[str, Column] = {}
        for name, item in file.items():
            if isinstance(item, h5py.Dataset):
                columns[name] = item
            elif name in ("observations", "actions"):
                raise DataError(f"{where}: {name} is a dictionary; himatch handles continuous vectors only")
        return read_flat(columns, where, task, allocate)


@np.errstate(over="ignore", invalid="ignore")  # beyond single precision is infinity, which the checks report
def read_flat(columns: Mapping[str, Column], where: str, task: Task | None, allocate: Allocate) -> Packed:
    """Read flat columns (``observations``, ``actions``, ``terminals``, ...) into packed episodes."""
    for name in ("observations", "actions"):
        if name not in columns:
            raise DataError(f"{where}: no {name!r} in it (found: {listed(sorted(columns))})")
    observations, actions = columns["observations"], columns["actions"]
    following, rewards = columns.get("next_observations"), columns.get("rewards")
    flags = {name: columns.get(name) for name in ("terminals", "timeouts")}
    check_columns(
        observations, actions, [("next_observations", following), ("rewards", rewards), *flags.items()], where
    )
    width = observation_columns(observations.shape[1], task, where)
    if following is not None and following.shape != observations.shape:
        raise DataError(f"{where}: next_observations {following.shape} do not fit observations {observations.shape}")

    steps = observations.shape[0]
    packed_observations = _read_rows(observations, allocate("observations", (steps, width)))
    packed_actions = _read_rows(actions, allocate("actions", tuple(actions.shape)))
    packed_rewards = None
    if rewards is not None:
        packed_rewards = allocate("rewards", (steps,))
        packed_rewards[:] = flat_column(rewards, "rewards", where)
    terminals, timeouts = (
        None if column is None else flat_column(column, name, where).astype(bool) for name, column in flags.items()
    )
    continuation = None if following is None else _continuation(packed_observations, following)
    if continuation is not None and not _trustworthy(continuation.jumps, terminals):
        warnings.warn(
            f"{where}: next_observations do not continue the observations, so episode ends are taken from the flags",
            HimatchWarning,
            2,
        )
        continuation = None
    jumps = None if continuation is None else continuation.jumps
    ends = episode_ends(steps, terminals, timeouts, jumps, None if task is None else task.horizon, where)
    last = np.flatnonzero(ends)
    finals, has_final = np.zeros((len(last), width), dtype=np.float32), np.zeros(len(last), dtype=bool)
    if continuation is not None:
        finals, has_final = continuation.after(last)
    return Packed(
        packed_observations,
        packed_actions,
        packed_rewards,
        np.diff(last, prepend=-1).astype(np.int64),
        _flags(terminals, steps)[last],
        finals,
        has_final,
        (None,) * len(last),
    )


def episode_ends(
    steps: int, terminals: Flags | None, timeouts: Flags | None, jumps: Flags | None, horizon: int | None, where: str
) -> Flags:
    """Which steps are the last of an episode, ``(steps,)``; the very last always is.

    Parameters
    ----------
    terminals, timeouts
        The file's flags, where it has them.
    jumps
        Where the next observation is not the one that follows in the file, if that can be believed.
    horizon
        The task's longest episode.
    """
    ends = _flags(terminals, steps).copy()
    if timeouts is None:
        if jumps is None and horizon is None:
            raise DataError(
                f"{where}: cannot tell where episodes end: neither timeouts nor next_observations are there; "
                "name the task, so that its horizon can be used"
            )
        if jumps is not None:
            ends |= jumps
        if horizon is not None:
            _cut_at_horizon(ends, horizon)
    else:
        ends |= timeouts
        if jumps is not None:
            _repair(ends, timeouts & ~_flags(terminals, steps), jumps, horizon, where)
    ends[-1] = True
    return ends


def _flags(flags: Flags | None, steps: int) -> Flags:
    """The flags, all False where the file has none."""
    return np.zeros(steps, dtype=bool) if flags is None else flags


def _trustworthy(jumps: Flags, terminals: Flags | None) -> bool:
    """Whether ``next_observations`` tell episode ends: they must jump at terminals and hardly ever elsewhere."""
    if terminals is not None and terminals[:-1].any() and jumps[:-1][terminals[:-1]].mean() < 0.9:
        return False  # shifted copies of the observations: they run on over every end
    return bool(jumps.mean() <= 0.5)  # transitions in random order jump everywhere


def _cut_at_horizon(ends: Flags, horizon: int) -> None:
    start = 0
    for end in [*np.flatnonzero(ends), len(ends) - 1]:
        ends[start + horizon - 1 : end : horizon] = True
        start = end + 1


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
        warnings.warn(
            f"{where}: episode ends repaired from next_observations: {int(missing.sum())} added, "
            f"{dropped} time-outs inside an episode ignored",
            HimatchWarning,
            2,
        )


def _read_rows(column: Column, out: Array) -> Array:
    """Fill ``out`` with the column's leading columns without a second copy of the whole."""
    if isinstance(column, h5py.Dataset):
        # In blocks: one read of everything makes HDF5 keep a book on every chunk at once.
        for start, stop in _blocks(column):
            column.read_direct(out, np.s_[start:stop, : out.shape[1]], np.s_[start:stop])
    else:
        out[:] = column[:, : out.shape[1]]
    return out


def _blocks(column: Column) -> list[tuple[int, int]]:
    """Row ranges of moderate size that do not cut compressed chunks."""
    steps, chunks = column.shape[0], getattr(column, "chunks", None)
    rows = BLOCK if not chunks else chunks[0] * max(1, BLOCK // chunks[0])
    return [(start, min(start + rows, steps)) for start in range(0, steps, rows)]


@dataclass(frozen=True)
class _Continuation:
    """What ``next_observations`` add to the observations: where they jump, and what they hold there."""

    jumps: Flags
    rows: NDArray[np.int64]
    values: Array

    def after(self, last: NDArray[np.int64]) -> tuple[Array, Flags]:
        """The observation after each of the steps ``last``, ``(E, obs)``, and where it is known, ``(E,)``.

        Where an end does not jump, the file holds the first observation of the next episode instead.
        """
        place = np.searchsorted(self.rows, last)  # in range, for the last row of the file is among the rows
        return self.values[place], self.rows[place] == last


def _continuation(observations: Array, following: Column) -> _Continuation:
    """One pass over ``next_observations``, a block at a time."""
    steps, width = observations.shape
    jumps, rows, values = np.zeros(steps, dtype=bool), [], []
    for start, stop in _blocks(following):
        after = np.asarray(following[start:stop, :width], dtype=np.float32)
        n = min(stop, steps - 1) - start
        jumps[start : start + n] = (after[:n] != observations[start + 1 : start + 1 + n]).any(axis=1)
        keep = jumps[start:stop].copy()
        keep[-1] |= stop == steps
        rows.append(start + np.flatnonzero(keep))
        values.append(after[keep])
    return _Continuation(jumps, np.concatenate(rows), np.concatenate(values))
