"""``himatch.train``: from a dataset to a run folder."""

from __future__ import annotations

import json
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from himatch.aggregators import Histogram
from himatch.bins import Bins
from himatch.data import Split, TrajectoryDataset, load_dataset, paper_split, random_split, write_minari
from himatch.errors import DataError, HimatchError
from himatch.information import InformationStatistic, LearnedStatistic
from himatch.policy import Method, Policy, load_policy
from himatch.policy import run_folder as files
from himatch.policy.agent import Agent, Widths
from himatch.policy.methods import LearnedMethod, UnsupervisedMethod, method_spec
from himatch.policy.normalizers import Normalizers
from himatch.targets import EpisodeReference
from himatch.tasks import Task
from himatch.training.config import Preset, TrainConfig, configure
from himatch.training.engine import Engine, learning_rate
from himatch.training.reporting import Metrics, make_trackers, plot_losses, progress_bar
from himatch.training.windows import DeviceWindows, Shape, make_windows
from himatch.types import Array

SplitName = Literal["paper", "none"]
VALIDATION_EPISODES = 20  # at most; never more than a twentieth of the training episodes
VALIDATION_WINDOWS = 1024
SAVE_EVERY = 60.0  # seconds between checkpoints
LOOKS = 50  # rows in the metrics file of a whole run


class Interrupted(KeyboardInterrupt):
    """Training was stopped by a signal, after saving."""


