"""Programs: a sequence of conditionings, each for so many steps of a rollout.

``planned`` lays one out over training episodes; ``rehearsed`` plays one that was tried beforehand. An *entry* names
what a part is conditioned on:

========================  ========================================================================================
``target``                the target itself, as ``nominal`` conditioning has it
``episode(17)``           a training episode
``episode(17)[200:300]``  a stretch of one
an expression             what no episode need show, such as ``normal(7.8, 0.5)``
``remaining``             what remains of the target: alone, for the whole rollout
========================  ========================================================================================

The z of a part is its entry's own z_t at the rollout's clock. That of a stretch is its whole distribution, held for as
long as the part lasts: the z_t of its episode says where that episode was going, not what it did there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from himatch._runtime.shapes import Float, shaped
from himatch.errors import TargetError
from himatch.rollout.nominal import own_z
from himatch.statistics.information import Statistic
from himatch.targets import EpisodeReference, Target
from himatch.targets.distribution import apportion
from himatch.types import Array

TARGET, REMAINING = "target", "remaining"
_EPISODE = re.compile(r"episode\((\d+)\)(?:\[(\d+):(\d+)\])?")


@dataclass(frozen=True)
class ProgramPart:
    """So many steps conditioned on an entry."""

    entry: str
    steps: int


Program = tuple[ProgramPart, ...]
Within = Literal["episode", "pool"]
"""Whether every episode follows a program for the whole target, or episodes share the target out among them."""


def episode_entry(number: int) -> str:
    """The entry of a training episode."""
    return f"episode({number})"


def stretch_entry(number: int, first: int, steps: int) -> str:
    """The entry of so many steps of a training episode."""
    return f"{episode_entry(number)}[{first}:{first + steps}]"


def place_of(entry: str) -> tuple[int, int | None, int | None]:
    """The episode that an entry names, and from where to where where it is a stretch of it."""
    found = _EPISODE.fullmatch(entry)
    if found is None:
        raise TargetError(f"{entry} is no training episode")
    number, first, end = found.groups()
    return int(number), None if first is None else int(first), None if end is None else int(end)


def written(program: Program) -> list[list[str | int]]:
    """A program in built-in types, as files have it."""
    return [[part.entry, part.steps] for part in program]


def read(parts: Sequence[Sequence[str | int]]) -> Program:
    """The program that was written."""
    return tuple(ProgramPart(str(entry), int(steps)) for entry, steps in parts)


@dataclass(frozen=True)
class Shares:
    """Programs that episodes share out among them, each with its part of the episodes; of one program all play it."""

    programs: tuple[Program, ...]
    parts: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if len(self.programs) != len(self.parts) or not self.programs or min(self.parts) <= 0:
            raise ValueError(f"{len(self.programs)} programs with the parts {self.parts}")

    def dealt(self, episodes: int) -> list[int]:
        """The number of the program that each of so many episodes plays, those of one program one after another."""
        counts = apportion(self.parts, episodes)
        return np.repeat(np.arange(len(counts)), counts).tolist()

    def as_json(self) -> list[list[Any]]:
        """In built-in types, as files have it."""
        return [[float(f"{part:.6g}"), written(one)] for part, one in zip(self.parts, self.programs, strict=True)]

    @classmethod
    def from_json(cls, found: Sequence[tuple[float, Sequence[Sequence[str | int]]]]) -> Shares:
        """What was written."""
        return cls(tuple(read(program) for _, program in found), tuple(float(part) for part, _ in found))


class Entries:
    """What entries are: their feature values, and the z tables that follow from these, each made once.

    ``parse`` makes a target of an expression; without it entries are training episodes and the target itself.
    """

    def __init__(
        self, statistic: Statistic, reference: EpisodeReference, parse: Callable[[str], Target] | None = None
    ) -> None:
        self.statistic, self.reference, self._parse = statistic, reference, parse
        self._tables: dict[str, Array] = {}

    @shaped
    def values(self, entry: str) -> Float[Array, "T d"]:
        """Feature values of an entry that is not the target itself."""
        if found := _EPISODE.fullmatch(entry):
            number = int(found[1])
            if number >= len(self.reference.lengths):
                raise TargetError(f"a program names {entry}; this run holds {len(self.reference.lengths)} episodes")
            values = self.reference.episode(number)
            return values if found[2] is None else values[int(found[2]) : int(found[3])]
        if self._parse is None:
            raise TargetError(f"a program names {entry}, which is no training episode")
        return self._parse(entry).values(self.reference.frame)

    @shaped
    def laid_out(self, program: Program, target: Target) -> Float[Array, "T k"]:
        """The z table of a program for a target."""
        rows, clock = [], 0
        for part in program:
            z = self.table(part.entry, target)
            rows.append(z[np.minimum(np.arange(clock, clock + part.steps), len(z) - 1)])
            clock += part.steps
        return np.concatenate(rows)

    @shaped
    def table(self, entry: str, target: Target | None = None) -> Float[Array, "T k"]:
        """The z of an entry at every step; past its end the last row holds."""
        if entry == TARGET and target is not None:
            return own_z(self.statistic, target, self.reference.frame)
        if entry not in self._tables:
            z = self.statistic.of_values(self.values(entry))
            stretch = _EPISODE.fullmatch(entry)
            self._tables[entry] = z[:1] if stretch and stretch[2] else z
        return self._tables[entry]


def scheduled(target: Target, reference: EpisodeReference, steps: int) -> Program:
    """The nearest mixture of some episodes that can be played, part by part: the program of ``planned``.

    Targets one after another have a mixture each.
    """
    stretches = target.stretches(reference.frame)
    lengths = [len(one.values(reference.frame)) for one in stretches] if len(stretches) > 1 else [steps]
    parts: list[ProgramPart] = []
    for stretch, length in zip(stretches, lengths, strict=True):
        found = reference.schedule(stretch, length, sum(part.steps for part in parts))
        shares = apportion([share for _, share in found], length).tolist()
        parts += [ProgramPart(episode_entry(i), share) for (i, _), share in zip(found, shares, strict=True) if share]
    return tuple(parts)
