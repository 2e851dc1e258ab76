"""What a suite is: one description of an experiment, from which its jobs and its tables follow.

A suite names its data, its methods, its targets, its protocol and the tables of the paper that it fills. The benchmark
takes jobs from it (:mod:`himatch.reproduce.jobs`), the report the arrangement of its tables and the paper's figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from himatch.methods import METHODS
from himatch.reproduce.budgets import BudgetName
from himatch.reproduce.paper import PaperFigure, PaperTable, paper_tables
from himatch.reproduce.policies import PolicyName
from himatch.reproduce.specification import Specification, display_name, paper_name

TargetKind = Literal[
    "held-out", "synthetic", "shift", "velocities", "patchwork", "unseen", "best", "goals", "tests", "dataset"
]
Scoring = Literal["distance", "success"]
SplitKind = Literal["paper", "velocities", "all"]

PLANAR = ("halfcheetah", "hopper", "walker2d")
AVERAGE = "average"
_CDT = Specification("cdt")


@dataclass(frozen=True)
class SuiteMethod:
    """One row of a suite's tables: a method with its settings, and what it changes in the budget's preset.

    ``matched`` methods are trained for the suite's feature; the others ignore it and serve every suite. ``from_budget``
    is the smallest budget that includes the row by itself. ``policies`` are those that it has where the user chooses
    none; a method with an ``own_head`` cannot have himatch's.
    """

    specification: Specification
    overrides: Mapping[str, Any] = field(default_factory=dict)
    matched: bool = False
    policies: tuple[PolicyName, ...] = ("paper",)
    own_head: bool = False
    from_budget: BudgetName = "smoke"

    def settings(self, feature: str) -> dict[str, Any]:
        """What the method is made with, in a suite that scores a feature."""
        known = self._own_settings()
        own = {name: value for name, value in self.specification.settings if name in known}
        return {**({"feature": feature} if self.matched else {}), **own}

    def changes(self) -> dict[str, Any]:
        """What it changes in the preset: settings of the network and of its training, in its identity or not."""
        known = self._own_settings()
        return {**self.overrides, **{name: value for name, value in self.specification.settings if name not in known}}

    def _own_settings(self) -> set[str]:
        return {setting.name for setting in fields(METHODS[self.specification.name])}


@dataclass(frozen=True)
class TableColumn:
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


@dataclass(frozen=True)
class PublishedRow:
    """What others printed, beside ours."""

    name: str
    figures: Mapping[str, PaperFigure]
    """By the key of a column."""


@dataclass(frozen=True)
class TableLayout:
    """One table: which results its cells come from and how its columns are arranged.

    ``groups`` are the columns of each task. The average runs over tasks (of the groups in ``averaged``; the paper's is
    that of the first) or, in tables of a single task, over its groups.
    """

    label: str
    """The paper's own, unless ``papers`` names it or the paper has none."""
    feature: str
    title: str
    papers: str = ""
    """The paper's label, where a second table of ours stands beside the same one of the paper."""
    groups: tuple[str, ...] = ("expert", "medium", "total")
    tasks: tuple[str, ...] = PLANAR
    averaged: tuple[str, ...] = ("total",)
    over: Literal["tasks", "groups"] = "tasks"
    measure: Literal["w1", "exact", "return", "slope", "share", "missed", "success"] = "w1"
    """``w1`` is the paper's, on the bins of z; ``exact`` that of the values themselves. ``share`` is a return as a part
    of the expert's, ``missed`` the distance to a goal, ``success`` how often one is reached."""
    code_size: int | None = None
    """Only methods with codes of this size (the paper's short table has ``m`` = 16)."""
    pictured: bool = True
    """Whether histograms go with it; not where another table shows the same ones."""
    without_stumbles: bool = False
    """Whether averages without targets that stumble go with it."""
    papers_data: str = ""
    """What the paper's data for it are, where they are not a public dataset."""
    proposed: Specification = _CDT
    """The method that the paper sets against the others."""
    published: tuple[PublishedRow, ...] = ()
    """Rows of others' that stand below ours."""
    remark: str = ""
    """What the names of our rows say besides, where published rows are of other data."""
    data: str = ""
    """Whose data it is about, where that is not himatch's and a table of himatch's stands beside it."""

    @property
    def is_papers(self) -> bool:
        """Whether the paper has it; the others are himatch's own."""
        return self.paper_label in paper_tables()

    @property
    def is_distance(self) -> bool:
        """Whether its cells hold distances, of which the lowest is best."""
        return self.measure in ("w1", "exact", "missed")

    @property
    def most_is_best(self) -> bool:
        """Whether the highest of a column is best."""
        return self.measure in ("share", "success")

    @property
    def paper(self) -> PaperTable:
        """What the paper prints: nothing, where the table is himatch's own."""
        return paper_tables()[self.paper_label] if self.is_papers else PaperTable(self.label, (), {}, {})

    @property
    def paper_label(self) -> str:
        """What the paper calls its table."""
        return self.papers or self.label

    def on(self, data: str, tasks: Iterable[str]) -> TableLayout:
        """The same table of somebody else's data, which are of these tasks."""
        label = f"{self.label}-{re.sub('[^a-z0-9]+', '-', data.lower()).strip('-')}"
        own = tuple(dict.fromkeys(tasks))
        return replace(self, label=label, title=f"{self.title}, {data}", papers=self.paper_label, data=data, tasks=own)

    def row_name(self, method: Specification) -> str:
        """What the table calls a method: the paper's name for rows that the paper has."""
        if method not in self.paper.rows:
            return display_name(method)
        return paper_name(method, with_size=self.code_size is None)

    def includes(self, method: Specification | None) -> bool:
        """Whether results of a method belong into the table."""
        return self.code_size is None or (method is not None and method.get("m") == self.code_size)

    def columns(self, tasks: tuple[str, ...]) -> tuple[TableColumn, ...]:
        """The columns for these tasks; an average over one task says nothing new."""
        columns = [
            TableColumn(f"{task}/{group}", task, group.capitalize(), ((task, group),))
            for task in tasks
            for group in self.groups
        ]
        if self.over == "groups":
            for task in tasks:
                key = AVERAGE if task in self.tasks else f"{task}/{AVERAGE}"
                columns.append(TableColumn(key, "Average", "", tuple((task, group) for group in self.groups)))
        elif len(tasks) > 1:
            for i, group in enumerate(self.averaged):
                title = group.capitalize() if len(self.averaged) > 1 else ""
                key = AVERAGE if i == 0 else f"{AVERAGE}/{group}"
                columns.append(TableColumn(key, "Average", title, tuple((task, group) for task in tasks)))
        return tuple(columns)


