"""Training a stack of experts: simulations of several tasks at once, one update for all agents.

A run folder holds ``run.json`` (agents, settings, versions), ``metrics.jsonl`` (returns of the training episodes),
``snapshots/`` (all actors, in half precision, at regular steps) and ``training.safetensors``, what ``--resume``
continues from. The memory of transitions is not stored: a resumed run refills it before it learns on.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.errors import DataError, HimatchError
from himatch.experts.networks import Widths
from himatch.experts.replay import Experience
from himatch.experts.sac import SAC, SACConfig, chosen_agents
from himatch.files import add_row, read_rows, reading, write_json, write_rows
from himatch.nn.tensors import read_tensors, versions, write_tensors
from himatch.progress import interruptible, progress_bar
from himatch.simulation import Simulator, make_simulator
from himatch.tasks import Task, get_task

RUN, METRICS, TRAINING, SNAPSHOTS = "run.json", "metrics.jsonl", "training.safetensors", "snapshots"
SAVE_EVERY = 120.0  # seconds between checkpoints
VELOCITIES = tuple(round(0.1 * i, 1) for i in range(31))  # of the paper's cheetah-vel
REFILL = 200_000  # transitions of its own policy that a resumed run remembers before it learns on
RECENT = 20  # episodes over which returns are averaged

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class AgentSpec:
    """One agent of a stack: a task with environment settings, and a seed."""

    task: str
    seed: int = 0
    settings: tuple[tuple[str, float], ...] = ()

    @property
    def name(self) -> str:
        """How the agent is called in metrics: ``cheetah-vel:velocity=0.5/0``."""
        settings = ",".join(f"{key}={value:g}" for key, value in self.settings)
        return f"{self.task}{':' if settings else ''}{settings}/{self.seed}"


class _World:
    """All simulations of one task: agents one after the other, ``copies`` of each."""

    def __init__(self, task: Task, agents: Sequence[AgentSpec], copies: int, threads: int) -> None:
        assert task.observation_width is not None
        assert task.action_width is not None
        self.task, self.agents, self.copies = task, agents, copies
        settings = [dict(agent.settings) for agent in agents for _ in range(copies)]
        self.simulator: Simulator = make_simulator(task, len(settings), settings=settings, threads=threads)
        low, high = (np.broadcast_to(np.float32(x), task.action_width) for x in _action_range(task))
        self.middle, self.half = (low + high) / 2, (high - low) / 2
        self.running = np.zeros(len(settings))
        self.recent: list[deque[float]] = [deque(maxlen=RECENT) for _ in agents]
        self.next_seed = 0

    def start(self, first_seed: int) -> None:
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
        rewards, following, terminated = into
        flat = actions[..., :width].reshape(self.simulator.count, width)
        after = self.simulator.step(self.middle + self.half * flat)
        shape = rewards.shape
        rewards[:] = after.rewards.reshape(shape)
        following[..., : after.observations.shape[1]] = after.observations.reshape(*shape, -1)
        terminated[:] = after.terminated.reshape(shape)
        self.running += after.rewards
        ended = np.flatnonzero(after.terminated | after.truncated)
        if len(ended):
            for i in ended:
                self.recent[i // self.copies].append(float(self.running[i]))
            self._reset(ended)


def _action_range(task: Task) -> tuple[Any, Any]:
    if task.action_low is None or task.action_high is None:
        raise HimatchError(f"task {task.name} has no action range; SAC needs one")
    return task.action_low, task.action_high


class _Stage:
    """Everything that K agents see and do at a step, as arrays of K x copies rows, over several worlds."""

    def __init__(self, agents: Sequence[AgentSpec], sac: SAC, threads: int) -> None:
        copies, widths = sac.config.copies, sac.widths
        pinned = sac.device.type == "cuda"

        def room(*width: int) -> Tensor:
            return torch.zeros(len(agents), copies, *width, pin_memory=pinned)

        self.sac, self.agents = sac, agents
        self.host = Experience(room(widths.observation), room(widths.action), room(), room(widths.observation), room())
        self.arrays = tuple(tensor.numpy() for tensor in self.host)
        self.worlds: list[tuple[slice, _World]] = []
        first = 0
        while first < len(agents):
            last = first
            while last < len(agents) and agents[last].task == agents[first].task:
                last += 1
            world = _World(get_task(agents[first].task), agents[first:last], copies, threads)
            self.worlds.append((slice(first, last), world))
            first = last
        self.rng = np.random.default_rng()

    def start(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        for number, (_, world) in enumerate(self.worlds):
            world.start(seed * 1_000_003 + number * 100_000_007)
        self._look()

    def _look(self) -> None:
        for rows, world in self.worlds:
            world.write_observations(self.arrays[0][rows])

    def step(self, *, at_random: bool, updates: int) -> None:
        """One step of every simulation; the updates run on a GPU while the simulations step."""
        sac, (_, actions, rewards, following, terminated) = self.sac, self.arrays
        if at_random:
            actions[:] = self.rng.uniform(-1.0, 1.0, actions.shape)
            actions *= sac.actor.mask.cpu().numpy()
        else:
            chosen = sac.act(self.host.observations.to(sac.device, non_blocking=True))
            self.host.actions.copy_(chosen)
        for _ in range(updates):
            sac.update()
        for rows, world in self.worlds:
            world.step(actions[rows], (rewards[rows], following[rows], terminated[rows]))
        sac.replay.add(self.host)
        if sac.device.type == "cuda":
            torch.cuda.current_stream().synchronize()  # the host arrays are about to be overwritten
        self._look()

    def returns(self) -> list[float | None]:
        """Mean return of each agent's recent training episodes."""
        return [float(np.mean(done)) if done else None for _, world in self.worlds for done in world.recent]


