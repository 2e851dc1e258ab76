"""Programs for several episodes together: each plays one conditioning, and together they come near the target.

Episodes that share a target out need not switch. The mixture nearest to the target of what whole rollouts of the
repertoire achieved says how many episodes play what; its entries are rolled out again, and mixed once more. It is
compared with what ``planned`` and ``nominal`` would do, on fresh initial states.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from himatch.errors import TargetError
from himatch.rehearsal.arena import Achieved, Arena, Judge, Played, phis
from himatch.rehearsal.promise import expectation
from himatch.rehearsal.repertoire import Repertoire
from himatch.rollout.conditioners import objection
from himatch.rollout.expected import Expected
from himatch.rollout.plans import nearest_shares, shared_plan
from himatch.rollout.programs import TARGET, ProgramPart, Shares
from himatch.targets import EpisodeReference, Target
from himatch.types import Array

MIXED, FINAL, CHECKED = 6, 8, 24  # episodes of every program
MIXED_STARTS, FINAL_STARTS, CHECKED_STARTS = 1_000, 900_000, 950_000  # of initial states

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class PooledSolution:
    """What every seed's episodes share out among them for one target, and what to expect of it."""

    programs: tuple[Shares, ...]
    expected: Expected
    seconds: float


def share_out(
    arena: Arena,
    targets: Sequence[Target],
    repertoire: Repertoire,
    *,
    episodes: int = 20,
    progress: Progress | None = None,
) -> list[PooledSolution]:
    """Shared programs for some targets; ``episodes`` is how many rollouts the promise is for."""
    began = time.perf_counter()
    judges = [Judge(_checked(target), arena.reference) for target in targets]
    stack = range(len(arena.agent.seeds))
    total, done = 3 * max(judge.steps for judge in judges), 0

    def step(_: int) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(min(done, total), total)

    known = [list(zip(repertoire.entries, repertoire.started(k), strict=True)) for k in stack]
    first = [[_mixed(known[k], judge) for k in stack] for judge in judges]
    again = _play(arena, first, targets, MIXED, MIXED_STARTS, step)
    found = [
        [_mixed(list(zip(_entries(first[n][k]), map(phis, again[n][k]), strict=True)), judge) for k in stack]
        for n, judge in enumerate(judges)
    ]
    others = [_others(arena, judge) for judge in judges]
    scores = np.empty((len(judges), len(stack), 1 + max(map(len, others))))
    scores[:] = np.inf
    for place in range(scores.shape[2]):
        chosen = [[found[n][k] if not place else others[n][place - 1] for k in stack] for n in range(len(judges))]
        played = _play(arena, chosen, targets, FINAL, FINAL_STARTS, step)
        for n, judge in enumerate(judges):
            for k in stack:
                scores[n, k, place] = judge.pooled(_dealt(chosen[n][k], played[n][k], FINAL))
    winners = [
        [found[n][k] if not (best := int(scores[n, k].argmin())) else others[n][best - 1] for k in stack]
        for n in range(len(judges))
    ]
    checked = _play(arena, winners, targets, CHECKED, CHECKED_STARTS, step)
    if progress is not None:
        progress(total, total)
    spent = round(time.perf_counter() - began, 1)
    return [
        PooledSolution(
            tuple(own),
            expectation(judge, played, episodes, [shares.parts for shares in own], repertoire.falls),
            spent,
        )
        for own, judge, played in zip(winners, judges, checked, strict=True)
    ]


def _checked(target: Target) -> Target:
    if target.matches != "distribution":
        raise TargetError(f"{target.name} is of every episode, and cannot be shared out among several")
    return target


def _mixed(achieved: Sequence[tuple[str, Sequence[Array]]], judge: Judge) -> Shares:
    """The nearest mixture of some rollouts, each under an entry."""
    rolled = [(entry, rows) for entry, some in achieved for rows in some]
    reference = EpisodeReference.of_rows(judge.reference.frame, [rows for _, rows in rolled])
    return nearest_shares(judge.target, reference, [entry for entry, _ in rolled], judge.steps)


def _entries(shares: Shares) -> list[str]:
    return [program[0].entry for program in shares.programs]


def _others(arena: Arena, judge: Judge) -> list[Shares]:
    """What ``nominal`` does, and ``planned`` in the same way: every episode one training episode."""
    found, reference = [Shares(((ProgramPart(TARGET, judge.steps),),))], arena.reference
    if objection("planned", arena.run.statistic, arena.agent.method) is None and len(reference.lengths):
        found.append(shared_plan(judge.target, reference))
    return found


def _play(
    arena: Arena,
    shares: Sequence[Sequence[Shares]],
    targets: Sequence[Target],
    episodes: int,
    start: int,
    step: Callable[[int], None],
) -> list[list[list[list[Achieved]]]]:
    """Roll out every program of every target and seed so many times: ``[n][k][program][episode]``."""
    programs, of = [], []
    for own, target in zip(shares, targets, strict=True):
        for j in range(max(len(one.programs) for one in own)):  # a seed that has fewer plays its last one again
            programs.append([one.programs[min(j, len(one.programs) - 1)] for one in own])
            of.append(target)
    played: Played = arena.play(programs, of, episodes, start, step)
    found, place = [], 0
    for own in shares:
        most = max(len(one.programs) for one in own)
        rows = played[place : place + most]
        found.append([[rows[j][k] for j in range(len(one.programs))] for k, one in enumerate(own)])
        place += most
    return found


def _dealt(shares: Shares, played: Sequence[Sequence[Achieved]], episodes: int) -> list[Achieved]:
    """As many episodes of each program as it has its part of."""
    numbers = shares.dealt(episodes)
    return [played[number][numbers[:n].count(number)] for n, number in enumerate(numbers)]
