"""One way in: whatever holds trajectories becomes a checked :class:`TrajectoryDataset`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.checks import align_columns, check_choices, check_packed
from himatch.data.choices import as_rows, find_discrete
from himatch.data.dataset import TrajectoryDataset
from himatch.data.extremes import holds_extremes
from himatch.data.mapped import load_mapped
from himatch.data.packed import Allocate, concatenate_packed, first_columns, in_folder, in_memory
from himatch.data.problems import MOST
from himatch.data.reader import (
    LoadOptions,
    Source,
    SourceContent,
    anonymous_task,
    read_source,
    source_files,
    source_name,
    task_of,
)
from himatch.data.wording import listed
from himatch.errors import DataError, note
from himatch.tasks import Task, get_task


def load_dataset(
    source: Source,
    task: str | Task | None = None,
    *,
    clip_actions: bool = False,
    drop_bad: bool = False,
    drop_extremes: bool = False,
    columns: Mapping[str, Any] | None = None,
    mmap: str | Path | None = None,
    cache: str | Path | None = None,
) -> TrajectoryDataset:
    """Load, check and pack trajectories.

    Parameters
    ----------
    source
        A D4RL HDF5 file, a Minari folder or local Minari id, ``minari:ID`` (downloads it), an ``.npz``, a pickled
        list of episodes, a CSV or Parquet table, the name of a dataset that himatch makes
        (``halfcheetah-medium-expert``), several of these in a list, joined with ``+`` or matched by a pattern
        (``logs/*.csv``); or what is in memory: a sequence of :class:`Trajectory` or of dictionaries with their arrays,
        one dictionary of flat arrays, or a data frame.
    task
        Name or :class:`Task`. Where it is left out it is taken from the environment the source names or from the file
        name, and failing that the dataset gets a task of its own without named features.
    clip_actions
        Clip actions that lie outside the task's range instead of refusing them.
    drop_bad
        Leave out episodes that hold missing or infinite numbers or, in tables, text, rows of another width, steps
        that are missing or there twice, and of rows that are there twice all but one; a note says which and why.
    drop_extremes
        Leave out episodes that hold extreme values (:meth:`TrajectoryDataset.extremes`); a note says which and why.
    columns
        Which columns of a table hold what, ``{"episode": "run", "observations": "q_*,dq_*"}``; what is left out is
        read from a TOML file beside the table. Names that are written here or there must be in the table.
    mmap
        A folder for memory-mapped arrays, so that a set larger than memory works. Filled on first use, opened as it
        is afterwards, and filled again when the source has changed.
    cache
        Folder of the datasets that himatch makes, each on first use; by default ``$HIMATCH_CACHE`` or the user's
        cache folder.
    """
    known = None if task is None else get_task(task)
    if columns is not None and not isinstance(columns, Mapping):
        raise DataError(f"columns must be a mapping, such as {{'episode': 'run'}}, not {columns!r}")
    options = LoadOptions(known, clip_actions, drop_bad, drop_extremes, columns, cache)
    if mmap is None:
        return _load(source, options, in_memory)
    return load_mapped(
        Path(mmap), source, options, lambda folder: _load(source, options, in_folder(folder), scratch=folder)
    )


def _load(source: Source, options: LoadOptions, allocate: Allocate, scratch: Path | None = None) -> TrajectoryDataset:
    """Read the sources one after the other, check each, and join them; parts are mapped below ``scratch``."""
    name = source_name(source)
    names: Sequence[Source] = source_files(source) or [source]
    scratch = scratch if len(names) > 1 else None
    parts = _read_parts(names, options, allocate, scratch)
    tasks = {part.task.name: part.task for part in parts if part.task is not None}
    if len(tasks) > 1:
        raise DataError(f"the joined sources belong to different tasks ({', '.join(sorted(tasks))})")
    known = next(iter(tasks.values()), None)  # a part that does not say its task shares the others'
    called, good, wrong = first_columns(part.packed for part in parts), [], list[DataError]()
    discrete = find_discrete([part.packed for part in parts], known, [source_name(one) for one in names])
    for i, (one, part) in enumerate(zip(names, parts, strict=True)):
        where = source_name(one)
        aligned = align_columns(part.packed, called, where)
        clip, drop = options.clip_actions, options.drop_bad
        try:
            if discrete is not None:
                aligned = as_rows(aligned, discrete, where, part.problems, _place(i, allocate, scratch))
            own = task_of(known or anonymous_task(aligned), aligned)
            good.append(check_packed(aligned, own, where, part.problems, clip_actions=clip, drop_bad=drop))
            if part.altered is not None:
                raise DataError(part.altered)
        except DataError as reason:  # the others may have problems too
            wrong.append(reason)
        parts[i] = replace(part, packed=aligned)
    if wrong:
        more = [f"... and {len(wrong) - MOST} more sources"] if len(wrong) > MOST else []
        raise DataError("\n".join([*map(str, wrong[:MOST]), *more])) from wrong[0].__cause__
    packed = concatenate_packed([part.packed for part in parts], allocate)
    if scratch is not None:
        for i in range(len(names)):
            shutil.rmtree(scratch / f"part-{i}")
    check_choices(packed, known, name)
    episodes = np.flatnonzero(np.concatenate(good))
    if options.drop_extremes:
        episodes = _without_extremes(TrajectoryDataset(packed, anonymous_task(packed), source=name, episodes=episodes))
    chosen = task_of(known or anonymous_task(packed, episodes), packed)
    env_ids = list(dict.fromkeys(part.env_id for part in parts if part.env_id is not None))
    _note_versions(env_ids, chosen, name)
    return TrajectoryDataset(
        packed,
        chosen,
        source=name,
        env_id=env_ids[0] if len(env_ids) == 1 else None,
        episodes=episodes,
    )


def _without_extremes(dataset: TrajectoryDataset) -> NDArray[np.int64]:
    """The packed episodes that hold no extreme values; a note says which are left out."""
    found = dataset.extremes()
    held, reasons = holds_extremes(dataset, found), "; ".join(map(str, found))
    if held.all():
        raise DataError(f"{dataset.source}: {reasons}; no episode is without such, so nothing is left; clean the log")
    if held.any():
        names = listed(dataset.episode_name(int(number)) for number in np.flatnonzero(held))
        note(
            f"{dataset.source}: {held.sum()} of {len(dataset)} episodes ({names}) left out for extreme values, as "
            f"requested: {reasons}"
        )
    return dataset.packed_episodes[~held]


def _read_parts(
    names: Sequence[Source], options: LoadOptions, allocate: Allocate, scratch: Path | None
) -> list[SourceContent]:
    """What each source holds; parts of a joined source are mapped beside the whole and removed with it."""
    parts = []
    for i, one in enumerate(names):
        if scratch is not None:
            (scratch / f"part-{i}").mkdir()
        parts.append(read_source(one, options, _place(i, allocate, scratch)))
    return parts


def _place(part: int, allocate: Allocate, scratch: Path | None) -> Allocate:
    """Where the arrays of a part go."""
    return allocate if scratch is None else in_folder(scratch / f"part-{part}")


def _note_versions(env_ids: Sequence[str], task: Task, name: str) -> None:
    """Warn of data that another version of the task's environment recorded."""
    for env_id in env_ids:
        if task.env_id not in (None, env_id):
            note(
                f"{name}: recorded in {env_id}, but task {task.name} runs {task.env_id}; physics and rewards "
                "differ between versions, so rollouts will not reproduce the data exactly"
            )
