"""The tables as LaTeX: booktabs, one float each, to be put into a document."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.report.text import MISSING, TIMES, Line, lines

HEADER = "% Tables of himatch report. Needs \\usepackage{booktabs,graphicx}.\n"
READING = (
    "Mean ± standard deviation over targets and seeds, best in bold; below, the interquartile mean with its 95 % "
    "bootstrap interval, and the paper's figure with the ratio ours / paper."
)
_SPECIAL = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"±": r"$\pm$", TIMES: r"$\times$", MISSING: "--", "<": "$<$", ">": "$>$", "|": r"$\vert$"},
}


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def latex(tables: Sequence[ResultTable]) -> str:
    """All tables, each in its own float."""
    parts = ([_table(table), *(_table(less, f"_{name}") for name, less in table.smaller.items())] for table in tables)
    return HEADER + "\n" + "\n".join(text for some in parts for text in some)


def _table(table: ResultTable, more: str = "") -> str:
    reading = "" if table.layout.measure in ("slope", "success") else READING
    caption = " ".join(filter(None, (f"{table.layout.title}.", table.caption, *table.notes, reading)))
    body = "\n".join((r"\toprule", _heads(table), r"\midrule", *_body(table), r"\bottomrule"))
    return f"""\\begin{{table*}}[t]
\\centering
\\caption{{{escape(caption)}}}
\\label{{tab:himatch_{table.label}{more}}}
\\smallskip
\\resizebox{{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}}{{!}}{{%
\\begin{{tabular}}{{@{{}}l{"r" * len(table.columns)}@{{}}}}
{body}
\\end{{tabular}}}}
\\end{{table*}}
"""


def _heads(table: ResultTable) -> str:
    """Tasks over their groups, each task with a rule of its own."""
    heads, rules, start = [], [], 2
    for head, group in groupby(table.columns, key=lambda column: column.head):
        width = len(list(group))
        heads.append(f"\\multicolumn{{{width}}}{{c}}{{{escape(head)}}}")
        rules.append(f"\\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    titles = " & ".join(escape(column.title) for column in table.columns)
    return f"& {' & '.join(heads)} \\\\\n{' '.join(rules)}\n& {titles} \\\\"


def _body(table: ResultTable) -> list[str]:
    rows, kind = [], "method"
    for row in table.rows:
        if row.kind != kind:
            rows.append(r"\midrule")
        elif rows:
            rows.append(r"\addlinespace[2pt]")
        kind = row.kind
        rows += [_line(line, i > 0) for i, line in enumerate(lines(row, table))]
    return rows


def _line(line: Line, below: bool) -> str:
    if below:
        cells = [f"\\scriptsize {escape(text)}" if text else "" for text in line.texts]
        return f"\\quad\\scriptsize {escape(line.label)} & {' & '.join(cells)} \\\\"
    texts = [_bold(text) if best else escape(text) for text, best in zip(line.texts, line.best, strict=True)]
    return f"{escape(line.label)} & {' & '.join(texts)} \\\\"


def _bold(text: str) -> str:
    return f"\\textbf{{{escape(text)}}}"
