"""OGBench's PointMazes (Park et al. 2025) as suites: five test goals of each maze, and how often they are reached.

Published figures are from secondary sources: those of OGBench's own six methods and SAW as Zhou and Kao (*Flattening
Hierarchies with Policy Bootstrapping*, 2025) print them, CompDiffuser's (Luo et al. 2025) and ALPS's (*Laplacian
Representations for Decision-Time Planning*, 2026) from notes on these and on later papers. They are of OGBench's files,
ours of data that is made anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from himatch.reproduce.paper import PaperFigure
from himatch.reproduce.specification import Specification
from himatch.reproduce.suite import PublishedRow, Suite, SuiteMethod, TableLayout

MAZES = ("medium", "large", "giant")
TASKS = tuple(f"ogbench-pointmaze-{maze}" for maze in MAZES)
GOALS = tuple(f"goal {number}" for number in range(1, 6))
STEPS, EPISODES = 1000, 50  # OGBench's own, in every maze
_Figure = tuple[int, int | None] | None  # percent: mean and deviation over seeds

PUBLISHED: dict[str, dict[str, tuple[_Figure, _Figure, _Figure]]] = {
    "stitch": {
        "GCBC": ((23, 18), (7, 5), (0, 0)),
        "GCIVL": ((70, 14), (12, 6), (0, 0)),
        "GCIQL": ((21, 9), (31, 2), (0, 0)),
        "QRL": ((80, 12), (84, 15), (50, 8)),
        "CRL": ((0, 1), (0, 0), (0, 0)),
        "HIQL": ((74, 6), (13, 6), (0, 0)),
        "SAW": ((87, 4), (8, 9), (0, 0)),
        "CompDiffuser": ((100, None), (100, None), (68, None)),
        "ALPS": (None, (96, 2), (98, 1)),
    },
    "navigate": {
        "GCBC": ((9, 6), (29, 6), (1, 2)),
        "GCIVL": ((63, 6), (45, 5), (0, 0)),
        "GCIQL": ((53, 8), (34, 3), (0, 0)),
        "QRL": ((82, 5), (86, 9), (68, 7)),
        "CRL": ((29, 7), (39, 7), (27, 10)),
        "HIQL": ((79, 5), (58, 5), (46, 9)),
        "SAW": ((97, 2), (85, 10), (68, 8)),
        "ALPS": (None, None, (67, 11)),
    },
}
"""Percent of the rollouts to the five test goals, in the medium, large and giant maze."""


def _published(name: str, figures: Sequence[_Figure]) -> PublishedRow:
    cells = {
        f"{task}/total": PaperFigure(figure[0] / 100, None if figure[1] is None else figure[1] / 100)
        for task, figure in zip(TASKS, figures, strict=True)
        if figure is not None
    }
    return PublishedRow(f"{name}, published (from secondary sources)", cells)


def _suite(data: str) -> Suite:
    label, title = f"ogbench_{data}", f"OGBench's PointMazes, {data}"
    rows = tuple(_published(name, figures) for name, figures in PUBLISHED[data].items())
    return Suite(
        f"ogbench-{data}",
        TASKS,
        ("xy",),
        tuple(SuiteMethod(Specification(name), matched=True, policies=("himatch",)) for name in ("gcsl", "goal")),
        (
            _layout(label, title, ("total",), rows),
            _layout(f"{label}_goals", f"{title}, each test goal", GOALS),
        ),
        targets="tests",
        split="all",
        targets_note=f"OGBench's five test goals of each maze, its tolerance of 1, at most {STEPS:,} steps. Nothing "
        "was chosen on these goals. Ours are policies that imitate regenerated data; waypoints searches a graph of its "
        "training episodes at run time, as CompDiffuser and ALPS plan then, and the other published methods do not.",
        scoring="success",
        conditioning=("nominal", "waypoints"),
        steps=STEPS,
        rollouts=EPISODES,
        family="ogbench",
        dataset=f"{{task}}-{data}",
    )


def _layout(label: str, title: str, groups: tuple[str, ...], published: tuple[PublishedRow, ...] = ()) -> TableLayout:
    return TableLayout(
        label,
        "xy",
        title,
        groups=groups,
        tasks=TASKS,
        averaged=(),
        measure="success",
        pictured=False,
        published=published,
        remark="regenerated data",
    )


OGBENCH = tuple(map(_suite, PUBLISHED))
