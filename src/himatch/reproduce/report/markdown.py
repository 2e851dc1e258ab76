"""The report as Markdown: reads as text, renders anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from himatch.reproduce.report.claims import READING as READING_CLAIMS
from himatch.reproduce.report.contents import Contents
from himatch.reproduce.report.costs import HEADS, SHARED, Costs
from himatch.reproduce.report.figures import Picture
from himatch.reproduce.report.findings import Finding, Side, by_source, headline, robust_rows
from himatch.reproduce.report.orderings import READING as READING_ORDERINGS
from himatch.reproduce.report.robustness import HEADS as ROBUSTNESS_HEADS
from himatch.reproduce.report.robustness import READING as READING_ROBUSTNESS
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.report.text import Line, lines
from himatch.reproduce.specification import display_name

READING = (
    "Each method has up to five lines: mean ± standard deviation over targets and seeds (averages: the mean's 95 % "
    "bootstrap interval), the best of a column in bold; the interquartile mean with its interval; the part of the "
    "target's steps that was played and the W1 that charges the rest; W1 within single episodes; and the paper's "
    "figure with the ratio ours / paper. *Episode mixture* is the nearest mixture of whole training episodes: what "
    "time-sharing them would reach. Success rates are in percent, with the mean's interval over seeds, the highest in "
    "bold, and published figures below."
)


def markdown(contents: Contents) -> str:
    """The whole report; pictures lie in ``figures/`` beside it."""
    parts = [f"# {contents.title}", *_claims(contents), "## Tables", READING]
    for table in contents.tables:
        source = "Table `{}` {}.".format(*table.source)
        parts += [f"## {table.layout.title}", f"{source} {table.caption}", _table(table)]
        parts += [f"*{_escape(note)}*" for note in table.notes]
        parts += [text for less in table.smaller.values() for text in (_escape(less.caption), _table(less))]
        parts += [_picture(picture) for picture in contents.pictures.get(table.label, ())]
    if contents.pictures.get("dataset"):
        parts += ["## Datasets", *(_picture(picture) for picture in contents.pictures["dataset"])]
    if contents.failures:
        parts += ["## Failed", "\n".join(f"- `{key}`: {_escape(why)}" for key, why in contents.failures.items())]
    if contents.not_run:
        listed = (f"- `{layout.label}`: suite `{suite.name}`" for suite, layout in contents.not_run)
        parts += ["## Not run", "\n".join(listed)]
    return "\n\n".join((*parts, *_costs(contents.costs))) + "\n"


def _claims(contents: Contents) -> list[str]:
    findings, orderings = contents.findings, contents.orderings
    parts = ["## What holds", " ".join(filter(None, (f"**{headline(findings)}**", READING_CLAIMS, contents.forecast)))]
    if contents.aims:
        aimed = [
            (c.title, c.name, f"{c.aim.aim:.3g}", f"{c.aim.expected:.3g}", c.score, c.verdict) for c in contents.aims
        ]
        parts += ["### What was aimed at", _grid(("Suite", "Row", "Aim", "Expected", "W₁", ""), aimed)]
    for name, claims in by_source(findings):
        rows = [(f.claim, _side(f.ours), _side(f.other), f.difference, f"{f}{_expected(f, contents)}") for f in claims]
        parts += [f"### {name}", _grid(("Claim", "Ours", "Against", "Difference", "Verdict"), rows)]
    if left_out := robust_rows(findings):
        parts += ["### Without one target", READING_ROBUSTNESS, _grid(ROBUSTNESS_HEADS, left_out)]
    lines = [(o.table.layout.title, display_name(o.table.layout.proposed), f"{o}{o.only}") for o in orderings]
    return [*parts, "### The paper's orderings", READING_ORDERINGS, _grid(("Table", "Proposed", "Hold"), lines)]


def _expected(found: Finding, contents: Contents) -> str:
    answer = contents.expected.get(found.claim)
    return f"; expected: {answer.verdict}" if answer is not None and answer.verdict != found.verdict else ""


def _side(side: Side | None) -> str:
    return "" if side is None else f"{side.name}: {side.figure}"


def _costs(costs: Costs) -> list[str]:
    facts = "\n".join(f"- {name}: {_escape(text)}" for name, text in costs.facts)
    return ["## Effort", facts, SHARED, _grid(HEADS, [cost.texts for cost in costs.suites], "r")]


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], align: str = "l") -> str:
    rule = "|:--|" + ("--:|" if align == "r" else ":--|") * (len(heads) - 1)
    lines = ["| " + " | ".join(heads) + " |", rule]
    return "\n".join((*lines, *("| " + " | ".join(map(_escape, row)) + " |" for row in rows)))


def _table(table: ResultTable) -> str:
    heads = [" ".join(filter(None, (column.head, column.title))) for column in table.columns]
    rows = ["| | " + " | ".join(map(_escape, heads)) + " |", "|:--|" + "--:|" * len(heads)]
    rows += [_line(line, i > 0) for row in table.rows for i, line in enumerate(lines(row, table))]
    return "\n".join(rows)


def _line(line: Line, below: bool) -> str:
    label = f"&nbsp;&nbsp;{line.label}" if below else _escape(line.label)
    texts = [
        f"**{text}**" if best else _escape(text) for text, best in zip(line.texts, line.best, strict=True)
    ]  # digits need no escape
    return f"| {label} | " + " | ".join(texts) + " |"


def _picture(picture: Picture) -> str:
    return f"![{_escape(picture.caption)}](figures/{picture.name}.png)\n\n*{_escape(picture.caption)}*"


def _escape(text: str) -> str:
    for special in ("\\", "|", "*", "_", "[", "]", "<"):
        text = text.replace(special, "\\" + special)
    return text
