"""Transitions for a stack of agents: simulations of several tasks side by side, as arrays padded to the widest."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.errors import HimatchError
from himatch.experts.replay_buffer import Experience
from himatch.experts.run import AgentSpec
from himatch.experts.sac import SAC
from himatch.simulation import Simulator, make_simulator
from himatch.tasks import Task, get_task

RECENT = 20  # episodes over which returns are averaged

Floats = NDArray[np.float32]


class World:
    """All simulations of one task: agents one after the other, ``copies`` of each."""

    def __init__(self, task: Task, agents: Sequence[AgentSpec], copies: int, threads: int) -> None:
        assert task.action_width is not None
        self.task, self.copies = task, copies
        settings = [dict(agent.settings) for agent in agents for _ in range(copies)]
        self.simulator: Simulator = make_simulator(task, len(settings), settings=settings, threads=threads)
        low, high = (np.broadcast_to(np.float32(x), task.action_width) for x in action_range(task))
        self.middle, self.half = (low + high) / 2, (high - low) / 2
        self.running = np.zeros(len(settings))
        self.recent: list[deque[float]] = [deque(maxlen=RECENT) for _ in agents]
        self.next_seed = 0

    def start(self, first_seed: int) -> None:
        """Begin an episode in every simulation."""
        self.next_seed = first_seed
        self._reset(np.arange(self.simulator.count))

    def _reset(self, ids: NDArray[np.int64]) -> None:
        self.running[ids] = 0.0
        self.simulator.reset([self.next_seed + i for i in range(len(ids))], ids.tolist())
        self.next_seed += len(ids)

    def write_observations(self, out: Floats) -> None:
        """Current observations into ``(agents, copies, obs)``."""
        found = self.simulator.observations
        out[..., : found.shape[1]] = found.reshape(*out.shape[:2], -1)

    def step(self, actions: Floats, into: tuple[Floats, Floats, Floats]) -> None:
        """Step with actions in [-1, 1]; fills rewards, next observations and terminations, then resets what ended."""
        width = len(self.half)
        rewards, next_observations, terminated = into
        flat = actions[..., :width].reshape(self.simulator.count, width)
        after = self.simulator.step(self.middle + self.half * flat)
        shape = rewards.shape
        rewards[:] = after.rewards.reshape(shape)
        next_observations[..., : after.observations.shape[1]] = after.observations.reshape(*shape, -1)
        terminated[:] = after.terminated.reshape(shape)
        self.running += after.rewards
        ended = np.flatnonzero(after.terminated | after.truncated)
        if len(ended):
            for i in ended:
                self.recent[i // self.copies].append(float(self.running[i]))
            self._reset(ended)


def action_range(task: Task) -> tuple[Any, Any]:
    """Lowest and highest actions, which SAC cannot do without."""
    if task.action_low is None or task.action_high is None:
        raise HimatchError(f"task {task.name} has no action range; SAC needs one")
    return task.action_low, task.action_high


class Collector:
    """Steps K agents in ``copies`` simulations each, over several worlds, and fills their replay buffer."""

    def __init__(self, agents: Sequence[AgentSpec], sac: SAC, threads: int) -> None:
        copies, dims = sac.config.copies, sac.dims
        pinned = sac.device.type == "cuda"

        def room(*width: int) -> Tensor:
            return torch.zeros(len(agents), copies, *width, pin_memory=pinned)

        self.sac, self.agents = sac, agents
        self.host = Experience(room(dims.observation), room(dims.action), room(), room(dims.observation), room())
        self.arrays = tuple(tensor.numpy() for tensor in self.host)
        self.worlds: list[tuple[slice, World]] = []
        first = 0
        for task, found in groupby(agents, lambda agent: agent.task):
            neighbours = list(found)
            world = World(get_task(task), neighbours, copies, threads)
            self.worlds.append((slice(first, first + len(neighbours)), world))
            first += len(neighbours)
        self.rng = np.random.default_rng()

    def start(self, seed: int) -> None:
        """Begin episodes everywhere; initial states come from seeds below 2^31, where evaluation begins."""
        self.rng = np.random.default_rng(seed)
        for number, (_, world) in enumerate(self.worlds):
            world.start(int(np.random.SeedSequence((seed, number)).generate_state(1)[0]) % 2**30)
        self._observe()

    def _observe(self) -> None:
        for rows, world in self.worlds:
            world.write_observations(self.arrays[0][rows])

    def step(self, *, at_random: bool, updates: int) -> None:
        """One step of every simulation; the updates run on a GPU while the simulations step."""
        sac, (_, actions, rewards, next_observations, terminated) = self.sac, self.arrays
        if at_random:
            actions[:] = self.rng.uniform(-1.0, 1.0, actions.shape)
            actions *= sac.actor.mask.cpu().numpy()
        else:
            chosen = sac.act(self.host.observations.to(sac.device, non_blocking=True))
            self.host.actions.copy_(chosen)
        for _ in range(updates):
            sac.update()
        for rows, world in self.worlds:
            world.step(actions[rows], (rewards[rows], next_observations[rows], terminated[rows]))
        sac.replay.add(self.host)
        if sac.device.type == "cuda":
            torch.cuda.current_stream().synchronize()  # the host arrays are about to be overwritten
        self._observe()

    def returns(self) -> list[float | None]:
        """Mean return of each agent's recent training episodes."""
        return [float(np.mean(done)) if done else None for _, world in self.worlds for done in world.recent]