def train_experts(
    agents: Sequence[AgentSpec],
    out: str | Path,
    *,
    steps: int,
    config: SACConfig | None = None,
    seed: int = 0,
    looks: int = 100,
    resume: bool = False,
    start: str | Path | None = None,
    minutes: float | None = None,
    device: str | None = None,
    threads: int = 0,
    quiet: bool = False,
) -> Path:
    """Train a stack of SAC agents, each for ``steps`` transitions; stops early, saved, after ``minutes``.

    Parameters
    ----------
    agents
        Agents of one task must follow one another.
    looks
        How often, over the whole run, a row of metrics and a snapshot of all actors are kept.
    resume
        Continue the run in ``out``; its agents and settings must be the same.
    start
        Another run: begin with its agents of the same task, settings and seed, at the step it had reached.
    """
    config, folder = config or SACConfig(), Path(out)
    if not agents:
        raise HimatchError("name at least one task to train an expert for")
    if steps < 1 or looks < 1:
        raise HimatchError(f"steps and looks must be at least 1, got {steps} and {looks}")
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    tasks = [get_task(agent.task) for agent in agents]
    for task in tasks:
        if task.observation_width is None or task.action_width is None:
            raise HimatchError(f"task {task.name} does not say how wide its observations and actions are")
        _action_range(task)
    other = None if start is None else _Start(Path(start), agents)
    widths = Widths(
        max(task.observation_width or 0 for task in tasks), max(task.action_width or 0 for task in tasks), config.hidden
    )
    if other is not None:  # its padding is kept, so that its numbers fit
        widths = other.checked_widths(widths)
    description = {
        "agents": [asdict(agent) for agent in agents],
        "config": asdict(config),
        "widths": widths._asdict(),
        "seed": seed,
        "start": None if start is None else Path(start).name,
    }
    done = _begin(folder, json.loads(json.dumps(description)), resume)
    if done is None and other is not None:
        done = other.state
    torch.manual_seed(seed)
    sac = SAC(
        config, widths, tuple(task.action_width or 0 for task in tasks), tuple(agent.seed for agent in agents), place
    )
    if done is not None:
        sac.load_state(done)
    stage = _Stage(agents, sac, threads)
    _Run(stage, folder, steps, looks, done).go(seed, minutes, quiet)
    return folder


def _begin(folder: Path, description: dict[str, Any], resume: bool) -> dict[str, Tensor] | None:
    if (folder / RUN).is_file():
        if not resume:
            raise DataError(f"{folder} holds a run already; continue it with --resume or choose another folder")
        stored = read_run(folder)
        for key, value in description.items():
            if stored.get(key) != value:
                raise DataError(f"{folder} was begun with other {key}; resume it with the same or begin another")
        return read_tensors(folder / TRAINING) if (folder / TRAINING).is_file() else None
    write_json(folder / RUN, description | {"versions": versions()})
    return None