@dataclass(frozen=True)
class Suite:
    """One experiment, whole: data, methods, targets, protocol, tables."""

    name: str
    tasks: tuple[str, ...]
    features: tuple[str, ...]
    """What rollouts are scored on, and what matched methods are trained for."""
    methods: tuple[SuiteMethod, ...]
    tables: tuple[TableLayout, ...]
    targets: TargetKind = "held-out"
    split: SplitKind = "paper"
    scoring: Scoring = "distance"
    """What is measured of rollouts: their distance to targets, or how often they reach a goal of the environment."""
    conditioning: tuple[str, ...] = ("nominal",)
    """Where the user chooses none."""
    steps: int | None = None
    """Of a rollout, where they are not the task's."""
    rollouts: int | None = None
    """Of every target and seed, where they are not the budget's."""
    family: str = ""
    """What it is called together with others."""
    dataset: str = "{task}-medium-expert"
    """Name of the dataset, for users who bring none of their own."""
    targets_note: str = ""
    """What captions say about its targets."""
    other_feature: str = ""
    """Why the paper's figures may be of another feature than ours: they are shown, and no ratio to them."""

    @property
    def is_own(self) -> bool:
        """Whether it is himatch's and fills no table of the paper."""
        return not any(layout.is_papers for layout in self.tables)

    @property
    def mixes_rewards(self) -> bool:
        """Whether its episodes were rewarded for different things, so that returns say nothing beside one another."""
        return self.split != "paper"
