"""What a stage of training leaves behind: metrics, the weights that validation selects, and what --resume needs."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor

from himatch.errors import HimatchError
from himatch.methods.base import Agent
from himatch.training.metrics import Metrics, Tracker
from himatch.training.plan import VALIDATED, Plan
from himatch.training.sampler import DeviceSampler
from himatch.training.update import Update

VALIDATION_WINDOWS = 1024


class TrainingError(HimatchError):
    """A loss or a weight is not finite, and nothing that follows would be."""


class Clock:
    """Seconds that a run has trained, in this process and in those that it was begun in."""

    def __init__(self, before: float = 0.0) -> None:
        self._start = time.perf_counter() - before

    def __call__(self) -> float:
        """Until now."""
        return time.perf_counter() - self._start


class Checkpoint:
    """The state of one stage, from its beginning or from what was stored."""

    def __init__(
        self,
        plan: Plan,
        number: int,
        update: Update,
        stored: dict[str, Tensor] | None,
        clock: Clock,
        trackers: tuple[Tracker, ...] = (),
    ) -> None:
        self.plan, self.number, self.update, self.clock = plan, number, update, clock
        self.best = update.flat.master.detach().clone()
        self.best_loss = torch.full((len(plan.seeds),), torch.inf)
        self.best_step = torch.zeros(len(plan.seeds), dtype=torch.int64)
        self.pending: list[Tensor] = []  # losses since the latest row of metrics, (steps, K) each
        if stored is not None:
            update.restore(stored)
            self.pending = [stored["pending"].cpu()] if len(stored["pending"]) else []  # as `Update.run` yields them
            update.step = int(stored["step"])
            self.best.copy_(stored["best"])
            self.best_loss.copy_(stored["best_loss"])
            self.best_step.copy_(stored["best_step"])
        self.metrics = None
        if update.stage.part is None:
            self.metrics = Metrics(plan.folder, plan.seeds, update.step, trackers)

    def require(self, what: str, finite: Tensor) -> None:
        """Stop unless the latest steps, ``(steps, K)``, are all finite."""
        if bool(finite.all()):
            return
        steps, config, folder, part = len(finite), self.update.config, self.plan.folder, self.update.stage.part
        step = self.update.step - steps + 1 + int((~finite).any(1).nonzero()[0])
        seeds = [str(seed) for seed, fine in zip(self.plan.seeds, finite.all(0).tolist(), strict=True) if not fine]
        kept = f"what was saved last stays in {folder}" if folder.has_weights else "nothing was saved"
        remedy = f"try a learning rate below {config.learning_rate:g}"
        if extremes := self.plan.split.train.extremes():
            remedy = f"{extremes[0]}; mend them or leave such episodes out (--drop-extremes), or {remedy}"
        raise TrainingError(
            f"training diverged{'' if part is None else f' ({part})'}: {what} of seed {', '.join(seeds)} is not finite "
            f"at step {step} of {config.steps}; {remedy} ({kept})"
        )

    def log(self, rate: float, validation: DeviceSampler | None) -> None:
        """Validate, write a row of metrics, and keep the weights that are selected."""
        loss, self.pending = torch.cat(self.pending).mean(0), []
        if self.metrics is None:
            return
        step, master = self.update.step, self.update.flat.master.detach()
        learning_rate = self.update.config.rate(step - 1)
        speed = {"steps_per_second": rate, "seconds": round(self.clock(), 2)}
        rows: list[dict[str, float]] = [{"loss": float(x), "learning_rate": learning_rate, **speed} for x in loss]
        found = {} if validation is None else validate(self.update.agent, validation)
        for name, values in found.items():
            self.require(name, values.isfinite().unsqueeze(0))
            for row, value in zip(rows, values, strict=True):
                row[name] = float(value)
        if "validation" in found and self.plan.selection == VALIDATED:
            better = found["validation"] < self.best_loss
            self.best[better.to(master.device)] = master[better.to(master.device)]
            self.best_loss = torch.minimum(found["validation"], self.best_loss)
            self.best_step[better] = step
        else:
            self.best.copy_(master)
            self.best_step.fill_(step)
        self.metrics.write(step, rows)

    def save(self) -> None:
        """Write the weights of every seed and what resuming needs."""
        update, folder = self.update, self.plan.folder
        # The loss that a step reports is that of the weights before it.
        self.require("a weight", update.flat.master.isfinite().all(1).unsqueeze(0).cpu())
        state = update.snapshot()
        frozen = {n.removeprefix("other."): t.float() for n, t in state.items() if n.startswith("other.")}
        # What resuming needs comes first, and the last weights of the first seed, which say how far the run is, come
        # last: whoever is killed in between has a run to go on with, and none that looks more finished than it is.
        folder.write_training_state(
            state
            | {
                "step": torch.tensor(update.step),
                "stage": torch.tensor(self.number),
                "seconds": torch.tensor(self.clock()),
                "best": self.best,
                "best_loss": self.best_loss,
                "best_step": self.best_step,
                "pending": torch.cat(self.pending) if self.pending else torch.empty(0, len(self.plan.seeds)),
            }
        )
        if update.stage.part is not None:
            return
        for model, seed in reversed(list(enumerate(self.plan.seeds))):
            others = {name: tensor[model] for name, tensor in frozen.items()}
            last = (update.flat.master, update.step)
            # Before the first validation nothing is known to be better than what there is.
            best = (self.best, int(self.best_step[model])) if self.best_step[model] else last
            for which, (flat, step) in (("best", best), ("last", last)):
                folder.write_weights(seed, which, update.flat.state(flat, model) | others, step)  # type: ignore[arg-type]


@torch.no_grad()
def validate(agent: Agent, sampler: DeviceSampler) -> dict[str, Tensor]:
    """Metrics of every model on the same windows of the validation slice, ``(K,)`` each."""
    rng, size = np.random.default_rng(0), (1, VALIDATION_WINDOWS)
    chosen = rng.integers(len(sampler.index), size=size)
    ahead = sampler.spec.draw_ahead(rng, size)
    places = [torch.from_numpy(x).expand(len(agent.seeds), -1).to(sampler.device) for x in (chosen, ahead)]
    agent.eval()
    found = agent.report(sampler.gather(places[0], places[1]))
    agent.train()
    return {name: values.float().cpu() for name, values in found.items()}
