"""The first section of the page: claims with both numbers and a verdict, and which of the paper's orderings hold."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from himatch.reproduce.report.claims import READING
from himatch.reproduce.report.differences import Verdict
from himatch.reproduce.report.document import block
from himatch.reproduce.report.findings import Finding, Side, by_source, headline, robust_rows
from himatch.reproduce.report.orderings import READING as READING_ORDERINGS
from himatch.reproduce.report.orderings import Ordering, Orderings
from himatch.reproduce.report.robustness import HEADS
from himatch.reproduce.report.robustness import READING as READING_ROBUSTNESS
from himatch.reproduce.report.text import MISSING
from himatch.reproduce.specification import display_name

VERDICTS: dict[Verdict, tuple[str, str]] = {
    "holds": ("yes", "✓"),
    "holds within noise": ("nearly", "≈"),
    "does not hold": ("no", "✗"),
    "not run": ("open", MISSING),
    "information": ("open", "i"),
}
"""A class and a mark for each, so that colour is not all that tells them apart."""


def claims_section(findings: Sequence[Finding], orderings: Sequence[Orderings]) -> str:
    """The paper's claims, himatch's, what one target does to them, and the paper's orderings."""
    body = f'<p class="caption"><strong>{escape(headline(findings))}</strong> {escape(READING)}</p>\n'
    for name, claims in by_source(findings):
        rows = "".join(map(_claim, claims))
        body += f"<h3>{escape(name)}</h3>\n" + _grid(("Claim", "Ours", "Against", "Difference", "Verdict"), rows)
    if left_out := robust_rows(findings):
        rows = "".join(map(_robust, left_out))
        body += f'<h3>Without one target</h3>\n<p class="caption">{escape(READING_ROBUSTNESS)}</p>\n'
        body += _grid(HEADS, rows)
    if orderings:
        lines = "".join(map(_orderings, orderings))
        body += (
            f'<h3>The paper&rsquo;s orderings</h3>\n<p class="caption">{escape(READING_ORDERINGS)}</p>\n'
            f"{_grid(('Table', 'Proposed', 'Hold', 'Against'), lines)}"
        )
    return block("claims", "What holds", body)


def _grid(heads: Sequence[str], rows: str) -> str:
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    table = f'<table class="claims"><thead><tr>{top}</tr></thead>\n<tbody>{rows}</tbody></table>'
    return f'<div class="scroll">{table}</div>\n'


def _robust(texts: Sequence[str]) -> str:
    cells = "".join(f'<td><span class="v">{escape(text)}</span></td>' for text in texts[1:])
    return f'<tr><th scope="row">{escape(texts[0])}</th>{cells}</tr>\n'


def _claim(finding: Finding) -> str:
    sides = "".join(f"<td>{_side(side)}</td>" for side in (finding.ours, finding.other))
    remark = f'<span class="q">{escape(finding.remark)}</span>' if finding.remark else ""
    verdict = f"{_mark(finding.verdict, finding.verdict)}{remark}"
    sides += f'<td><span class="v">{escape(finding.difference)}</span></td>'
    return f'<tr><th scope="row">{escape(finding.claim)}</th>{sides}<td class="verdict">{verdict}</td></tr>\n'


def _side(side: Side | None) -> str:
    return (
        ""
        if side is None
        else f'<span class="v">{escape(side.figure)}</span><span class="q">{escape(side.name)}</span>'
    )


def _mark(verdict: Verdict, text: str) -> str:
    kind, sign = VERDICTS[verdict]
    return f'<span class="mark {kind}" title="{verdict}"><i aria-hidden="true">{sign}</i> {escape(text)}</span>'


def _orderings(found: Orderings) -> str:
    layout = found.table.layout
    tasks = f'<span class="q">{escape(found.only)}</span>' if found.only else ""
    ran = " ".join(map(_pair, (pair for pair in found.pairs if pair.verdict != "not run")))
    absent = found.named("not run")
    more = f'<span class="q">not run: {escape(found.absent)}</span>' if absent else ""
    return (
        f'<tr><th scope="row"><a href="#{found.table.label}">{escape(layout.title)}</a>{tasks}</th>'
        f"<td>{escape(display_name(layout.proposed))}</td><td>{escape(found.score)}</td>"
        f'<td class="marks">{ran}{more}</td></tr>\n'
    )


def _pair(pair: Ordering) -> str:
    unsure = pair.verdict == "does not hold" and pair.remark
    return _mark(pair.verdict, f"{pair.name} ({pair.remark})" if unsure else pair.name)
