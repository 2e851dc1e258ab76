"""Minari folders, read directly: HDF5 through h5py, Arrow and Parquet through pyarrow."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import damaged, read_json, reading
from himatch.data.episodes import CheckedEpisode, check_episode, pack_checked
from himatch.data.facts import Facts
from himatch.data.hdf5 import Hdf5Group, open_hdf5
from himatch.data.packed import Allocate, Packed
from himatch.data.wording import listed
from himatch.errors import DataError, TaskError, one_line
from himatch.tasks import Discrete, Task, get_task, task_of_environment
from himatch.tasks.spaces import refusal

METADATA = "metadata.json"
MAIN_FILE = "main_data.hdf5"
COLUMNS = ("observations", "actions", "rewards", "terminations")


@dataclass(frozen=True)
class MinariFolder:
    """Where a Minari set lies and what it says about itself."""

    data: Path
    metadata: dict[str, Any]

    @property
    def env_id(self) -> str | None:
        """The environment the set was recorded in, where it says so."""
        name = self._environment.get("id") if self._environment else self.written_by_himatch.get("env_id")
        return name if isinstance(name, str) else None

    @property
    def _environment(self) -> dict[str, Any]:
        """Gymnasium's facts about it, where they are there."""
        facts = self.metadata.get("env_spec")
        if isinstance(facts, str):
            with reading(str(self.data / METADATA)):
                facts = json.loads(facts)
        return facts if isinstance(facts, dict) else {}

    @property
    def _settings(self) -> dict[str, Any]:
        """What it was made with."""
        settings = self._environment.get("kwargs")
        return settings if isinstance(settings, dict) else {}

    @property
    def written_by_himatch(self) -> dict[str, Any]:
        """What himatch says about a set that it wrote."""
        extra = self.metadata.get("himatch")
        return extra if isinstance(extra, dict) else {}

    @property
    def task(self) -> Task | None:
        """The task himatch wrote into it, or the one that runs the same environment."""
        name = self.written_by_himatch.get("task")
        if isinstance(name, str):
            try:
                return get_task(name)
            except TaskError:
                pass  # written with a task that is not registered here; the environment may still say
        return None if self.env_id is None else task_of_environment(self.env_id)

    @property
    def facts(self) -> Facts:
        """Control rate and units, where himatch wrote them; an environment may have been told to take longer steps."""
        return replace(Facts.of(self.written_by_himatch), mappings=(), timed="frame_skip" in self._settings)

    @property
    def content_hash(self) -> str | None:
        """Of the episodes as himatch wrote them; sets of others have none."""
        found = self.written_by_himatch.get("content_hash")
        return found if isinstance(found, str) else None

    @property
    def observation_width(self) -> int | None:
        """How many numbers an observation has in the files, where they say so."""
        with reading(str(self.data / METADATA)):
            space = json.loads(self.metadata.get("observation_space", "null"))
        shape = space.get("shape") if isinstance(space, dict) else None
        return shape[0] if isinstance(shape, list) and len(shape) == 1 else None

    @property
    def has_rewards(self) -> bool:
        """False for sets that himatch wrote from a log without rewards (Minari itself demands a column)."""
        return self.written_by_himatch.get("rewards") is not False


def datasets_root() -> Path:
    """Where Minari keeps its local sets."""
    return Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")


def find_folder(path: Path) -> MinariFolder | None:
    """The Minari set at that path (its folder, its ``data`` folder or its main file), or ``None``."""
    for data in (path, path / "data", path.parent if path.name == MAIN_FILE else path):
        if (data / METADATA).is_file():
            return MinariFolder(data, read_json(data / METADATA))
    return None


def download(dataset_id: str) -> Path:
    """Fetch a remote set through Minari itself (extra ``minari``) and say where it lies."""
    local = datasets_root() / dataset_id
    there = {path.name for path in (local / "data").glob("*")}
    if METADATA not in there or there == {METADATA}:  # the data itself, which comes last, may have been interrupted
        try:
            import minari
        except ImportError:
            raise DataError('downloading needs Minari: pip install "himatch[minari]"') from None
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it logs every one of its tries
        try:
            minari.download_dataset(dataset_id, force_download=local.exists())
        except Exception as reason:  # several HTTP libraries, by version, and whatever a proxy may say
            raise DataError(
                f"minari:{dataset_id} cannot be downloaded ({one_line(reason)}); check the id and the network, and "
                f"remove {local} if a part of it is there"
            ) from None
    return local


