"""The dataset: a sequence of trajectories over packed arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.data.describe import as_html, columns, some
from himatch.data.extremes import Extremes, find_extremes
from himatch.data.packed import Packed
from himatch.data.wording import without_folders
from himatch.errors import DataError
from himatch.tasks import Discrete, Task
from himatch.types import Array, Trajectory


class TrajectoryDataset(Sequence[Trajectory]):
    """Episodes of one task. Indexing gives a :class:`Trajectory`; slices, masks and index arrays give datasets.

    Selections share the packed arrays, so a split of a set that is larger than memory costs nothing. What must stay
    that cheap reads episodes, :meth:`blocks`, or ``packed`` by :attr:`shifts`: the arrays of all steps may be copies.
    """

    def __init__(
        self,
        packed: Packed,
        task: Task,
        *,
        source: str = "arrays",
        env_id: str | None = None,
        episodes: NDArray[np.int64] | None = None,
    ) -> None:
        self._packed = packed
        self._episodes = np.arange(len(packed.lengths)) if episodes is None else episodes
        self.task = task
        self.source = source
        self.env_id = env_id
        """The environment the data was recorded in, where the source says so."""

    # -- the sequence -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._episodes)

    @overload
    def __getitem__(self, key: int) -> Trajectory: ...
    @overload
    def __getitem__(self, key: slice | ArrayLike) -> TrajectoryDataset: ...
    def __getitem__(self, key: int | slice | ArrayLike) -> Trajectory | TrajectoryDataset:
        if isinstance(key, (int, np.integer)):
            if not -len(self) <= key < len(self):
                raise IndexError(f"episode {key} of {len(self)}")
            return self._trajectory(int(self._episodes[key]))
        chosen = self._episodes[key] if isinstance(key, slice) else self._episodes[_index(key)]
        return TrajectoryDataset(self._packed, self.task, source=self.source, env_id=self.env_id, episodes=chosen)

    def __iter__(self) -> Iterator[Trajectory]:
        return (self._trajectory(int(episode)) for episode in self._episodes)

    def _trajectory(self, episode: int) -> Trajectory:
        packed = self._packed
        rows = slice(packed.starts[episode], packed.starts[episode] + packed.lengths[episode])
        return Trajectory(
            _read_only(packed.observations[rows]),
            _read_only(packed.actions[rows]),
            None if packed.rewards is None else _read_only(packed.rewards[rows]),
            packed.final_observations[episode] if packed.has_final[episode] else None,
            bool(packed.terminated[episode]),
            packed.labels[episode],
        )

    def filter(self, keep: Callable[[Trajectory], bool]) -> TrajectoryDataset:
        """The episodes for which ``keep`` says True."""
        return self[np.fromiter((keep(trajectory) for trajectory in self), dtype=bool, count=len(self))]

    def holds(self, other: TrajectoryDataset) -> NDArray[np.bool_]:
        """Which episodes of another selection from the same data are in this one too, ``(E,)``."""
        return np.isin(other._episodes, self._episodes) & (other._packed is self._packed)

    def __repr__(self) -> str:
        parts = [f"{len(self)} episodes", f"{self.steps} steps", f"task {self.task.name!r}"]
        if self.has_rewards and len(self):
            parts.append(f"returns {self.returns.min():.0f} to {self.returns.max():.0f}")
        if self.discrete is not None:
            parts.append(f"{self.discrete.count} discrete actions")
        if self.rate is not None:
            parts.append(f"{self.rate:g} Hz")
        return f"TrajectoryDataset({', '.join(parts)}, source {self.source!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        facts = {"source": self.name, "task": self.task.name}
        if self.env_id is not None:
            facts["environment"] = self.env_id
        facts |= {"episodes": f"{len(self):,}", "steps": f"{self.steps:,}"}
        if len(self):
            facts["lengths"] = f"{self.lengths.min():,} to {self.lengths.max():,}"
        facts["observations"] = columns(self.observation_names, self.observation_width, self.units)
        facts["actions"] = columns(self.action_names, self.action_width, self.units)
        if self.discrete is not None:
            facts["actions"] = str(self.discrete)
        if self.rate is not None:
            facts["control rate"] = f"{self.rate:g} Hz"
        if not self.has_rewards:
            facts["returns"] = "no rewards"
        elif len(self):
            facts["returns"] = f"{self.returns.min():,.1f} to {self.returns.max():,.1f}"
        if labels := sorted({label for label in self.labels if label is not None}):
            facts["labels"] = some(labels)
        return as_html("TrajectoryDataset", facts)

    # -- per episode --------------------------------------------------------------------------------------------

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of every episode, ``(E,)``."""
        return self._packed.lengths[self._episodes]

    @property
    def terminated(self) -> NDArray[np.bool_]:
        """Which episodes ended by termination, ``(E,)``."""
        return self._packed.terminated[self._episodes]

    @property
    def final_observations(self) -> Array:
        """What was seen after the last action of every episode, ``(E, obs)``; zero where ``has_final`` says no."""
        return np.where(self.has_final[:, None], self._packed.final_observations[self._episodes], np.float32(0.0))

    @property
    def has_final(self) -> NDArray[np.bool_]:
        """Of which episodes that is known, ``(E,)``."""
        return self._packed.has_final[self._episodes]

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The label of every episode."""
        return tuple(self._packed.labels[episode] for episode in self._episodes)

    @cached_property
    def returns(self) -> NDArray[np.float64]:
        """Undiscounted return of every episode, ``(E,)``."""
        if self._packed.rewards is None:
            raise DataError(f"{self.source} has no rewards, so its episodes have no return")
        starts, lengths, rewards = self._packed.starts, self._packed.lengths, self._packed.rewards
        return np.array(
            [rewards[starts[e] : starts[e] + lengths[e]].sum(dtype=np.float64) for e in self._episodes],
            dtype=np.float64,
        )

    def episode_name(self, number: int) -> str:
        """An episode for a message: what its source calls it, else its number here."""
        return self._packed.places.episode(int(self._episodes[number]), number)

    @property
    def episode_names(self) -> tuple[str | None, ...]:
        """What the source calls every episode; ``None`` where it does not (all but tables)."""
        return tuple(self._packed.places.name(int(episode)) for episode in self._episodes)

    @property
    def has_rewards(self) -> bool:
        """Whether the log holds rewards."""
        return self._packed.rewards is not None

    # -- where the steps lie ------------------------------------------------------------------------------------

    @property
    def packed(self) -> Packed:
        """The arrays that all selections share; of them this one may be a part."""
        return self._packed

    @property
    def packed_episodes(self) -> NDArray[np.int64]:
        """Which episodes of ``packed`` this selection has, ``(E,)``."""
        return self._episodes

    @property
    def mapped(self) -> bool:
        """Whether the steps lie in mapped files instead of memory."""
        return isinstance(self._packed.observations, np.memmap)

    @property
    def shifts(self) -> NDArray[np.int64]:
        """What to add to a row of every episode, counted in this selection, for its row in ``packed``, ``(E,)``."""
        return self._packed.starts[self._episodes] - (np.cumsum(self.lengths) - self.lengths)

    def blocks(self, array: Array, size: int) -> Iterator[Array]:
        """The rows that one of the arrays in ``packed`` has for this selection, in order, up to ``size`` at a time."""
        ends, shifts, steps = np.cumsum(self.lengths), self.shifts, self.steps
        for first in range(0, steps, size):
            rows = np.arange(first, min(first + size, steps))
            yield array[rows + shifts[np.searchsorted(ends, rows, side="right")]]

    # -- all steps, episode after episode -----------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Steps of all episodes together."""
        return int(self.lengths.sum())

    @property
    def observation_width(self) -> int:
        """Numbers in an observation."""
        return int(self._packed.observations.shape[1])

    @property
    def action_width(self) -> int:
        """Numbers in an action."""
        return int(self._packed.actions.shape[1])

    @property
    def name(self) -> str:
        """The source without its folders, for others; joined ones are all named."""
        return without_folders(self.source)

    @property
    def observation_names(self) -> tuple[str, ...]:
        """What the source calls the numbers of an observation; empty where it does not (all but tables)."""
        return self._packed.columns.get("observations", ())

    @property
    def action_names(self) -> tuple[str, ...]:
        """What the source calls the numbers of an action; empty where it does not (all but tables)."""
        return self._packed.columns.get("actions", ())

    @property
    def discrete(self) -> Discrete | None:
        """Discrete actions, of which ``actions`` are one-hot rows; ``None`` where they are continuous."""
        return self.task.discrete

    @property
    def rate(self) -> float | None:
        """Control steps a second: the source's, or its task's where the source has no time of its own."""
        facts = self._packed.facts
        return self.task.rate if facts.rate is None and not facts.timed else facts.rate

    @property
    def units(self) -> Mapping[str, str]:
        """What the columns are measured in, by name, where the source says so."""
        return self._packed.facts.units

    @property
    def mapping_files(self) -> tuple[str, ...]:
        """The files that said which column of a table holds what."""
        return self._packed.facts.mappings

    @property
    def observations(self) -> Array:
        """``(steps, obs)``; a view where the selection is one run of episodes, else a copy."""
        return self._rows(self._packed.observations)

    @property
    def actions(self) -> Array:
        """``(steps, act)``; a view where the selection is one run of episodes, else a copy."""
        return self._rows(self._packed.actions)

    @property
    def rewards(self) -> Array | None:
        """``(steps,)``, or ``None`` for a log without rewards."""
        return None if self._packed.rewards is None else self._rows(self._packed.rewards)

    def _rows(self, array: Array) -> Array:
        if len(self) == 0:
            return array[:0]
        starts, lengths = self._packed.starts[self._episodes], self.lengths
        if np.array_equal(starts[1:], starts[:-1] + lengths[:-1]):
            return _read_only(array[starts[0] : starts[-1] + lengths[-1]])
        return np.concatenate([array[s : s + n] for s, n in zip(starts, lengths, strict=True)])

    # -- what may be wrong with them ----------------------------------------------------------------------------

    def extremes(self) -> tuple[Extremes, ...]:
        """Columns with values far beyond the others, which stretch bins and scales; found once, and kept."""
        return self._extremes

    @cached_property
    def _extremes(self) -> tuple[Extremes, ...]:
        return find_extremes(self)

    # -- identity -----------------------------------------------------------------------------------------------

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything the episodes hold, whatever file they came from and however they are stored.

        Of mapped arrays that were damaged there is none: they are refused here, where all of them is read.
        """
        if self._packed.files is not None:
            self._packed.files.verify()
        digest = hashlib.sha256()
        for trajectory in self:
            arrays = (
                trajectory.observations,
                trajectory.actions,
                trajectory.rewards,
                trajectory.final_observation,
            )
            shapes = [None if array is None else array.shape for array in arrays]
            digest.update(f"{shapes} {trajectory.terminated} {trajectory.label!r}\n".encode())
            for array in arrays:
                if array is not None:
                    digest.update(np.ascontiguousarray(array).astype("<f4", copy=False).data)
        return digest.hexdigest()


def _read_only(view: Array) -> Array:
    """The view, which a trajectory then need not copy."""
    view.flags.writeable = False
    return view


def _index(key: ArrayLike) -> NDArray[np.int64] | NDArray[np.bool_]:
    index = np.asarray(key)
    if index.ndim != 1 or (index.size and index.dtype.kind not in "iub"):
        raise TypeError(f"episodes are chosen by a number, a slice, a list of numbers or a mask, not by {key!r}")
    return index if index.dtype == bool else index.astype(np.int64)
