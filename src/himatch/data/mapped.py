"""Datasets larger than memory: packed once into a folder of mapped arrays, opened as they are afterwards."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from himatch._runtime.files import entry, new_folder, reading
from himatch.data.columns import mapping_file
from himatch.data.dataset import TrajectoryDataset
from himatch.data.packed import MANIFEST, SUM, open_packed, save_manifest
from himatch.data.reader import LoadOptions, Source, anonymous_task, source_files, source_name, task_of
from himatch.data.sources import locate
from himatch.errors import DataError, HimatchWarning, note
from himatch.tasks import Task, get_task, task_names

CHECKED = ("horizon", "observation_width", "action_width", "action_low", "action_high", "prefix_only")
"""What of a task data is checked against, or cut to."""

Load = Callable[[Path], TrajectoryDataset]
"""Loads the sources into arrays below a folder."""


def load_mapped(folder: Path, source: Source, options: LoadOptions, load: Load) -> TrajectoryDataset:
    """The dataset in ``folder``; ``load`` fills it on first use, and again when source or options have changed."""
    if source_files(source) is None:
        raise DataError("mmap maps files; these episodes are in memory already, write them with write_minari first")
    request = _request(source, options)
    if (folder / MANIFEST).is_file():
        stored = _open(folder, request, options.task)
        if stored is not None:
            return stored
    elif folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise DataError(f"{folder} holds something else than mapped arrays; choose another folder for mmap")
    return _fill(folder, request, load)


def _request(source: Source, options: LoadOptions) -> dict[str, Any]:
    """Source, options and what the files were like: mapped arrays serve the same request only."""
    stamps, task = [], options.task
    for part in source_files(source) or ():
        path = locate(str(part), options.cache)
        for file in [path, mapping_file(path)] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file():
                facts = file.stat()
                stamps.append([file.name, facts.st_size, facts.st_mtime_ns])
    request = {
        "source": source_name(source),
        "stamps": stamps,
        "task": None if task is None else [task.name, *(getattr(task, name) for name in CHECKED), str(task.discrete)],
        "clip_actions": options.clip_actions,
        "drop_bad": options.drop_bad,
        "drop_extremes": options.drop_extremes,
        "columns": dict(options.columns or {}),
        "sum": SUM,  # folders of earlier versions have none, and are filled again
    }
    plain: dict[str, Any] = json.loads(json.dumps(request))  # as it is read back
    return plain


def _open(folder: Path, request: dict[str, Any], task: Task | None) -> TrajectoryDataset | None:
    """What the folder holds, if it was filled for this request; another source's is refused."""
    where = str(folder)
    packed, facts = open_packed(folder)
    source = entry(facts, str, where, "request", "source")
    if source != request["source"]:
        raise DataError(f"{folder} holds {source!r}, not {request['source']!r}; choose another folder for mmap")
    if facts["request"] != request:
        return None
    name, episodes = entry(facts, str, where, "task"), entry(facts, list, where, "episodes")
    with reading(where):
        chosen = np.array(episodes, dtype=np.int64)
    for said in entry({"notes": [], **facts}, list, where, "notes"):
        note(str(said))
    stored = get_task(name) if name in task_names() else anonymous_task(packed, chosen)
    own = task_of(task or stored, packed)
    return TrajectoryDataset(packed, own, source=source, env_id=facts.get("env_id"), episodes=chosen)


def _fill(folder: Path, request: dict[str, Any], load: Load) -> TrajectoryDataset:
    """Load into the folder, with the notes that loading made, and open what was written."""
    with new_folder(folder, overwrite=(folder / MANIFEST).is_file()) as partial:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HimatchWarning)
            dataset = load(partial)
        notes = [str(w.message) for w in caught if issubclass(w.category, HimatchWarning)]
        for said in notes:
            note(said)
        episodes = dataset.packed_episodes
        facts = {
            "request": request,
            "task": dataset.task.name,
            "env_id": dataset.env_id,
            "notes": notes,
            "episodes": episodes.tolist(),
        }
        save_manifest(partial, dataset.packed, facts)
    packed, _ = open_packed(folder)
    return TrajectoryDataset(packed, dataset.task, source=dataset.source, env_id=dataset.env_id, episodes=episodes)
