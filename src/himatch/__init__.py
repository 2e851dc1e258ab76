"""himatch: hindsight information matching.

One policy, trained offline from logged trajectories, and conditioned at run time on what its future should look like.
Names are imported when first used, so that ``import himatch`` stays quick.
"""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from himatch._version import __version__

# PyTorch's threads spin while they wait for one another, for long by default: beside another busy program they then
# come to almost nothing. A short spin is as quick on an idle machine. Read when PyTorch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

if TYPE_CHECKING:
    from himatch.api import evaluate as evaluate
    from himatch.api import train as train
    from himatch.data import Split as Split
    from himatch.data import TrajectoryDataset as TrajectoryDataset
    from himatch.data import label_split as label_split
    from himatch.data import load_dataset as load_dataset
    from himatch.data import paper_split as paper_split
    from himatch.data import random_split as random_split
    from himatch.data import write_minari as write_minari
    from himatch.data.inspection import inspect_dataset as inspect_dataset
    from himatch.datagen import collect_dataset as collect_dataset
    from himatch.datagen import make_dataset as make_dataset
    from himatch.errors import HimatchError as HimatchError
    from himatch.errors import HimatchWarning as HimatchWarning
    from himatch.evaluation.result import MatchResult as MatchResult
    from himatch.experts import load_expert as load_expert
    from himatch.interchange import export_onnx as export_onnx
    from himatch.interchange import import_hugging_face as import_hugging_face
    from himatch.interchange import push as push
    from himatch.methods import BC as BC
    from himatch.methods import BDT as BDT
    from himatch.methods import CDT as CDT
    from himatch.methods import DT as DT
    from himatch.methods import DTAE as DTAE
    from himatch.methods import DTCPC as DTCPC
    from himatch.methods import DTE2E as DTE2E
    from himatch.methods import FOCAL as FOCAL
    from himatch.methods import GCSL as GCSL
    from himatch.methods import GH as GH
    from himatch.methods import HIPI as HIPI
    from himatch.methods import RCP as RCP
    from himatch.methods import UDRL as UDRL
    from himatch.methods import GoalDT as GoalDT
    from himatch.methods import MetaBC as MetaBC
    from himatch.methods import MomentsDT as MomentsDT
    from himatch.methods import MultiTask as MultiTask
    from himatch.methods import make_method as make_method
    from himatch.policy import Policy as Policy
    from himatch.policy import load as load
    from himatch.rounds import online as online
    from himatch.simulation import make_simulator as make_simulator
    from himatch.statistics.bins import Bins as Bins
    from himatch.statistics.features import resolve_feature as resolve_feature
    from himatch.statistics.information import InformationStatistic as InformationStatistic
    from himatch.statistics.information import LearnedStatistic as LearnedStatistic
    from himatch.statistics.information import command_based as command_based
    from himatch.statistics.information import distribution_based as distribution_based
    from himatch.statistics.information import full_trajectory as full_trajectory
    from himatch.statistics.information import goal_based as goal_based
    from himatch.statistics.information import moment_based as moment_based
    from himatch.statistics.information import multi_task as multi_task
    from himatch.statistics.information import return_based as return_based
    from himatch.targets import EpisodeReference as EpisodeReference
    from himatch.targets import Target as Target
    from himatch.targets import as_target as as_target
    from himatch.targets import demo as demo
    from himatch.targets import parse_target as parse_target
    from himatch.tasks import Discrete as Discrete
    from himatch.tasks import Task as Task
    from himatch.tasks import get_task as get_task
    from himatch.tasks import register_task as register_task
    from himatch.tasks import task_names as task_names
    from himatch.types import Trajectory as Trajectory

_ROOMS = {
    "data": (
        "Split",
        "TrajectoryDataset",
        "label_split",
        "load_dataset",
        "paper_split",
        "random_split",
        "write_minari",
    ),
    "data.inspection": ("inspect_dataset",),
    "datagen": (
        "collect_dataset",
        "make_dataset",
    ),
    "errors": (
        "HimatchError",
        "HimatchWarning",
    ),
    "evaluation.result": ("MatchResult",),
    "experts": ("load_expert",),
    "interchange": (
        "export_onnx",
        "import_hugging_face",
        "push",
    ),
    "methods": (
        "BC",
        "BDT",
        "CDT",
        "DT",
        "DTAE",
        "DTCPC",
        "DTE2E",
        "FOCAL",
        "GCSL",
        "GH",
        "GoalDT",
        "HIPI",
        "MetaBC",
        "MomentsDT",
        "MultiTask",
        "RCP",
        "UDRL",
        "make_method",
    ),
    "policy": ("Policy", "load"),
    "rounds": ("online",),
    "simulation": ("make_simulator",),
    "statistics.bins": ("Bins",),
    "statistics.features": ("resolve_feature",),
    "statistics.information": (
        "InformationStatistic",
        "LearnedStatistic",
        "command_based",
        "distribution_based",
        "full_trajectory",
        "goal_based",
        "moment_based",
        "multi_task",
        "return_based",
    ),
    "targets": (
        "EpisodeReference",
        "Target",
        "as_target",
        "demo",
        "parse_target",
    ),
    "tasks": (
        "Discrete",
        "Task",
        "get_task",
        "register_task",
        "task_names",
    ),
    "api": ("evaluate", "train"),
    "types": ("Trajectory",),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"himatch.{_HOME[name]}"), name)
    if not name.startswith("_") and find_spec(f"himatch.{name}") is not None:
        return importlib.import_module(f"himatch.{name}")  # a room, for those who extend himatch
    raise AttributeError(f"module 'himatch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
