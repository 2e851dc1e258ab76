"""Metrics: a JSONL file per seed, trackers, and a picture of the losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from himatch.errors import HimatchError, note, one_line
from himatch.runs.folder import RunFolder
from himatch.viz import losses
from himatch.viz.losses import LossCurve

TRACKERS = ("tensorboard", "wandb", "trackio")


class Tracker(Protocol):
    """Somewhere else that takes the numbers."""

    def log(self, values: dict[str, float], step: int) -> None:
        """Take one row."""

    def close(self) -> None:
        """No more rows."""


class Metrics:
    """Rows of numbers over time, one file per seed; opening drops rows after ``step`` (a resumed run)."""

    def __init__(
        self, folder: RunFolder, seeds: tuple[int, ...], step: int, trackers: tuple[Tracker, ...] = ()
    ) -> None:
        self.folder, self.seeds, self.trackers = folder, seeds, trackers
        folder.begin_metrics(seeds, step)

    def write(self, step: int, rows: list[dict[str, float]]) -> None:
        """Add one row per seed."""
        for seed, row in zip(self.seeds, rows, strict=True):
            self.folder.add_metrics(seed, {"step": step, **row})
        many = len(self.seeds) > 1
        values = {
            f"seed-{s}/{k}" if many else k: v for s, row in zip(self.seeds, rows, strict=True) for k, v in row.items()
        }
        for tracker in self.trackers:
            tracker.log(values, step)


def check_trackers(names: tuple[str, ...]) -> None:
    """Refuse what is unknown or not installed, before anything is written."""
    for name in names:
        if name not in TRACKERS:
            raise HimatchError(f"unknown tracker {name!r}; known are {', '.join(TRACKERS)}")
        try:
            import_module("torch.utils.tensorboard" if name == "tensorboard" else name)
        except ImportError:
            raise HimatchError(f'the tracker {name} is not installed: pip install "himatch[{name}]"') from None


@contextmanager
def tracking(names: tuple[str, ...], run: RunFolder, config: dict[str, Any]) -> Iterator[tuple[Tracker, ...]]:
    """TensorBoard, Weights & Biases or Trackio, each an extra of the same name; closed however training ends."""
    with ExitStack() as closing:
        made = []
        for name in names:
            try:
                made.append(_Careful(name, _tracker(name, run, config)))
            except Exception as reason:  # no login, no network, no room
                raise HimatchError(f"the tracker {name} cannot be started ({one_line(reason)})") from reason
            closing.callback(made[-1].close)
        yield tuple(made)


def _tracker(name: str, run: RunFolder, config: dict[str, Any]) -> Tracker:
    if name == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter

        return _TensorBoard(SummaryWriter(str(run.tensorboard)))
    return _Hosted(import_module(name), run, config)


class _Careful:
    """A tracker that does not stop the training when it fails: it gets no more rows."""

    def __init__(self, name: str, tracker: Tracker) -> None:
        self.name, self.tracker = name, tracker
        self.failed = False

    def log(self, values: dict[str, float], step: int) -> None:
        if not self.failed:
            self._try(lambda: self.tracker.log(values, step))

    def close(self) -> None:
        self._try(self.tracker.close)

    def _try(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as reason:  # somebody else's code and network
            self.failed = True
            note(f"the tracker {self.name} failed and gets no more rows ({one_line(reason)})")


class _TensorBoard:
    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def log(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


class _Hosted:
    """Weights & Biases and Trackio share their interface."""

    def __init__(self, module: Any, run: RunFolder, config: dict[str, Any]) -> None:
        self.module = module
        module.init(project="himatch", name=run.path.name, config=config)

    def log(self, values: dict[str, float], step: int) -> None:
        self.module.log(values, step=step)

    def close(self) -> None:
        self.module.finish()


def best_weights(run: RunFolder, seeds: tuple[int, ...]) -> str:
    """Of which step they are, and what selected them."""
    last = run.metrics(seeds[0])[-1]
    steps = [str(run.weights_step(seed, "best")) for seed in seeds]
    selection = run.description().get("best", "chosen by an earlier himatch")
    return f"step {', '.join(steps)} of {last['step']} ({selection})"


def plot_losses(run: RunFolder, seeds: tuple[int, ...]) -> Path | None:
    """Draw training and validation loss of every seed into ``loss.png``."""
    curves = [LossCurve.of_rows(f"seed {seed}", run.metrics(seed)) for seed in seeds]
    return losses.plot_losses(curves, run.path.name, run.loss_picture)
