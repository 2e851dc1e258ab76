"""Cards of experts as a table: for the terminal, and as Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from himatch._runtime.files import entry
from himatch.experts.cards import Card

RETURNS = {"halfcheetah-expert": 9000, "hopper-expert": 3000, "walker2d-expert": 4000, "ant-expert": 4000}
"""Mean return that the bundled experts aim at, with sampled actions."""
MEDIUM = (0.25, 0.50)
"""A medium agent's return, as a part of its expert's."""
VELOCITY_ERROR = 0.15
"""How far a velocity agent's mean velocity may be from its target."""
TURNING = 18
"""Episodes of 20 in which the back-flip agent makes three full turns."""


class CatalogRow(NamedTuple):
    """One agent, or a family of them, in words."""

    name: str
    sampled: str
    mode: str
    length: str
    steps: str
    seed: str
    check: str


def rows(cards: Mapping[str, Card], *, fold: bool, where: str = "the cards") -> list[CatalogRow]:
    """A row for each agent; with ``fold``, agents of one task that differ in a setting share one.

    Cards that lack a number are refused; ``where`` says in the message which cards they are.
    """
    for card in cards.values():
        _check(card, where)
    found, done = [], set()
    for name, card in cards.items():
        family = [c for c in cards.values() if c["family"] == card["family"] and c.get("settings")]
        if not fold or not card.get("settings") or len(family) < 2:
            found.append(_row(name, card, cards))
        elif card["family"] not in done:
            done.add(card["family"])
            found.append(_folded(family))
    return found


def _check(card: Card, where: str) -> None:
    for name in ("steps", "seed"):
        entry(card, int, where, name)
    for mode, name in (
        ("stochastic", "mean"),
        ("stochastic", "std"),
        ("stochastic", "length"),
        ("deterministic", "mean"),
    ):
        entry(card, float, where, mode, name)


def folded_names(cards: Mapping[str, Card]) -> list[str]:
    """What the shared rows stand for: ``cheetah-vel-0.0 ... cheetah-vel-3.0``."""
    families: dict[str, list[str]] = {}
    for name, card in cards.items():
        if card.get("settings"):
            families.setdefault(card["family"], []).append(name)
    return [f"{names[0]} ... {names[-1]}" for names in families.values() if len(names) > 1]


def _row(name: str, card: Card, cards: Mapping[str, Card]) -> CatalogRow:
    sampled, mode = card["stochastic"], card["deterministic"]
    return CatalogRow(
        name,
        f"{sampled['mean']:,.0f} +- {sampled['std']:,.0f}",
        f"{mode['mean']:,.0f}",
        f"{sampled['length']:.0f}",
        f"{card['steps'] / 1000:,.0f}k",
        str(card["seed"]),
        check(name, cards)[0],
    )


def _folded(family: Sequence[Card]) -> CatalogRow:
    def span(values: Sequence[float], form: str = ",.0f") -> str:
        low, high = format(min(values), form), format(max(values), form)
        return low if low == high else f"{low} to {high}"

    errors = [card["stochastic"]["velocity_error"] for card in family if "velocity_error" in card["stochastic"]]
    return CatalogRow(
        f"{family[0]['family']} ({len(family)})",
        span([card["stochastic"]["mean"] for card in family]),
        span([card["deterministic"]["mean"] for card in family]),
        span([card["stochastic"]["length"] for card in family]),
        f"to {max(card['steps'] for card in family) / 1000:,.0f}k",
        span([card["seed"] for card in family], "d"),
        f"off <= {max(errors):.3f}" if errors else "",
    )


def check(name: str, cards: Mapping[str, Card]) -> tuple[str, str, bool | None]:
    """What an agent was checked for beyond its return, what it aims at, and whether it gets there."""
    card = cards[name]
    sampled = card["stochastic"]
    if "velocity_error" in sampled:
        error = sampled["velocity_error"]
        return f"off by {error:.3f}", f"mean velocity within {VELOCITY_ERROR}", error <= VELOCITY_ERROR
    if "flips_back" in sampled:
        turning, of = sampled["flips_back"], sampled["episodes"]
        aim = f"3 turns backwards, towards -x, in {TURNING} of 20"
        return f"back: {turning}/{of}", aim, turning * 20 >= TURNING * of
    expert = cards.get(f"{name.removesuffix('-medium')}-expert")
    if name.endswith("-medium") and expert is not None and expert["stochastic"]["mean"] > 0:
        part, (low, high) = sampled["mean"] / expert["stochastic"]["mean"], MEDIUM
        aim = f"{100 * low:.0f} to {100 * high:.0f} % of its expert"
        return f"{100 * part:.0f} % of expert", aim, low <= part <= high
    if name in RETURNS:
        return "", f"return of at least {RETURNS[name]:,}", sampled["mean"] >= RETURNS[name]
    return "", "", None


def markdown(shown: Sequence[CatalogRow], cards: Mapping[str, Card]) -> str:
    """The table in Markdown, with what each agent aims at, and a line that says which aims were missed."""
    lines = [
        "| agent | return, sampled actions | return, most likely actions | length | steps | seed | aim | found |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in shown:
        aim, met = check(row.name, cards)[1:] if row.name in cards else ("", None)
        found = ", ".join(part for part in (row.check, _verdict(met)) if part)
        cells = (f"`{row.name}`", row.sampled, row.mode, row.length, row.steps, row.seed, aim, found)
        lines.append(f"| {' | '.join(cells)} |")
    aims = {name: check(name, cards)[2] for name in cards}
    missed = [f"`{name}`" for name, met in aims.items() if met is False]
    if any(met is not None for met in aims.values()):
        total = sum(met is not None for met in aims.values())
        lines += ["", f"{total - len(missed)} of {total} aims are met; missed: {', '.join(missed) or 'none'}."]
    return "\n".join(lines)


def _verdict(met: bool | None) -> str:
    return "" if met is None else "met" if met else "**missed**"
