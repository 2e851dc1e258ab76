"""A dataset written as a Minari folder that Minari itself opens."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from himatch._runtime.extras import installed_versions
from himatch._runtime.files import check_free, new_folder
from himatch._version import __version__
from himatch.data.dataset import TrajectoryDataset
from himatch.data.minari import MAIN_FILE, METADATA, datasets_root
from himatch.errors import DataError
from himatch.tasks import Discrete
from himatch.tasks.environments import environment_spec
from himatch.tasks.registry import has_versions
from himatch.types import Trajectory

VERSION = re.compile(r"-v\d+$")  # at the end of a Minari id


def write_minari(
    dataset: TrajectoryDataset, out: str | Path, *, overwrite: bool = False, description: str = ""
) -> Path:
    """Write a Minari folder (HDF5) that ``minari.load_dataset`` opens.

    Minari demands T + 1 observations and rewards. Where the log has no final observation the last one is repeated,
    where it has no rewards zeros are written, and the file says so, so that himatch reads back what was there.
    """
    out = Path(out)
    if len(dataset) == 0:
        raise DataError("there are no episodes to write")
    check_out(out, overwrite)
    with new_folder(out, overwrite=overwrite) as partial:
        write_folder(dataset, partial, out.name, description=description)
    return out


def check_out(out: Path, overwrite: bool = False) -> None:
    """Refuse a folder for a dataset, before anything is read or played that is to go there."""
    check_free(out, overwrite)
    if not VERSION.search(out.name) and datasets_root().resolve() in out.resolve().parents:
        raise DataError(f"{out}: Minari lists its sets by version and fails at a name without; call it {out.name}-v0")


def write_folder(
    dataset: TrajectoryDataset,
    folder: Path,
    name: str,
    *,
    description: str = "",
    seeds: Sequence[int] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Fill an empty folder, which is to be called ``name``.

    Parameters
    ----------
    seeds
        Seeds of the episodes' initial states, one each.
    metadata
        More keys for ``metadata.json``, Minari's (``algorithm_name``, ``author``, ``requirements``) or others; those
        of ``himatch`` join what himatch writes there itself.
    """
    import h5py

    data = folder / "data"
    data.mkdir()
    with _Disk(data / MAIN_FILE, "w+") as disk:
        with h5py.File(disk, "w", track_order=True) as file:
            for i, trajectory in enumerate(dataset):
                group = file.create_group(f"episode_{i}")
                _write_episode(group, i, trajectory, dataset.discrete)
                if seeds is not None:
                    group.attrs["seed"] = seeds[i]
                disk.check()
        disk.check()
    more = dict(metadata or {})
    facts = _metadata(dataset, name, description)
    facts["himatch"] |= more.pop("himatch", {})
    facts |= {**more, "dataset_size": round((data / MAIN_FILE).stat().st_size / 1e6, 1)}
    (data / METADATA).write_text(json.dumps(facts, indent=1))


class _Disk(io.FileIO):
    """A file whose writes fail only in ``check``: HDF5 crashes when it cannot write what it has in hand."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write all of it, or keep the reason why not."""
        rest = memoryview(data)
        size = rest.nbytes
        while self.failure is None and rest.nbytes:
            try:
                rest = rest[super().write(rest) :]
            except OSError as reason:
                self.failure = reason
        return size

    def truncate(self, size: int | None = None, /) -> int:
        """Cut or extend, or keep the reason why not."""
        try:
            return super().truncate(size)
        except OSError as reason:
            self.failure = self.failure or reason
            return size or 0

    def check(self) -> None:
        """Raise what went wrong."""
        if self.failure is not None:
            raise self.failure


def _write_episode(group: Any, i: int, trajectory: Trajectory, discrete: Discrete | None) -> None:
    steps, final = len(trajectory), trajectory.final_observation
    group.attrs.update({"id": i, "total_steps": steps})
    if final is None:
        group.attrs["has_final_observation"] = False
        final = trajectory.observations[-1]
    if trajectory.label is not None:
        group.attrs["label"] = trajectory.label
    ended = np.zeros((2, steps), dtype=bool)
    ended[0 if trajectory.terminated else 1, -1] = True
    columns = {
        "observations": np.concatenate([trajectory.observations, final[None]]),
        "actions": trajectory.actions if discrete is None else discrete.numbers(trajectory.actions),
        "rewards": np.zeros(steps, np.float32) if trajectory.rewards is None else trajectory.rewards,
        "terminations": ended[0],
        "truncations": ended[1],
    }
    for name, column in columns.items():
        # Byte shuffling before a light deflate: a third smaller than without, at little cost in time. Columns of short
        # episodes would lose more to HDF5's index of the compressed pieces than they gain.
        worth = column.ndim == 2 and column.nbytes >= 2**14
        packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if worth else {}
        group.create_dataset(name, data=column, **packed)


def _metadata(dataset: TrajectoryDataset, name: str, description: str) -> dict[str, Any]:
    task, first, discrete = dataset.task, dataset[0], dataset.discrete
    safe = re.sub(r"[^-\w]", "-", name)
    low = -np.inf if task.action_low is None else task.action_low
    high = np.inf if task.action_high is None else task.action_high
    env_id = dataset.env_id
    if env_id is None and task.env_id is not None and not has_versions(task.env_id):
        env_id = task.env_id  # of several versions, the task's would be a guess
    metadata: dict[str, Any] = {
        "total_episodes": len(dataset),
        "total_steps": dataset.steps,
        "data_format": "hdf5",
        "observation_space": _box(-np.inf, np.inf, first.observations.shape[1]),
        "action_space": _box(low, high, first.actions.shape[1]) if discrete is None else _choices(discrete),
        "dataset_id": safe if VERSION.search(safe) else f"{safe}-v0",
        "minari_version": _minari_version(),
        "description": description or f"Written by himatch {__version__} from {dataset.name}.",
        "himatch": {
            "version": __version__,
            "task": task.name,
            "env_id": env_id,
            "rewards": dataset.has_rewards,
            "content_hash": dataset.content_hash,
            **_known(dataset),
        },
    }
    if env_id is not None:
        spec = environment_spec(env_id, task.env_kwargs if task.env_id == env_id else {})
        metadata |= {} if spec is None else {"env_spec": spec}
    return metadata


def _known(dataset: TrajectoryDataset) -> dict[str, Any]:
    """Names of columns, units and control rate, as far as they are known."""
    known = {"columns": dict(dataset.packed.columns), "units": dict(dataset.units), "rate": dataset.rate}
    return {name: value for name, value in known.items() if value}


def _box(low: Any, high: Any, width: int) -> str:
    bounds = [np.broadcast_to(np.asarray(b, dtype=np.float32), (width,)).tolist() for b in (low, high)]
    return json.dumps({"type": "Box", "dtype": "float32", "shape": [width], "low": bounds[0], "high": bounds[1]})


def _choices(discrete: Discrete) -> str:
    return json.dumps({"type": "Discrete", "dtype": "int64", "start": discrete.start, "n": discrete.count})


def _minari_version() -> str:
    """Minari accepts sets of its own or an older minor version."""
    return installed_versions("minari").get("minari", "0.5.0")
