"""The search for one target and seed: its candidates, their variations, and what is taken over from other searches.

It begins with what ``nominal`` and ``planned`` do, with the mixture nearest to the target of what the repertoire
*achieved*, and with its nearest entries. From round to round the best are kept, fitted to what they achieved, and
varied. Candidates are scored within single episodes, charged for time that was not played.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from himatch._runtime.shapes import Array64
from himatch.errors import TargetError
from himatch.rehearsal.arena import Achieved, Arena, Judge, phis
from himatch.rehearsal.mutations import Choices, tidied, varied
from himatch.rehearsal.refit import Fitter
from himatch.rehearsal.repertoire import Repertoire
from himatch.rollout.conditioners import objection
from himatch.rollout.plans import Mixer, Plans
from himatch.rollout.programs import REMAINING, TARGET, Program, ProgramPart, episode_entry, scheduled
from himatch.targets import Target
from himatch.types import Array

SURVIVORS = 6
EPISODES = 2  # of every candidate in a round
FITTED = 3  # of the best, whose durations and entries are fitted
ADOPTED = 3  # candidates of other searches that enter, at most, in a round
FINALISTS = 3
PAYS = 0.02  # of the best score: a search ends when two rounds bring less
NEAREST = 6  # entries that a search begins with
STRETCH = 0.05  # of the horizon: logged stretches that a search begins with
QUANTILES = 100  # that an episode is known by to other searches


@dataclass
class Trial:
    """A program with the scores of its episodes so far, and what the latest of them were."""

    program: Program
    scores: list[float] = field(default_factory=list)
    episodes: Sequence[Achieved] = ()

    @property
    def mean(self) -> float:
        """Of its episodes."""
        return float(np.mean(self.scores)) if self.scores else np.inf

    @property
    def travels(self) -> bool:
        """Whether it does the same whatever the target."""
        return not any(part.entry in (TARGET, REMAINING) for part in self.program)


@dataclass(frozen=True)
class Logged:
    """What other conditionings do for a target, and what logged stretches say of it: the same for every seed."""

    own: tuple[Program, ...]
    """``nominal`` and ``planned``, which are never forgotten."""
    stretched: tuple[Program, ...]

    @classmethod
    def of(cls, arena: Arena, judge: Judge) -> Logged:
        """Plans are laid out over training episodes, where the policy can be conditioned on these."""
        run, reference, target, steps = arena.run, arena.reference, judge.target, judge.steps
        nominal: Program = (ProgramPart(TARGET, steps),)
        if not _mixable(arena, target) or objection("planned", run.statistic, arena.agent.method) is not None:
            return cls((nominal,), ())
        planned = tidied(scheduled(target, reference, steps), steps)
        plans = Plans(max(1, round(STRETCH * reference.frame.horizon)))
        try:
            plans.check("planned", run.statistic)
            stretched = tidied(Mixer(reference, plans.stretches).program(target), steps)
        except TargetError:  # episodes are shorter than that, or z is counts
            return cls((nominal, planned), ())
        return cls((nominal, planned), (stretched,))


def _mixable(arena: Arena, target: Target) -> bool:
    return target.matches == "distribution" and len(arena.reference.lengths) > 0


class Hunt:
    """The search for one target and seed, with so many candidates a round."""

    def __init__(
        self,
        arena: Arena,
        judge: Judge,
        logged: Logged,
        repertoire: Repertoire,
        seed: int,
        candidates: int,
        starts: Sequence[Program] = (),
    ) -> None:
        self.arena, self.target, self.judge, self.candidates = arena, judge.target, judge, candidates
        self._rng = np.random.default_rng((seed, judge.steps))
        speed, stays = repertoire.speed(seed), repertoire.stays(seed)
        order = np.argsort(speed, kind="stable")
        self._choices = Choices(tuple(repertoire.entries[i] for i in order), 0.05 + stays[order])
        self.own = logged.own
        started = repertoire.started(seed)
        self._fitter = self._make_fitter([started[i] for i in order])
        mixtures = [*self._mixtures(repertoire, seed), *logged.stretched]
        first = [*starts, *self.own, *mixtures, *self._nearest(repertoire.entries, started)]
        self.pool = [Trial(program) for program in dict.fromkeys(first)][:candidates]
        self._fill(first)
        self._best: list[float] = []

    @property
    def plain(self) -> bool:
        """Whether the target is one distribution of one feature, whose values can be shared out in any order."""
        frame = self.arena.reference.frame
        return (
            _mixable(self.arena, self.target) and frame.bins.dimensions == 1 and len(self.target.stretches(frame)) == 1
        )

    def _make_fitter(self, achieved: Sequence[Sequence[Array]]) -> Fitter | None:
        if not self.plain:
            return None
        frame = self.arena.reference.frame
        return Fitter(
            self.target.compared(frame), frame.bins, self._choices.entries, [np.concatenate(some) for some in achieved]
        )

    def _mixtures(self, repertoire: Repertoire, seed: int) -> list[Program]:
        """The nearest mixture of what was achieved, slow parts first, and the other way round."""
        if not _mixable(self.arena, self.target):
            return []
        reference, entries = repertoire.reference(seed, self.arena.reference.frame)
        named = {episode_entry(i): entry for i, entry in enumerate(entries)}
        parts = scheduled(self.target, reference, self.judge.steps)
        program = tidied(tuple(ProgramPart(named[part.entry], part.steps) for part in parts), self.judge.steps)
        return [program] if self.target.in_time else [program, program[::-1]]

    def _nearest(self, entries: Sequence[str], started: Sequence[Sequence[Array]]) -> list[Program]:
        """The entries that by themselves come nearest."""
        scores = [float(self.judge.episodes([Achieved(rows) for rows in some]).mean()) for some in started]
        return [(ProgramPart(entries[i], self.judge.steps),) for i in np.argsort(scores, kind="stable")[:NEAREST]]

    def _fill(self, parents: Sequence[Program]) -> None:
        """Variations of some programs, until there are as many candidates as in every round."""
        while len(self.pool) < self.candidates:
            parent = parents[int(self._rng.integers(len(parents)))]
            self.pool.append(Trial(varied(parent, self._choices, self._rng)))

    def score(self, played: Sequence[Sequence[Achieved]]) -> None:
        """The episodes of every candidate of this round."""
        for candidate, episodes in zip(self.pool, played, strict=True):
            candidate.scores += self.judge.episodes(episodes).tolist()
            candidate.episodes = episodes
        self._best.append(min(candidate.mean for candidate in self.pool))

    def adopt(self, others: Sequence[Trial], foreseen: Array64) -> None:
        """Take over the best of what other searches tried, by the scores that are foreseen for this target."""
        known, worst = {trial.program for trial in self.pool}, sorted(trial.mean for trial in self.pool)[:SURVIVORS][-1]
        taken = 0
        for n in np.argsort(foreseen, kind="stable").tolist():
            if taken == ADOPTED or foreseen[n] >= worst:
                break
            if others[n].program not in known:
                found = Trial(others[n].program, self.judge.episodes(others[n].episodes).tolist(), others[n].episodes)
                self.pool.append(found)
                known.add(found.program)
                taken += 1

    def vary(self) -> None:
        """The next round: the best so far, to be scored again, fitted ones, and variations of them."""
        best = sorted(self.pool, key=lambda candidate: candidate.mean)
        third = max(1, self.candidates // 3)
        self.pool = best[: min(SURVIVORS, third)]
        known = {candidate.program for candidate in best}
        fitted = [program for program in self._fitted(best[:FITTED]) if program not in known]
        self.pool += [Trial(program) for program in fitted[:third]]
        self._fill([candidate.program for candidate in self.pool])

    def _fitted(self, best: Sequence[Trial]) -> list[Program]:
        if self._fitter is None:
            return []
        found = [
            program
            for candidate in best
            if candidate.travels
            for rows in [phis(candidate.episodes)]
            for program in (
                self._fitter.durations(candidate.program, rows),
                self._fitter.widened(candidate.program, rows),
            )
            if program is not None
        ]
        return list(dict.fromkeys(found))

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


def exchange(hunts: Sequence[Hunt]) -> None:
    """Let the searches of one seed for several targets see what the others tried, whose rollouts are of use to all.

    What a foreign candidate would score is foreseen from quantiles; the few that enter are scored exactly.
    """
    plain = [hunt for hunt in hunts if hunt.plain and not hunt.target.bounds]  # which others did not look at
    for steps in {hunt.judge.steps for hunt in plain}:
        group = [hunt for hunt in plain if hunt.judge.steps == steps]
        tried = [trial for hunt in group for trial in hunt.pool if trial.travels and trial.episodes]
        if len(group) < 2 or not tried:
            continue
        achieved = np.array([[_quantiles(episode.phi) for episode in trial.episodes] for trial in tried])
        lasted = np.array([[group[0].judge.lasted(episode) for episode in trial.episodes] for trial in tried])
        before = [list(hunt.pool) for hunt in group]
        for hunt, own in zip(group, before, strict=True):
            frame = hunt.arena.reference.frame
            away = np.abs(achieved - _quantiles(hunt.target.compared(frame))).mean(axis=2)
            foreseen = (lasted * away + (1.0 - lasted) * float(hunt.arena.reference.spread[0])).mean(axis=1)
            mine = {id(trial) for trial in own}
            foreseen[[id(trial) in mine for trial in tried]] = np.inf
            hunt.adopt(tried, foreseen)


def _quantiles(rows: Array) -> Array64:
    found: Array64 = np.quantile(rows[:, 0], (np.arange(QUANTILES) + 0.5) / QUANTILES)
    return found
