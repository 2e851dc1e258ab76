"""Lists of episodes: ``.npz`` files, pickles, dictionaries of arrays and trajectories made in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.checks import as_array, check_columns, flat_column, listed, observation_columns
from himatch.data.flat import read_flat
from himatch.data.packed import Allocate, Packed, in_memory
from himatch.errors import DataError
from himatch.files import reading
from himatch.tasks import Task
from himatch.types import Array, Trajectory

END_FLAGS = ("terminals", "terminations", "dones")


def read_npz(path: Path, task: Task | None, allocate: Allocate) -> Packed:
    """Read an ``.npz`` with ``observations``, ``actions``, optionally ``rewards``, and ``lengths`` or end flags."""
    where = str(path)
    # NumPy leaves the file open where it cannot read it, so it is opened here.
    with reading(where), path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise DataError(f"{where}: {name} is not an array; write the file with numpy.savez")
    return read_arrays(arrays, where, task, allocate)


def read_arrays(arrays: Mapping[str, Any], where: str, task: Task | None, allocate: Allocate = in_memory) -> Packed:
    """Read flat arrays; ``lengths`` says where episodes end, else D4RL's flags do."""
    arrays = {n: as_array(a, n, where) if isinstance(a, (list, tuple)) else a for n, a in arrays.items()}
    if "lengths" not in arrays:
        return read_flat(arrays, where, task, allocate)
    lengths = np.asarray(arrays["lengths"])
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not len(lengths):
        raise DataError(f"{where}: lengths must be whole numbers, one per episode")
    if (lengths < 1).any():
        raise DataError(f"{where}: episode {int(np.argmin(lengths))} has no steps; drop it from the data")
    stops = np.cumsum(lengths)
    names = ("observations", "actions", "rewards", "next_observations", *END_FLAGS)
    stepwise = {name: arrays[name] for name in names if name in arrays}
    for name, array in stepwise.items():
        if array.shape[:1] != (stops[-1],):
            raise DataError(f"{where}: lengths add up to {stops[-1]} steps, but {name} has shape {array.shape}")
    labels, finals = arrays.get("labels"), arrays.get("final_observations")
    for name, given in (("labels", labels), ("final_observations", finals)):
        if given is not None and given.shape[:1] != lengths.shape:
            raise DataError(f"{where}: {len(lengths)} episodes, but {name} has shape {given.shape}")
    episodes = []
    for i, (stop, steps) in enumerate(zip(stops, lengths, strict=True)):
        rows = slice(stop - steps, stop)
        episode = {name: array[rows] for name, array in stepwise.items()}
        if finals is not None:
            episode["final_observation"] = finals[i]
        if labels is not None and str(labels[i]):
            episode["label"] = labels[i]
        episodes.append(episode)
    return pack_episodes(episodes, where, task, allocate)


def pack_trajectories(trajectories: Iterable[Trajectory], task: Task | None, allocate: Allocate = in_memory) -> Packed:
    """Pack trajectories made in Python."""
    episodes: list[dict[str, Any]] = []
    for trajectory in trajectories:
        if not isinstance(trajectory, Trajectory):
            raise DataError(f"a list of episodes holds Trajectory objects, not {type(trajectory).__name__}")
        episode: dict[str, Any] = {"observations": trajectory.observations, "actions": trajectory.actions}
        if trajectory.rewards is not None:
            episode["rewards"] = trajectory.rewards
        if trajectory.final_observation is not None:
            episode["final_observation"] = trajectory.final_observation
        if trajectory.label is not None:
            episode["label"] = trajectory.label
        episode["terminals"] = np.arange(len(trajectory)) == len(trajectory) - 1 if trajectory.terminated else None
        episodes.append({name: value for name, value in episode.items() if value is not None})
    return pack_episodes(episodes, "trajectories", task, allocate)


def pack_episodes(
    episodes: Sequence[Mapping[str, Any]], where: str, task: Task | None, allocate: Allocate = in_memory
) -> Packed:
    """Pack a list of dictionaries with ``observations``, ``actions`` and whatever else the family's files hold."""
    if not episodes:
        raise DataError(f"{where}: there are no episodes in it")
    rewarded = "rewards" in episodes[0]
    checked = [check_episode(episode, f"{where}: episode {i}", rewarded) for i, episode in enumerate(episodes)]
    return pack_checked(checked, sum(len(episode.actions) for episode in checked), where, task, allocate)


