"""The search for programs: candidates are rolled out together, the best are varied, and the winner is tried again.

All targets and seeds are searched for at once (:mod:`himatch.rehearsal.hunt`), on initial states of the rehearsal, and
take over what the search for another target found. The last few candidates of each are compared with ``nominal``,
``planned`` and ``remaining`` on fresh states, so that none of these is forgotten; what is expected of the winner comes
from yet others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from himatch.errors import TargetError
from himatch.rehearsal.arena import Arena, Judge, Played
from himatch.rehearsal.hunt import EPISODES, Hunt, Logged, exchange
from himatch.rehearsal.promise import expectation
from himatch.rehearsal.repertoire import Repertoire
from himatch.rollout.conditioners import objection
from himatch.rollout.expected import Expected
from himatch.rollout.programs import Program
from himatch.targets import Target

CANDIDATES, FEWEST = 24, 12  # of one target, and of each of many, whose searches help one another
ROUNDS = 6
FINAL_EPISODES = 8
CHECKED = 24  # episodes of the winner, from which its promise is made
FIRST_STARTS = 1_000  # of initial states, after those of the repertoire
FINAL_STARTS, CHECKED_STARTS = 900_000, 950_000

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Solution:
    """What a search found for one target: a program for every seed, and what to expect of them."""

    programs: tuple[Program, ...]
    expected: Expected
    rounds: int
    seconds: float


def search(
    arena: Arena,
    targets: Sequence[Target],
    repertoire: Repertoire,
    *,
    seconds: float | None = None,
    episodes: int = 20,
    starts: Sequence[Sequence[Sequence[Program]]] = (),
    progress: Progress | None = None,
) -> list[Solution]:
    """Programs for some targets, searched for together; ``starts[n][k]`` are more of them to begin with.

    ``seconds`` bounds all of it, but for one round and the comparison at the end. ``episodes`` is how many rollouts the
    promise is for.
    """
    began = time.perf_counter()
    judges = [Judge(target, arena.reference) for target in targets]
    each = max(FEWEST, round(CANDIDATES / len(targets) ** 0.5))
    hunts = []
    for n, judge in enumerate(judges):
        plans = Logged.of(arena, judge)
        own = [starts[n][k] if starts else () for k in range(len(arena.agent.seeds))]
        hunts.append([Hunt(arena, judge, plans, repertoire, k, each, more) for k, more in enumerate(own)])
    set_up = time.perf_counter() - began
    # What the comparison at the end and the check take, in rounds.
    last = (max(len(row[0].finalists) for row in hunts) * FINAL_EPISODES + CHECKED) / (each * EPISODES)
    horizon = max(judge.steps for judge in judges)
    total, done, rounds = (ROUNDS + 2) * horizon, 0, 0

    def step(_: int) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(min(done, total), total)

    open_ = hunts
    for turn in range(ROUNDS):
        _round(arena, open_, FIRST_STARTS + turn * EPISODES, step)
        for k in range(len(arena.agent.seeds)):
            exchange([row[k] for row in hunts])
        rounds, done = turn + 1, (turn + 1) * horizon
        spent = time.perf_counter() - began
        late = seconds is not None and spent + (spent - set_up) / rounds * (1.0 + last) > seconds
        open_ = [row for row in open_ if not all(hunt.settled for hunt in row)]
        if late or not open_:
            break
        for row in open_:
            for hunt in row:
                hunt.vary()
    done = ROUNDS * horizon
    winners = _finals(arena, hunts, step)
    checked = arena.play(winners, targets, CHECKED, CHECKED_STARTS, step)
    if progress is not None:
        progress(total, total)
    spent = time.perf_counter() - began
    return [
        Solution(
            tuple(programs),
            expectation(judge, [[own] for own in played], episodes, falls=repertoire.falls),
            rounds,
            round(spent, 1),
        )
        for programs, judge, played in zip(winners, judges, checked, strict=True)
    ]


def _round(arena: Arena, hunts: Sequence[Sequence[Hunt]], start: int, step: Callable[[int], None]) -> None:
    """All candidates of all targets and seeds, rolled out together."""
    each = len(hunts[0][0].pool)
    programs = [[hunt.pool[c].program for hunt in row] for row in hunts for c in range(each)]
    targets = [row[0].target for row in hunts for _ in range(each)]
    played = arena.play(programs, targets, EPISODES, start, step)
    for n, row in enumerate(hunts):
        own = played[n * each : (n + 1) * each]
        for k, hunt in enumerate(row):
            hunt.score([candidate[k] for candidate in own])


def _finals(arena: Arena, hunts: Sequence[Sequence[Hunt]], step: Callable[[int], None]) -> list[list[Program]]:
    """The winner of every target and seed, on fresh initial states; pooled, as rollouts are compared."""
    lists = [[hunt.finalists for hunt in row] for row in hunts]
    most = max(len(finalists) for row in lists for finalists in row)
    padded = [[finalists + finalists[:1] * (most - len(finalists)) for finalists in row] for row in lists]
    programs = [[finalists[c] for finalists in row] for row in padded for c in range(most)]
    targets = [row[0].target for row in hunts for _ in range(most)]
    played: Played = arena.play(programs, targets, FINAL_EPISODES, FINAL_STARTS, step)
    winners = []
    for n, row in enumerate(hunts):
        own = played[n * most : (n + 1) * most]
        scores = [[hunt.judge.pooled(own[c][k]) for c in range(most)] for k, hunt in enumerate(row)]
        winners.append([padded[n][k][int(np.argmin(of_seed))] for k, of_seed in enumerate(scores)])
    return winners


def check_rehearsable(arena: Arena) -> None:
    """Refuse policies that are not conditioned on a statistic of a feature."""
    if why := objection("rehearsed", arena.run.statistic, arena.agent.method):
        raise TargetError(why)
