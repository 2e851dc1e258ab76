"""One way in: whatever holds trajectories becomes a checked :class:`TrajectoryDataset`."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import h5py
import numpy as np

from himatch._runtime.files import new_folder, reading
from himatch.data.checks import Places, align_columns, check_packed, listed
from himatch.data.dataset import TrajectoryDataset
from himatch.data.episodes import pack_episodes, pack_trajectories
from himatch.data.flat import read_arrays, read_d4rl, read_npz
from himatch.data.minari import METADATA, MinariFolder, find_folder, read_minari
from himatch.data.packed import (
    MANIFEST,
    Allocate,
    Packed,
    concatenate_packed,
    first_columns,
    in_folder,
    in_memory,
    open_packed,
    save_manifest,
)
from himatch.data.pickles import read_pickle
from himatch.data.sources import locate, split_sources
from himatch.data.table_files import Frame, is_csv_table, is_frame
from himatch.data.tables import mapping_file, read_table
from himatch.errors import DataError, HimatchWarning, note
from himatch.tasks import Task, get_task, task_names
from himatch.types import Trajectory

Source = (
    str | Path | Sequence[str | Path] | Iterable[Trajectory] | Iterable[Mapping[str, Any]] | Mapping[str, Any] | Frame
)

UNNAMED = "unnamed"  # the task of a set that belongs to none
FORMATS = ".hdf5 .h5 .npz .pkl .csv .csv.gz .parquet, or a Minari folder"


@dataclass(frozen=True)
class _Part:
    """What one source gave."""

    packed: Packed
    task: Task | None
    env_id: str | None = None
    places: Places = field(default_factory=Places)


def load_dataset(
    source: Source,
    task: str | Task | None = None,
    *,
    clip_actions: bool = False,
    drop_bad: bool = False,
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
        Leave out episodes that hold missing or infinite numbers, with a note, instead of refusing them.
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
    if mmap is None:
        return _load(source, known, clip_actions, drop_bad, columns, cache, in_memory)
    if _files(source) is None:
        raise DataError("mmap maps files; these episodes are in memory already, write them with write_minari first")
    folder, asked = Path(mmap), _request(source, known, clip_actions, drop_bad, columns, cache)
    if (folder / MANIFEST).is_file():
        with reading(str(folder)):
            packed, facts = open_packed(folder)
            if facts["request"]["source"] != asked["source"]:
                raise DataError(
                    f"{folder} holds {facts['request']['source']!r}, not {asked['source']!r}; "
                    "choose another folder for mmap"
                )
            if facts["request"] == asked:
                for said in facts.get("notes", ()):
                    note(said)
                stored = get_task(facts["task"]) if facts["task"] in task_names() else _anonymous_task(packed)
                return TrajectoryDataset(
                    packed,
                    known or stored,
                    source=asked["source"],
                    env_id=facts["env_id"],
                    episodes=np.array(facts["episodes"], dtype=np.int64),
                )
    elif folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise DataError(f"{folder} holds something else than mapped arrays; choose another folder for mmap")
    with new_folder(folder, overwrite=(folder / MANIFEST).is_file()) as partial:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HimatchWarning)
            dataset = _load(source, known, clip_actions, drop_bad, columns, cache, in_folder(partial), scratch=partial)
        notes = [str(w.message) for w in caught if issubclass(w.category, HimatchWarning)]
        for said in notes:
            note(said)
        facts = {
            "request": asked,
            "task": dataset.task.name,
            "env_id": dataset.env_id,
            "notes": notes,
            "episodes": dataset._episodes.tolist(),
        }
        save_manifest(partial, dataset._packed, facts)
    packed, _ = open_packed(folder)
    return TrajectoryDataset(
        packed, dataset.task, source=dataset.source, env_id=dataset.env_id, episodes=dataset._episodes
    )


CHECKED = ("horizon", "observation_width", "action_width", "action_low", "action_high", "prefix_only")
"""What of a task data is checked against, or cut to."""


def _request(
    source: Source,
    task: Task | None,
    clip_actions: bool,
    drop_bad: bool,
    columns: Mapping[str, Any] | None,
    cache: str | Path | None,
) -> dict[str, Any]:
    """What was asked for and what the files looked like then: mapped arrays are good for the same request only."""
    stamps = []
    for part in _files(source) or ():
        path = locate(str(part), cache)
        for file in [path, mapping_file(path)] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file():
                facts = file.stat()
                stamps.append([file.name, facts.st_size, facts.st_mtime_ns])
    asked = {
        "source": _name(source),
        "stamps": stamps,
        "task": None if task is None else [task.name, *(getattr(task, name) for name in CHECKED)],
        "clip_actions": clip_actions,
        "drop_bad": drop_bad,
        "columns": dict(columns or {}),
    }
    plain: dict[str, Any] = json.loads(json.dumps(asked))  # as it is read back
    return plain


def _files(source: Source) -> list[str | Path] | None:
    """The files, folders and names to read one after the other; ``None`` for what is in memory."""
    if isinstance(source, (str, Path)):
        return split_sources(source)
    if isinstance(source, (list, tuple)) and source and all(isinstance(one, (str, Path)) for one in source):
        return [part for one in source for part in split_sources(one)]
    return None


def _name(source: Source) -> str:
    if isinstance(source, (str, Path)):
        return str(source)
    if is_frame(source):
        return "data frame"
    files = _files(source)
    return "arrays in memory" if files is None else "+".join(map(str, files))


def _load(
    source: Source,
    task: Task | None,
    clip_actions: bool,
    drop_bad: bool,
    columns: Mapping[str, Any] | None,
    cache: str | Path | None,
    allocate: Allocate,
    scratch: Path | None = None,
) -> TrajectoryDataset:
    name = _name(source)
    names: Sequence[Source] = _files(source) or [source]
    parts: list[_Part] = []
    for i, one in enumerate(names):
        # Parts of a joined source are mapped beside the whole and removed with it.
        place = allocate
        if scratch is not None and len(names) > 1:
            (scratch / f"part-{i}").mkdir()
            place = in_folder(scratch / f"part-{i}")
        parts.append(_read(one, task, columns, cache, place))
    tasks = {part.task.name: part.task for part in parts if part.task is not None}
    if len(tasks) > 1:
        raise DataError(f"the joined sources belong to different tasks ({', '.join(sorted(tasks))})")
    known = next(iter(tasks.values()), None)  # a part that does not say its task shares the others'
    called, good = first_columns(part.packed for part in parts), []
    for i, (one, part) in enumerate(zip(names, parts, strict=True)):
        aligned, own = align_columns(part.packed, called, _name(one)), known or _anonymous_task(part.packed)
        good.append(check_packed(aligned, own, _name(one), part.places, clip_actions=clip_actions, drop_bad=drop_bad))
        parts[i] = replace(part, packed=aligned)
    packed = concatenate_packed([part.packed for part in parts], allocate)
    if scratch is not None and len(names) > 1:
        _remove_parts(scratch, len(names))
    chosen = known or _anonymous_task(packed)
    env_ids = list(dict.fromkeys(part.env_id for part in parts if part.env_id is not None))
    for env_id in env_ids:
        if chosen.env_id not in (None, env_id):
            note(
                f"{name}: recorded in {env_id}, but task {chosen.name} runs {chosen.env_id}; physics and rewards "
                "differ between versions, so rollouts will not reproduce the data exactly"
            )
    return TrajectoryDataset(
        packed,
        chosen,
        source=name,
        env_id=env_ids[0] if len(env_ids) == 1 else None,
        episodes=np.flatnonzero(np.concatenate(good)),
    )


def _remove_parts(scratch: Path, count: int) -> None:
    for i in range(count):
        shutil.rmtree(scratch / f"part-{i}")


def _read(
    source: Source,
    task: Task | None,
    columns: Mapping[str, Any] | None,
    cache: str | Path | None,
    allocate: Allocate,
) -> _Part:
    if isinstance(source, Mapping):
        return _Part(read_arrays(source, "arrays", task, allocate), task)
    if not isinstance(source, (str, Path)):
        if is_frame(source):
            packed, places = read_table(source, task, allocate, columns)
            return _Part(packed, task, places=places)
        if not isinstance(source, Iterable):
            raise DataError(
                "a dataset is a file or folder, a name, a list of these, a list of Trajectory or of dictionaries, a "
                f"dictionary of arrays, or a data frame, not a {type(source).__name__}"
            )
        return _Part(pack_trajectories(cast("Iterable[Trajectory]", source), task, allocate), task)
    path = locate(str(source), cache)
    folder = find_folder(path)
    if folder is not None:
        with reading(str(folder.data / METADATA)):
            known, env_id = task or folder.task, folder.env_id
        packed = read_minari(folder, known, allocate)
        if known is None:
            _note_unregistered(folder)
        return _Part(packed, known, env_id)
    if path.is_dir():
        raise DataError(f"{path} is a folder but not a Minari one (no metadata.json in it or in its data folder)")
    known = task or _task_of_name(path)
    suffix = path.suffix.lower()
    if h5py.is_hdf5(path) or suffix in (".hdf5", ".h5"):
        packed = read_d4rl(path, known, allocate)
    elif suffix == ".npz":
        packed = read_npz(path, known, allocate)
    elif suffix in (".pkl", ".pickle"):
        packed = pack_episodes(read_pickle(path), str(path), known, allocate)
    elif suffix == ".parquet" or is_csv_table(path):
        packed, places = read_table(path, known, allocate, columns)
        return _Part(packed, known, places=places)
    else:
        raise DataError(f"{path}: do not know how to read {suffix or 'a file without a suffix'}; known: {FORMATS}")
    return _Part(packed, known)


def _note_unregistered(folder: MinariFolder) -> None:
    """A set that himatch wrote names its task; where that is not registered, its features are not known."""
    written = folder.metadata.get("himatch")
    name = written.get("task") if isinstance(written, dict) else None
    if isinstance(name, str) and name != UNNAMED:
        note(
            f"{folder.data}: the set belongs to task {listed([name])}, which is not registered here; --import FILE.py "
            "(in Python, importing the file) makes it and its features known"
        )


def _task_of_name(path: Path) -> Task | None:
    """D4RL's file names start with the task: ``hopper_medium_expert-v2.hdf5``, ``hopper-medium-v2.pkl``."""
    for name in sorted(task_names(), key=len, reverse=True):
        if path.name.lower().startswith((f"{name}_", f"{name}-", f"{name}.")):
            return get_task(name)
    return None


def _anonymous_task(packed: Packed) -> Task:
    return Task(
        name=UNNAMED,
        horizon=int(packed.lengths.max(initial=1)),
        observation_width=packed.observations.shape[1] or None,
        action_width=packed.actions.shape[1] or None,
    )
