"""Training a stack of experts: simulations of several tasks at once, one update for all agents."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from himatch.errors import HimatchError
from himatch.experts.networks import Widths
from himatch.experts.run import (
    METRICS,
    RUN,
    SNAPSHOTS,
    TRAINING,
    AgentSpec,
    StartingRun,
    describe_run,
    stored_state,
)
from himatch.experts.sac import SAC, SACConfig
from himatch.experts.stage import Stage, action_range
from himatch.files import add_row, read_rows, reading, write_json, write_rows
from himatch.nn.devices import find_device, seeded
from himatch.nn.tensors import versions, write_tensors
from himatch.progress import interruptible, progress_bar
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
        Those of one task share its simulations where they follow one another.
    out
        Folder of the run.
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
    if seed < 0 or min(agent.seed for agent in agents) < 0:
        raise HimatchError("seeds must be 0 or more")
    place, tasks = find_device(device), [_checked_task(agent.task) for agent in agents]
    other = None if start is None else StartingRun(Path(start), agents)
    if other is None:
        widest = [max(getattr(task, f"{what}_width") for task in tasks) for what in ("observation", "action")]
        widths = Widths(widest[0], widest[1], config.hidden)
    else:
        widths = other.widths(config.hidden)
    description = describe_run(agents, config, widths, seed, start)
    done, source = stored_state(folder, description, resume=resume), folder
    if done is None and other is not None:
        done, source = other.state, other.folder
    action_widths = tuple(task.action_width or 0 for task in tasks)
    sac = SAC(config, widths, action_widths, tuple(agent.seed for agent in agents), place)
    counts = None
    if done is not None:
        with reading(str(source / TRAINING)):
            sac.load_state(done)
            counts = int(done["step"]), int(done["updates"])
    stage = Stage(agents, sac, threads)  # it refuses settings that an environment does not know
    if not (folder / RUN).is_file():
        write_json(folder / RUN, description | {"versions": versions()})
    _Loop(stage, folder, steps, looks, counts).go(seed, minutes, quiet)
    return folder


def _checked_task(name: str) -> Task:
    task = get_task(name)
    if task.observation_width is None or task.action_width is None:
        raise HimatchError(f"task {task.name} does not say how wide its observations and actions are")
    action_range(task)
    return task


class _Loop:
    """Steps, looks and checkpoints; ``done`` is steps and updates of a run that goes on."""

    def __init__(self, stage: Stage, folder: Path, steps: int, looks: int, done: tuple[int, int] | None) -> None:
        self.stage, self.folder, self.steps = stage, folder, steps
        self.every = max(1, steps // looks)
        self.resumed = done is not None
        self.step, self.updates = done or (0, 0)  # transitions that each agent has learned from, and updates
        kept = [row for row in read_rows(folder / METRICS) if row["step"] <= self.step]
        write_rows(folder / METRICS, kept)

    def go(self, seed: int, minutes: float | None, quiet: bool) -> None:
        """Train until the steps or the minutes are spent, or a signal asks to stop."""
        if self.step >= self.steps:
            return
        stage, config = self.stage, self.stage.sac.config
        stage.start(seed + self.step)
        began = saved = time.perf_counter()
        title, learned = f"SAC x{len(stage.agents)}", self.updates
        with interruptible() as stopped:
            with (
                seeded(seed + self.step, stage.sac.device),
                progress_bar(title, self.steps, self.step, quiet=quiet) as update,
            ):

                def over() -> bool:
                    return stopped.is_set() or (minutes is not None and time.perf_counter() - began > 60.0 * minutes)

                update(self.step, 0.0, "filling its memory")
                self._fill(over)
                start, first = time.perf_counter(), self.step
                while self.step < self.steps and not over():
                    stage.step(at_random=False, updates=config.updates)
                    self.step += config.copies
                    self.updates += config.updates
                    now = time.perf_counter()
                    if (self.step // self.every) != (self.step - config.copies) // self.every:
                        self._look(now - began)
                        found = [x for x in stage.returns() if x is not None]
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
        config = self.stage.sac.config
        wanted = min(REFILL, self.step, config.memory) if self.resumed else config.first
        for _ in range(max(1, -(-wanted // config.copies))):
            if over():
                return
            self.stage.step(at_random=not self.resumed, updates=0)
            if not self.resumed:
                self.step += config.copies

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
