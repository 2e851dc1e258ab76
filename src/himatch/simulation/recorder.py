"""Episodes recorded in a simulator, as trajectories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch.errors import SimulationError
from himatch.simulation.simulator import Simulator
from himatch.types import Trajectory

Behaviour = Callable[[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]], ArrayLike]
"""What acts: ``(observations (count, obs), episodes (count,), steps (count,)) -> actions (count, act)``.

``episodes`` says which episode each simulation plays (-1: none, its row is stale and its action ignored), ``steps``
how many steps of it have been played.
"""


def record(
    simulator: Simulator,
    behaviour: Behaviour,
    seeds: Sequence[int],
    *,
    labels: Sequence[str | None] | str | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Trajectory]:
    """Play one episode for each seed.

    Episodes are dealt to the simulations in order; a simulation whose episode has ended takes the next one. Where
    the simulations have different settings, give one seed for each, so that episode i is played in simulation i.

    Parameters
    ----------
    simulator
        Whatever it was doing is given up.
    behaviour
        Acts in all simulations at once; its actions are sent, and recorded, in single precision.
    seeds
        Of the initial states.
    labels
        One for each episode, or one for all.
    progress
        Called with the number of newly finished episodes.

    Returns
    -------
    list of Trajectory
        In the order of the seeds.
    """
    recording = _Recording(simulator, list(seeds), _labels(labels, len(seeds)))
    while not recording.complete:
        ended = recording.step(behaviour)
        if ended and progress is not None:
            progress(ended)
    return recording.trajectories()


class _Recording:
    """Which episode each simulation plays, how far it is, and the episodes that have ended."""

    def __init__(self, simulator: Simulator, seeds: list[int], labels: list[str | None]) -> None:
        self._simulator, self._seeds, self._labels = simulator, seeds, labels
        self._tape = _Tape.of(simulator)
        self._finished: dict[int, Trajectory] = {}
        self._episodes = np.full(simulator.count, -1, dtype=np.int64)
        self._steps = np.zeros(simulator.count, dtype=np.int64)
        self._dealt = 0
        simulator.rest(range(simulator.count))
        self._deal(np.arange(simulator.count))

    @property
    def complete(self) -> bool:
        return len(self._finished) == len(self._seeds)

    def trajectories(self) -> list[Trajectory]:
        return [self._finished[episode] for episode in range(len(self._seeds))]

    def step(self, behaviour: Behaviour) -> int:
        """One step of every episode in progress; the number of those that it ended."""
        simulator, steps = self._simulator, self._steps
        playing = np.flatnonzero(self._episodes >= 0)
        observations = simulator.observations
        returned = behaviour(observations.copy(), self._episodes.copy(), steps.copy())
        actions = _checked(returned, simulator, self._episodes, steps)
        transition = simulator.step(actions)
        self._tape.write(playing, steps[playing], observations, actions, transition.rewards)
        steps[playing] += 1
        ended = playing[(transition.terminated | transition.truncated)[playing]]
        for slot in ended.tolist():
            episode, final = int(self._episodes[slot]), transition.observations[slot]
            terminated, label = bool(transition.terminated[slot]), self._labels[episode]
            self._finished[episode] = self._tape.read(slot, int(steps[slot]), final, terminated, label)
        if ended.size:
            self._deal(ended)
        return int(ended.size)

    def _deal(self, slots: NDArray[np.int64]) -> None:
        """Give simulations that play nothing the next episodes; where there are none left they rest."""
        waiting = self._seeds[self._dealt : self._dealt + slots.size]
        again = slots[: len(waiting)]
        self._steps[slots], self._episodes[slots] = 0, -1
        self._episodes[again] = np.arange(self._dealt, self._dealt + len(waiting))
        self._simulator.reset(waiting, again.tolist())
        self._dealt += len(waiting)


@dataclass(frozen=True)
class _Tape:
    """Room for one whole episode in every simulation."""

    observations: NDArray[np.float32]  # (count, horizon, obs)
    actions: NDArray[np.float32]  # (count, horizon, act)
    rewards: NDArray[np.float32]  # (count, horizon)

    @classmethod
    def of(cls, simulator: Simulator) -> _Tape:
        room = simulator.count, simulator.task.horizon
        return cls(
            np.empty((*room, simulator.observations.shape[1]), dtype=np.float32),
            np.empty((*room, simulator.action_width), dtype=np.float32),
            np.empty(room, dtype=np.float32),
        )

    def write(
        self,
        slots: NDArray[np.int64],
        steps: NDArray[np.int64],
        observations: NDArray[np.float64],
        actions: NDArray[np.float32],
        rewards: NDArray[np.float64],
    ) -> None:
        self.observations[slots, steps] = observations[slots]
        self.actions[slots, steps] = actions[slots]
        self.rewards[slots, steps] = rewards[slots]

    def read(
        self, slot: int, steps: int, final: NDArray[np.float64], terminated: bool, label: str | None
    ) -> Trajectory:
        return Trajectory(
            self.observations[slot, :steps].copy(),
            self.actions[slot, :steps].copy(),
            self.rewards[slot, :steps].copy(),
            final.astype(np.float32),
            terminated,
            label,
        )


def _checked(
    returned: ArrayLike, simulator: Simulator, episodes: NDArray[np.int64], steps: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The behaviour's actions, refused with the episode and the step where they are bad."""
    shape = simulator.count, simulator.action_width
    playing = np.flatnonzero(episodes >= 0)
    where = f"episode {episodes[playing[0]]}, step {steps[playing[0]]}"
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            actions = np.asarray(returned, dtype=np.float32)
    except (TypeError, ValueError):
        raise SimulationError(f"the behaviour must return numbers of shape {shape} ({where})") from None
    if actions.shape != shape:
        raise SimulationError(f"the behaviour must return actions of shape {shape}, got {actions.shape} ({where})")
    finite = np.isfinite(actions[playing]).all(axis=1)
    if not finite.all():
        slot = playing[~finite][0]
        raise SimulationError(
            f"the behaviour returned NaN or infinity in episode {episodes[slot]} at step {steps[slot]}"
        )
    return actions


def _labels(labels: Sequence[str | None] | str | None, count: int) -> list[str | None]:
    if labels is None or isinstance(labels, str):
        return [labels] * count
    if len(labels) != count:
        raise SimulationError(f"{len(labels)} labels for {count} episodes; give one each, or one for all")
    return list(labels)
