"""Targets in files: demonstrations of a dataset, drawn histograms, samples."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np

from himatch.data import TrajectoryDataset, load_dataset
from himatch.data.checks import align_columns
from himatch.data.facts import SAME_RATE, Facts
from himatch.errors import DataError, HimatchWarning, TargetError, note
from himatch.targets.target import Drawn, Samples
from himatch.tasks import Task, get_task

_OF_OTHERS = (r"(?s).* left out, as requested", r".* episodes are longer than the ")
"""Notes on a file of which one episode is taken."""


def read_demonstrations(
    path: str, task: Task | str | None, wanted: dict[str, list[str]], facts: Facts
) -> tuple[TrajectoryDataset, list[int]]:
    """What a file holds, with its columns, where they have names, in the order of those of the run.

    Besides, which episodes are without a problem: only the one that is taken has to be.
    """
    try:
        with warnings.catch_warnings():
            for said in _OF_OTHERS:
                warnings.filterwarnings("ignore", said, HimatchWarning)
            dataset = load_dataset(path, task, columns=_in_files(wanted, task), drop_bad=True)
        named = {name: tuple(names) for name, names in wanted.items()}
        packed = align_columns(dataset.packed, named, path, "the run's")  # of a set that is no table
    except DataError as reason:
        run = "; ".join(f"{name} {', '.join(names)}" for name, names in wanted.items())
        raise DataError(f"{reason} (the run's columns are {run})" if wanted else str(reason)) from reason
    units, rate = facts.units, facts.rate
    if differing := [f"{n} in {u}, not {units[n]}" for n, u in dataset.units.items() if units.get(n, u) != u]:
        raise DataError(f"{path} measures {'; '.join(differing)} as the run does; convert it")
    if rate and dataset.rate and abs(dataset.rate / rate - 1.0) > SAME_RATE:
        note(
            f"{path} was recorded at {dataset.rate:.4g} Hz, the data of the run at {rate:.4g} Hz; a policy counts "
            "steps, so resample to the rate of the run"
        )
    return TrajectoryDataset(packed, dataset.task, source=dataset.source), dataset.packed_episodes.tolist()


def _in_files(wanted: dict[str, list[str]], task: Task | str | None) -> dict[str, list[str]]:
    """The run's columns as a table has them: of discrete actions one holds the numbers, ``push`` of ``push=0``."""
    if task is None or get_task(task).discrete is None or "actions" not in wanted:
        return wanted
    return {**wanted, "actions": list(dict.fromkeys(name.rpartition("=")[0] for name in wanted["actions"]))}


def fault_of(path: str, task: Task | str | None, wanted: dict[str, list[str]]) -> str:
    """What is wrong with the episodes of a file."""
    try:
        load_dataset(path, task, columns=_in_files(wanted, task))
    except DataError as reason:
        return str(reason)
    return f"{path} has changed"


def find_episode(dataset: TrajectoryDataset, path: str, called: str | None) -> int:
    """The episode that the file calls so, else the one of that number."""
    if called is None:
        return 0
    names = dataset.episode_names
    if called in names:
        return names.index(called)
    number = int(called) if called.isdecimal() else None
    if number is None or number >= len(dataset):
        some = ", ".join(repr(name) for name in names[:5] if name is not None)
        known = f" (it has {some}{', ...' if len(names) > 5 else ''})" if some else ""
        raise TargetError(f"{path} has {len(dataset)} episodes, there is no episode {called}{known}", 1)
    return number


def read_histogram(path: str) -> Drawn:
    """A histogram drawn by hand: JSON with ``edges`` and ``weights``, a list each or a list of lists."""
    content = _json(path)
    if not isinstance(content, dict) or not {"edges", "weights"} <= content.keys():
        raise TargetError(f'{path}: expected {{"edges": [...], "weights": [...]}}')
    rows = []
    for key in ("edges", "weights"):
        try:
            value = content[key]
            nested = bool(value) and isinstance(value[0], list)
            rows.append(tuple(np.asarray(row, dtype=np.float64) for row in (value if nested else [value])))
        except (TypeError, ValueError, KeyError):
            raise TargetError(f"{path}: {key!r} must be a list of numbers, or one such list per feature") from None
        if any(row.ndim != 1 for row in rows[-1]):
            raise TargetError(f"{path}: {key!r} must be a list of numbers, or one such list per feature")
    return Drawn(rows[0], rows[1], f"histogram({path})")


def read_samples(path: str) -> Samples:
    """Feature values from an ``.npy`` file, ``(n,)`` or ``(n, d)``."""
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        values = None
    if not isinstance(values, np.ndarray):  # of an .npz file it is an archive
        raise TargetError(f"{path}: not a readable .npy file of numbers")
    if values.dtype.kind not in "fiub":
        raise TargetError(
            f"{path}: samples must be real numbers, not {values.dtype}; save what they stand for as floats"
        )
    return Samples(values, f"samples({path})")


def _json(path: str) -> object:
    try:
        return json.loads(Path(path).read_text())
    except OSError:
        raise TargetError(f"{path}: cannot be opened") from None
    except ValueError as reason:
        raise TargetError(f"{path}: not valid JSON ({reason})") from None
