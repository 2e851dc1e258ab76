"""The search for a program: candidates are rolled out together, the best are varied, and the winner is tried again.

It begins with what ``nominal`` and ``planned`` do, with the mixture nearest to the target of what the repertoire
*achieved*, and with its nearest entries. Candidates are scored within single episodes, charged for time that was not
played, on initial states of the rehearsal. The last few are compared with ``nominal``, ``planned`` and ``remaining`` on
fresh ones, so that none of these is forgotten; what is expected of the winner comes from yet others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from himatch.errors import TargetError
from himatch.rehearsal.arena import Arena, Judge, Played
from himatch.rehearsal.mutations import Choices, tidied, varied
from himatch.rehearsal.promise import Expected, expectation
from himatch.rehearsal.repertoire import Repertoire
from himatch.rollout.conditioners import objection
from himatch.rollout.programs import REMAINING, TARGET, Program, ProgramPart, episode_entry, scheduled
from himatch.targets import Target
from himatch.types import Array

CANDIDATES, SURVIVORS = 24, 6
EPISODES = 2  # of every candidate in a round
ROUNDS = 6
FINALISTS, FINAL_EPISODES = 3, 8
CHECKED = 16  # episodes of the winner, from which its promise is made
LAST_ROUNDS = 1.5  # what the comparison at the end and the check take, in rounds
PAYS = 0.02  # of the best score: a search ends when two rounds bring less
NEAREST = 6  # entries that a search begins with
FIRST_STARTS = 1_000  # of initial states, after those of the repertoire
FINAL_STARTS, CHECKED_STARTS = 900_000, 950_000

Progress = Callable[[int, int], None]


@dataclass
class Trial:
    """A program with the scores of its episodes so far."""

    program: Program
    scores: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Of its episodes."""
        return float(np.mean(self.scores)) if self.scores else np.inf


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
    hunts = [
        [
            Hunt(arena, target, judge, repertoire, k, starts[n][k] if starts else ())
            for k in range(len(arena.agent.seeds))
        ]
        for n, (target, judge) in enumerate(zip(targets, judges, strict=True))
    ]
    horizon = max(judge.steps for judge in judges)
    total, done, rounds = (ROUNDS + 2) * horizon, 0, 0

    def step(_: int) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(min(done, total), total)

    for turn in range(ROUNDS):
        _round(arena, hunts, FIRST_STARTS + turn * EPISODES, step)
        rounds, done = turn + 1, (turn + 1) * horizon
        spent = time.perf_counter() - began
        late = seconds is not None and spent * (1.0 + (1.0 + LAST_ROUNDS) / rounds) > seconds
        if late or all(hunt.settled for row in hunts for hunt in row):
            break
        for row in hunts:
            for hunt in row:
                hunt.vary()
    done = ROUNDS * horizon
    winners = _finals(arena, hunts, step)
    checked = arena.play(winners, targets, CHECKED, CHECKED_STARTS, step)
    if progress is not None:
        progress(total, total)
    spent = time.perf_counter() - began
    return [
        Solution(tuple(programs), expectation(judge, played, episodes), rounds, round(spent, 1))
        for programs, judge, played in zip(winners, judges, checked, strict=True)
    ]


