"""Everything that can be wrong with what a user hands over.

A message is one line that says what is wrong, where, and how to correct it. The command line prints it and exits
with code 2; in Python it is an ordinary ``ValueError``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches

LONGEST = 200  # characters of what somebody else's code says

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def one_line(reason: BaseException) -> str:
    """What somebody else's code raised, for a message: its kind and the first line of what it says."""
    said = str(reason).strip()
    return f"{type(reason).__name__}: {said.splitlines()[0]}"[:LONGEST] if said else type(reason).__name__


def suggestion(name: str, known: Iterable[str]) -> str:
    """What somebody who wrote ``name`` may have meant, or nothing."""
    near = get_close_matches(name, list(known), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(near)}?" if near else ""


class HimatchError(ValueError):
    """Bad input. The message is written for the person who made it."""


class TaskError(HimatchError):
    """A task or one of its features is unknown or described inconsistently."""


class DataError(HimatchError):
    """A dataset cannot be read, or what it holds is not a set of trajectories."""


class TargetError(HimatchError):
    """A target cannot be understood, or does not fit the feature it is meant for.

    ``argument`` counts, from 0, to the one that is wrong among those that the target is made of, if it is one.
    """

    def __init__(self, reason: str, argument: int | None = None) -> None:
        self.argument = argument
        super().__init__(reason)


class ExpressionError(TargetError):
    """A target expression has a mistake at a known character.

    The message carries the expression and a caret below the offending character.
    """

    def __init__(self, reason: str, text: str, position: int) -> None:
        self.reason, self.text, self.position = reason, text, position
        super().__init__(f"{reason} (character {position + 1} of the target)\n  {text}\n  {' ' * position}^")


class SimulationError(HimatchError):
    """A simulation cannot be made, cannot do what a caller wants, or MuJoCo could not go on."""


class HimatchWarning(UserWarning):
    """Something was repaired or assumed; the result is usable but the user should know."""


def note(message: str) -> None:
    """Warn of something, at the line outside himatch that led to it."""
    if (collected := _collected.get()) is not None:
        collected.append(message)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "himatch":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, HimatchWarning, level)


@contextmanager
def collected_notes() -> Iterator[list[str]]:
    """What would be warned of here is collected instead, for whoever answers somebody else than this program's user.

    Filters of warnings are the whole process's; this is the present thread's or task's alone.
    """
    found: list[str] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)