def read_minari(folder: MinariFolder, task: Task | None, allocate: Allocate) -> Packed:
    """Read a Minari folder of any of its three formats."""
    where = str(folder.data)
    _check_space(_space(folder, "observation_space"), where, "the observation")
    discrete = _discrete(folder, where)
    if discrete is None:
        _check_space(_space(folder, "action_space"), where, "the action")
    form = folder.metadata.get("data_format", "hdf5")
    if form not in ("hdf5", "arrow", "parquet"):
        raise DataError(f"{where}: unknown Minari data format {form!r}; known are hdf5, arrow and parquet")
    episodes = _hdf5_episodes(folder) if form == "hdf5" else _arrow_episodes(folder, form)
    total = folder.metadata.get("total_steps")
    if not isinstance(total, int) or isinstance(total, bool) or total < 1:
        raise DataError(f"{where}: metadata does not say how many steps there are (total_steps)")
    if discrete is not None:
        episodes = (_with_rows(episode, discrete) for episode in episodes)
    packed = pack_checked(episodes, total, where, task, allocate)
    stated = isinstance(folder.metadata.get("action_space"), str)  # a Box or Discrete, or it would have been refused
    facts = folder.facts
    facts = replace(
        facts,
        continuous=discrete is None and (stated or facts.continuous),
        discrete=packed.facts.discrete if discrete is None and not stated else discrete,
    )
    return replace(packed, columns=_columns(folder, packed), facts=facts)


def _columns(folder: MinariFolder, packed: Packed) -> dict[str, tuple[str, ...]]:
    """What himatch wrote about the names of columns, as far as these are as many as there are columns."""
    written = folder.written_by_himatch.get("columns")
    named = {}
    for name in ("observations", "actions", "rewards"):
        names, array = written.get(name) if isinstance(written, dict) else None, getattr(packed, name)
        if isinstance(names, list) and array is not None and len(names) == (array.shape[1] if array.ndim == 2 else 1):
            named[name] = tuple(map(str, names))
    return named


def _space(folder: MinariFolder, key: str) -> dict[str, Any] | None:
    """A space as the metadata describe it; ``None`` where they do not."""
    serialized, where = folder.metadata.get(key), str(folder.data)
    if not isinstance(serialized, str):
        return None
    with reading(where):
        space = json.loads(serialized)
    if not isinstance(space, dict):
        raise damaged(where, f"{serialized[:20]!r} does not describe a space")
    return space


def _discrete(folder: MinariFolder, where: str) -> Discrete | None:
    """The actions of a Discrete space."""
    space = _space(folder, "action_space")
    if space is None or space.get("type") != "Discrete":
        return None
    try:
        return Discrete(space.get("n"), space.get("start", 0))  # type: ignore[arg-type]
    except TaskError as reason:
        raise DataError(f"{where}: the action: {reason}") from None


def _with_rows(episode: CheckedEpisode, discrete: Discrete) -> CheckedEpisode:
    """An episode with one-hot rows for the numbers of its actions."""
    try:
        rows = discrete.as_rows(episode.actions, len(episode.actions))
    except TaskError as reason:
        raise DataError(f"{episode.where}: action {reason}") from None
    if rows is None:
        raise DataError(f"{episode.where}: a Discrete action is one number a step, not {episode.actions.shape[1]}")
    return replace(episode, actions=rows)


def _check_space(space: dict[str, Any] | None, where: str, what: str) -> None:
    if space is None:
        return
    kind, shape = space.get("type"), space.get("shape", [0])
    if kind != "Box":
        raise refusal(f"{where}: {what}", f"a {listed([str(kind)])} space", DataError)
    if not isinstance(shape, list):
        raise damaged(where, f"{what} has a space of shape {str(shape)[:20]}")
    if len(shape) != 1:
        raise refusal(f"{where}: {what}", "pixels" if len(shape) == 3 else f"an array of shape {shape}", DataError)