@dataclass(frozen=True)
class CheckedEpisode:
    """One episode whose columns fit together, before its rows are copied."""

    observations: NDArray[Any]
    actions: NDArray[Any]
    rewards: NDArray[Any] | None
    terminated: bool
    final: NDArray[Any] | None
    label: str | None
    where: str


def pack_checked(
    episodes: Iterable[CheckedEpisode], total: int, where: str, task: Task | None, allocate: Allocate
) -> Packed:
    """Copy episode after episode into arrays of ``total`` rows; a generator's are in memory one at a time."""
    observations = actions = rewards = None
    seen: list[CheckedEpisode] = []
    finals: list[Array] = []
    lengths: list[int] = []
    row = 0
    for episode in episodes:
        width, steps = observation_columns(episode.observations.shape[1], task, episode.where), len(episode.actions)
        if observations is None or actions is None:
            observations = allocate("observations", (total, width))
            actions = allocate("actions", (total, episode.actions.shape[1]))
            rewards = None if episode.rewards is None else allocate("rewards", (total,))
        if width != observations.shape[1] or episode.actions.shape[1] != actions.shape[1]:
            raise DataError(f"{episode.where}: its widths differ from those of the episodes before")
        if row + steps > total:
            raise DataError(f"{where}: metadata names {total} steps, the episodes hold more")
        rows = slice(row, row + steps)
        with np.errstate(over="ignore", invalid="ignore"):
            observations[rows] = episode.observations[:, :width]
            actions[rows] = episode.actions
            if rewards is not None:
                rewards[rows] = episode.rewards
            final = np.zeros(width) if episode.final is None else episode.final[:width]
            finals.append(np.asarray(final, dtype=np.float32))
        # What is kept of an episode holds no rows.
        nothing = np.empty((0, 0))
        seen.append(replace(episode, observations=nothing, actions=nothing, rewards=None))
        lengths.append(steps)
        row += steps
    if observations is None or actions is None:
        raise DataError(f"{where}: there are no episodes in it")
    if row != total:
        raise DataError(f"{where}: metadata names {total} steps, the episodes hold {row}; the set is incomplete")
    return Packed(
        observations,
        actions,
        rewards,
        np.array(lengths, dtype=np.int64),
        np.array([episode.terminated for episode in seen], dtype=bool),
        np.stack(finals),
        np.array([episode.final is not None for episode in seen], dtype=bool),
        tuple(episode.label for episode in seen),
    )


def check_episode(episode: Mapping[str, Any], where: str, rewarded: bool) -> CheckedEpisode:
    """Refuse an episode whose columns are missing, do not fit together or go on after a termination."""
    for name in ("observations", "actions"):
        if name not in episode:
            raise DataError(f"{where} has no {name!r} (found: {listed(sorted(episode))})")
    if ("rewards" in episode) != rewarded:
        raise DataError(f"{where}: some episodes have rewards and others have not; they cannot be one dataset")
    flags = next((name for name in END_FLAGS if name in episode), None)
    columns = {name: as_array(episode[name], name, where) for name in ("observations", "actions")}
    others = {
        name: as_array(episode[name], name, where)
        for name in ("rewards", "next_observations", flags)
        if name and name in episode
    }
    check_columns(columns["observations"], columns["actions"], list(others.items()), where)
    terminated = False
    if flags is not None:
        ended = flat_column(others[flags], flags, where).astype(bool)
        if ended[:-1].any():
            raise DataError(f"{where}: terminates at step {int(np.argmax(ended))} and goes on; it is not one episode")
        terminated = bool(ended[-1])
    final = episode.get("final_observation")
    if final is None and "next_observations" in others:
        final = others["next_observations"][-1]
    final = None if final is None else as_array(final, "final observations", where)
    if final is not None and (final.shape != columns["observations"].shape[1:] or final.dtype.kind not in "fiub"):
        raise DataError(f"{where}: the final observation ({final.dtype} of shape {final.shape}) is not like the others")
    label = episode.get("label")
    return CheckedEpisode(
        columns["observations"],
        columns["actions"],
        flat_column(others["rewards"], "rewards", where) if rewarded else None,
        terminated,
        final,
        None if label is None else str(label),
        where,
    )
