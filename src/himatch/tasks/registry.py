"""Tasks by name: the paper's, the user's, and those that installed packages announce."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from himatch._runtime.extras import installed
from himatch.errors import TaskError, note
from himatch.tasks.discrete import Discrete
from himatch.tasks.imports import import_code
from himatch.tasks.locomotion import LOCOMOTION
from himatch.tasks.mazes import POINT_MAZES
from himatch.tasks.physics import import_gymnasium
from himatch.tasks.spaces import EnvironmentFacts, environment_facts
from himatch.tasks.task import FeatureSource, Task

ENTRY_POINT_GROUP = "himatch.tasks"

_registry: dict[str, Task] = {task.name: task for task in (*LOCOMOTION, *POINT_MAZES)}
_entry_points_loaded = False


def register_task(
    name: str,
    *,
    env_id: str | None = None,
    horizon: int | None = None,
    observation_width: int | None = None,
    action_width: int | None = None,
    action_low: float | Sequence[float] | None = None,
    action_high: float | Sequence[float] | None = None,
    features: Mapping[str, FeatureSource] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    reference_returns: tuple[float, float] | None = None,
    prefix_only: bool = False,
    rate: float | None = None,
    discrete: int | Discrete | None = None,
) -> Task:
    """Describe a task of your own and make it known by name.

    With ``env_id`` whatever you leave out is read off the environment, which is made once for that; give both widths
    and the horizon to avoid it. Without ``env_id`` (logs of a robot) only ``horizon`` is needed. Registering a name
    again replaces the task. ``discrete`` says how many actions there are to choose from, where they are no vectors.
    """
    choices = None if discrete is None else Discrete.of(discrete)
    action_width = choices.count if action_width is None and choices is not None else action_width
    if env_id is not None and (observation_width is None or action_width is None or horizon is None):
        facts = environment_facts(env_id, env_kwargs or {})
        observation_width = observation_width or facts.observation_width
        action_width = action_width or facts.action_width
        horizon = horizon or facts.horizon
        rate = facts.rate if rate is None else rate
        choices = _same(name, choices, facts)
        if action_low is None and action_high is None:
            action_low, action_high = facts.action_low, facts.action_high
    if horizon is None:
        raise TaskError(f"task {name}: give a horizon (the longest episode, in steps)")
    task = Task(
        name=name,
        horizon=horizon,
        observation_width=observation_width,
        action_width=action_width,
        action_low=action_low,
        action_high=action_high,
        features=features or {},
        env_id=env_id,
        env_kwargs=env_kwargs or {},
        reference_returns=reference_returns,
        prefix_only=prefix_only,
        rate=rate,
        discrete=choices,
    )
    _registry[name] = task
    return task


def _same(name: str, stated: Discrete | None, facts: EnvironmentFacts) -> Discrete | None:
    """The actions of the environment, which those that somebody stated must be."""
    if stated not in (None, facts.discrete):
        found = "continuous" if facts.discrete is None else facts.discrete
        raise TaskError(f"task {name}: its actions are {stated} as you say, and {found} in its environment")
    return facts.discrete


def get_task(name: str | Task) -> Task:
    """The task of that name; a ``Task`` is handed through."""
    if isinstance(name, Task):
        return name
    if name not in _registry:
        _load_entry_points()
    if name not in _registry:
        raise TaskError(
            f"unknown task {name!r}; known: {', '.join(task_names())}. Register your own with himatch.register_task, "
            "on the command line through --import FILE.py"
        )
    return _registry[name]


def task_names() -> tuple[str, ...]:
    """All registered names, the paper's first."""
    _load_entry_points()
    return tuple(_registry)


def task_of_environment(env_id: str) -> Task | None:
    """The registered task that runs this environment, whatever its version."""
    _load_entry_points()
    for task in _registry.values():
        if task.env_id is not None and environment_name(task.env_id) == environment_name(env_id):
            return task
    return None


def environment_name(env_id: str) -> str:
    """The environment without its version: ``Hopper`` of ``Hopper-v5``."""
    return re.sub(r"-v\d+$", "", env_id)


def has_versions(env_id: str) -> bool:
    """Whether there are several versions of this environment; physics and rewards differ between them.

    Gymnasium knows. Where it is not installed, an id that ends in another version than v0 had others before it.
    """
    if not installed("gymnasium"):
        return environment_name(env_id) != env_id and not env_id.endswith("-v0")
    registry = import_gymnasium("the list of environments").registry
    return sum(environment_name(known) == environment_name(env_id) for known in registry) > 1


def import_tasks(*modules: str) -> None:
    """Import files of the user's (``my_tasks.py``) or modules by name, for what they register; each runs once."""
    for module in modules:
        import_code(module, f"--import {module}")


def _load_entry_points() -> None:
    global _entry_points_loaded
    if _entry_points_loaded:
        return
    _entry_points_loaded = True
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            announced = entry.load()  # either a Task, or a module whose import registers some
        except Exception as reason:  # somebody else's plugin must not take the program down
            note(f"the tasks of {entry.name} could not be loaded: {reason}")
            continue
        if isinstance(announced, Task):
            _registry.setdefault(announced.name, announced)
