"""``himatch.train``: from a dataset to a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from himatch._runtime.devices import seeded
from himatch._runtime.tensors import read_tensors, write_tensors
from himatch.data import Split, TrajectoryDataset, load_dataset, named_split
from himatch.errors import HimatchError
from himatch.methods import Method
from himatch.methods.agent import Agent, Batch
from himatch.methods.making import make_agent
from himatch.policy import Policy
from himatch.runs import folder as files
from himatch.runs.attempt import attempt, clear
from himatch.runs.loader import load
from himatch.tasks import Task
from himatch.training.draws import ContextDraws
from himatch.training.engine import Engine
from himatch.training.job import Job, check_same
from himatch.training.loop import Clock, Interrupted, Loop, Phase
from himatch.training.metrics import plot_losses, tracking
from himatch.training.plan import Plan, make_plan
from himatch.training.windows import DeviceWindows, StreamedWindows, make_windows


def train(
    method: Method,
    data: TrajectoryDataset | Split | str | Path,
    *,
    out: str | Path,
    task: str | Task | None = None,
    preset: str = "fast",
    seed: int = 0,
    seeds: int = 1,
    split: str | None = None,
    resume: bool = False,
    device: str | None = None,
    stream: bool | None = None,
    trackers: str | Sequence[str] = (),
    quiet: bool = False,
    **overrides: Any,
) -> Policy:
    """Train a method and return the policy, which also lies in the folder ``out``.

    Where a loss is not finite, training stops with a ``TrainingError`` that names step and seeds.

    Parameters
    ----------
    method
        ``himatch.CDT(feature="x_velocity")`` and the like.
    data
        A dataset, a split of one, or anything :func:`himatch.load_dataset` takes, with ``task`` for the last alone.
    preset, overrides
        ``paper``, ``fast`` or ``cpu``, and settings that differ from it (``steps``, ``width``, ``context``, ...).
    seed, seeds
        Trains seeds ``seed`` to ``seed + seeds - 1`` stacked in one batched model.
    split
        What of a dataset is held out: ``paper`` (its ten episodes), ``random`` (a tenth), ``label:A,B`` (these labels)
        or ``none``, the default here; the command line's is ``paper``. A ``Split`` as ``data`` says that itself.
    resume
        Continue the run in ``out`` where it stopped; method, settings and data must be the same.
    device
        ``cuda`` or ``cpu``; by default a GPU where there is one.
    stream
        Keep the data where it is and send batches over, instead of holding it on the device; by default as it fits.
    trackers
        Where to log too: ``tensorboard``, ``wandb``, ``trackio``.
    """
    plan = make_plan(
        method,
        out=out,
        preset=preset,
        seed=seed,
        seeds=seeds,
        resume=resume,
        device=device,
        trackers=trackers,
        split=split,
        task=task,
        **overrides,
    )
    source, resumed = _split(data, task, split), (plan.folder / files.RUN).is_file()
    if resumed:
        check_same(plan.folder, method, source, plan.config, plan.seeds)
    job = Job.prepare(method, source, plan.config, plan.seeds, plan.folder)
    if resumed:
        job.check_feature()
    try:
        with attempt(plan.folder), seeded(plan.seeds[0], plan.device):
            _run(job, plan, stream=stream, quiet=quiet)
    except Interrupted:
        plot_losses(plan.folder, plan.seeds)  # whoever stops a training looks how far it came
        raise
    plot_losses(plan.folder, plan.seeds)
    return load(plan.folder)


def _split(data: TrajectoryDataset | Split | str | Path, task: str | Task | None, split: str | None) -> Split:
    """The data as a split; what it says itself is not said again."""
    if isinstance(data, Split):
        if task is not None or split is not None:
            raise HimatchError("a Split says itself what is held out, and of which task; leave out split and task")
        return data
    if isinstance(data, TrajectoryDataset):
        if task is not None:
            raise HimatchError(f"a dataset has its task ({data.task.name}) already; name another in load_dataset")
        return named_split(data, split or "none")
    return named_split(load_dataset(data, task), split or "none")


def _run(job: Job, plan: Plan, *, stream: bool | None, quiet: bool) -> None:
    """Relabel, write what does not change, and train to the end or to the signal that interrupts."""
    device, folder = plan.device, plan.folder
    agent = make_agent(job.method, job.config.model, job.widths, job.seeds).to(device)
    state = read_tensors(folder / files.TRAINING) if (folder / files.TRAINING).is_file() else None
    clock = Clock(float((state or {}).get("seconds", 0.0)))
    with job.relabelled() as (z, validation_z):
        clear(folder)
        if not (folder / files.RUN).is_file():
            job.write()
        normalizers = job.normalizers(z)
        write_tensors(folder / files.NORMALIZERS, normalizers.tensors())
        windows = make_windows(job.train, z, job.shape, normalizers, device, stream=stream)
        validation = None
        if len(job.validation) and job.validation.lengths.max() >= job.shape.context:
            validation = DeviceWindows(job.validation, validation_z, job.shape, normalizers, device)
        reached = -1 if state is None else int(state["phase"])
        with tracking(plan.trackers, folder, job.describe()) as trackers:
            for phase in _phases(job):
                if reached > phase.number:  # done before; what it learned comes with the state of the phase reached
                    assert phase.part is not None
                    agent.fix(phase.part)
                    continue
                engine = _engine(agent, windows, phase, device)
                stored = state if reached == phase.number else None
                loop = Loop(job, engine, phase, validation, stored, clock, quiet=quiet, trackers=trackers)
                if not phase.context_steps:  # whatever embeds episodes is fixed by now
                    for told in (windows, validation):
                        if told is not None:
                            told.relabel(agent)
                loop.run()
                if phase.part is not None:
                    engine.flat.release()
                    agent.fix(phase.part)
                    agent.settle(phase.part, agent.embed(normalizers.to(device), job.train))


def _phases(job: Job) -> list[Phase]:
    config = job.config.train
    stages = job.method.stages(config.steps, config.batch_size)
    before = [
        Phase(
            number,
            replace(config, steps=stage.steps, batch_size=stage.batch_size, warmup=0),
            stage.part,
            stage.context_steps,
        )
        for number, stage in enumerate(stages)
    ]
    return [*before, Phase(len(stages), config)]


def _engine(agent: Agent, windows: DeviceWindows | StreamedWindows, phase: Phase, device: torch.device) -> Engine:
    part = phase.part
    if part is None:
        return Engine(agent, windows, phase.config, device)

    def losses(batch: Batch) -> tuple[Tensor, Tensor]:
        found = agent.part_losses(part, batch)
        return found, found

    drawing = None
    if phase.context_steps and windows.tasks is not None:
        drawing = ContextDraws(windows.tasks, windows.index, phase.context_steps)
    return Engine(agent, windows, phase.config, device, losses=losses, drawing=drawing, trainable=(f"{part}.",))
