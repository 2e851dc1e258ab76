"""A rehearsal: the repertoire of a policy, programs for targets, and what to expect of them, kept with its run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from himatch._runtime.clock import stopwatch
from himatch._runtime.tensors import versions
from himatch.errors import HimatchError
from himatch.rehearsal.arena import Arena, Judge
from himatch.rehearsal.pool import share_out
from himatch.rehearsal.repertoire import Bar, Progress, Repertoire, read_repertoire, rehearse, write_repertoire
from himatch.rehearsal.search import check_rehearsable, search
from himatch.rollout.environment import UNNAMED
from himatch.rollout.expected import Expected
from himatch.rollout.programs import REMAINING, Program, Within, read, written
from himatch.runs.programs import Rehearsal
from himatch.targets import Target
from himatch.types import Array

NEAR = 0.25  # of the feature's spread: programs of targets that are nearer are tried, too
REUSED = 4  # of these
TOGETHER = 16  # targets that are searched for at once; what was found is kept before the next ones


@dataclass(frozen=True)
class Kept:
    """What a rehearsal is kept with: whose weights, and whether the run folder is written to."""

    weights: str = "last"
    writes: bool = True


def prepare(
    arena: Arena,
    targets: Sequence[Target],
    *,
    repertoire: Repertoire | None = None,
    seconds: float | None = None,
    episodes: int = 20,
    within: Within = "episode",
    again: bool = False,
    kept: Kept | None = None,
    bar: Bar | None = None,
) -> tuple[Repertoire, list[Expected]]:
    """The repertoire, and for every target what to expect of its programs, found now unless they are known already.

    ``again`` searches for those that are known, too, and begins with their programs.
    """
    check_rehearsable(arena)
    how, now = kept or Kept(), arena.now
    if now.environment.startswith(UNNAMED):  # nobody can tell it again from another one
        how = replace(how, writes=False)
    repertoire = _repertoire(arena, repertoire, how, bar)
    programs, frame = arena.run.programs, arena.reference.frame
    missing = [target for target in targets if again or programs.get(target, frame, now, within) is None]
    began = time.perf_counter()
    for first in range(0, len(missing), TOGETHER):
        some = missing[first : first + TOGETHER]
        share = len(some) / len(missing[first:])
        left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - began)) * share
        number = f" {first + 1} to {first + len(some)} of {len(missing)}" if len(missing) > TOGETHER else ""
        progress = None if bar is None else bar(f"rehearsing{number}")
        with stopwatch() as spent:
            records = _found(arena, some, repertoire, left, episodes, within, progress)
        of_all = {"cpu_seconds": round(spent.cpu_seconds, 1), "weights": how.weights, "versions": versions()}
        for target, record in zip(some, records, strict=True):
            programs.keep(target, frame, now, {**record, "target": target.name, "within": within, **of_all})
        if how.writes:
            programs.write()
    return repertoire, [Expected(**programs.rehearsal(target, frame, now, within)["expected"]) for target in targets]


def _found(
    arena: Arena,
    targets: Sequence[Target],
    repertoire: Repertoire,
    seconds: float | None,
    episodes: int,
    within: Within,
    progress: Progress | None,
) -> list[Rehearsal]:
    """What a search finds for some targets, as files have it."""
    seeds = [str(seed) for seed in arena.agent.seeds]
    if within == "pool":
        shared = share_out(arena, targets, repertoire, episodes=episodes, progress=progress)
        return [
            {
                "programs": {seed: one.as_json() for seed, one in zip(seeds, found.programs, strict=True)},
                "expected": found.expected.as_json(),
                "seconds": found.seconds,
                "rounds": 1,
            }
            for found in shared
        ]
    starts = [_near(arena, target) for target in targets]
    alone = search(arena, targets, repertoire, seconds=seconds, episodes=episodes, starts=starts, progress=progress)
    return [
        {
            "programs": {seed: written(one) for seed, one in zip(seeds, found.programs, strict=True)},
            "expected": found.expected.as_json(),
            "seconds": found.seconds,
            "rounds": found.rounds,
        }
        for found in alone
    ]


def _repertoire(arena: Arena, given: Repertoire | None, kept: Kept, bar: Bar | None) -> Repertoire:
    # One file: what the policy does at other temperatures or elsewhere does not take its place.
    own = (arena.temperature, arena.env) == (arena.run.temperature, None)
    keep = partial(write_repertoire, arena) if kept.writes and own else None
    return rehearse(arena, known=given or read_repertoire(arena), keep=keep, bar=bar)


def _near(arena: Arena, target: Target) -> list[list[Program]]:
    """For every seed the programs of targets near this one and as long."""
    judge, reference, seeds = Judge(target, arena.reference), arena.reference, arena.agent.seeds
    if target.matches != "distribution":
        return [[] for _ in seeds]
    unit = float(reference.spread[0]) if len(reference.spread) == 1 else 1.0
    known = []
    for record in arena.run.programs.found.values():
        if record.get("within", "episode") != "episode":
            continue
        programs = {seed: read(record["programs"].get(str(seed), ())) for seed in seeds}
        if any(part.entry == REMAINING for program in programs.values() for part in program):
            continue  # it cannot be varied
        if not all(sum(part.steps for part in program) == judge.steps for program in programs.values()):
            continue
        # What was asked for then, and what was achieved.
        names = filter(None, (record["target"], record["expected"].get("nearest")))
        distances = [judge.distance([rows]) for rows in (_values(arena, name) for name in names) if len(rows)]
        if distances and min(distances) < NEAR * unit:
            known.append((min(distances), programs))
    known.sort(key=lambda one: one[0])
    return [[programs[seed] for _, programs in known[:REUSED]] for seed in seeds]


def _values(arena: Arena, name: str) -> Array:
    """The values of a distribution; none where its name does not give it back, as of an episode."""
    frame = arena.reference.frame
    nothing = np.zeros((0, frame.bins.dimensions), np.float32)
    try:
        other = arena.run.target(name)
    except HimatchError:
        return nothing
    return other.values(frame) if other.matches == "distribution" else nothing
