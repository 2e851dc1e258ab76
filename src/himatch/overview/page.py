"""An overview as HTML, for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from himatch.overview.content import Content
from himatch.overview.text import column, mixture_of, promised, sensitivity, what
from himatch.viz.svg import bars


def as_html(shown: Content) -> str:
    """Small tables, and the histograms as inline SVG."""
    data = shown.data
    parts = [
        f"<b>{escape(what(shown))}</b>",
        _table(
            [
                ["data", f"{data['source']}, {data['episodes']} episodes"],
                ["acts", shown.acts],
                ["sensitivity", sensitivity(shown)],
            ]
        ),
    ]
    for part in shown.covered[:8]:
        quantiles = ", ".join(f"{q}%: {x:.3g}" for q, x in part.quantiles.items())
        ends = [f"{end:.4g}" for end in part.range]
        parts.append(
            f"<div>{escape(part.name)} {ends[0]} {bars(part.histogram)} {ends[1]}<br><small>{quantiles}</small></div>"
        )
    rows = [
        [
            target.what,
            target.target,
            "-" if target.outside is None else f"{target.outside:.0%}",
            "-" if target.mixture is None else f"{target.mixture:.3f}",
        ]
        for target in shown.targets
    ]
    parts.append(_table(rows, ["target", "expression", "outside the data", mixture_of(shown)]))
    parts.append(_table([[name, words] for name, words in shown.conditionings.items()], ["conditioning", ""]))
    kept = [[one.target, promised(one), f"{one.played:.0%}"] for one in shown.rehearsed[:8]]
    parts.append(_table(kept, ["rehearsed target", "expected (nine cases of ten)", "played"]))
    for name, columns in (("observations", shown.observations), ("actions", shown.actions)):
        parts.append(f"<small>{name}: {escape(', '.join(map(column, columns)))}</small><br>")
    parts.append(f"<code>{escape(shown.next)}</code>")
    return "\n".join(part for part in parts if part)


def _table(rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> str:
    rows = list(rows)
    if not rows:
        return ""
    head = "<tr>" + "".join(f"<th>{escape(name)}</th>" for name in header) + "</tr>" if header else ""
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{head}{body}</table>"
