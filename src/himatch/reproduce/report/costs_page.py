"""The foot of the page: what the results took."""

from __future__ import annotations

from html import escape

from himatch.reproduce.report.costs import HEADS, SHARED, Cost, Costs
from himatch.reproduce.report.document import block


def costs_section(costs: Costs) -> str:
    """Facts in a list, then a line for each suite."""
    facts = "".join(f"<li>{name}: {escape(text)}</li>\n" for name, text in costs.facts)
    lines = "".join(map(_line, costs.suites))
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    body = (
        f'<ul class="plain">\n{facts}</ul>\n<p class="caption">{escape(SHARED)}</p>\n'
        f'<div class="scroll"><table class="effort"><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>\n"
    )
    return block("effort", "Effort", body)


def _line(cost: Cost) -> str:
    name, *numbers = cost.texts
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{text}</td>" for text in numbers)}</tr>\n'
