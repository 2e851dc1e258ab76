"""Training, on one screen: sample, update, log, validate, save."""

from __future__ import annotations

import time

from torch import Tensor

from himatch._runtime.devices import seeded
from himatch._runtime.progress import interruptible, progress_bar
from himatch.errors import DataError
from himatch.methods.base import Agent
from himatch.methods.normalizers import Normalizers
from himatch.runs.folder import RunFolder
from himatch.training.checkpoint import VALIDATION_WINDOWS, Checkpoint, Clock
from himatch.training.config import TrainConfig
from himatch.training.metrics import plot_losses, tracking
from himatch.training.plan import Plan
from himatch.training.sampler import DeviceSampler, make_sampler
from himatch.training.update import Update

SAVE_EVERY = 60.0  # seconds between checkpoints
VALIDATIONS, FEWEST_VALIDATIONS = 50, 5  # rows in the metrics file of a whole run, and of a short one
SHARE = 8  # windows that a short run trains on for each it validates on, which takes a third of the time


class Interrupted(KeyboardInterrupt):
    """Training was stopped by a signal, after saving."""


def train(plan: Plan, *, stream: bool | None = None, quiet: bool = False) -> RunFolder:
    """Train as planned, to the end or to the signal that interrupts; the run folder."""
    with plan.folder.alone():
        if plan.folder.saved and not plan.continued:
            raise DataError(f"{plan.folder} holds a run by now; pass --resume to continue it, or choose another folder")
        return _train(plan, stream, quiet)


def _train(plan: Plan, stream: bool | None, quiet: bool) -> RunFolder:
    """The stages in turn.

    Most methods have one stage, the policy, and then the loop runs once. Those that pretrain a part train it first and
    freeze it.
    """
    folder, device = plan.folder, plan.device
    try:
        with folder.attempt(), seeded(plan.seeds[0], device), plan.relabelled() as (z, validation_z):
            agent = plan.method.build(plan.model, plan.dims, plan.seeds).to(device)
            state = folder.training_state()
            if plan.start is not None and state is None:
                plan.start.load_into(agent)
            folder.clear()
            normalizers = plan.normalizers(z)
            if folder.begun:  # another machine may round what it fits differently
                normalizers = Normalizers.of(folder.normalizers())
            else:
                plan.write(normalizers)
            sampler = make_sampler(plan.trained_on, z, plan.spec, normalizers, device, stream=stream)
            validation = None
            if len(plan.validation) and plan.validation.lengths.max() >= plan.spec.context:
                validation = DeviceSampler(plan.validation, validation_z, plan.spec, normalizers, device)
            first, clock = _resume(plan, agent, state)
            with tracking(plan.trackers, folder, plan.describe()) as trackers:
                for number, stage in enumerate(plan.stages[first:], first):
                    drawn = 0 if plan.start is None else plan.start.drawn
                    update = Update(agent, sampler, stage, plan.config, device, drawn=drawn)
                    stored = state if number == first else None
                    checkpoint = Checkpoint(plan, number, update, stored, clock, trackers)
                    if not stage.context_steps:  # whatever embeds episodes is frozen by now
                        for given in (sampler, validation):
                            if given is not None:
                                given.embed_episodes(agent)
                    _run_stage(plan, update, checkpoint, validation, quiet=quiet)
                    if stage.part is not None:
                        update.flat.release()
                        agent.freeze(stage.part)
                        agent.finish(stage.part, agent.embed(sampler.normalizers, plan.trained_on))
    finally:
        if folder.begun:
            plot_losses(folder, plan.seeds)  # whoever stops a training wants to see how far it came
    return folder


def _resume(plan: Plan, agent: Agent, state: dict[str, Tensor] | None) -> tuple[int, Clock]:
    """The stage to train first and the seconds trained before; parts that earlier stages trained are frozen.

    Their weights come with those of the stage that was reached, which its checkpoint restores, or with those of the run
    that was started from: of that, the policy alone is trained on.
    """
    if state is None and plan.start is None:
        return 0, Clock()
    reached = len(plan.stages) - 1 if state is None else int(state["stage"])
    for stage in plan.stages[:reached]:
        if stage.part is not None:
            agent.freeze(stage.part)
    return reached, Clock() if state is None else Clock(float(state["seconds"]))


def _run_stage(
    plan: Plan, update: Update, checkpoint: Checkpoint, validation: DeviceSampler | None, *, quiet: bool
) -> None:
    """Sample, update, log, validate and save until the stage is over or a signal comes."""
    stage, steps, stack = update.stage, update.stage.steps, len(plan.seeds)
    every = validate_every(update.config)
    saved, first = time.perf_counter(), update.step
    started: float | None = None
    what = "training" if stage.part is None else f"{stage.part} of"
    title = f"{what} {plan.method.name}" + (f" x{stack}" if stack > 1 else "")
    with interruptible() as stopped:  # around the last save too: a second SIGTERM must not cost what was trained
        with progress_bar(title, steps, update.step, quiet=quiet) as bar:
            due = (update.step // every + 1) * every
            for losses in update.run(steps):
                checkpoint.require("the loss", losses.isfinite())
                checkpoint.pending.append(losses)
                if started is None:  # the rate leaves out what compiling took
                    first, started = update.step, time.perf_counter()
                rate = (update.step - first) / max(time.perf_counter() - started, 1e-9)
                bar(update.step, rate, f"loss {float(losses[-1].mean()):.4f}")
                if update.step >= min(due, steps):
                    checkpoint.log(rate, validation)
                    due = (update.step // every + 1) * every
                if stopped.is_set():
                    break
                if time.perf_counter() - saved > SAVE_EVERY:
                    checkpoint.save()
                    saved = time.perf_counter()
        checkpoint.save()
    if stopped.is_set():
        done = update.step == steps and stage.part is None
        how = "which was the last" if done else "continue with --resume"
        raise Interrupted(f"stopped at step {update.step} of {steps}; everything is saved in {plan.folder}, {how}")


def validate_every(config: TrainConfig) -> int:
    """Steps between validations: those of a short run are fewer, not coarser, since they select the checkpoint."""
    worthwhile = SHARE * VALIDATION_WINDOWS // config.batch_size
    return max(1, config.steps // VALIDATIONS, min(worthwhile, config.steps // FEWEST_VALIDATIONS))
