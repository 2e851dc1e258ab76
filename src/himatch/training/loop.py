"""Steps, looks, checkpoints and signals of one stretch of training."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from himatch.errors import HimatchError
from himatch.nn.tensors import write_tensors
from himatch.policy import run_folder as files
from himatch.progress import interruptible, progress_bar
from himatch.training.config import TrainConfig
from himatch.training.engine import Engine, learning_rate
from himatch.training.job import VALIDATED, Job
from himatch.training.reporting import Metrics, Tracker
from himatch.training.windows import DeviceWindows

VALIDATION_WINDOWS = 1024
SAVE_EVERY = 60.0  # seconds between checkpoints
LOOKS, FEWEST_LOOKS = 50, 5  # rows in the metrics file of a whole run, and of a short one
SHARE = 8  # windows that a short run trains on for each it looks at, which takes a third of the time


class Interrupted(KeyboardInterrupt):
    """Training was stopped by a signal, after saving."""


class TrainingError(HimatchError):
    """A loss or a weight is not finite, and nothing that follows would be."""


@dataclass(frozen=True)
class Phase:
    """The policy's training, or before it that of a part which is then fixed."""

    number: int
    """Place in the order of phases."""
    config: TrainConfig
    part: str | None = None
    """The part that is trained; ``None``: everything that is not fixed."""
    context_steps: int = 0
    """How many windows in a row are of one task; 0: they are drawn one by one."""