class Hunt:
    """The search for one target and seed."""

    def __init__(
        self, arena: Arena, target: Target, judge: Judge, repertoire: Repertoire, seed: int, starts: Sequence[Program]
    ) -> None:
        self.arena, self.target, self.judge = arena, target, judge
        self._rng = np.random.default_rng((seed, judge.steps))
        speed, stays = repertoire.speed(seed), repertoire.stays(seed)
        order = np.argsort(speed, kind="stable")
        self._choices = Choices(tuple(repertoire.entries[i] for i in order), 0.05 + stays[order])
        self.own = self._own()
        first = [*starts, *self.own, *self._mixtures(repertoire, seed), *self._nearest(repertoire, seed)]
        self.pool = [Trial(program) for program in dict.fromkeys(first)][:CANDIDATES]
        self._fill(first)
        self._best: list[float] = []

    def _own(self) -> list[Program]:
        """What ``nominal`` and ``planned`` would do."""
        found: list[Program] = [(ProgramPart(TARGET, self.judge.steps),)]
        if objection("planned", self.arena.run.statistic, self.arena.agent.method) is None and self._mixable:
            found.append(tidied(scheduled(self.target, self.arena.reference, self.judge.steps), self.judge.steps))
        return found

    @property
    def _mixable(self) -> bool:
        return self.target.matches == "distribution" and len(self.arena.reference.lengths) > 0

    def _mixtures(self, repertoire: Repertoire, seed: int) -> list[Program]:
        """The nearest mixture of what was achieved, slow parts first, and the other way round."""
        if not self._mixable:
            return []
        reference, entries = repertoire.reference(seed, self.arena.reference.frame)
        named = {episode_entry(i): entry for i, entry in enumerate(entries)}
        parts = scheduled(self.target, reference, self.judge.steps)
        program = tidied(tuple(ProgramPart(named[part.entry], part.steps) for part in parts), self.judge.steps)
        return [program] if self.target.in_time else [program, program[::-1]]

    def _nearest(self, repertoire: Repertoire, seed: int) -> list[Program]:
        """The entries that by themselves come nearest."""
        scores = [float(self.judge.episodes(some).mean()) for some in repertoire.started(seed)]
        return [
            (ProgramPart(repertoire.entries[i], self.judge.steps),) for i in np.argsort(scores, kind="stable")[:NEAREST]
        ]

    def _fill(self, parents: Sequence[Program]) -> None:
        """Variations of some programs, until there are as many candidates as in every round."""
        while len(self.pool) < CANDIDATES:
            parent = parents[int(self._rng.integers(len(parents)))]
            self.pool.append(Trial(varied(parent, self._choices, self._rng)))

    def score(self, played: Sequence[Sequence[Array]]) -> None:
        """The episodes of every candidate of this round."""
        for candidate, episodes in zip(self.pool, played, strict=True):
            candidate.scores += self.judge.episodes(episodes).tolist()
        self._best.append(min(candidate.mean for candidate in self.pool))

    def vary(self) -> None:
        """The next round: the best so far, to be scored again, and variations of them."""
        self.pool = sorted(self.pool, key=lambda candidate: candidate.mean)[:SURVIVORS]
        self._fill([candidate.program for candidate in self.pool])

    @property
    def settled(self) -> bool:
        """Whether the last two rounds brought little."""
        return len(self._best) > 2 and min(self._best[-2:]) > (1.0 - PAYS) * min(self._best[:-2])

    @property
    def finalists(self) -> list[Program]:
        """The best, those that were scored most often first among equals, and what other conditionings would do."""
        known = sorted(self.pool, key=lambda candidate: (candidate.mean, -len(candidate.scores)))
        twice = [candidate for candidate in known if len(candidate.scores) > EPISODES]
        tried = [candidate.program for candidate in twice or known]
        left = objection("remaining", self.arena.run.statistic, self.arena.agent.method) is None
        other: list[Program] = [(ProgramPart(REMAINING, self.judge.steps),)] if left else []
        return [*tried[:FINALISTS], *self.own, *other]


def _round(arena: Arena, hunts: Sequence[Sequence[Hunt]], start: int, step: Callable[[int], None]) -> None:
    """All candidates of all targets and seeds, rolled out together."""
    programs = [[hunt.pool[c].program for hunt in row] for row in hunts for c in range(CANDIDATES)]
    targets = [row[0].target for row in hunts for _ in range(CANDIDATES)]
    played = arena.play(programs, targets, EPISODES, start, step)
    for n, row in enumerate(hunts):
        own = played[n * CANDIDATES : (n + 1) * CANDIDATES]
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
