"""The training of a stack of experts: simulations of several tasks at once, one update for all agents."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from himatch._runtime.devices import find_device, seeded
from himatch._runtime.files import add_row, read_rows, write_json, write_rows
from himatch._runtime.progress import interruptible, progress_bar
from himatch._runtime.tensors import versions, write_tensors
from himatch.errors import HimatchError
from himatch.experts.collector import Collector, action_range
from himatch.experts.networks import NetworkDims
from himatch.experts.run import (
    METRICS,
    RUN,
    SNAPSHOTS,
    TRAINING,
    AgentSpec,
    StartingRun,
    describe_run,
    stored_state,
    trained_steps,
)
from himatch.experts.sac import SAC, SACConfig
from himatch.tasks import Task, get_task

SAVE_EVERY = 120.0  # seconds between checkpoints
# Transitions of its own policy that a resumed run remembers before it learns on, if it had seen as many. With 60,000
# Hopper and Walker2d lost half of their return for 200,000 steps.
REFILL = 200_000


def train_experts(
    agents: Sequence[AgentSpec],
    out: str | Path,
    *,
    steps: int,
    config: SACConfig | None = None,
    seed: int = 0,
    snapshots: int = 100,
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
        Those of one task share its simulations where they follow one another.
    out
        Folder of the run.
    snapshots
        How often, over the whole run, a row of metrics and a snapshot of all actors are kept.
    resume
        Continue the run in ``out``; its agents and settings must be the same.
    start
        Another run: begin with its agents of the same task, seed and settings (or of other settings, where one alone
        has that task and seed), at the step it had reached.
    """
    config, folder = config or SACConfig(), Path(out)
    _check(agents, steps, snapshots, seed)
    place, tasks = find_device(device), [_checked_task(agent.task) for agent in agents]
    other = None if start is None else StartingRun(Path(start), agents)
    dims = _widest(tasks, config.hidden) if other is None else other.dims(config.hidden)
    description = describe_run(agents, config, dims, seed, start)
    state, source = stored_state(folder, description, resume=resume), folder
    if state is None and other is not None:
        state, source = other.state, other.folder
    action_widths = tuple(task.action_width or 0 for task in tasks)
    sac = SAC(config, dims, action_widths, tuple(agent.seed for agent in agents), place)
    done = None
    if state is not None:
        sac.check_state(state, str(source / TRAINING))
        done = trained_steps(state, str(source / TRAINING))
        sac.load_state(state)
    collector = Collector(agents, sac, threads)  # it refuses settings that an environment does not know
    if not (folder / RUN).is_file():
        write_json(folder / RUN, description | {"versions": versions()})
    _Loop(collector, folder, steps, snapshots, done).go(seed, minutes, quiet)
    return folder


def _check(agents: Sequence[AgentSpec], steps: int, snapshots: int, seed: int) -> None:
    if not agents:
        raise HimatchError("name at least one task to train an expert for")
    if steps < 1 or snapshots < 1:
        raise HimatchError(f"steps and snapshots must be at least 1, got {steps} and {snapshots}")
    if seed < 0 or min(agent.seed for agent in agents) < 0:
        raise HimatchError("seeds must be 0 or more")


def _widest(tasks: Sequence[Task], hidden: tuple[int, ...]) -> NetworkDims:
    """Dims that hold every task's observations and actions."""
    observation = max(task.observation_width or 0 for task in tasks)
    return NetworkDims(observation, max(task.action_width or 0 for task in tasks), hidden)


def _checked_task(name: str) -> Task:
    task = get_task(name)
    if task.observation_width is None or task.action_width is None:
        raise HimatchError(f"task {task.name} does not say how wide its observations and actions are")
    action_range(task)
    return task


class _Loop:
    """Steps, snapshots and checkpoints; ``done`` is steps and updates of a run that goes on."""

    def __init__(
        self, collector: Collector, folder: Path, steps: int, snapshots: int, done: tuple[int, int] | None
    ) -> None:
        self.collector, self.folder, self.steps = collector, folder, steps
        self.every = max(1, steps // snapshots)
        self.resumed = done is not None
        self.step, self.updates = done or (0, 0)  # transitions that each agent has learned from, and updates
        kept = [row for row in read_rows(folder / METRICS) if row["step"] <= self.step]
        write_rows(folder / METRICS, kept)

    def go(self, seed: int, minutes: float | None, quiet: bool) -> None:
        """Train until the steps or the minutes are spent, or a signal asks to stop."""
        if self.step >= self.steps:
            return
        collector, config = self.collector, self.collector.sac.config
        collector.start(seed + self.step)
        began = saved = time.perf_counter()
        title, learned = f"SAC x{len(collector.agents)}", self.updates
        with interruptible() as stopped:
            with (
                seeded(seed + self.step, collector.sac.device),
                progress_bar(title, self.steps, self.step, quiet=quiet) as update,
            ):

                def over() -> bool:
                    return stopped.is_set() or (minutes is not None and time.perf_counter() - began > 60.0 * minutes)

                update(self.step, 0.0, "filling its memory")
                self._fill(over)
                start, first = time.perf_counter(), self.step
                while self.step < self.steps and not over():
                    collector.step(at_random=False, updates=config.updates)
                    self.step += config.copies
                    self.updates += config.updates
                    now = time.perf_counter()
                    if (self.step // self.every) != (self.step - config.copies) // self.every:
                        self._snapshot(now - began)
                        found = [x for x in collector.returns() if x is not None]
                        note = f"mean return {np.mean(found):,.0f}" if found else ""
                        update(self.step, (self.step - first) / (now - start), note)
                    if now - saved > SAVE_EVERY:
                        self.save()
                        saved = time.perf_counter()
            if self.updates > learned:  # before the first update there is nothing to go on from
                self.save()
        if stopped.is_set():
            kept = f"everything is saved in {self.folder}, --resume goes on" if self.updates else "nothing learned yet"
            raise KeyboardInterrupt(f"stopped at step {self.step}; {kept}")

    def _fill(self, over: Callable[[], bool]) -> None:
        """Transitions to learn from: of random actions, or of its own policy where the run has learned already."""
        config = self.collector.sac.config
        wanted = min(REFILL, self.step, config.memory) if self.resumed else config.first
        for _ in range(max(1, -(-wanted // config.copies))):
            if over():
                return
            self.collector.step(at_random=not self.resumed, updates=0)
            if not self.resumed:
                self.step += config.copies

    def _snapshot(self, seconds: float) -> None:
        collector = self.collector
        row = {
            "step": self.step,
            "updates": self.updates,
            "seconds": round(seconds, 1),
            "returns": [None if x is None else round(x, 2) for x in collector.returns()],
            "temperature": [round(x, 5) for x in collector.sac.log_temperature.exp().tolist()],
            "critic_loss": [float(f"{x:.4g}") for x in collector.sac.losses[0].tolist()],
        }
        add_row(self.folder / METRICS, row)
        actors = collector.sac.flat_actor.master.detach().half()
        write_tensors(self.folder / SNAPSHOTS / f"{self.step:09d}.safetensors", {"actors": actors})

    def save(self) -> None:
        """Write what resuming needs."""
        state = self.collector.sac.state() | {"step": torch.tensor(self.step), "updates": torch.tensor(self.updates)}
        write_tensors(self.folder / TRAINING, state)