def train(
    method: Method,
    data: TrajectoryDataset | Split | str | Path,
    *,
    out: str | Path,
    task: str | Task | None = None,
    preset: str = "fast",
    seed: int = 0,
    seeds: int = 1,
    split: SplitName = "none",
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
        ``paper`` holds out the paper's ten episodes; a ``Split`` as ``data`` says itself what is held out.
    resume
        Continue the run in ``out`` where it stopped; method, settings and data must be the same.
    device
        ``cuda`` or ``cpu``; by default a GPU where there is one.
    stream
        Keep the data where it is and send batches over, instead of holding it on the device; by default as it fits.
    """
    config = configure(preset, **overrides)
    if seeds < 1 or seed < 0:
        raise HimatchError(f"seeds must be at least 1 and the first one not negative, got {seeds} from {seed}")
    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    folder = Path(out)
    _check_folder(folder, resume=resume)
    source = _split(data, task, split)
    job = _Job.prepare(method, source, config, tuple(range(seed, seed + seeds)), folder)
    if resume and (folder / files.RUN).is_file():
        job.check_same(files.read_run(folder))
    else:
        job.write()
    job.run(where, stream=stream, trackers=trackers, quiet=quiet)
    return load_policy(folder)


def _check_folder(folder: Path, *, resume: bool) -> None:
    if (folder / files.RUN).exists() and not resume:
        raise DataError(f"{folder} holds a run already; pass --resume to continue it, or choose another folder")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / files.RUN).exists())):
        raise DataError(f"{folder} exists and is not a run folder; choose another one")


def _split(data: TrajectoryDataset | Split | str | Path, task: str | Task | None, split: SplitName) -> Split:
    if isinstance(data, Split):
        return data
    dataset = data if isinstance(data, TrajectoryDataset) else load_dataset(data, task)
    if split == "paper":
        return paper_split(dataset)
    if split != "none":
        raise HimatchError(f"split must be paper or none, got {split!r}")
    everything = np.arange(len(dataset))
    return Split(dataset, dataset[:0], (), everything, everything[:0])


@dataclass(frozen=True)
class _Job:
    """Everything that is decided before the first step."""

    method: Method
    split: Split
    train: TrajectoryDataset
    validation: TrajectoryDataset
    config: Preset
    seeds: tuple[int, ...]
    folder: Path
    statistic: InformationStatistic | LearnedStatistic | None
    widths: Widths

    @classmethod
    def prepare(cls, method: Method, split: Split, config: Preset, seeds: tuple[int, ...], folder: Path) -> _Job:
        """Fit the statistic and set a validation slice aside."""
        everything = split.train
        if len(everything) == 0:
            raise DataError("there are no training episodes")
        statistic = method.statistic(everything.task)
        if isinstance(statistic, InformationStatistic):
            statistic = statistic.fit(everything)
            z_width = statistic(everything[0]).shape[1]
        else:
            z_width = 0 if statistic is None else statistic.width
        chosen = min(VALIDATION_EPISODES, len(everything) // 20)
        train, validation = (
            random_split(everything, chosen / len(everything), seed=0) if chosen else (everything, everything[:0])
        )
        if train.lengths.max() < config.model.context:
            raise DataError(
                f"the context of {config.model.context} steps is longer than every episode (the longest has "
                f"{train.lengths.max()}); choose a smaller --context"
            )
        horizon = max(everything.task.horizon, int(everything.lengths.max()))
        widths = Widths(everything.observations.shape[1], everything.actions.shape[1], z_width, horizon)
        return cls(method, split, train, validation, config, seeds, folder, statistic, widths)

    # -- the folder ---------------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """The content of ``run.json``."""
        split = self.split
        return {
            "method": method_spec(self.method),
            "model": asdict(self.config.model),
            "train": asdict(self.config.train),
            "widths": asdict(self.widths),
            "seeds": list(self.seeds),
            "task": files.task_spec(split.train.task),
            "statistic": self.statistic.spec() if isinstance(self.statistic, InformationStatistic) else None,
            "data": {
                "source": Path(split.train.source).name,
                "env_id": split.train.env_id,
                "hash": split.train.content_hash,
                "episodes": len(split.train),
                "steps": split.train.steps,
            },
            "split": {
                "groups": list(split.groups),
                "train": split.train_index.tolist(),
                "held_out": split.held_out_index.tolist(),
            },
            "versions": files.versions(),
        }

    def write(self) -> None:
        """Write what does not change during training."""
        description = self.describe()
        if isinstance(self.statistic, InformationStatistic):
            files.write_tensors(self.folder / files.EPISODES, self._episodes(self.statistic))
        if len(self.split.held_out):
            write_minari(self.split.held_out, self.folder / files.HELD_OUT, overwrite=True)
        files.write_json(self.folder / files.RUN, description)

    def _episodes(self, statistic: InformationStatistic) -> dict[str, Tensor]:
        """The training episodes as targets see them."""
        aggregator = statistic.aggregator
        bins: Bins | None = aggregator.bins if isinstance(aggregator, Histogram) else None
        reference = EpisodeReference.of(self.split.train, statistic.feature, bins, self.widths.horizon)
        return {
            "indices": torch.from_numpy(reference.indices),
            "lengths": torch.from_numpy(reference.lengths),
            "totals": torch.from_numpy(reference.totals),
            "finals": torch.from_numpy(reference.finals),
            "low": torch.tensor(reference.context.bins.low, dtype=torch.float64),
            "high": torch.tensor(reference.context.bins.high, dtype=torch.float64),
        }

    def check_same(self, stored: dict[str, Any]) -> None:
        """Refuse to resume a run that was something else."""
        described = self.describe()
        if stored["data"]["hash"] != described["data"]["hash"]:
            raise DataError(
                f"{self.folder} was trained on other data (sha256 {stored['data']['hash'][:12]}, now "
                f"{described['data']['hash'][:12]}); resume with the same source and split"
            )
        for key in ("method", "model", "train", "seeds"):
            new = json.loads(json.dumps(described[key]))
            if stored[key] != new:
                raise DataError(f"{self.folder} was started with other settings ({key}: {stored[key]}, now {new})")

    # -- training -----------------------------------------------------------------------------------------------

    def run(self, device: torch.device, *, stream: bool | None, trackers: tuple[str, ...], quiet: bool) -> None:
        """Train to the end, or to the signal that interrupts."""
        torch.manual_seed(self.seeds[0])
        agent = Agent(self.method, self.config.model, self.widths, self.seeds).to(device)
        with self._relabelled() as (z, validation_z):
            normalizers = Normalizers.fit(self.split.train, z, standardize_z=self.method.standardize)
            files.write_tensors(self.folder / files.NORMALIZERS, normalizers.tensors())
            shape = self._shape()
            windows = make_windows(self.train, z, shape, normalizers, device, stream=stream)
            validation = None
            if len(self.validation) and self.validation.lengths.max() >= shape.context:
                validation = DeviceWindows(self.validation, validation_z, shape, normalizers, device)
            state = None
            if (self.folder / files.TRAINING).is_file():
                state = files.read_tensors(self.folder / files.TRAINING)
            logs = make_trackers(trackers, self.folder, self.describe())
            for phase in self._phases(agent):
                stored = None
                if state is not None:
                    if int(state["phase"]) > phase.number:
                        phase.skip(agent)
                        continue
                    stored = state if int(state["phase"]) == phase.number else None
                engine = Engine(
                    agent, windows, phase.config, device, losses=phase.losses(agent), trainable=phase.trainable
                )
                _Loop(self, engine, phase, validation, stored, quiet=quiet, trackers=logs).run()
                phase.finish(agent, engine)
            plot_losses(self.folder, self.seeds)

    def _phases(self, agent: Agent) -> list[_Phase]:
        policy = _Phase(1, "training", self.config.train, ("",))
        if isinstance(self.method, UnsupervisedMethod) and self.method.mode == "frozen":
            config = replace(self.config.train, steps=self.method.pretrain_steps, warmup=0)
            return [_Phase(0, "pretraining", config, ("codes.",)), policy]
        return [policy]

    def _shape(self) -> Shape:
        context = self.config.model.context
        if not isinstance(self.method, LearnedMethod):
            return Shape(context)
        _, states = self.method.codes_and_states(context)
        return Shape(context, states, 0 if self.method.literal else self.method.look_ahead, self.method.literal)

    @contextmanager
    def _relabelled(self) -> Iterator[tuple[Array | None, Array | None]]:
        """Z of training and validation episodes; beside mapped data it is mapped too."""
        if not isinstance(self.statistic, InformationStatistic):
            yield None, None
            return
        validation = self.statistic.relabel(self.validation) if len(self.validation) else None
        if not isinstance(self.train.observations, np.memmap):
            yield self.statistic.relabel(self.train), validation
            return
        with tempfile.TemporaryDirectory() as place:
            shape = (self.train.steps, self.widths.z)
            mapped = np.lib.format.open_memmap(Path(place) / "z.npy", mode="w+", dtype=np.float32, shape=shape)
            yield self.statistic.relabel(self.train, out=mapped), validation


@dataclass(frozen=True)
class _Phase:
    """One stretch of training: the policy's, or before it that of an encoder which is then frozen."""

    number: int
    title: str
    config: TrainConfig
    trainable: tuple[str, ...]

    def losses(self, agent: Agent) -> Any:
        """What this phase minimises."""
        if self.number == 1:
            return agent.training_losses

        def unsupervised(batch: Any) -> tuple[Tensor, Tensor]:
            loss = agent.unsupervised_losses(batch)
            return loss, loss

        return unsupervised

    def skip(self, agent: Agent) -> None:
        """The phase was finished before; its weights come with the next one's state."""
        if agent.codes is not None:
            agent.codes.requires_grad_(False)

    def finish(self, agent: Agent, engine: Engine) -> None:
        """Freeze what a pretraining phase has learned."""
        if self.number == 0:
            engine.flat.release()
            self.skip(agent)


class _Loop:
    """Steps, looks, checkpoints and signals."""

    def __init__(
        self,
        job: _Job,
        engine: Engine,
        phase: _Phase,
        validation: DeviceWindows | None,
        stored: dict[str, Tensor] | None,
        *,
        quiet: bool,
        trackers: Any,
    ) -> None:
        self.job, self.engine, self.phase, self.quiet = job, engine, phase, quiet
        self.validation = validation
        stack = len(job.seeds)
        self.best = engine.flat.master.detach().clone()
        self.best_loss = torch.full((stack,), torch.inf)
        if stored is not None:
            engine.restore(stored)
            engine.step = int(stored["step"])
            self.best.copy_(stored["best"])
            self.best_loss.copy_(stored["best_loss"])
        self.metrics = Metrics(job.folder, job.seeds, engine.step, trackers if phase.number == 1 else ())

    def run(self) -> None:
        """Train to the end of the phase."""
        engine, steps = self.engine, self.phase.config.steps
        every = max(1, steps // LOOKS)
        losses: list[Tensor] = []
        started, first, saved = time.perf_counter(), engine.step, time.perf_counter()
        title = f"{self.phase.title} {self.job.method.name}" + (
            f" x{len(self.job.seeds)}" if len(self.job.seeds) > 1 else ""
        )
        with _signals() as stopped, progress_bar(title, steps, engine.step, quiet=self.quiet) as update:
            next_look = (engine.step // every + 1) * every
            for chunk in engine.run(steps):
                losses.append(chunk)
                rate = (engine.step - first) / (time.perf_counter() - started)
                update(engine.step, float(chunk[-1].mean()), rate)
                if engine.step >= min(next_look, steps):
                    self._look(torch.cat(losses).mean(0), rate)
                    losses, next_look = [], (engine.step // every + 1) * every
                if stopped.is_set():
                    self.save()
                    raise Interrupted(
                        f"stopped at step {engine.step} of {steps}; everything is saved in {self.job.folder}, "
                        "continue with --resume"
                    )
                if time.perf_counter() - saved > SAVE_EVERY:
                    self.save()
                    saved = time.perf_counter()
        self.save()
        self.metrics.close()

    def _look(self, loss: Tensor, rate: float) -> None:
        """Write a row of metrics and keep the best weights."""
        step = self.engine.step
        rows: list[dict[str, float]] = [
            {"loss": float(x), "learning_rate": learning_rate(self.phase.config, step - 1), "steps_per_second": rate}
            for x in loss
        ]
        if self.phase.number == 0:
            return
        if self.validation is not None:
            found = self.validate()
            for row, value in zip(rows, found, strict=True):
                row["validation"] = float(value)
            better = (found < self.best_loss).to(self.best.device)
            self.best[better] = self.engine.flat.master.detach()[better]
            self.best_loss = torch.minimum(found, self.best_loss)
        else:
            self.best.copy_(self.engine.flat.master.detach())
        self.metrics.write(step, rows)

    @torch.no_grad()
    def validate(self) -> Tensor:
        """Loss of every model on fixed windows of the validation slice, ``(K,)``."""
        assert self.validation is not None
        stack, total = len(self.job.seeds), len(self.validation.index.row)
        rng = np.random.default_rng(0)
        chosen = torch.from_numpy(rng.integers(total, size=VALIDATION_WINDOWS)).expand(stack, -1)
        ahead = torch.from_numpy(rng.integers(self.validation.shape.look_ahead + 1, size=VALIDATION_WINDOWS))
        device = self.engine.device
        agent = self.engine.agent.eval()
        found = agent.losses(self.validation.batch(chosen.to(device), ahead.expand(stack, -1).to(device)))
        agent.train()
        return found.float().cpu()

    def save(self) -> None:
        """Write the weights of every seed and what resuming needs."""
        engine, folder = self.engine, self.job.folder
        state = engine.snapshot()
        state |= {
            "step": torch.tensor(engine.step),
            "phase": torch.tensor(self.phase.number),
            "best": self.best,
            "best_loss": self.best_loss,
        }
        others = {n.removeprefix("other."): t for n, t in state.items() if n.startswith("other.")}
        if self.phase.number == 1:
            for model, seed in enumerate(self.job.seeds):
                fixed = {name: tensor[model].float() for name, tensor in others.items()}
                for name, flat in ((files.LAST, engine.flat.master), (files.BEST, self.best)):
                    weights = engine.flat.state(flat, model) | fixed
                    files.write_tensors(files.seed_folder(folder, seed) / name, weights, step=str(engine.step))
        files.write_tensors(folder / files.TRAINING, state)


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """An event that SIGINT or SIGTERM sets; a second signal interrupts at once."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def handle(_: int, __: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
