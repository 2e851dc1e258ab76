"""What of a training can be checked before any data is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from himatch._runtime.devices import find_device
from himatch._runtime.settings import whole
from himatch.data import check_split
from himatch.errors import HimatchError
from himatch.methods import Method
from himatch.runs.attempt import check_folder
from himatch.tasks import Task, get_task
from himatch.training.config import Preset, configure
from himatch.training.metrics import check_trackers

MOST_SEEDS = 2**63  # that PyTorch takes


class Plan(NamedTuple):
    """How a method is trained, and where."""

    method: Method
    folder: Path
    config: Preset
    seeds: tuple[int, ...]
    device: torch.device
    trackers: tuple[str, ...]


def make_plan(
    method: Method,
    *,
    out: str | Path,
    preset: str = "fast",
    seed: int = 0,
    seeds: int = 1,
    resume: bool = False,
    device: str | None = None,
    trackers: str | Sequence[str] = (),
    split: str | None = None,
    task: str | Task | None = None,
    **overrides: Any,
) -> Plan:
    """The parameters of :func:`himatch.train`, each of which is refused if it can be nothing."""
    if not isinstance(method, Method):
        raise HimatchError(
            f"train takes a method such as himatch.CDT(...) or himatch.make_method(NAME), got {method!r}"
        )
    config = configure(preset, method, **overrides)
    first, count = whole("seed", seed), whole("seeds", seeds)
    if count < 1 or first < 0:
        raise HimatchError(f"seeds must be at least 1 and the first one not negative, got {count} from {first}")
    if first + count > MOST_SEEDS:
        raise HimatchError(f"seeds must be below {MOST_SEEDS}, got {count} from {first}")
    where = find_device(device)
    names = (trackers,) if isinstance(trackers, str) else tuple(trackers)
    check_trackers(names)
    if split is not None:
        check_split(split)
    if task is not None:
        method.statistic(get_task(task))  # which refuses a feature that the task does not have
    folder = Path(out)
    check_folder(folder, resume=resume)
    return Plan(method, folder, config, tuple(range(first, first + count)), where, names)
