"""Has a feature become another since training? A run keeps what its features were on some steps.

Features that are functions are stored by name only, so a run would be conditioned on whatever has that name now.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

from himatch.data import TrajectoryDataset
from himatch.data.packed import BLOCK
from himatch.errors import DataError
from himatch.runs.folder import RunFolder
from himatch.statistics.features import of_each, resolve_feature
from himatch.tasks import Task
from himatch.types import Array, Trajectory

STEPS, SPREAD = 64, 256  # kept steps of one episode, and of all episodes together
MOST_EXTREMES, FEWEST = 128, 16  # of the latter those at extremes of columns, and those of a feature
SAMPLE = 50_000  # steps that quantiles of features are taken from
TOLERANCE = 1e-5  # relative: machines round differently
SMALLEST = 1e-6  # of the largest value: what is near zero may be the rest of a difference
_VALUES, _SPREAD = "values/", "spread/"

Rows = NDArray[np.int64]


def write_fingerprint(folder: RunFolder, train: TrajectoryDataset, features: Iterable[str]) -> None:
    """Keep the first steps of a training episode, steps spread over all, and the values of these features on both."""
    names = list(dict.fromkeys(part.strip() for joined in features for part in joined.split(",")))
    arrays: dict[str, Array] = {}
    for prefix, rows in (
        ("", train.shifts[0] + np.arange(min(STEPS, train.lengths[0]))),
        (_SPREAD, _spread(train, names)),
    ):
        packed = train.packed
        rewards = None if packed.rewards is None else np.array(packed.rewards[rows])
        steps = Trajectory(np.array(packed.observations[rows]), np.array(packed.actions[rows]), rewards)
        arrays |= {f"{prefix}observations": steps.observations, f"{prefix}actions": steps.actions}
        if rewards is not None:
            arrays[f"{prefix}rewards"] = rewards
        for name in names:
            try:
                arrays[prefix + _VALUES + name] = resolve_feature(name, train.task)(steps)
            except DataError:  # it needs whole episodes; these steps are not watched
                continue
    folder.write_fingerprint({name: torch.from_numpy(np.array(a)) for name, a in arrays.items()})


def _spread(train: TrajectoryDataset, features: Iterable[str]) -> Rows:
    """Rows of ``train.packed`` that cover what features are made of: a clip or a threshold shows at some of them.

    They are the extremes of every column, and the extremes and evenly spaced quantiles of every feature. What a
    feature of several steps makes of such rows side by side is no sensible number, but the same one again.
    """
    packed, ends = train.packed, np.cumsum(train.lengths)
    inputs = [packed.observations, packed.actions, *([] if packed.rewards is None else [packed.rewards[:, None]])]
    chosen = [row for array in inputs for row in _extreme_rows(train, array)][:MOST_EXTREMES]
    chosen = [int(row + train.shifts[np.searchsorted(ends, row, side="right")]) for row in chosen]
    some = train[:: -(-train.steps // SAMPLE)]
    starts, lengths = packed.starts[some.packed_episodes], some.lengths
    rows = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(some.steps)
    values = [np.concatenate(list(of_each(resolve_feature(name, train.task), some))) for name in features]
    columns = [column for value in values for column in value.T]
    for column in columns:
        order = np.argsort(column, kind="stable")
        places = np.linspace(0, len(order) - 1, max(FEWEST, (SPREAD - len(chosen)) // len(columns)))
        chosen += rows[order[places.round().astype(np.int64)]].tolist()
    return np.unique(chosen).astype(np.int64)


def _extreme_rows(train: TrajectoryDataset, array: Array) -> list[int]:
    """Where each column of all training steps is lowest and highest, as rows of the selection."""
    width = array.shape[1]
    best, found = np.full((2, width), -np.inf), np.zeros((2, width), dtype=np.int64)
    first = 0
    for block in train.blocks(array, BLOCK):
        for side, signed in enumerate((block, -block)):
            at = signed.argmax(axis=0)
            top = signed[at, np.arange(width)]
            found[side] = np.where(top > best[side], first + at, found[side])
            best[side] = np.maximum(top, best[side])
        first += len(block)
    return found.T.ravel().tolist()


def check_fingerprint(folder: RunFolder, task: Task) -> None:
    """Refuse a run of which a feature has changed: its name, the first step that differs and both values."""
    stored = folder.fingerprint()
    if stored is None:
        return
    arrays = {name: tensor.numpy() for name, tensor in stored.items()}
    for prefix in ("", _SPREAD):
        if f"{prefix}observations" not in arrays:  # a run of an earlier version
            continue
        of_steps = [arrays.get(prefix + name) for name in ("observations", "actions", "rewards")]
        steps = Trajectory(of_steps[0], of_steps[1], of_steps[2])  # type: ignore[arg-type]
        for key, before in arrays.items():
            if key.startswith(prefix + _VALUES):
                name = key.removeprefix(prefix + _VALUES)
                try:
                    now = resolve_feature(name, task)(steps)
                except DataError as reason:
                    raise _changed(folder, name, str(reason)) from reason
                _compare(folder, name, before, now, "steps that are kept" if prefix else "a stored stretch")


def _compare(folder: RunFolder, name: str, before: Array, now: Array, where: str) -> None:
    if before.shape != now.shape:
        raise _changed(folder, name, f"it was {before.shape[1]} numbers a step, now it is {now.shape[1]}")
    slack = SMALLEST * float(np.abs(before).max(initial=0.0))
    differing = np.argwhere(~np.isclose(now, before, rtol=TOLERANCE, atol=slack))
    if len(differing):
        step, column = differing[0]
        was, is_now = before[step, column], now[step, column]
        raise _changed(folder, name, f"at step {step} of {where} it was {was:g}, now it is {is_now:g}")


def _changed(folder: RunFolder, name: str, how: str) -> DataError:
    return DataError(
        f"{folder} was trained with another feature {name!r} ({how}); register the task with the function that it was "
        "trained with, or train again"
    )