def _hdf5_episodes(folder: MinariFolder) -> Iterator[CheckedEpisode]:
    path = folder.data / MAIN_FILE
    with open_hdf5(path, str(folder.data)) as file:
        for i in range(_episode_count(folder, len(file))):
            where = f"{path}: episode {i}"
            group = file.get(f"episode_{i}")
            if not isinstance(group, Hdf5Group):
                raise DataError(f"{where} is missing; the set is incomplete")
            columns = {}
            for name in COLUMNS:
                column = group.get(name)
                if isinstance(column, Hdf5Group):
                    raise refusal(f"{where}: {name}", "a dictionary or tuple", DataError)
                if column is None:
                    raise DataError(f"{where} has no {name!r} (found: {listed(group.names())})")
                columns[name] = column[...]
            yield _episode(folder, columns, group.attributes(), where)


def _arrow_episodes(folder: MinariFolder, form: str) -> Iterator[CheckedEpisode]:
    try:
        import pyarrow.dataset as arrow
    except ImportError:
        raise DataError(f'{folder.data}: {form} sets need pyarrow: pip install "himatch[arrow]"') from None
    with reading(str(folder.data)):
        stored = [entry for entry in folder.data.iterdir() if entry.is_dir() and entry.name.isdigit()]
    for i in range(_episode_count(folder, len(stored))):
        place = folder.data / str(i)
        where = f"{folder.data}: episode {i}"
        if not place.is_dir():
            raise DataError(f"{where} is missing; the set is incomplete")
        with reading(str(folder.data)):
            table = arrow.dataset(place, format=form, ignore_prefixes=["_", ".", METADATA]).to_table()
            stored_names = table.column_names
        columns = {}
        for name in COLUMNS:
            if name not in stored_names:
                raise DataError(f"{where} has no {name!r} (found: {listed(stored_names)})")
            values = _arrow_column(table[name], name, where)
            # The last row of everything but the observations is padding.
            columns[name] = values if name == "observations" else values[:-1]
        with reading(str(folder.data)):
            attributes = json.loads((place / METADATA).read_text()) if (place / METADATA).is_file() else {}
        yield _episode(folder, columns, attributes if isinstance(attributes, dict) else {}, where)


def _arrow_column(column: Any, name: str, where: str) -> NDArray[Any]:
    """A column of Arrow as an array; observations and actions are lists of one width."""
    from pyarrow.types import is_fixed_size_list, is_integer

    with reading(where):
        values = column.combine_chunks()
    if name not in ("observations", "actions") or is_integer(values.type):
        with reading(where):
            return np.asarray(values.to_numpy(zero_copy_only=False))
    if not is_fixed_size_list(values.type):
        raise refusal(f"{where}: {name}", f"a column of {values.type}", DataError)
    with reading(where):
        numbers = np.asarray(values.flatten().to_numpy(zero_copy_only=False))
    if numbers.size != len(values) * values.type.list_size:
        raise damaged(where, f"some {name} are missing")
    return numbers.reshape(len(values), values.type.list_size)


def _episode_count(folder: MinariFolder, stored: int) -> int:
    count = folder.metadata.get("total_episodes", stored)
    if count != stored:
        raise DataError(f"{folder.data}: metadata names {count!r} episodes, {stored} are stored; the set is incomplete")
    return stored


def _episode(folder: MinariFolder, columns: dict[str, Any], attributes: dict[str, Any], where: str) -> CheckedEpisode:
    observations, actions = columns["observations"], columns["actions"]
    if actions.shape[:1] == (0,):
        raise DataError(f"{where} has no steps; drop it from the data")
    if not observations.shape or not actions.shape or observations.shape[0] != actions.shape[0] + 1:
        raise DataError(
            f"{where}: expected one observation more than actions, got shapes {observations.shape} and {actions.shape}"
        )
    label, has_final = attributes.get("label"), attributes.get("has_final_observation", True)
    if np.ndim(has_final) != 0:
        raise damaged(where, f"has_final_observation has shape {np.shape(has_final)}")
    episode = {
        "observations": observations[:-1],
        "actions": actions,
        "rewards": columns["rewards"] if folder.has_rewards else None,
        "terminations": columns["terminations"],
        "final_observation": observations[-1] if has_final else None,
        "label": label.decode(errors="replace") if isinstance(label, bytes) else label,
    }
    given = {name: value for name, value in episode.items() if value is not None}
    return check_episode(given, where, folder.has_rewards)
