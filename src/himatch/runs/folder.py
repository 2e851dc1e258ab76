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
    failed.json              why a training ended before it was done; without run.json beside it there is no run
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from himatch.errors import DataError, TaskError, note
from himatch.tasks import Task, get_task

RUN, NORMALIZERS, EPISODES = "run.json", "normalizers.safetensors", "episodes.safetensors"
HELD_OUT, TRAINING = "held_out", "training.safetensors"
LAST, BEST, METRICS = "last.safetensors", "best.safetensors", "metrics.jsonl"
EVALUATION, CARD = "evaluation.json", "README.md"
FAILED, TENSORBOARD = "failed.json", "tensorboard"

PORTABLE = (RUN, NORMALIZERS, EPISODES, f"seed-*/{BEST}", EVALUATION, CARD)
"""What a run is on the Hub, as patterns: enough to load and match, none of it code."""


def seed_folder(run: Path, seed: int) -> Path:
    """Where one seed's weights and metrics lie."""
    return run / f"seed-{seed}"


def holds_weights(run: Path) -> bool:
    """Whether training has saved anything there, or whoever made the run otherwise."""
    return (run / TRAINING).is_file() or any(run.glob("seed-*/*.safetensors"))


def read_run(folder: Path) -> dict[str, Any]:
    """The description of a run."""
    path = folder / RUN
    if not path.is_file():
        why = f"; training failed, as {FAILED} says" if (folder / FAILED).is_file() else ""
        raise DataError(f"{folder} is not a run folder (no {RUN} in it{why})")
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
    """The task as it was stored; the registered one of that name adds functions and features that came later."""
    stored = StoredTask(**spec)
    try:
        registered: Task | None = get_task(stored.name)
    except TaskError:
        registered = None
    known = {} if registered is None else registered.features
    for name in stored.functions:
        if not callable(known.get(name)):
            missing = "is not registered" if registered is None else f"is registered without {name!r}"
            raise TaskError(
                f"task {stored.name!r} {missing}, and its feature {name!r} is a function, which no run holds; register "
                "the task first: --import FILE.py, or in Python import that file"
            )
    fields = {k: v for k, v in spec.items() if k not in ("coordinates", "functions", "reference_returns")}
    references = tuple(stored.reference_returns) if stored.reference_returns else None
    features = {**known, **stored.coordinates}
    task = Task(**fields, features=features, reference_returns=references)  # type: ignore[arg-type]
    if registered is not None:
        _note_changes(task, registered)
    return task


def _note_changes(stored: Task, registered: Task) -> None:
    """Say where a task has changed since a run was trained on it."""
    before, now = (json.loads(json.dumps(task_spec(task))) for task in (stored, registered))
    kept = before.pop("coordinates")
    changed = [name for name in kept if kept[name] != now["coordinates"].get(name)]
    changed += [name for name in before if name != "functions" and before[name] != now[name]]
    if changed:
        note(
            f"task {stored.name} as it is registered now differs in {', '.join(changed)} from the one that this run "
            "was trained on; the run keeps its own"
        )
