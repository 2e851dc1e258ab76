"""Which results make up which table of the paper. A new table is an entry in :data:`LAYOUTS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from himatch.reproduce.results import TargetScore
from himatch.reproduce.suites import PLANAR

BDT = "BDT (m=16, N=50)"
AVERAGE = "average"


@dataclass(frozen=True)
class Layout:
    """One table: where its cells come from and how its columns are arranged.

    ``groups`` are the columns of each task. The average runs over tasks (of the groups in ``averaged``; the paper's is
    that of the first) or, in tables of a single task, over its groups.
    """

    label: str
    suite: str
    feature: str
    title: str
    groups: tuple[str, ...] = ("expert", "medium", "total")
    tasks: tuple[str, ...] = PLANAR
    averaged: tuple[str, ...] = ("total",)
    over: Literal["tasks", "groups"] = "tasks"
    measure: Literal["w1", "return"] = "w1"
    option: str | None = None
    """Only methods with this option (the paper's short table has ``m=16``)."""
    pictured: bool = True
    """Whether histograms go with it; not where another table shows the same ones."""
    published: bool = True
    """Whether the paper used a public dataset; else it made its own."""
    proposed: str = "Categorical DT"
    """The method that the paper sets against the others."""


LAYOUTS = (
    Layout("xvel_match_main", "xvel", "x_velocity", "X-velocity matching"),
    Layout("reward_match", "reward", "reward", "Reward matching"),
    Layout(
        "synthesized_smm",
        "synthetic",
        "x_velocity",
        "Synthetic targets",
        groups=("listed", "shuffled"),
        averaged=("listed", "shuffled"),
    ),
    Layout(
        "cheetah_vel_match_main",
        "cheetah-vel",
        "x_velocity",
        "Unseen target velocities",
        groups=("0.5", "1.5", "2.5"),
        tasks=("cheetah-vel",),
        over="groups",
        published=False,
    ),
    Layout(
        "zvel_match_main",
        "zvel",
        "z_velocity",
        "Running and back-flips",
        groups=("uni-modal", "bi-modal"),
        tasks=("halfcheetah",),
        over="groups",
        published=False,
    ),
    Layout(
        "xyvel_match_main",
        "ant-xy",
        "xy_velocity",
        "Two-dimensional velocities",
        groups=("expert", "medium"),
        tasks=("ant",),
        over="groups",
    ),
    Layout(
        "unsupervised_xvel_16",
        "imitation",
        "x_velocity",
        "One-shot imitation, x-velocity",
        option="m=16",
        proposed=BDT,
    ),
    Layout(
        "unsupervised_xvel",
        "imitation",
        "x_velocity",
        "One-shot imitation, x-velocity, all code sizes",
        pictured=False,
        proposed=BDT,
    ),
    Layout("unsupervised_reward", "imitation", "reward", "One-shot imitation, reward, all code sizes", proposed=BDT),
    Layout("shift_xvel_match", "shift", "x_velocity", "Shifted targets, x-velocity"),
    Layout("shift_reward_match_full", "shift", "reward", "Shifted targets, reward"),
    Layout(
        "imitation",
        "return",
        "reward",
        "Returns",
        groups=("expert", "medium"),
        averaged=(),
        measure="return",
    ),
)


@dataclass(frozen=True)
class Column:
    """A column under the heading of its task; its score is the mean over ``parts`` (task, group)."""

    key: str
    """Name of the column in the paper's data."""
    head: str
    title: str
    parts: tuple[tuple[str, str], ...]

    @property
    def is_average(self) -> bool:
        """Whether it averages others."""
        return len(self.parts) > 1


def columns_of(layout: Layout, tasks: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of a table with these tasks; an average over one task says nothing new."""
    columns = [
        Column(f"{task}/{group}", task, group.capitalize(), ((task, group),))
        for task in tasks
        for group in layout.groups
    ]
    if layout.over == "groups":
        for task in tasks:
            key = AVERAGE if task in layout.tasks else f"{task}/{AVERAGE}"
            columns.append(Column(key, "Average", "", tuple((task, group) for group in layout.groups)))
    elif len(tasks) > 1:
        for i, group in enumerate(layout.averaged):
            title = group.capitalize() if len(layout.averaged) > 1 else ""
            key = AVERAGE if i == 0 else f"{AVERAGE}/{group}"
            columns.append(Column(key, "Average", title, tuple((task, group) for task in tasks)))
    return tuple(columns)


def belongs(target: TargetScore, group: str) -> bool:
    """Whether a target counts in a group of a table."""
    if group in ("listed", "shuffled"):
        return target.ordering == group
    return group == "total" or target.group == group
