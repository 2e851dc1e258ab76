"""The first screen: how the proposed method does beside the paper and the baselines, unseen targets, one match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from himatch.reproduce.report.figures.histograms import match_strip
from himatch.reproduce.report.figures.selection import shown_methods
from himatch.reproduce.report.table import Cell, ResultRow, ResultTable
from himatch.reproduce.suite import AVERAGE
from himatch.rollout import CONDITIONINGS
from himatch.viz.dots import DotPanel, dot_chart
from himatch.viz.picture import Picture, picture

OURS, PAPERS_POLICY, PAPER, RIVAL, MIXTURE = (
    "CDT, himatch's policy",
    "CDT (BDT), the paper's",
    "printed in the paper",
    "best other method",
    "episode mixture",
)
SUITES_CAPTION = (
    "Average W₁ of the method that the paper proposes (CDT; BDT in one-shot imitation), of the best other method here, "
    "and what the paper printed. Left is better. The paper's data are others, so its figures tell the size and no more."
)
CONDITIONINGS_CAPTION = (
    "CDT with himatch's policy by conditioning, on held-out episodes and on targets that no episode shows. On the "
    "right the time that robots did not play, because they fell, is charged."
)
_CONDITIONING_MARKS = {"nominal": "third", "remaining": "other", "planned": "second", "rehearsed": "ours"}


def overview_pictures(tables: Sequence[ResultTable]) -> list[Picture]:
    """Those that the results have something to show for."""
    drawn = (_suites(tables), _conditionings(tables), match_strip(tables))
    return [shown for shown in drawn if shown is not None]


def _suites(tables: Sequence[ResultTable]) -> Picture | None:
    """One row of dots for every table of the paper with distances and an average."""
    rows = [(table, i) for table in tables if table.layout.is_papers if (i := _average(table)) is not None]
    rows = [(table, i) for table, i in rows if any(row.cells[i].ours for row in _proposed(table))]
    if not rows:
        return None
    found = [_beside(table, i) for table, i in rows]
    dots = {name: [line.get(name) for line in found] for name in (OURS, PAPERS_POLICY, PAPER, RIVAL, MIXTURE)}
    marks = {OURS: "ours", PAPERS_POLICY: "second", PAPER: "paper", RIVAL: "other", MIXTURE: "level"}
    chart = dot_chart([DotPanel("average W₁", dots)], [table.layout.title for table, _ in rows], marks, wide=5.2)
    return picture(chart, "overview-suites", SUITES_CAPTION)


def _beside(table: ResultTable, i: int) -> dict[str, float | None]:
    proposed = _proposed(table)
    others = [row for row in shown_methods(table) if row.method != table.layout.proposed]
    papers = next((row.cells[i].paper for row in proposed if row.cells[i].comparable), None)
    rivals = [value for row in others if row.key and row.key.policy == "paper" and (value := _mean(row.cells[i]))]
    return {
        OURS: _of(proposed, "himatch", i),
        PAPERS_POLICY: _of(proposed, "paper", i),
        PAPER: None if papers is None else papers.mean,
        RIVAL: min(rivals, default=None),
        MIXTURE: None if table.reference is None else _mean(table.reference.cells[i]),
    }


def _proposed(table: ResultTable) -> list[ResultRow]:
    """Rows of the method that the paper proposes, as it is conditioned there."""
    rows = shown_methods(table)
    return [
        row for row in rows if row.method == table.layout.proposed and row.key and row.key.conditioning == "nominal"
    ]


def _of(rows: Iterable[ResultRow], policy: str, i: int) -> float | None:
    return next((_mean(row.cells[i]) for row in rows if row.key and row.key.policy == policy), None)


def _conditionings(tables: Sequence[ResultTable]) -> Picture | None:
    """One row of dots for every table in which rehearsed programs stand beside other conditionings."""
    known = [(table, _by_conditioning(table)) for table in tables if table.layout.is_distance]
    rows = [(table, found) for table, found in known if "rehearsed" in found]
    if not rows:
        return None
    names = [name for name in CONDITIONINGS if any(name in found for _, found in rows)]
    plain: dict[str, list[float | None]] = {
        name: [_mean(found[name]) if name in found else None for _, found in rows] for name in names
    }
    charged: dict[str, list[float | None]] = {
        name: [found[name].charged if name in found else None for _, found in rows] for name in names
    }
    plain[MIXTURE] = [_reference(table) for table, _ in rows]
    marks = {MIXTURE: "level"} | {str(name): _CONDITIONING_MARKS.get(name, "other") for name in names}
    panels = [DotPanel("average W₁", plain), DotPanel("with missing time charged", charged)]
    chart = dot_chart(panels, [table.layout.title for table, _ in rows], marks, wide=5.2)
    return picture(chart, "overview-conditionings", CONDITIONINGS_CAPTION)


def _by_conditioning(table: ResultTable) -> dict[str, Cell]:
    i = _average(table)
    rows = [row for row in shown_methods(table) if row.key and row.key.policy == "himatch"]
    known = [(row.key.conditioning, row.cells[i]) for row in rows if i is not None and row.key is not None]
    return {name: cell for name, cell in known if cell.ours is not None}


def _reference(table: ResultTable) -> float | None:
    i = _average(table)
    return None if table.reference is None or i is None else _mean(table.reference.cells[i])


def _average(table: ResultTable) -> int | None:
    """The column of the average; in a table of one task, of what would be averaged."""
    if not table.layout.is_distance:
        return None
    wanted = (AVERAGE, *(f"{task}/{group}" for task in table.tasks for group in table.layout.averaged[:1]))
    keys = [column.key for column in table.columns]
    return next((keys.index(key) for key in wanted if key in keys), None)


def _mean(cell: Cell) -> float | None:
    return None if cell.ours is None else cell.ours.mean
