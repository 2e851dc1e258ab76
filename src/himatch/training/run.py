"""``himatch.train``: from a dataset to a run folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from himatch.data import Split, TrajectoryDataset, load_dataset, named_split
from himatch.errors import DataError, HimatchError
from himatch.matching import Policy, load
from himatch.nn.devices import find_device
from himatch.nn.tensors import read_tensors, write_tensors
from himatch.policy import Method
from himatch.policy import run_folder as files
from himatch.policy.agent import Agent, Batch
from himatch.policy.making import make_agent
from himatch.tasks import Task
from himatch.training.config import configure
from himatch.training.draws import ContextDraws
from himatch.training.engine import Engine
from himatch.training.job import Job, check_same
from himatch.training.loop import Clock, Loop, Phase
from himatch.training.reporting import check_trackers, make_trackers, plot_losses
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
    split: str = "none",
    resume: bool = False,
    device: str | None = None,
    stream: bool | None = None,
    trackers: tuple[str, ...] = (),
    quiet: bool = False,
    **overrides: Any,
) -> Policy:
    """Train a method and return the policy, which also lies in the folder ``out``.

    Parameters
    ----------
    method
        ``himatch.CDT(feature="x_velocity")`` and the like.
    data
        A dataset, a split of one, or anything :func:`himatch.load_dataset` takes.
    preset, overrides
        ``paper``, ``fast`` or ``cpu``, and settings that differ from it (``steps``, ``width``, ``context``, ...).
    seed, seeds
        Trains seeds ``seed`` to ``seed + seeds - 1`` stacked in one batched model.
    split
        What of a dataset is held out: ``paper`` (its ten episodes), ``random`` (a tenth), ``label:A,B`` (these labels)
        or ``none``, the default here; the command line's is ``paper``. A ``Split`` as ``data`` says itself what is.
    resume
        Continue the run in ``out`` where it stopped; method, settings and data must be the same.
    device
        ``cuda`` or ``cpu``; by default a GPU where there is one.
    stream
        Keep the data where it is and send batches over, instead of holding it on the device; by default as it fits.
    """
    if not isinstance(method, Method):
        raise HimatchError(
            f"train takes a method such as himatch.CDT(...) or himatch.make_method(NAME), got {method!r}"
        )
    config = configure(preset, method, **overrides)
    if seeds < 1 or seed < 0:
        raise HimatchError(f"seeds must be at least 1 and the first one not negative, got {seeds} from {seed}")
    where = find_device(device)
    check_trackers(trackers)
    folder = Path(out)
    _check_folder(folder, resume=resume)
    source, stack = _split(data, task, split), tuple(range(seed, seed + seeds))
    begun = (folder / files.RUN).is_file()
    if begun:
        check_same(folder, method, source, config, stack)
    job = Job.prepare(method, source, config, stack, folder)
    if not begun:
        job.write()
    _run(job, where, stream=stream, trackers=trackers, quiet=quiet)
    return load(folder)


def _check_folder(folder: Path, *, resume: bool) -> None:
    if (folder / files.RUN).exists() and not resume:
        raise DataError(f"{folder} holds a run already; pass --resume to continue it, or choose another folder")
    # What a run leaves that was killed before it had begun may be written over, anything else may not.
    ours = {files.RUN, files.EPISODES, files.HELD_OUT, files.NORMALIZERS}
    if folder.exists() and not (folder / files.RUN).exists():
        foreign = not folder.is_dir() or any(p.name not in ours and p.name[0] != "." for p in folder.iterdir())
        if foreign:
            raise DataError(f"{folder} exists and is not a run folder; choose another one")


def _split(data: TrajectoryDataset | Split | str | Path, task: str | Task | None, split: str) -> Split:
    if isinstance(data, Split):
        return data
    return named_split(data if isinstance(data, TrajectoryDataset) else load_dataset(data, task), split)


def _run(job: Job, device: torch.device, *, stream: bool | None, trackers: tuple[str, ...], quiet: bool) -> None:
    """Train to the end, or to the signal that interrupts."""
    torch.manual_seed(job.seeds[0])
    agent = make_agent(job.method, job.config.model, job.widths, job.seeds).to(device)
    state = read_tensors(job.folder / files.TRAINING) if (job.folder / files.TRAINING).is_file() else None
    clock = Clock(float((state or {}).get("seconds", 0.0)))
    logs = make_trackers(trackers, job.folder, job.describe())
    with job.relabelled() as (z, validation_z):
        normalizers = job.normalizers(z)
        write_tensors(job.folder / files.NORMALIZERS, normalizers.tensors())
        windows = make_windows(job.train, z, job.shape, normalizers, device, stream=stream)
        validation = None
        if len(job.validation) and job.validation.lengths.max() >= job.shape.context:
            validation = DeviceWindows(job.validation, validation_z, job.shape, normalizers, device)
        phases = _phases(job)
        reached = -1 if state is None else int(state["phase"])
        for phase in phases:
            if reached > phase.number:  # done before; what it learned comes with the state of the phase reached
                assert phase.part is not None
                agent.fix(phase.part)
                continue
            engine = _engine(agent, windows, phase, device)
            stored = state if reached == phase.number else None
            loop = Loop(job, engine, phase, validation, stored, clock, quiet=quiet, trackers=logs)
            if not phase.context_steps:  # whatever embeds episodes is fixed by now
                for told in (windows, validation):
                    if told is not None:
                        told.relabel(agent)
            loop.run()
            if phase.part is not None:
                engine.flat.release()
                agent.fix(phase.part)
                agent.settle(phase.part, agent.embed(normalizers.to(device), job.train))
    plot_losses(job.folder, job.seeds)


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
