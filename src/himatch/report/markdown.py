"""The report as Markdown: reads as text, renders anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from himatch.report.figures import Picture
from himatch.report.layouts import Layout
from himatch.report.tables import Table
from himatch.report.wording import Line, lines

READING = (
    "Each method has up to three lines: mean ± standard deviation over targets and seeds (the best of a column in "
    "bold), the interquartile mean with its 95 % bootstrap interval, and the paper's figure with the ratio "
    "ours / paper. *Episode mixture* is the nearest mixture of whole training episodes: what time-sharing them would "
    "reach."
)


def markdown(
    tables: Sequence[Table],
    pictures: Mapping[str, Sequence[Picture]],
    not_run: Sequence[Layout],
    failures: Mapping[str, str],
    *,
    title: str,
) -> str:
    """The whole report; pictures lie in ``figures/`` beside it."""
    parts = [f"# {title}", READING]
    for table in tables:
        parts += [f"## {table.layout.title}", f"Table `{table.label}` of the paper. {table.caption}", _table(table)]
        parts += [f"*{_escape(note)}*" for note in table.notes]
        parts += [_picture(picture) for picture in pictures.get(table.label, ())]
    if pictures.get("dataset"):
        parts += ["## Datasets", *(_picture(picture) for picture in pictures["dataset"])]
    if failures:
        parts += ["## Failed", "\n".join(f"- `{key}`: {_escape(why)}" for key, why in failures.items())]
    if not_run:
        parts += ["## Not run", "\n".join(f"- `{layout.label}`: suite `{layout.suite}`" for layout in not_run)]
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
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
