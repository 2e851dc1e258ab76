"""The report as one HTML file that needs nothing else: styles and pictures are inside, there is no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from himatch.reproduce.report import text as wording
from himatch.reproduce.report.captions import data_used, effort
from himatch.reproduce.report.claims_page import claims_section
from himatch.reproduce.report.contents import Contents
from himatch.reproduce.report.costs_page import costs_section
from himatch.reproduce.report.document import block, document, figure
from himatch.reproduce.report.figures import Picture
from himatch.reproduce.report.provenance_page import provenance_section
from himatch.reproduce.report.table import Cell, ResultRow, ResultTable
from himatch.reproduce.results import JobResult
from himatch.reproduce.suite import Suite, TableLayout

LEGEND = """<p class="lede">In the tables below, each cell holds the mean ± standard deviation over targets and seeds
(averages: the mean&rsquo;s 95 % bootstrap interval), the interquartile mean with its interval, and the paper&rsquo;s
figure with the ratio ours / paper (green where ours is lower). The best of a column is shaded. <em>Episode mixture</em>
is the nearest mixture of whole training episodes: what a policy that time-shares behaviours of the data reaches.
Success rates are in percent, with the mean&rsquo;s interval over seeds, and published figures below.</p>
<p class="key"><label><input type="checkbox" id="show-iqm" checked>interquartile means</label>
<label><input type="checkbox" id="show-paper" checked>the paper&rsquo;s figures</label></p>"""


def page(contents: Contents) -> str:
    """The whole document."""
    tables, pictures, results = contents.tables, contents.pictures, contents.results
    sections = [_glance(tables)] if tables else []
    sections += [_section(table, pictures.get(table.label, ())) for table in tables]
    if pictures.get("dataset"):
        sections.append(_datasets(pictures["dataset"], [result for result in results if result.suite == "data"]))
    if contents.failures:
        sections.append(_failed(contents.failures))
    if contents.not_run:
        sections.append(_not_run(contents.not_run))
    sections += [costs_section(contents.costs), provenance_section(results)]
    used = ", ".join(dict.fromkeys(data.name for data in data_used(results)))
    links = [("claims", "What holds")]
    links += [("glance", "Best of each table")] if any(table.layout.is_distance for table in tables) else []
    links += [(table.label, table.layout.title) for table in tables]
    links += [("dataset", "Datasets")] if pictures.get("dataset") else []
    links += [("failed", "Failed")] if contents.failures else []
    links += [("not-run", "Not run")] if contents.not_run else []
    links += [("effort", "Effort"), ("provenance", "Provenance")]
    lede = f'{len(results)} results. {escape(effort(results))} Data: {escape(used)}\n(<a href="#effort">more</a>).'
    claims = claims_section(contents.findings, contents.orderings)
    return document(contents.title, lede, links, claims + LEGEND + "\n" + "".join(sections))


def _source(text: str) -> str:
    return f'<p class="source">{text}</p>\n'


def _section(table: ResultTable, pictures: Sequence[Picture]) -> str:
    layout, (label, whose) = table.layout, table.source
    notes = "".join(f'<p class="note">{escape(note)}</p>\n' for note in table.notes)
    below = "".join(map(_captioned, table.smaller.values()))
    body = (
        _source(f"Table <code>{label}</code> {whose} · suite <code>{table.suite.name}</code>")
        + f"{_captioned(table)}{notes}{below}"
        + "".join(map(figure, pictures))
    )
    return block(table.label, layout.title, body)


def _captioned(table: ResultTable) -> str:
    return f'<p class="caption">{escape(table.caption)}</p>\n{_table(table)}'


def _datasets(pictures: Sequence[Picture], results: Sequence[JobResult]) -> str:
    used = "; ".join(map(str, data_used(results)))
    source = _source("Figure <code>dataset</code> of the paper · suite <code>data</code>")
    body = f'{source}<p class="caption">Data: {escape(used)}.</p>\n{"".join(map(figure, pictures))}'
    return block("dataset", "Datasets", body)


def _table(table: ResultTable) -> str:
    heads = [(head, len(list(group))) for head, group in groupby(table.columns, key=lambda column: column.head)]
    top = "".join(f'<th colspan="{width}" scope="colgroup"><span>{escape(head)}</span></th>' for head, width in heads)
    titles = "".join(f'<th scope="col"{_first(table, i)}>{escape(c.title)}</th>' for i, c in enumerate(table.columns))
    rows = "".join(_row(row, table) for row in table.rows)
    return (
        f'<div class="scroll" tabindex="0"><table>\n<thead><tr><th></th>{top}</tr>\n'
        f'<tr><th scope="col">Method</th>{titles}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n'
    )


def _first(table: ResultTable, i: int, more: str = "") -> str:
    """Classes of a cell; the first column of a task has a line on its left."""
    starts = i > 0 and table.columns[i].head != table.columns[i - 1].head
    classes = " ".join(filter(None, (more, "first" if starts else "")))
    return f' class="{classes}"' if classes else ""


def _row(row: ResultRow, table: ResultTable) -> str:
    cells = "".join(_cell(cell, table, i) for i, cell in enumerate(row.cells))
    kind = ' class="reference"' if row.kind == "reference" else ""
    return f'<tr{kind}><th scope="row">{escape(row.name)}</th>{cells}</tr>\n'


def _cell(cell: Cell, table: ResultTable, i: int) -> str:
    state = "missing" if cell.ours is None else "best" if cell.best else ""
    return f"<td{_first(table, i, state)}>{_ours(cell, table)}{_middle(cell, table)}{_paper(cell, table)}</td>"


def _ours(cell: Cell, table: ResultTable) -> str:
    if cell.ours is None:
        return f'<span class="v" title="no result">{wording.MISSING}</span>'
    interval = wording.interval(cell.ours, table)
    spread = f"<small>± {wording.number(cell.ours.std, table)}</small>" if cell.ours.std is not None else ""
    spread = spread or (f'<small class="below">{interval}</small>' if interval else "")
    known = f' title="mean, 95 % interval {interval}"' if interval else ""
    return f'<span class="v"{known}>{wording.number(cell.ours.mean, table)} {spread}</span>'


def _middle(cell: Cell, table: ResultTable) -> str:
    lasted = cell.played is not None and f"played {wording.played(cell)}"
    alone = cell.within_episode is not None and f"within an episode {wording.within_episode(cell, table)}"
    scored = cell.normalized is not None and f"D4RL score {wording.score(cell)}"
    parts = (wording.middle(cell, table), lasted, alone, scored)
    return "".join(f'<span class="q">{part}</span>' for part in parts if part)


def _paper(cell: Cell, table: ResultTable) -> str:
    if cell.paper is None:
        return ""
    ratio = wording.ratio(cell)
    better = ' class="better"' if table.layout.is_distance and cell.ratio is not None and cell.ratio < 1 else ""
    mark = f" <b{better}>{ratio}</b>" if ratio else ""
    full = wording.with_deviation(*cell.paper, table)
    return f'<span class="p" title="the paper: {full}">paper {wording.number(cell.paper.mean, table)}{mark}</span>'


def _glance(tables: Sequence[ResultTable]) -> str:
    """One line for each table: the best method there, the paper's figure for it and what is left."""
    lines = "".join(_glance_row(table) for table in tables if table.layout.is_distance)
    heads = "".join(f"<th>{head}</th>" for head in ("Best here", "W₁", "Paper", "Ratio", "Episode mixture"))
    body = (
        '<p class="caption">The method with the lowest average W₁ in each table (where there is no average, in the '
        "last column that the paper has), and what the paper printed for it.</p>\n"
        f'<div class="scroll"><table class="glance"><thead><tr><th>Table</th>{heads}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>\n"
    )
    return block("glance", "Best of each table", body) if lines else ""


