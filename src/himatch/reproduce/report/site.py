"""The report as pages: a first screen, the claims, a page a suite, and what it took. Each needs nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from himatch.reproduce.report import text as wording
from himatch.reproduce.report.best import READING as READING_BEST
from himatch.reproduce.report.captions import data_used, effort
from himatch.reproduce.report.claims import READING as READING_CLAIMS
from himatch.reproduce.report.contents import Contents
from himatch.reproduce.report.costs import HEADS, ROW_HEADS, SHARED, duration
from himatch.reproduce.report.differences import Verdict
from himatch.reproduce.report.figures.selection import shown_methods
from himatch.reproduce.report.findings import Finding, by_source, robust_rows
from himatch.reproduce.report.orderings import READING as READING_ORDERINGS
from himatch.reproduce.report.robustness import HEADS as ROBUSTNESS_HEADS
from himatch.reproduce.report.robustness import READING as READING_ROBUSTNESS
from himatch.reproduce.report.table import Cell, ResultRow, ResultTable
from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import display_name
from himatch.reproduce.suite import AVERAGE, TableColumn
from himatch.viz.pages import Pages

FIRST, CLAIMS, EFFORT, DATASETS = "report.html", "claims.html", "effort.html", "datasets.html"
VERDICTS: Mapping[Verdict, tuple[str, str]] = {
    "holds": ("yes", "✓"),
    "too close to call": ("nearly", "≈"),
    "does not hold": ("no", "✗"),
    "not run": ("open", wording.MISSING),
    "information": ("open", "i"),
}
"""A class and a mark for each, so that colour is not all that tells them apart."""


MEASURES = {
    "return": "return",
    "slope": "slope",
    "share": "of the expert's",
    "missed": "missed by",
    "success": "reached, %",
}
BELOW = {"averages": "Without targets that stumble", "slopes": "How far rollouts follow"}
"""Headings of the smaller tables."""


@dataclass(frozen=True)
class Page:
    """A file of the report."""

    file: str
    title: str
    template: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Shown:
    """A cell: one number, and everything else that is known of it."""

    text: str
    details: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Grid:
    """A table as it is shown: the average first, so that it is seen without scrolling."""

    heads: Sequence[tuple[str, int]]
    titles: Sequence[Shown]
    rows: Sequence[tuple[str, str, Sequence[Shown]]]
    """Name, kind and cells."""
    more: Sequence[tuple[str, str, Sequence[Shown]]] = ()
    """Rows that stand apart: other budgets, earlier networks, what was not run."""


def pages(contents: Contents) -> dict[str, str]:
    """Every page by the name of its file."""
    found = [_first(contents), _claims(contents), *_suites(contents), *_datasets(contents), _effort(contents)]
    links = [(page.file, page.title) for page in found]
    templates = Pages("himatch.reproduce.report")
    shared = {"links": links, "report": contents}
    return {page.file: templates.page(page.template, {**shared, **page.facts, "page": page}) for page in found}


def _first(contents: Contents) -> Page:
    counted = [(name, _counts(claims), len(claims)) for name, claims in by_source(contents.findings)]
    ran = [f for f in contents.findings if f.verdict not in ("not run", "information")]
    said = [(verdict, *VERDICTS[verdict], [f for f in ran if f.verdict == verdict]) for verdict in VERDICTS]
    total = contents.costs.suites[-1].spent
    facts = {
        "counted": counted,
        "said": [row for row in said if row[-1]],
        "effort": effort(contents.results),
        "cost": f"{duration(total.training)} of training, {duration(total.rollouts)} of rollouts",
        "suites": [(file, title, _best_rows(tables)) for file, title, tables in _by_suite(contents.tables)],
        "plan": _page_of(contents.tables),
    }
    return Page(FIRST, "Overview", "first.html", facts)


def _counts(findings: Sequence[Finding]) -> list[tuple[Verdict, str, int]]:
    """Of every verdict how often it was given, with its class."""
    found = [(verdict, kind, sum(f.verdict == verdict for f in findings)) for verdict, (kind, _) in VERDICTS.items()]
    return [entry for entry in found if entry[2] and entry[0] != "information"]


def _claims(contents: Contents) -> Page:
    facts = {
        "sources": [(name, claims) for name, claims in by_source(contents.findings) if claims],
        "verdicts": VERDICTS,
        "expected": contents.expected,
        "reading": READING_CLAIMS,
        "left_out": (READING_ROBUSTNESS, ROBUSTNESS_HEADS, robust_rows(contents.findings)),
        "orderings": [(found, display_name(found.table.layout.proposed)) for found in contents.orderings],
        "reading_orderings": READING_ORDERINGS,
        "plan": _page_of(contents.tables),
    }
    return Page(CLAIMS, "What holds", "claims.html", facts)


def _suites(contents: Contents) -> list[Page]:
    judged = [finding for finding in contents.findings if finding.verdict != "not run"]
    found = []
    for file, title, tables in _by_suite(contents.tables):
        shown = [
            (
                table,
                grid_of(table),
                [(BELOW[name], less, grid_of(less)) for name, less in table.smaller.items()],
                [finding for finding in judged if finding.table == table.label],
            )
            for table in tables
        ]
        facts = {"tables": shown, "verdicts": VERDICTS, "one": len(tables) == 1, "reading": READING_BEST}
        found.append(Page(file, title, "suite.html", facts))
    return found


def _by_suite(tables: Sequence[ResultTable]) -> list[tuple[str, str, list[ResultTable]]]:
    """Tables under the name of their page and its title."""
    found: dict[str, list[ResultTable]] = {}
    for table in tables:
        found.setdefault(table.suite.name, []).append(table)
    whole = {name: some[0].layout.title for name, some in found.items()}
    short = {name: whole[name].partition(",")[0] if len(some) > 1 else whole[name] for name, some in found.items()}
    taken = Counter(short.values())
    titles = {name: title if taken[title] == 1 else whole[name] for name, title in short.items()}
    return [(f"{name}.html", titles[name], some) for name, some in found.items()]


def _page_of(tables: Sequence[ResultTable]) -> dict[str, str]:
    """Where each table is shown."""
    return {table.label: f"{table.suite.name}.html#{table.label}" for table in tables}


def _best_rows(tables: Sequence[ResultTable]) -> list[tuple[str, str, str, str]]:
    """Of each table the best row, its number, the paper's for it and the episode mixture's."""
    found = []
    for table in tables:
        i = _lead(table)
        scored = [(s.mean, row) for row in table.methods if i is not None and (s := row.cells[i].ours) is not None]
        if i is None or not scored or not table.layout.is_distance:
            continue
        mean, row = min(scored, key=lambda pair: pair[0])
        below = None if table.reference is None else table.reference.cells[i].ours
        paper = row.cells[i].paper
        numbers = (
            wording.number(mean, table),
            "" if paper is None or not row.cells[i].comparable else wording.number(paper.mean, table),
            "" if below is None else wording.number(below.mean, table),
        )
        found.append((row.name, *numbers))
    return found


def _datasets(contents: Contents) -> list[Page]:
    pictures = contents.pictures.get("dataset")
    if not pictures:
        return []
    used = "; ".join(map(str, data_used([result for result in contents.results if result.suite == "data"])))
    return [Page(DATASETS, "Datasets", "datasets.html", {"pictures": pictures, "used": used})]


def _effort(contents: Contents) -> Page:
    jobs = [(display_name(result.method), _where(result), _said(result)) for result in contents.results]
    rows = [(title, list(some)) for title, some in groupby(contents.costs.rows, key=lambda cost: cost.title)]
    facts = {"heads": HEADS, "row_heads": ROW_HEADS, "rows": rows, "shared": SHARED, "jobs": jobs}
    return Page(EFFORT, "Effort and provenance", "effort.html", facts)


def _where(result: JobResult) -> str:
    own = ", himatch's policy" if result.policy == "himatch" else ""
    return f"{result.suite}, {result.task}, {result.feature}, {result.conditioning}{own}"


def _said(result: JobResult) -> str:
    """Everything that a result says about itself."""
    facts = {
        "feature": result.feature,
        "policy": result.policy,
        "conditioning": result.conditioning,
        "budget": result.budget,
        "seeds": result.seeds,
        "rollouts": result.episodes,
        "targets": len(result.targets),
        **result.provenance,
    }
    return json.dumps(facts, indent=1, sort_keys=True, default=str)


# -- tables ------------------------------------------------------------------------------------------------------------


def grid_of(table: ResultTable) -> Grid:
    """A table with its averages first, then tasks; rows of other budgets, and those that were not run, stand below."""
    lead = [i for i, column in enumerate(table.columns) if column.is_average]
    rest = [i for i in range(len(table.columns)) if i not in lead]
    extra = _beside_average(table, lead[0]) if lead else {}
    main = {row.name for row in shown_methods(table)} | {row.name for row in table.rows if row.kind == "reference"}
    rows = [(row.name, row.kind, _cells(row, table, lead, extra, rest)) for row in table.rows]
    heads: list[tuple[str, int]] = [("Average", len(lead) + len(extra))] if lead else []
    heads += [(head, len(list(some))) for head, some in groupby(table.columns[i].head for i in rest)]
    titles = [Shown(_titled(table.columns[i], table)) for i in lead]
    titles[1:1] = [Shown(name) for name in extra]  # beside the first average, of which they are
    starts = {i for i in rest if i == rest[0] or table.columns[i].head != table.columns[i - 1].head}
    titles += [Shown(table.columns[i].title, kind="first" if i in starts else "") for i in rest]
    return Grid(heads, titles, [row for row in rows if row[0] in main], [row for row in rows if row[0] not in main])


def _titled(column: TableColumn, table: ResultTable) -> str:
    measure = MEASURES.get(table.layout.measure, "W₁")
    return f"{measure}, {column.title.lower()}" if column.title else measure


def _beside_average(table: ResultTable, i: int) -> dict[str, list[str]]:
    """What else stands beside the average, row by row; what no row has is left out."""
    columns = {
        "paper": [_paper(row.cells[i], table) for row in table.rows],
        "played": ["" if (p := row.cells[i].played) is None else f"{p:.0%}" for row in table.rows],
        "charged": ["" if (c := row.cells[i].charged) is None else wording.number(c, table) for row in table.rows],
    }
    return {name: texts for name, texts in columns.items() if any(texts)}


def _paper(cell: Cell, table: ResultTable) -> str:
    return "" if cell.paper is None or not cell.comparable else wording.number(cell.paper.mean, table)


def _cells(
    row: ResultRow, table: ResultTable, lead: Sequence[int], extra: Mapping[str, Sequence[str]], rest: Sequence[int]
) -> list[Shown]:
    number = table.rows.index(row)
    found = [_shown(row.cells[i], table) for i in lead]
    found[1:1] = [Shown(texts[number], kind="aside") for texts in extra.values()]
    for i in rest:
        starts = i == rest[0] or table.columns[i].head != table.columns[i - 1].head
        found.append(_shown(row.cells[i], table, "first" if starts else ""))
    return found


def _shown(cell: Cell, table: ResultTable, kind: str = "") -> Shown:
    if cell.ours is None:
        return Shown(wording.MISSING, _paper_line(cell, table), f"{kind} missing".strip())
    known = (
        ("mean", wording.with_deviation(cell.ours.mean, cell.ours.std, table)),
        ("95 % interval", wording.interval(cell.ours, table)),
        ("interquartile mean", wording.middle(cell, table)),
        ("played", wording.played(cell)),
        ("within an episode", wording.within_episode(cell, table)),
        ("D4RL score", wording.score(cell)),
    )
    lines = [f"{name} {text}" for name, text in known if text]
    details = "\n".join(filter(None, (*lines, _paper_line(cell, table))))
    return Shown(wording.number(cell.ours.mean, table), details, f"{kind} best".strip() if cell.best else kind)


def _paper_line(cell: Cell, table: ResultTable) -> str:
    text = wording.paper(cell, table)
    return f"the paper {text}" if text else ""


def _column(columns: Sequence[TableColumn], key: str) -> int | None:
    return next((i for i, column in enumerate(columns) if column.key == key), None)


def _lead(table: ResultTable) -> int | None:
    """The average, or the last column."""
    known = _column(table.columns, AVERAGE)
    return len(table.columns) - 1 if known is None else known
