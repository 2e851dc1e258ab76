"""A task as plain JSON, and back; features that are functions are stored by name only."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from himatch.errors import TaskError, note
from himatch.tasks import Discrete, Task, get_task


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
    discrete: dict[str, int] | None = None


def task_spec(task: Task) -> dict[str, Any]:
    """Plain JSON values that describe a task."""
    found = asdict(
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
            None if task.discrete is None else asdict(task.discrete),
        )
    )
    return {name: value for name, value in found.items() if name != "discrete" or value}  # as runs had it before


def task_from_spec(spec: dict[str, Any]) -> Task:
    """The task as it was stored; the registered one of that name adds what came since, such as a simulator."""
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
    if registered is not None and stored.env_id is None:  # logs came first, a simulator later
        fields |= {"env_id": registered.env_id, "env_kwargs": registered.env_kwargs}
    if registered is not None and stored.env_id in (None, registered.env_id):
        fields["rate"] = registered.rate
    if stored.discrete is not None:
        fields["discrete"] = Discrete.of(stored.discrete)
    references = tuple(stored.reference_returns) if stored.reference_returns else None
    features = {**known, **stored.coordinates}
    task = Task(**fields, features=features, reference_returns=references)  # type: ignore[arg-type]
    if registered is not None:
        _note_changes(task, registered)
    return task


def _note_changes(stored: Task, registered: Task) -> None:
    """Say where a task has changed since a run was trained on it."""
    before, now = (json.loads(json.dumps(task_spec(task))) for task in (stored, registered))
    if registered.discrete is None and registered.action_width is None:  # the data said which there are
        now |= {name: before[name] for name in ("discrete", "action_width") if name in before}
    kept = before.pop("coordinates")
    # What is not registered may be a column of the table that the run was trained on.
    changed = [name for name in kept if name in registered.features and kept[name] != now["coordinates"].get(name)]
    changed += [name for name in before if name != "functions" and before[name] != now.get(name)]
    if changed:
        note(
            f"task {stored.name} as it is registered now differs in {', '.join(changed)} from the one that this run "
            "was trained on; the run keeps its own"
        )