def look_every(config: TrainConfig) -> int:
    """Steps from one look to the next: those of a short run are fewer, not coarser, since they choose the weights."""
    worthwhile = SHARE * VALIDATION_WINDOWS // config.batch_size
    return max(1, config.steps // LOOKS, min(worthwhile, config.steps // FEWEST_LOOKS))


class Clock:
    """Seconds that a run has trained, in this process and in those that it was begun in."""

    def __init__(self, before: float = 0.0) -> None:
        self._start = time.perf_counter() - before

    def __call__(self) -> float:
        """Until now."""
        return time.perf_counter() - self._start


class Loop:
    """Runs an engine through a phase, from its beginning or from a stored state."""

    def __init__(
        self,
        job: Job,
        engine: Engine,
        phase: Phase,
        validation: DeviceWindows | None,
        stored: dict[str, Tensor] | None,
        clock: Clock,
        *,
        quiet: bool,
        trackers: tuple[Tracker, ...],
    ) -> None:
        self.job, self.engine, self.phase, self.validation, self.quiet = job, engine, phase, validation, quiet
        self.clock = clock
        self.best = engine.flat.master.detach().clone()
        self.best_loss = torch.full((len(job.seeds),), torch.inf)
        self.best_step = torch.zeros(len(job.seeds), dtype=torch.int64)
        if stored is not None:
            engine.restore(stored)
            engine.step = int(stored["step"])
            self.best.copy_(stored["best"])
            self.best_loss.copy_(stored["best_loss"])
            self.best_step.copy_(stored.get("best_step", self.best_step))
        self.metrics = None
        if phase.part is None:
            self.metrics = Metrics(job.folder, job.seeds, engine.step, trackers)

    def run(self) -> None:
        """Train to the end of the phase, or raise :class:`Interrupted` after a signal."""
        engine, steps = self.engine, self.phase.config.steps
        every = look_every(self.phase.config)
        pending: list[Tensor] = []
        saved, first = time.perf_counter(), engine.step
        started: float | None = None
        stack = len(self.job.seeds)
        what = "training" if self.phase.part is None else f"{self.phase.part} of"
        title = f"{what} {self.job.method.name}" + (f" x{stack}" if stack > 1 else "")
        with interruptible() as stopped:
            with progress_bar(title, steps, engine.step, quiet=self.quiet) as update:
                next_look = (engine.step // every + 1) * every
                for losses in engine.run(steps):
                    self._require("the loss", losses.isfinite())
                    pending.append(losses)
                    if started is None:  # the rate leaves out what compiling took
                        first, started = engine.step, time.perf_counter()
                    rate = (engine.step - first) / max(time.perf_counter() - started, 1e-9)
                    update(engine.step, rate, f"loss {float(losses[-1].mean()):.4f}")
                    if engine.step >= min(next_look, steps):
                        self._look(torch.cat(pending).mean(0), rate)
                        pending, next_look = [], (engine.step // every + 1) * every
                    if stopped.is_set():
                        break
                    if time.perf_counter() - saved > SAVE_EVERY:
                        self.save()
                        saved = time.perf_counter()
            self.save()  # not to be disturbed: systems say more than once that work must stop
        if stopped.is_set():
            done = engine.step == steps and self.phase.part is None
            how = "which was the last" if done else "continue with --resume"
            raise Interrupted(
                f"stopped at step {engine.step} of {steps}; everything is saved in {self.job.folder}, {how}"
            )

    def _require(self, what: str, finite: Tensor) -> None:
        """Stop unless the latest steps, ``(steps, K)``, are all finite."""
        if bool(finite.all()):
            return
        steps, config, folder = len(finite), self.phase.config, self.job.folder
        step = self.engine.step - steps + 1 + int((~finite).any(1).nonzero()[0])
        seeds = [str(seed) for seed, fine in zip(self.job.seeds, finite.all(0).tolist(), strict=True) if not fine]
        part = "" if self.phase.part is None else f" ({self.phase.part})"
        kept = f"what was saved last stays in {folder}" if files.holds_weights(folder) else "nothing was saved"
        raise TrainingError(
            f"training diverged{part}: {what} of seed {', '.join(seeds)} is not finite at step {step} of "
            f"{config.steps}; try a learning rate below {config.learning_rate:g} ({kept})"
        )

    def _look(self, loss: Tensor, rate: float) -> None:
        """Write a row of metrics and keep the best weights."""
        if self.metrics is None:
            return
        step, master = self.engine.step, self.engine.flat.master.detach()
        rate_of_learning = learning_rate(self.phase.config, step - 1)
        speed = {"steps_per_second": rate, "seconds": round(self.clock(), 2)}
        rows: list[dict[str, float]] = [{"loss": float(x), "learning_rate": rate_of_learning, **speed} for x in loss]
        found = {} if self.validation is None else self.validate(self.validation)
        for name, values in found.items():
            self._require(name, values.isfinite().unsqueeze(0))
            for row, value in zip(rows, values, strict=True):
                row[name] = float(value)
        if "validation" in found and self.job.choice == VALIDATED:
            better = found["validation"] < self.best_loss
            self.best[better.to(master.device)] = master[better.to(master.device)]
            self.best_loss = torch.minimum(found["validation"], self.best_loss)
            self.best_step[better] = step
        else:
            self.best.copy_(master)
            self.best_step.fill_(step)
        self.metrics.write(step, rows)

    @torch.no_grad()
    def validate(self, windows: DeviceWindows) -> dict[str, Tensor]:
        """What every model says of fixed windows of the validation slice, ``(K,)`` each."""
        rng, size = np.random.default_rng(0), (1, VALIDATION_WINDOWS)
        chosen = rng.integers(len(windows.index.row), size=size)
        ahead = rng.integers(windows.shape.look_ahead + 1, size=size)
        agent, stack = self.engine.agent.eval(), len(self.job.seeds)
        places = [torch.from_numpy(x).expand(stack, -1).to(self.engine.device) for x in (chosen, ahead)]
        found = agent.report(windows.batch(places[0], places[1]))
        agent.train()
        return {name: values.float().cpu() for name, values in found.items()}

    def save(self) -> None:
        """Write the weights of every seed and what resuming needs."""
        engine, folder = self.engine, self.job.folder
        # The loss that a step reports is that of the weights before it.
        self._require("a weight", engine.flat.master.isfinite().all(1).unsqueeze(0).cpu())
        state = engine.snapshot()
        fixed = {n.removeprefix("other."): t.float() for n, t in state.items() if n.startswith("other.")}
        if self.phase.part is None:
            for model, seed in enumerate(self.job.seeds):
                others = {name: tensor[model] for name, tensor in fixed.items()}
                last = (engine.flat.master, engine.step)
                # Before the first look nothing is known to be better than what there is.
                best = (self.best, int(self.best_step[model])) if self.best_step[model] else last
                for name, (flat, step) in ((files.LAST, last), (files.BEST, best)):
                    weights = engine.flat.state(flat, model) | others
                    write_tensors(files.seed_folder(folder, seed) / name, weights, step=str(step))
        state |= {
            "step": torch.tensor(engine.step),
            "phase": torch.tensor(self.phase.number),
            "seconds": torch.tensor(self.clock()),
            "best": self.best,
            "best_loss": self.best_loss,
            "best_step": self.best_step,
        }
        write_tensors(folder / files.TRAINING, state)
