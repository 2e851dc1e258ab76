"""The run folder: everything matching needs, without the dataset and without running code.

::

    run.json                 method, model, training and task as data; statistic, seeds, split, data hash, versions
    normalizers.safetensors  what maps raw numbers to what the networks see
    episodes.safetensors     training episodes as bin indices, totals and final values of the matched feature
    held_out/                held-out episodes, a Minari folder
    seed-0/last.safetensors  weights; best.safetensors are those that did best on the validation slice
    seed-0/metrics.jsonl     losses over time
    training.safetensors     what --resume continues from
    evaluation.json          what himatch evaluate found
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from himatch.errors import DataError, TaskError
from himatch.tasks import Task, get_task

RUN, NORMALIZERS, EPISODES = "run.json", "normalizers.safetensors", "episodes.safetensors"
HELD_OUT, TRAINING = "held_out", "training.safetensors"
LAST, BEST, METRICS = "last.safetensors", "best.safetensors", "metrics.jsonl"
EVALUATION, CARD = "evaluation.json", "README.md"

PORTABLE = (RUN, NORMALIZERS, EPISODES, f"seed-*/{BEST}", EVALUATION, CARD)
"""What a run is on the Hub, as patterns: enough to load and match, none of it code."""


def seed_folder(run: Path, seed: int) -> Path:
    """Where one seed's weights and metrics lie."""
    return run / f"seed-{seed}"


def read_run(folder: Path) -> dict[str, Any]:
    """The description of a run."""
    path = folder / RUN
    if not path.is_file():
        raise DataError(f"{folder} is not a run folder (no {RUN} in it)")
    try:
        content = json.loads(path.read_text())
    except ValueError as reason:
        raise DataError(f"{path}: damaged ({reason}); train again") from None
    if not isinstance(content, dict) or "method" not in content:
        raise DataError(f"{path}: not the description of a run")
    return content


@dataclass(frozen=True)
class StoredTask:
    """A task as data; features that are functions are stored by name only."""

    name: str
    horizon: int
    observation_width: int | None
    action_width: int | None
    action_low: Any
    action_high: Any
    coordinates: dict[str, Any]
    functions: list[str]
    env_id: str | None
    env_kwargs: dict[str, Any]
    reference_returns: tuple[float, float] | None
    prefix_only: bool


def task_spec(task: Task) -> dict[str, Any]:
    """Plain JSON values that describe a task."""
    return asdict(
        StoredTask(
            task.name,
            task.horizon,
            task.observation_width,
            task.action_width,
            task.action_low,
            task.action_high,
            {name: source for name, source in task.features.items() if not callable(source)},
            [name for name, source in task.features.items() if callable(source)],
            task.env_id,
            dict(task.env_kwargs),
            task.reference_returns,
            task.prefix_only,
        )
    )


def task_from_spec(spec: dict[str, Any]) -> Task:
    """The registered task of that name, which knows its functions; else the task as it was stored."""
    try:
        return get_task(spec["name"])
    except TaskError:
        stored = StoredTask(**spec)
    if stored.functions:
        raise TaskError(
            f"task {stored.name!r} is not registered, and its feature {stored.functions[0]!r} is a function, which no "
            "run holds; register the task first: --import FILE.py, or in Python import that file"
        )
    fields = {k: v for k, v in spec.items() if k not in ("coordinates", "functions", "reference_returns")}
    references = tuple(stored.reference_returns) if stored.reference_returns else None
    return Task(**fields, features=stored.coordinates, reference_returns=references)  # type: ignore[arg-type]
