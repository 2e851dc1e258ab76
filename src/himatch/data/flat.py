"""Flat columns, all steps in a row: the layout of D4RL, in HDF5 files, ``.npz`` files and dictionaries of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.checks import StepColumn, as_array, check_columns, flat_column, observation_columns, whole_numbers
from himatch.data.ends import EndFlags, Flags, flag_columns, flagged_ends, no_ends, stated_ends
from himatch.data.facts import Facts, stated_rate
from himatch.data.hdf5 import Hdf5Column, hdf5_column, open_hdf5
from himatch.data.npz import open_npz
from himatch.data.packed import BLOCK, Allocate, Packed, in_memory
from himatch.data.wording import listed
from himatch.errors import DataError, note
from himatch.tasks import Task
from himatch.types import Array


def read_d4rl(path: Path, task: Task | None, allocate: Allocate) -> Packed:
    """Read a D4RL HDF5 file."""
    where = str(path)
    # No chunk cache: every chunk is read once, and HDF5 would hold on to megabytes of freed ones.
    with open_hdf5(path, where, rdcc_nbytes=0) as file:
        columns: dict[str, StepColumn] = {}
        for name in file.names():
            item = file.get(name)
            if isinstance(item, Hdf5Column):
                columns[name] = item
            elif item is None:
                raise DataError(
                    f"{where}: {name} is a link to something that is not there; copy the data into the file"
                )
            elif name in ("observations", "actions"):
                raise DataError(f"{where}: {name} is a dictionary; himatch handles continuous vectors only")
        packed = read_flat(columns, where, task, allocate)
        rate = stated_rate(file.attributes())
        return packed if rate is None else replace(packed, facts=replace(packed.facts, rate=rate))


def read_npz(path: Path, task: Task | None, allocate: Allocate) -> Packed:
    """Read an ``.npz`` with ``observations``, ``actions``, optionally ``rewards``, and ``lengths`` or end flags."""
    where = str(path)
    with open_npz(path, where) as columns:
        return read_flat(columns, where, task, allocate)


def read_arrays(arrays: Mapping[str, Any], where: str, task: Task | None, allocate: Allocate = in_memory) -> Packed:
    """Read flat arrays, which may be lists, tensors or columns of an open HDF5 file; ``None`` counts as not there."""
    columns: dict[str, StepColumn] = {
        name: hdf5_column(array, where) or as_array(array, name, where)
        for name, array in arrays.items()
        if array is not None
    }
    return read_flat(columns, where, task, allocate)


def read_flat(columns: Mapping[str, StepColumn], where: str, task: Task | None, allocate: Allocate) -> Packed:
    """Read flat columns (``observations``, ``actions``, ``terminals``, ...) into packed episodes."""
    with np.errstate(over="ignore", invalid="ignore"):  # beyond single precision is infinity, which the checks report
        return _read_flat(columns, where, task, allocate)


def _read_flat(columns: Mapping[str, StepColumn], where: str, task: Task | None, allocate: Allocate) -> Packed:
    for name in ("observations", "actions"):
        if name not in columns:
            raise DataError(f"{where}: no {name!r} in it (found: {listed(sorted(columns))})")
    observations, actions = columns["observations"], columns["actions"]
    successors, rewards = columns.get("next_observations"), columns.get("rewards")
    flagged = flag_columns(columns)
    check_columns(
        observations, actions, [("next_observations", successors), ("rewards", rewards), *flagged.items()], where
    )
    width = observation_columns(observations.shape[1], task, where)
    if successors is not None and successors.shape != observations.shape:
        raise DataError(f"{where}: next_observations {successors.shape} do not fit observations {observations.shape}")
    steps, horizon = observations.shape[0], None if task is None else task.horizon
    flags, stated = EndFlags.read(columns, where), stated_ends(columns, steps, where)

    packed_observations = _read_rows(observations, allocate("observations", (steps, width)))
    packed_actions = _read_rows(
        actions, allocate("actions", (steps, actions.shape[1] if len(actions.shape) == 2 else 1))
    )
    packed_rewards = None
    if rewards is not None:
        packed_rewards = allocate("rewards", (steps,))
        for start, stop in _blocks(rewards):
            packed_rewards[start:stop] = flat_column(rewards[start:stop], "rewards", where)
    continuation = None if successors is None else _continuation(packed_observations, successors)
    ignored = continuation is not None and not _trustworthy(continuation.jumps, flags.terminals, stated)
    continuation = None if ignored else continuation
    if stated is None and not flagged and continuation is None:
        raise no_ends(columns, where)
    if ignored:
        note(f"{where}: next_observations do not continue the observations; left aside")
    ends = stated
    if ends is None:
        jumps = None if continuation is None else continuation.jumps
        ends = flagged_ends(flags, steps, jumps, horizon, where)
    last = np.flatnonzero(ends)
    terminated = flags.terminated(last, horizon)
    if flags.terminals is not None:
        _refuse_inner_termination(flags.terminals & ~ends, last, where)
    finals, has_final = np.zeros((len(last), width), dtype=np.float32), np.zeros(len(last), dtype=bool)
    if "final_observations" in columns:
        given = _of_episodes(columns, "final_observations", (len(last), observations.shape[1]), where)
        finals, has_final = given[:, :width].astype(np.float32), ~has_final
    elif continuation is not None:
        finals, has_final = continuation.after(last)
    return Packed(
        packed_observations,
        packed_actions,
        packed_rewards,
        np.diff(last, prepend=-1).astype(np.int64),
        terminated,
        finals,
        has_final,
        _labels(columns, len(last), where),
        facts=Facts(discrete="auto" if whole_numbers(actions) else None),
    )


def _of_episodes(columns: Mapping[str, StepColumn], name: str, shape: tuple[int, ...], where: str) -> NDArray[Any]:
    """What belongs to episodes instead of steps."""
    values = np.asarray(columns[name][...])
    if values.shape != shape:
        raise DataError(f"{where}: {shape[0]} episodes, but {name} has shape {values.shape}")
    if len(shape) == 2 and values.dtype.kind not in "fiub":
        raise DataError(f"{where}: {name} are not numbers (type {values.dtype})")
    return values


def _labels(columns: Mapping[str, StepColumn], episodes: int, where: str) -> tuple[str | None, ...]:
    if "labels" not in columns:
        return (None,) * episodes
    labels = _of_episodes(columns, "labels", (episodes,), where)
    return tuple((w.decode(errors="replace") if isinstance(w, bytes) else str(w)) or None for w in labels)


def _refuse_inner_termination(inside: Flags, last: NDArray[np.int64], where: str) -> None:
    """A termination inside an episode, which only lengths or an episode column can bring about."""
    if inside.any():
        step = int(np.argmax(inside))
        episode = int(np.searchsorted(last, step))
        start = int(last[episode - 1]) + 1 if episode else 0
        raise DataError(
            f"{where}: episode {episode}: terminates at step {step - start} and goes on; it is not one episode"
        )


def _trustworthy(jumps: Flags, terminals: Flags | None, stated: Flags | None) -> bool:
    """Whether ``next_observations`` show episode ends: they must jump at terminals and hardly ever elsewhere."""
    if terminals is not None and terminals[:-1].any() and jumps[:-1][terminals[:-1]].mean() < 0.9:
        return False  # shifted copies of the observations: they run on over every end
    elsewhere = jumps if stated is None else jumps & ~stated
    return bool(elsewhere.mean() <= 0.5)  # transitions in random order jump everywhere


def _read_rows(column: StepColumn, out: Array) -> Array:
    """Fill ``out`` with the column's leading columns without a second copy of the whole."""
    # In blocks: one read of everything makes HDF5 keep a book on every chunk at once.
    for start, stop in _blocks(column):
        if len(column.shape) == 1:
            out[start:stop, 0] = column[start:stop]
        elif isinstance(column, Hdf5Column):
            column.read_into(out, start, stop)
        else:
            out[start:stop] = column[start:stop, : out.shape[1]]
    return out


def _blocks(column: StepColumn) -> list[tuple[int, int]]:
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


def _continuation(observations: Array, successors: StepColumn) -> _Continuation:
    """One pass over ``next_observations``, a block at a time."""
    steps, width = observations.shape
    jumps, rows, values = np.zeros(steps, dtype=bool), [], []
    for start, stop in _blocks(successors):
        after = np.asarray(successors[start:stop, :width], dtype=np.float32)
        n = min(stop, steps - 1) - start
        said, seen = after[:n], observations[start + 1 : start + 1 + n]
        # What is not finite is no jump: it is complained of where it stands, which ends found here would move.
        jumps[start : start + n] = ((said != seen) & np.isfinite(said) & np.isfinite(seen)).any(axis=1)
        keep = jumps[start:stop].copy()
        keep[-1] |= stop == steps
        rows.append(start + np.flatnonzero(keep))
        values.append(after[keep])
    return _Continuation(jumps, np.concatenate(rows), np.concatenate(values))
