"""What training tells: a JSONL file per seed, trackers, and a picture of the losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from himatch._runtime.files import add_row, read_rows, write_rows
from himatch._runtime.tensors import read_facts
from himatch.errors import HimatchError, note, one_line
from himatch.runs.folder import BEST, METRICS, TENSORBOARD, read_run, seed_folder
from himatch.viz import losses
from himatch.viz.losses import LossCurve

TRACKERS = ("tensorboard", "wandb", "trackio")


class Tracker(Protocol):
    """Somewhere else that wants the numbers."""

    def log(self, values: dict[str, float], step: int) -> None:
        """Take one row."""

    def close(self) -> None:
        """No more rows."""


class Metrics:
    """Rows of numbers over time, one JSONL file per seed; opening drops rows after ``step`` (a resumed run)."""

    def __init__(self, run: Path, seeds: tuple[int, ...], step: int, trackers: tuple[Tracker, ...] = ()) -> None:
        self.run, self.seeds, self.trackers = run, seeds, trackers
        for seed in seeds:
            path = seed_folder(run, seed) / METRICS
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = [row for row in read_rows(path) if row["step"] <= step] if step else []
            write_rows(path, kept)

    def write(self, step: int, rows: list[dict[str, float]]) -> None:
        """Add one row per seed."""
        for seed, row in zip(self.seeds, rows, strict=True):
            add_row(seed_folder(self.run, seed) / METRICS, {"step": step, **row})
        many = len(self.seeds) > 1
        told = {
            f"seed-{s}/{k}" if many else k: v for s, row in zip(self.seeds, rows, strict=True) for k, v in row.items()
        }
        for tracker in self.trackers:
            tracker.log(told, step)


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
def tracking(names: tuple[str, ...], run: Path, config: dict[str, Any]) -> Iterator[tuple[Tracker, ...]]:
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


def _tracker(name: str, run: Path, config: dict[str, Any]) -> Tracker:
    if name == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter

        return _TensorBoard(SummaryWriter(str(run / TENSORBOARD)))
    return _Hosted(import_module(name), run, config)


class _Careful:
    """A tracker that does not stop the training when it fails: it is told no more."""

    def __init__(self, name: str, tracker: Tracker) -> None:
        self.name, self.tracker = name, tracker
        self.failed = False

    def log(self, values: dict[str, float], step: int) -> None:
        if not self.failed:
            self._try(lambda: self.tracker.log(values, step))

    def close(self) -> None:
        self._try(self.tracker.close)

    def _try(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception as reason:  # somebody else's code and network
            self.failed = True
            note(f"the tracker {self.name} failed and is told no more ({one_line(reason)})")


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

    def __init__(self, module: Any, run: Path, config: dict[str, Any]) -> None:
        self.module = module
        module.init(project="himatch", name=run.name, config=config)

    def log(self, values: dict[str, float], step: int) -> None:
        self.module.log(values, step=step)

    def close(self) -> None:
        self.module.finish()


def best_weights(run: Path, seeds: tuple[int, ...]) -> str:
    """Of which step they are, and what chose them."""
    last = read_rows(seed_folder(run, seeds[0]) / METRICS)[-1]
    steps = [read_facts(seed_folder(run, seed) / BEST)["step"] for seed in seeds]
    return f"step {', '.join(steps)} of {last['step']} ({read_run(run).get('best', 'chosen by an earlier himatch')})"


def plot_losses(run: Path, seeds: tuple[int, ...]) -> Path | None:
    """Draw training and validation loss of every seed into ``loss.png``."""
    curves = [LossCurve.of_rows(f"seed {seed}", read_rows(seed_folder(run, seed) / METRICS)) for seed in seeds]
    return losses.plot_losses(curves, run.name, run / "loss.png")