class _Start:
    """Agents of another run, to begin with."""

    def __init__(self, folder: Path, agents: Sequence[AgentSpec]) -> None:
        self.facts, self.folder = read_run(folder), folder
        known = agents_of(self.facts)
        missing = [agent.name for agent in agents if agent not in known]
        if missing:
            raise DataError(f"{folder} has no agent {missing[0]}; it has {', '.join(a.name for a in known)}")
        self.state = chosen_agents(read_tensors(folder / TRAINING), [known.index(agent) for agent in agents])

    def checked_widths(self, needed: Widths) -> Widths:
        widths = widths_of(self.facts)
        if widths.hidden != needed.hidden:
            raise DataError(f"the agents of {self.folder} have hidden layers {widths.hidden}, not {needed.hidden}")
        return widths


def read_run(folder: Path) -> dict[str, Any]:
    """The description of a run."""
    if not (folder / RUN).is_file():
        raise DataError(f"{folder} is not a run of himatch experts train (no {RUN} in it)")
    with reading(str(folder / RUN)):
        facts: dict[str, Any] = json.loads((folder / RUN).read_text())
        agents_of(facts), widths_of(facts)
    return facts


def agents_of(facts: dict[str, Any]) -> list[AgentSpec]:
    """The agents of a described run, in order."""
    return [AgentSpec(a["task"], a["seed"], tuple((k, v) for k, v in a["settings"])) for a in facts["agents"]]


def widths_of(facts: dict[str, Any]) -> Widths:
    """The widths of a described run's networks."""
    return Widths(facts["widths"]["observation"], facts["widths"]["action"], tuple(facts["widths"]["hidden"]))


class _Run:
    """Steps, looks and checkpoints."""

    def __init__(self, stage: _Stage, folder: Path, steps: int, looks: int, stored: dict[str, Tensor] | None) -> None:
        self.stage, self.folder, self.steps = stage, folder, steps
        self.every = max(1, steps // looks)
        self.step = int(stored["step"]) if stored else 0  # transitions of each agent that it has learned from
        self.updates = int(stored["updates"]) if stored else 0
        self.resumed = stored is not None
        kept = [row for row in read_rows(folder / METRICS) if row["step"] <= self.step]
        write_rows(folder / METRICS, kept)

    def go(self, seed: int, minutes: float | None, quiet: bool) -> None:
        """Train until the steps or the minutes are spent, or a signal asks to stop."""
        stage, config = self.stage, self.stage.sac.config
        stage.start(seed + self.step)
        began = saved = time.perf_counter()
        title = f"SAC x{len(stage.agents)}"
        with interruptible() as stopped, progress_bar(title, self.steps, self.step, quiet=quiet) as update:
            first = REFILL if self.resumed else config.first
            for _ in range(-(-first // config.copies)):
                stage.step(at_random=not self.resumed, updates=0)
                if not self.resumed:
                    self.step += config.copies
            start, first = time.perf_counter(), self.step
            while self.step < self.steps:
                stage.step(at_random=False, updates=config.updates)
                self.step += config.copies
                self.updates += config.updates
                now = time.perf_counter()
                if (self.step // self.every) != (self.step - config.copies) // self.every:
                    self._look(now - began)
                    found = [x for x in stage.returns() if x is not None]
                    note = f"mean return {np.mean(found):,.0f}" if found else ""
                    update(self.step, (self.step - first) / (now - start), note)
                out_of_time = minutes is not None and now - began > 60.0 * minutes
                if stopped.is_set() or out_of_time or now - saved > SAVE_EVERY:
                    self.save()
                    saved = time.perf_counter()
                    if stopped.is_set() or out_of_time:
                        break
        self.save()
        if stopped.is_set():
            raise KeyboardInterrupt(
                f"stopped at step {self.step}; everything is saved in {self.folder}, --resume goes on"
            )

    def _look(self, seconds: float) -> None:
        stage = self.stage
        row = {
            "step": self.step,
            "updates": self.updates,
            "seconds": round(seconds, 1),
            "returns": [None if x is None else round(x, 2) for x in stage.returns()],
            "temperature": [round(x, 5) for x in stage.sac.log_temperature.exp().tolist()],
            "critic_loss": [float(f"{x:.4g}") for x in stage.sac.losses[0].tolist()],
        }
        add_row(self.folder / METRICS, row)
        actors = stage.sac.flat_actor.master.detach().half()
        write_tensors(self.folder / SNAPSHOTS / f"{self.step:09d}.safetensors", {"actors": actors})

    def save(self) -> None:
        """Write what resuming needs."""
        state = self.stage.sac.state() | {"step": torch.tensor(self.step), "updates": torch.tensor(self.updates)}
        write_tensors(self.folder / TRAINING, state)
