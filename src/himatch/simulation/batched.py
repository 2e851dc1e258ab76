"""Many simulations of one MuJoCo model on native threads, with Gymnasium's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from gymnasium.utils import seeding
from mujoco.batch import Batch
from mujoco.batch import SimulationError as MujocoError
from numpy.typing import ArrayLike, NDArray

from himatch.errors import SimulationError
from himatch.simulation.episodes import Episodes
from himatch.simulation.locomotion import Locomotion, Motion
from himatch.simulation.models import load_model
from himatch.simulation.simulator import Transition
from himatch.tasks import Discrete, Task


class BatchedSimulator:
    """A ``Simulator`` of a known locomotion environment; ``make_simulator`` makes them."""

    def __init__(self, task: Task, environment: Locomotion, count: int, threads: int) -> None:
        self.task, self.count = task, count
        self._environment = environment
        self._parameters = environment.parameters
        self._model = load_model(environment.xml)
        # Contact forces are read off each simulation's own data, which only a persistent batch keeps.
        self._contacts = environment.contact_cost
        self._batch = Batch(self._model, count, min(threads, count), persistent=self._contacts)
        self._qpos, self._qvel, self._ctrl = (self._batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
        # Gymnasium's Ant moves by its torso frame, which MuJoCo leaves one stage behind qpos.
        self._root = self._batch.bind("xpos")[:, 1] if environment.free_root else self._qpos[:, :3]
        if self._contacts:
            self._touching = self._batch.bind("ncon")
            self._forces = np.zeros((count, self._model.nbody, 6))
            self._data = self._batch.get_data(0)
        self._dt = self._model.opt.timestep * environment.frame_skip
        self._start = self._batch.state[0].copy()  # MuJoCo's default state
        self._initial = self._qpos[0].copy(), self._qvel[0].copy()
        self.action_width = int(self._model.nu)
        self.discrete: Discrete | None = None
        self._episodes = Episodes(count, task.horizon)
        self._observations = np.zeros_like(self._observe())

    def __repr__(self) -> str:
        return f"BatchedSimulator({self.task.name}, {self.count} simulations, {self._batch.nthread} threads)"

    @property
    def model(self) -> Any:
        """The ``MjModel`` of every simulation."""
        return self._model

    @property
    def positions(self) -> NDArray[np.float64]:
        """``qpos`` of every simulation, ``(count, nq)``."""
        found: NDArray[np.float64] = self._qpos
        return found

    @property
    def observations(self) -> NDArray[np.float64]:
        """The current observations, ``(count, obs)``."""
        return self._observations

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which simulations are in the middle of an episode."""
        return self._episodes.active

    def reset(self, seeds: Sequence[int], ids: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Start new episodes with Gymnasium's initial noise for these seeds."""
        chosen = self._episodes.checked_ids(ids)
        numbers = self._episodes.checked_seeds(seeds, chosen)
        if not numbers:
            return self._observations[chosen]
        self._batch.state[chosen] = self._start  # what a reset does, without a call to the threads
        for simulation, seed in zip(chosen.tolist(), numbers, strict=True):
            self._qpos[simulation], self._qvel[simulation] = self._initial_state(simulation, seed)
        self._run(self._batch.forward, np.sort(chosen))
        if self._contacts:
            self._forces[chosen] = 0.0  # Gymnasium does not compute them before the first step
        self._episodes.begin(chosen)
        rows = self._observe()[chosen]
        self._observations = self._observations.copy()
        self._observations[chosen] = rows
        return rows

    def _initial_state(self, simulation: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The draws of Gymnasium's ``reset_model``, in its order."""
        generator, _ = seeding.np_random(seed)
        scale = float(self._parameters["reset_noise_scale"][simulation])
        qpos, qvel = self._initial
        qpos = qpos + generator.uniform(-scale, scale, qpos.size)
        if self._environment.gaussian_velocity:
            return qpos, qvel + scale * generator.standard_normal(qvel.size)
        return qpos, qvel + generator.uniform(-scale, scale, qvel.size)

    def rest(self, ids: Sequence[int]) -> None:
        """Take simulations out of stepping until they are reset."""
        self._episodes.rest(self._episodes.checked_ids(ids))

    def step(self, actions: ArrayLike) -> Transition:
        """Step every active simulation."""
        episodes, environment, parameters = self._episodes, self._environment, self._parameters
        sent = episodes.checked_actions(actions, self.action_width)
        active = episodes.active
        everyone = episodes.playing == self.count
        before = self._root.copy()
        if everyone:
            self._ctrl[:] = sent
            self._run(self._batch.step, None, environment.frame_skip)
        elif episodes.playing:
            self._ctrl[episodes.ids] = sent[episodes.ids]
            self._run(self._batch.step, episodes.ids, environment.frame_skip)
        if self._contacts:
            self._read_forces(episodes.ids)

        healthy = terminated = paid = None
        if environment.health is not None:
            paid = healthy = environment.health(self._qpos, self._qvel, parameters)
            terminated = ~healthy & parameters["terminate_when_unhealthy"]
            if environment.fall_pays:
                paid = healthy | parameters["terminate_when_unhealthy"]
        motion = Motion(
            self._qpos,
            self._qvel,
            (self._root - before) / self._dt,
            np.square(sent).sum(axis=1),
            self._contact_effort() if self._contacts else None,
        )
        rewards = environment.reward(motion, parameters, paid)
        if not everyone:
            rewards = np.where(active, rewards, 0.0)
        episodes.advance(terminated)
        self._observations = self._observe()  # of simulations left alone, the same as before
        return Transition(self._observations, rewards, episodes.terminated, episodes.truncated)

    def _observe(self) -> NDArray[np.float64]:
        limit = self._environment.velocity_limit
        velocity = self._qvel if limit is None else np.clip(self._qvel, -limit, limit)
        parts = [self._qpos[:, self._environment.hidden :], velocity]
        if self._environment.contact_observation:
            parts.append(self._clipped_forces()[:, self._environment.contact_body :].reshape(self.count, -1))
        return np.concatenate(parts, axis=1)

    def _read_forces(self, ids: NDArray[np.int32]) -> None:
        """Contact forces as Gymnasium has them: after the last Runge-Kutta stage, which no sensor reads.

        The batch copies out what MuJoCo computed by itself, and these are computed on request only, so simulations
        that touch something are read one by one.
        """
        self._forces[ids] = 0.0
        for simulation in ids[self._touching[ids] > 0].tolist():
            self._batch.get_data(simulation, self._data)
            mujoco.mj_rnePostConstraint(self._model, self._data)
            self._forces[simulation] = self._data.cfrc_ext

    def _clipped_forces(self) -> NDArray[np.float64]:
        low, high = self._parameters["contact_force_range"][:, :, None, None]
        return np.clip(self._forces, low, high)

    def _contact_effort(self) -> NDArray[np.float64]:
        effort: NDArray[np.float64] = np.square(self._clipped_forces()).reshape(self.count, -1).sum(axis=1)
        return effort

    def _run(self, call: Any, ids: NDArray[np.int32] | None, *arguments: int) -> None:
        try:
            call(ids, *arguments)
        except MujocoError as reason:
            raise SimulationError(f"MuJoCo cannot go on with task {self.task.name}: {reason}") from None

    def close(self) -> None:
        """Nothing to do: memory and threads go with the object."""
