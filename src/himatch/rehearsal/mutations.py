"""Variations of a program: durations, entries, insertions, removals and order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from himatch._runtime.shapes import Array64
from himatch.rollout.programs import Program, ProgramPart
from himatch.targets.distribution import apportion

SHORTEST = 0.02  # of a rollout: what is shorter is over before the robot has changed its speed
NEAR = 4  # entries on either side, in order of speed, that one may be replaced by
TWICE = 0.3  # how often a second variation follows


@dataclass(frozen=True)
class Choices:
    """The entries that programs are made of, in order of speed, and how likely each is to be drawn."""

    entries: tuple[str, ...]
    weights: Array64

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", self.weights / self.weights.sum())

    def any(self, rng: np.random.Generator) -> str:
        """One of them."""
        return self.entries[int(rng.choice(len(self.entries), p=self.weights))]

    def near(self, entry: str, rng: np.random.Generator) -> str:
        """A neighbour in speed; of the target itself, which has none, any."""
        if entry not in self.entries:
            return self.any(rng)
        away = int(rng.integers(1, NEAR + 1)) * int(rng.choice((-1, 1)))
        place = int(np.clip(self.entries.index(entry) + away, 0, len(self.entries) - 1))
        return self.entries[place]


def varied(program: Program, choices: Choices, rng: np.random.Generator) -> Program:
    """A program like this one, as long as it."""
    found = _varied(program, choices, rng)
    return _varied(found, choices, rng) if rng.random() < TWICE else found


def _varied(program: Program, choices: Choices, rng: np.random.Generator) -> Program:
    steps = sum(part.steps for part in program)
    several = len(program) > 1
    kinds = ("durations", "entry", "insert", "remove", "swap") if several else ("entry", "insert")
    odds = np.array((0.4, 0.25, 0.15, 0.1, 0.1) if several else (0.4, 0.6))
    kind = str(rng.choice(kinds, p=odds))
    parts = list(program)
    place = int(rng.integers(len(parts)))
    if kind == "durations":
        other = place + 1 if place + 1 < len(parts) and (place == 0 or rng.random() < 0.5) else place - 1
        moved = min(round(steps * rng.exponential(0.08)) + 1, parts[place].steps)
        parts[place] = ProgramPart(parts[place].entry, parts[place].steps - moved)
        parts[other] = ProgramPart(parts[other].entry, parts[other].steps + moved)
    elif kind == "entry":
        parts[place] = ProgramPart(choices.near(parts[place].entry, rng), parts[place].steps)
    elif kind == "insert":
        taken = round(parts[place].steps * rng.uniform(0.1, 0.6))
        before = round((parts[place].steps - taken) * rng.choice((0.0, 0.5, 1.0)))
        entry, rest = parts[place].entry, parts[place].steps - taken - before
        parts[place : place + 1] = [
            ProgramPart(entry, before),
            ProgramPart(choices.any(rng), taken),
            ProgramPart(entry, rest),
        ]
    elif kind == "remove":
        gone = parts.pop(place)
        heir = min(place, len(parts) - 1) if rng.random() < 0.5 else max(place - 1, 0)
        parts[heir] = ProgramPart(parts[heir].entry, parts[heir].steps + gone.steps)
    else:
        other = (place + 1) % len(parts)
        parts[place], parts[other] = parts[other], parts[place]
    return tidied(tuple(parts), steps)


def tidied(program: Program, steps: int) -> Program:
    """The same in so many steps, without parts that are too short, neighbours of one entry as one."""
    least = max(1, round(SHORTEST * steps))
    shares = apportion([part.steps for part in program], steps).tolist()
    fitted = [ProgramPart(part.entry, share) for part, share in zip(program, shares, strict=True)]
    kept = [part for part in fitted if part.steps >= least] or [max(fitted, key=lambda part: part.steps)]
    joined: list[ProgramPart] = []
    for part in kept:
        if joined and joined[-1].entry == part.entry:
            part = ProgramPart(part.entry, joined.pop().steps + part.steps)
        joined.append(part)
    lacking = steps - sum(part.steps for part in joined)
    longest = max(range(len(joined)), key=lambda i: joined[i].steps)
    joined[longest] = ProgramPart(joined[longest].entry, joined[longest].steps + lacking)
    return tuple(joined)
