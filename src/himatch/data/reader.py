"""One source, whatever its format: packed episodes, with the task and the environment that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from himatch.data.columns import Columns
from himatch.data.csv_files import is_csv_table
from himatch.data.dataset import TrajectoryDataset
from himatch.data.episodes import pack_episodes, pack_trajectories
from himatch.data.flat import read_arrays, read_d4rl, read_npz
from himatch.data.hdf5 import is_hdf5
from himatch.data.minari import MinariFolder, find_folder, read_minari
from himatch.data.packed import Allocate, Packed
from himatch.data.pickles import read_pickle
from himatch.data.problems import Problems
from himatch.data.rates import note_other_rate
from himatch.data.sources import locate, split_sources, task_made_for
from himatch.data.table_files import DataFrame, is_frame
from himatch.data.tables import read_table
from himatch.data.wording import listed
from himatch.errors import DataError, note
from himatch.tasks import Discrete, Task, get_task, task_names
from himatch.tasks.task import FeatureSource, nameable
from himatch.types import Trajectory

Source = (
    str
    | Path
    | Sequence[str | Path]
    | Iterable[Trajectory]
    | Iterable[Mapping[str, Any]]
    | Mapping[str, Any]
    | DataFrame
)

UNNAMED = "unnamed"  # the task of a set that belongs to none
FORMATS = ".hdf5 .h5 .npz .pkl .csv .csv.gz .parquet, or a Minari folder"


@dataclass(frozen=True)
class LoadOptions:
    """What a caller wants of the sources, besides which they are."""

    task: Task | None
    clip_actions: bool
    drop_bad: bool
    drop_extremes: bool
    columns: Mapping[str, Any] | None
    cache: str | Path | None


@dataclass(frozen=True)
class SourceContent:
    """What one source holds."""

    packed: Packed
    task: Task | None
    env_id: str | None = None
    problems: Problems = field(default_factory=Problems)
    altered: str | None = None
    """That its checksum differs, in words; more particular complaints come first."""


def source_files(source: Source) -> list[str | Path] | None:
    """The files, folders and names to read one after the other; ``None`` for what is in memory."""
    if isinstance(source, (str, Path)):
        return split_sources(source)
    if isinstance(source, (list, tuple)) and source and all(isinstance(one, (str, Path)) for one in source):
        return [part for one in source for part in split_sources(one)]
    return None


def may_name_columns(source: Source) -> bool:
    """Whether columns may have names, which become features: those of tables, and of sets that himatch wrote."""
    files = source_files(source)
    if files is None:
        return is_frame(source)
    unnamed = (".hdf5", ".h5", ".npz", ".pkl", ".pickle")
    return any(not str(one).lower().endswith(unnamed) and task_made_for(str(one)) is None for one in files)


def source_name(source: Source) -> str:
    """What messages call a source."""
    if isinstance(source, (str, Path)):
        return str(source)
    if is_frame(source):
        return "data frame"
    files = source_files(source)
    return "arrays in memory" if files is None else "+".join(map(str, files))


def read_source(source: Source, options: LoadOptions, allocate: Allocate) -> SourceContent:
    """Read what is in memory, or one file or folder."""
    content = _read(source, options, allocate)
    facts, settings = content.packed.facts, options.columns or {}
    said = {name: settings[name] for name in ("rate", "continuous", "discrete") if settings.get(name) is not None}
    if not said:
        return content
    choices = Columns().changed(said, "columns").choices
    if choices is not None:
        stated = facts.discrete
        if isinstance(stated, Discrete) and choices not in ("auto", stated):
            raise DataError(f"{source_name(source)}: its actions are {stated} as it says, and {choices} as you say")
        said |= {"discrete": stated if isinstance(stated, Discrete) else choices, "continuous": False}
    elif said.get("continuous"):
        said["discrete"] = None
    if "rate" in said:
        note_other_rate(float(said["rate"]), facts.rate, "the source says", source_name(source))
        said["rate"] = float(said["rate"])
    return replace(content, packed=replace(content.packed, facts=replace(facts, **said)))


def _read(source: Source, options: LoadOptions, allocate: Allocate) -> SourceContent:
    if isinstance(source, (str, Path)):
        return _read_file(locate(str(source), options.cache), options, allocate)
    task = options.task
    if isinstance(source, Mapping):
        return SourceContent(read_arrays(source, "arrays", task, allocate), task)
    if is_frame(source):
        packed, problems = read_table(source, task, allocate, options.columns)
        return SourceContent(packed, task, problems=problems)
    if not isinstance(source, Iterable):
        raise DataError(
            "a dataset is a file or folder, a name, a list of these, a list of Trajectory or of dictionaries, a "
            f"dictionary of arrays, or a data frame, not a {type(source).__name__}"
        )
    return SourceContent(pack_trajectories(cast("Iterable[Trajectory]", source), task, allocate), task)


def _read_file(path: Path, options: LoadOptions, allocate: Allocate) -> SourceContent:
    folder = find_folder(path)
    if folder is not None:
        return _read_folder(folder, options.task, allocate)
    if path.is_dir():
        raise DataError(f"{path} is a folder but not a Minari one (no metadata.json in it or in its data folder)")
    known, suffix = options.task or task_of_name(path), path.suffix.lower()
    if suffix in (".hdf5", ".h5") or is_hdf5(path):
        packed = read_d4rl(path, known, allocate)
    elif suffix == ".npz":
        packed = read_npz(path, known, allocate)
    elif suffix in (".pkl", ".pickle"):
        packed = pack_episodes(read_pickle(path), str(path), known, allocate)
    elif suffix == ".parquet" or is_csv_table(path):
        packed, problems = read_table(path, known, allocate, options.columns)
        return SourceContent(packed, known, problems=problems)
    else:
        raise DataError(f"{path}: do not know how to read {suffix or 'a file without a suffix'}; known: {FORMATS}")
    return SourceContent(packed, known)


def _read_folder(folder: MinariFolder, task: Task | None, allocate: Allocate) -> SourceContent:
    known, env_id = task or folder.task, folder.env_id
    packed = read_minari(folder, known, allocate)
    if known is None:
        _note_unregistered(folder)
    return SourceContent(packed, known, env_id, altered=_altered(folder, packed))


def _altered(folder: MinariFolder, packed: Packed) -> str | None:
    """What is wrong with a set that himatch wrote and that holds something else now.

    Of one that is cut to a task's width that cannot be known.
    """
    if folder.content_hash is None or folder.observation_width != packed.observations.shape[1]:
        return None
    try:
        now = TrajectoryDataset(packed, anonymous_task(packed), source=str(folder.data)).content_hash
    except DataError:  # not even numbers; the checks that follow say where
        return None
    if now == folder.content_hash:
        return None
    return (
        f"{folder.data}: damaged or changed since himatch wrote it (its checksum differs); restore it, or where it is "
        "meant take content_hash out of metadata.json"
    )


def _note_unregistered(folder: MinariFolder) -> None:
    """A set that himatch wrote names its task; where that is not registered, its features are not known."""
    written = folder.metadata.get("himatch")
    name = written.get("task") if isinstance(written, dict) else None
    if isinstance(name, str) and name != UNNAMED:
        note(
            f"{folder.data}: the set belongs to task {listed([name])}, which is not registered here; --import FILE.py "
            "(in Python, importing the file) makes it and its features known"
        )


def task_of_name(path: Path) -> Task | None:
    """D4RL's file names start with the task: ``hopper_medium_expert-v2.hdf5``, ``hopper-medium-v2.pkl``."""
    for name in sorted(task_names(), key=len, reverse=True):
        if path.name.lower().startswith((f"{name}_", f"{name}-", f"{name}.")):
            return get_task(name)
    return None


def anonymous_task(packed: Packed, episodes: NDArray[np.int64] | None = None) -> Task:
    """A task without named features, for data that belongs to none, as long as the longest of the ``episodes``."""
    lengths = packed.lengths if episodes is None else packed.lengths[episodes]
    return Task(
        name=UNNAMED,
        horizon=int(lengths.max(initial=1)),
        observation_width=packed.observations.shape[1] or None,
        action_width=packed.actions.shape[1] or None,
    )


def task_of(task: Task, packed: Packed) -> Task:
    """The task with the discrete actions of the data, and a table's columns as features, where it has none such."""
    if task.discrete is None and isinstance(packed.facts.discrete, Discrete):
        task = replace(task, discrete=packed.facts.discrete, action_width=packed.actions.shape[1])
    found: dict[str, FeatureSource] = {name: i for i, name in enumerate(packed.columns.get("observations", ()))}
    found |= {name: f"act[{i}]" for i, name in enumerate(packed.columns.get("actions", ())) if name not in found}
    more = {name: source for name, source in found.items() if nameable(name) and name not in task.features}
    return replace(task, features={**task.features, **more}) if more else task
