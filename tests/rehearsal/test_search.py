"""The search for programs, with a policy whose doings are known: every entry gives the same value at every step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from untrained import untrained

import himatch as hm
from himatch.rehearsal import hunt as hunting
from himatch.rehearsal import search as searching
from himatch.rehearsal.arena import Achieved, Arena, Judge, Played, Steps
from himatch.rehearsal.repertoire import Repertoire, library
from himatch.rehearsal.search import search
from himatch.rollout.programs import REMAINING, TARGET, Program, ProgramPart
from himatch.targets import Target

HORIZON = 200


class Biased(Arena):
    """A policy that is one faster than it is conditioned to be, and at 7 and above lies down for good.

    Whatever the bounds of a target, they hold under Gaussians alone.
    """

    nominal = 3.0
    remaining = 3.0

    def value(self, entry: str) -> float:
        if entry in (TARGET, REMAINING):
            return self.nominal if entry == TARGET else self.remaining
        if entry.startswith("episode"):
            return float(entry[8:].split(")")[0]) / 2  # of a stretch, its episode's
        return float(entry[len("shuffled(normal(") :].split(",")[0]) + 1.0

    def play(
        self,
        programs: Sequence[Sequence[Program]],
        targets: Sequence[Target],
        episodes: int,
        start: int,
        step: Steps | None = None,
    ) -> Played:
        bounded = [bool(target.bounds) for target in targets] or [False] * len(programs)
        return [
            [[self.rolled(program, bound)] * episodes for program in own]
            for own, bound in zip(programs, bounded, strict=True)
        ]

    def rolled(self, program: Program, bounded: bool = False) -> Achieved:
        within = sum(part.steps for part in program if part.entry.startswith("shuffled(normal"))
        return Achieved(self.rows(program), within / sum(part.steps for part in program) if bounded else 1.0)

    def rows(self, program: Program) -> Any:
        rows = np.concatenate([np.full(part.steps, self.value(part.entry), np.float32) for part in program])
        fallen = np.flatnonzero(rows >= 7.0)
        return rows[: fallen[0] + 5 if len(fallen) else len(rows), None]


@pytest.fixture
def arena(tmp_path: Path) -> Biased:
    rng = np.random.default_rng(0)
    episodes = [
        hm.Trajectory(
            rng.normal(size=(HORIZON, 11)).astype(np.float32) * 0.01 + np.eye(11, dtype=np.float32)[5] * i / 2,
            np.zeros((HORIZON, 3), np.float32),
            np.zeros(HORIZON, np.float32),
        )
        for i in range(12)
    ]
    data = hm.load_dataset(episodes, hm.Task("short", horizon=HORIZON, features={"x_velocity": 5}))
    policy = untrained(hm.CDT("x_velocity"), data, tmp_path / "run", seeds=(0, 1))
    return Biased(policy.run, policy.agent)


def repertoire_of(arena: Biased) -> Repertoire:
    entries = library(arena)
    rolled = arena.play([[(ProgramPart(entry, HORIZON),)] for entry in entries], [], 2, 0)
    values = np.zeros((2, len(entries), 3, HORIZON, 1), np.float16)
    lengths = np.zeros((2, len(entries), 3), np.int64)
    for n, own in enumerate(rolled):
        for e in range(3):
            rows = own[0][0].phi
            values[:, n, e, : len(rows)], lengths[:, n, e] = rows, len(rows)
    return Repertoire(tuple(entries), tuple(entries), torch.from_numpy(values), lengths)


def test_it_finds_what_achieves_the_target_not_what_is_called_so(arena: Biased) -> None:
    """Two modes, half of the time each: entries of 1 and 4 m/s give 2 and 5."""
    target = arena.run.target("0.5*point(2)+0.5*point(5)")
    found = search(arena, [target], repertoire_of(arena))[0]
    judge = Judge(target, arena.reference)
    assert len(found.programs) == 2
    for program in found.programs:
        assert judge.pooled([arena.rolled(program)]) < 0.15
        assert judge.pooled([arena.rolled(((ProgramPart(TARGET, HORIZON)),))]) > 1.4
    assert found.expected.score < 0.15
    assert found.expected.played == 1.0


def test_programs_keep_within_bounds_where_some_do(arena: Biased) -> None:
    """Episodes achieve 5.5 to the point, and out of bounds; the nearest Gaussian that holds them is a little off."""
    free, bounded = (arena.run.target(text) for text in ("point(5.5)", "point(5.5) & reward < 1"))
    repertoire = repertoire_of(arena)
    found = search(arena, [free, bounded], repertoire)
    assert any(part.entry == "episode(11)" for program in found[0].programs for part in program)
    assert all(part.entry.startswith("shuffled(normal") for program in found[1].programs for part in program)
    assert found[0].expected.held is None
    assert found[1].expected.held == 1.0
    assert "bounds held 100%" in str(found[1].expected)


def test_programs_that_fall_are_charged_for_it(arena: Biased) -> None:
    """What lies beyond 7 can only be reached by falling, which costs more than to stay below it."""
    target = arena.run.target("point(8)")
    found = search(arena, [target], repertoire_of(arena))[0]
    assert found.expected.played == 1.0
    assert all(len(arena.rows(program)) == HORIZON for program in found.programs)


@pytest.mark.parametrize(("nominal", "remaining", "entry"), [(4.25, 0.0, TARGET), (0.0, 4.25, REMAINING)])
def test_what_other_conditionings_do_is_not_forgotten(
    arena: Biased, nominal: float, remaining: float, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Biased, "nominal", nominal)
    monkeypatch.setattr(Biased, "remaining", remaining)
    target = arena.run.target("point(4.25)")
    assert search(arena, [target], repertoire_of(arena))[0].programs == ((ProgramPart(entry, HORIZON),),) * 2


def test_several_targets_at_once_are_each_searched_for(arena: Biased) -> None:
    targets = [arena.run.target(text) for text in ("point(2)", "point(5)", "uniform(1,6)")]
    found = search(arena, targets, repertoire_of(arena))
    for target, one in zip(targets, found, strict=True):
        assert Judge(target, arena.reference).pooled([arena.rolled(one.programs[0])]) < 0.4


def test_a_budget_ends_the_rounds(arena: Biased, monkeypatch: pytest.MonkeyPatch) -> None:
    target, repertoire = arena.run.target("uniform(1,6)"), repertoire_of(arena)
    assert search(arena, [target], repertoire, seconds=1e-9)[0].rounds == 1
    monkeypatch.setattr(hunting, "PAYS", 1.0)  # nothing ever pays: it ends as soon as that is known
    assert search(arena, [target], repertoire)[0].rounds == 3


def test_programs_to_begin_with_are_tried(arena: Biased, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that no variation in a single round would find."""
    monkeypatch.setattr(searching, "ROUNDS", 1)
    known = tuple(ProgramPart(f"shuffled(normal({1 + i % 2 * 3}.0, 0.1), 0)", HORIZON // 10) for i in range(10))
    target = arena.run.target("0.5*point(2)+0.5*point(5)")
    found = search(arena, [target], repertoire_of(arena), starts=[[[known], [known]]])[0]
    assert found.programs == (known, known)


def test_targets_one_after_another_are_matched_in_their_order(arena: Biased) -> None:
    """Slow and then fast, and the other way round: W1 of all steps would not tell the two apart."""
    texts = ("point(2) for 120 then point(5)", "point(5) for 120 then point(2)")
    targets = [arena.run.target(text) for text in texts]
    for found, target, early in zip(search(arena, targets, repertoire_of(arena)), targets, (2.0, 5.0), strict=True):
        rolled = arena.rows(found.programs[0])
        assert abs(float(rolled[:100].mean()) - early) < 0.5
        assert Judge(target, arena.reference).pooled([Achieved(rolled)]) < 0.4
        assert Judge(target, arena.reference).pooled([Achieved(rolled[::-1])]) > 1.0


def test_searches_for_several_targets_help_one_another(arena: Biased, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that one target begins with, and no variation would find, serves the other."""
    monkeypatch.setattr(searching, "ROUNDS", 1)
    known = tuple(ProgramPart(f"shuffled(normal({1 + i % 2 * 3}.0, 0.1), 0)", HORIZON // 10) for i in range(10))
    targets = [arena.run.target(text) for text in ("point(6)", "0.5*point(2)+0.5*point(5)")]
    alone = search(arena, targets[1:], repertoire_of(arena))[0]
    helped = search(arena, targets, repertoire_of(arena), starts=[[[known], [known]], [[], []]])[1]
    assert known not in alone.programs
    assert helped.expected.score <= alone.expected.score


def test_a_target_out_of_reach_is_answered_with_one_that_is_not(arena: Biased) -> None:
    """Nothing stands that is 7 or faster."""
    far = search(arena, [arena.run.target("normal(9,0.1)")], repertoire_of(arena))[0].expected
    assert far.nearest is not None
    assert far.nearest_score is not None
    assert far.nearest_score < 0.2 < far.low
    near = search(arena, [arena.run.target(far.nearest)], repertoire_of(arena))[0].expected
    assert near.score < 0.2
    assert near.nearest is None


def test_the_time_it_takes_to_begin_is_not_that_of_a_round(arena: Biased, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, of = [0.0], searching.Logged.of

    def slowly(arena: Arena, judge: Judge) -> Any:
        clock[0] += 100.0
        return of(arena, judge)

    def quickly(self: Biased, *given: Any) -> Played:
        clock[0] += 1.0
        return Biased.play(self, *given)

    class Timed(Biased):
        play = quickly

    timed = Timed(arena.run, arena.agent)
    monkeypatch.setattr(searching.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(searching.Logged, "of", slowly)
    target = arena.run.target("0.5*normal(3,0.1)+0.5*normal(5,0.1)")
    assert search(timed, [target], repertoire_of(arena), seconds=130.0)[0].rounds > 1
