"""What is wrong with a source: collected, so that one run names all of it, and with the episodes it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from himatch.data.packed import Packed
from himatch.data.wording import listed
from himatch.errors import DataError, note

MOST = 10  # lines of a message
EXAMPLES = 5  # of a kind in a line
LEAVE_OUT = "leave them out (--drop-bad, drop_bad=True)"


@dataclass
class Problem:
    """One kind of problem: the first such of some episodes with their places, how to mend it, how many and where.

    ``droppable`` where ``drop_bad`` leaves the ``episodes`` out; where it has none, what was wrong has been left out
    already.
    """

    examples: list[str]
    remedy: str
    droppable: bool = True
    count: int = 0
    episodes: set[int] = field(default_factory=set)

    @property
    def first(self) -> str:
        """The first such."""
        return self.examples[0]

    @property
    def some(self) -> str:
        """The first such of some episodes."""
        return "; ".join(self.examples) + ", and others" * (len(self.episodes) > len(self.examples))

    def line(self, packed: Packed) -> str:
        """The problem in one line."""
        more = f", {self.count} in all" if self.count > max(1, len(self.episodes)) else ""
        several = self.droppable or len(self.episodes) > 1
        where = f"; affected: {affected(packed, self.episodes)}" if self.episodes and several else ""
        return f"{'; '.join(self.examples)}{where}{more}; {self.remedy}"


@dataclass
class Problems:
    """All kinds that were found, by their kind."""

    found: dict[str, Problem] = field(default_factory=dict)

    def add(
        self,
        kind: str,
        episodes: Iterable[int],
        first: Callable[[], str],
        remedy: str,
        *,
        count: int = 1,
        droppable: bool = True,
    ) -> None:
        """Note a problem.

        ``first`` is asked for its words in some episodes only, for looking up lines of a file takes a while.
        """
        if kind not in self.found:
            self.found[kind] = Problem([], remedy, droppable)
        problem, new = self.found[kind], set(episodes)
        if not problem.examples or (len(problem.examples) < EXAMPLES and not new <= problem.episodes):
            problem.examples.append(first())
        problem.count += count
        problem.episodes |= new

    @property
    def episodes(self) -> set[int]:
        """The episodes with a problem for which they may be left out."""
        return {number for one in self.found.values() if one.droppable for number in one.episodes}


def affected(packed: Packed, episodes: Iterable[int]) -> str:
    """Some episodes of a set, for a message."""
    names = [packed.places.episode(number) for number in sorted(episodes)]
    return f"{len(names)} of {len(packed.lengths)} episodes ({listed(names)})"


def settle(problems: Problems, packed: Packed, where: str, *, drop_bad: bool) -> NDArray[np.bool_]:
    """Which episodes to take, ``(E,)``: all of a faultless set; refuses others, or leaves out what ``drop_bad`` may."""
    good = np.ones(len(packed.lengths), dtype=bool)
    kinds = list(problems.found.values())
    kept = [one for one in kinds if not (drop_bad and one.droppable)]
    if kept:
        raise _refusal([one.line(packed) for one in kept], where)
    if not kinds:
        return good
    bad = sorted(problems.episodes)
    good[bad] = False
    if not good.any():
        reasons = "; ".join(one.first for one in kinds)
        raise DataError(f"{where}: {reasons}; no episode is without such, so nothing is left; clean the log")
    if bad:
        reasons = "; ".join(one.some for one in kinds if one.episodes)
        note(f"{where}: {affected(packed, bad)} left out, as requested: {reasons}")
    for one in kinds:
        if not one.episodes:
            note(f"{where}: {one.first}; {one.count} such left out, as requested")
    return good


def _refusal(lines: list[str], where: str) -> DataError:
    if len(lines) == 1:
        return DataError(f"{where}: {lines[0]}")
    more = [f"... and {len(lines) - MOST} more kinds"] if len(lines) > MOST else []
    return DataError("\n  ".join([f"{where}: {len(lines)} kinds of problems", *lines[:MOST], *more]))