def _glance_row(table: ResultTable) -> str:
    known = [i for i, column in enumerate(table.columns) if column.key in table.layout.paper.columns]
    last = known[-1] if known else len(table.columns) - 1
    scored = [(score.mean, row) for row in table.methods if (score := row.cells[last].ours) is not None]
    name = f'<th scope="row"><a href="#{table.label}">{escape(table.layout.title)}</a></th>'
    if not scored:
        return f'<tr>{name}<td class="missing" colspan="5"><span class="v">no method has all of it</span></td></tr>\n'
    mean, row = min(scored, key=lambda pair: pair[0])
    cell = row.cells[last]
    reference = None if table.reference is None else table.reference.cells[last].ours
    texts = (
        escape(row.name),
        f"{mean:.3f}",
        "" if cell.paper is None else f"{cell.paper.mean:.3f}",
        wording.ratio(cell),
        "" if reference is None else f"{reference.mean:.3f}",
    )
    return f"<tr>{name}{''.join(f'<td>{text}</td>' for text in texts)}</tr>\n"


def _failed(failures: Mapping[str, str]) -> str:
    items = "".join(f"<li><code>{escape(key)}</code>: {escape(why)}</li>\n" for key, why in failures.items())
    return block("failed", "Failed", f'<ul class="plain">\n{items}</ul>\n')


def _not_run(absent: Sequence[tuple[Suite, TableLayout]]) -> str:
    items = "".join(
        f"<li>{escape(layout.title)}, table <code>{layout.label}</code>: suite <code>{suite.name}</code></li>\n"
        for suite, layout in absent
    )
    return block("not-run", "Not run", f'<ul class="plain">\n{items}</ul>\n')
