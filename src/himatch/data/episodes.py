"""Lists of episodes: pickles, tables, and trajectories made in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data.checks import as_array, check_columns, flat_column, observation_columns, whole_numbers
from himatch.data.ends import EndFlags, flag_columns
from himatch.data.facts import Facts
from himatch.data.packed import Allocate, Packed, in_memory
from himatch.data.wording import listed
from himatch.errors import DataError
from himatch.tasks import Task
from himatch.types import Array, Trajectory

MOST = 10  # lines of a message


def pack_trajectories(
    trajectories: Iterable[Trajectory | Mapping[str, Any]], task: Task | None, allocate: Allocate = in_memory
) -> Packed:
    """Pack episodes made in Python: trajectories, or dictionaries of arrays as pickles hold them."""
    in_turn = not isinstance(trajectories, Sequence)
    episodes: list[dict[str, Any]] = []
    for episode in trajectories:
        if isinstance(episode, Trajectory):
            columns: Mapping[str, Any] = _columns(episode)
        elif isinstance(episode, Mapping):
            columns = deepcopy(episode) if in_turn else episode  # a generator may fill its arrays anew
        else:
            raise DataError(
                f"a list of episodes holds Trajectory objects or dictionaries of arrays, not {type(episode).__name__}"
            )
        episodes.append({name: value for name, value in columns.items() if value is not None})
    return pack_episodes(episodes, "trajectories", task, allocate)


def _columns(trajectory: Trajectory) -> dict[str, Any]:
    """A trajectory as a dictionary of arrays; what it does not have is ``None``."""
    return {
        "observations": trajectory.observations,
        "actions": trajectory.actions,
        "rewards": trajectory.rewards,
        "final_observation": trajectory.final_observation,
        "label": trajectory.label,
        "terminals": np.arange(len(trajectory)) == len(trajectory) - 1 if trajectory.terminated else None,
    }


def pack_episodes(
    episodes: Sequence[Mapping[str, Any]],
    where: str,
    task: Task | None,
    allocate: Allocate = in_memory,
    names: Iterable[object] | None = None,
) -> Packed:
    """Pack a list of dictionaries with ``observations``, ``actions`` and whatever else the family's files hold.

    Messages call the episodes by their ``names``, or count them.
    """
    if not episodes:
        raise DataError(f"{where}: there are no episodes in it")
    rewarded = "rewards" in episodes[0]
    horizon = None if task is None else task.horizon
    named = zip(range(len(episodes)) if names is None else names, episodes, strict=True)
    checked, wrong = list[CheckedEpisode](), list[str]()
    for name, episode in named:
        try:
            checked.append(check_episode(episode, f"{where}: episode {name}", rewarded, horizon))
        except DataError as reason:  # others may be wrong, too
            wrong.append(str(reason))
    if len(wrong) == 1:
        raise DataError(wrong[0])
    if wrong:
        more = [f"... and {len(wrong) - MOST} more"] if len(wrong) > MOST else []
        raise DataError("\n  ".join([f"{where}: {len(wrong)} episodes cannot be read", *wrong[:MOST], *more]))
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
    row, discrete = 0, False
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
        discrete |= whole_numbers(episode.actions)
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
        facts=Facts(discrete="auto" if discrete else None),
    )


def check_episode(episode: Mapping[str, Any], where: str, rewarded: bool, horizon: int | None = None) -> CheckedEpisode:
    """Refuse an episode whose columns are missing, do not fit together or go on after a termination."""
    for name in ("observations", "actions"):
        if name not in episode:
            raise DataError(f"{where} has no {name!r} (found: {listed(sorted(episode))})")
    if ("rewards" in episode) != rewarded:
        raise DataError(f"{where}: some episodes have rewards and others have not; they cannot be one dataset")
    observations, actions = (as_array(episode[name], name, where) for name in ("observations", "actions"))
    final = episode.get("final_observation")
    if observations.ndim and actions.ndim and len(observations) == len(actions) + 1 > 1:
        # As Gym's loop leaves them, with the observation after the last action.
        observations, final = observations[:-1], observations[-1] if final is None else final
    flags = {n: _every_step(as_array(f, n, where), actions.shape[:1]) for n, f in flag_columns(episode).items()}
    others = {n: as_array(episode[n], n, where) for n in ("rewards", "next_observations") if n in episode}
    check_columns(observations, actions, [*others.items(), *flags.items()], where)
    actions = actions[:, None] if actions.ndim == 1 else actions
    ends = EndFlags.read(flags, where)
    if ends.terminals is not None and ends.terminals[:-1].any():
        step = int(np.argmax(ends.terminals))
        raise DataError(f"{where}: terminates at step {step} and goes on; it is not one episode")
    if final is None and "next_observations" in others:
        final = others["next_observations"][-1]
    final = None if final is None else as_array(final, "final observations", where)
    if final is not None and (final.shape != observations.shape[1:] or final.dtype.kind not in "fiub"):
        raise DataError(f"{where}: the final observation ({final.dtype} of shape {final.shape}) is not like the others")
    label = episode.get("label")
    return CheckedEpisode(
        observations,
        actions,
        flat_column(others["rewards"], "rewards", where) if rewarded else None,
        bool(ends.terminated(np.array([len(actions) - 1]), horizon)[0]),
        final,
        None if label is None else str(label),
        where,
    )


def _every_step(flag: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A flag for each step; one for the whole episode belongs to its last."""
    if flag.ndim or not shape:  # actions without a shape are refused
        return flag
    flags = np.zeros(shape, flag.dtype)
    flags[-1:] = flag
    return flags
