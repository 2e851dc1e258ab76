"""Tasks: which environment, how long, and what the numbers in an observation mean."""

from himatch.tasks.discrete import Discrete
from himatch.tasks.registry import get_task, import_tasks, register_task, task_names, task_of_environment
from himatch.tasks.task import FeatureFunction, FeatureSource, Task

__all__ = [
    "Discrete",
    "FeatureFunction",
    "FeatureSource",
    "Task",
    "get_task",
    "import_tasks",
    "register_task",
    "task_names",
    "task_of_environment",
]
