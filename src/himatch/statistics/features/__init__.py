"""Features: what of a step is counted, summed or matched."""

from __future__ import annotations

import re

from himatch.errors import TaskError, suggestion
from himatch.statistics.features.feature import Coordinates, Feature, Function, Reward, Stack, State, of_each
from himatch.statistics.features.stepwise import Stepwise
from himatch.tasks import Task, get_task

__all__ = [
    "Coordinates",
    "Feature",
    "Function",
    "Reward",
    "Stack",
    "State",
    "Stepwise",
    "feature_names",
    "of_each",
    "resolve_feature",
]


def resolve_feature(feature: str | Feature, task: Task | str) -> Feature:
    """The feature of that name for a task or the task of that name.

    ``reward``, ``state``, any feature the task names, ``obs[3]`` or ``act[0]``, and several joined with commas.
    """
    if not isinstance(feature, str):
        return feature
    task = get_task(task)
    parts = [part.strip() for part in feature.split(",")]
    return _one(parts[0], task) if len(parts) == 1 else Stack(tuple(_one(part, task) for part in parts))


def feature_names(task: Task, *, has_rewards: bool) -> tuple[str, ...]:
    """The named features of a task that data with or without rewards can give."""
    return (("reward",) if has_rewards else ()) + tuple(task.features)


def _one(name: str, task: Task) -> Feature:
    if name == "reward":
        return Reward()
    if name == "state":
        return State()
    indexed = re.fullmatch(r"(obs|act)\[(\d+)\]", name)
    if indexed:
        index, of_action = int(indexed[2]), indexed[1] == "act"
        width = task.action_width if of_action else task.observation_width
        if width is not None and index >= width:
            raise TaskError(f"feature {name!r} is beyond the {width} coordinates of task {task.name}")
        return Coordinates(name, (index,), of_action)
    if name not in task.features:
        known = ("reward", "state", *task.features, "obs[i]", "act[i]")
        near = suggestion(name, known)
        raise TaskError(
            f"task {task.name} has no feature {name!r}; it has {', '.join(known)}" + (f"; {near}" if near else "")
        )
    source = task.features[name]
    if callable(source):
        return Function(name, source)
    if isinstance(source, str):  # act[0]
        return Coordinates(name, (int(source[4:-1]),), of_action=True)
    return Coordinates(name, (source,) if isinstance(source, int) else tuple(source))
