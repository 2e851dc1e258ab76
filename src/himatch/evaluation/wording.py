"""Scores in words: a distance with its unit, how much of the time was played, and the rest of it charged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

JOINT = "joint, in spreads of each feature"
"""What a distance of several features is: without a unit in common, they are divided by their spreads first."""
MOST = 4  # features that are named


def share(played: float) -> str:
    """``17%``; what is nearly all of the time is not called all of it."""
    return ">99%" if 0.995 <= played < 1.0 else f"{played:.0%}"


def time(played: float, charged: float, *, digits: str = ".3f", short: bool = True) -> str:
    """``played 17%, charged 1.530``; in short, where all of the time was played there is nothing to charge."""
    return f"played {share(played)}" + ("" if short and played >= 1.0 else f", charged {charged:{digits}}")


def of_each(names: Sequence[str], numbers: Iterable[float]) -> str:
    """``x 0.12, y 0.4``: a number of every feature; of many only the first, for files have them all."""
    found = [f"{name} {number:.3g}" for name, number in zip(names, numbers, strict=True)]
    return ", ".join(found[:MOST]) + (f", and {len(found) - MOST} more" if len(found) > MOST else "")


def measure(matches: str, dimensions: int) -> str:
    """What is small where a target is matched, with the unit that a joint distance has."""
    if matches != "distribution":
        return "error"
    return "W1" if dimensions == 1 else "joint W1, in spreads"
