"""The whole of it in one command: pieces in order, each in the folder of its kind, a report after each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Run
from report_claims import made

from himatch.errors import HimatchError
from himatch.reproduce import SUITES, Options, Outcome, plan_jobs, plans
from himatch.reproduce.plans import PLANS, chosen
from himatch.reproduce.results import write_result


def test_every_suite_is_in_the_plan_and_every_piece_has_work() -> None:
    pieces = PLANS["paper"]
    planned = {job: piece.name for piece in pieces for job in _keys(piece)}
    ran = {key.suite for piece in pieces for key in _keys(piece)}
    assert ran == set(SUITES)
    assert len(planned) > 250
    assert {key.conditioning for key in planned if key.suite == "synthetic" and key.policy == "himatch"} == set(
        plans.CONDITIONINGS
    )


def _keys(piece: plans.Piece) -> list[plans.Any]:
    options = replace(Options(), **piece.options)
    return [key for job in plan_jobs(piece.suites, options) for key in job.results]


def test_pieces_of_a_folder_are_of_one_kind() -> None:
    kinds: dict[str, set[object]] = {}
    for piece in PLANS["paper"]:
        kinds.setdefault(piece.folder, set()).add(piece.options.get("budget"))
    assert all(len(found) == 1 for found in kinds.values())


def test_an_unknown_piece_is_refused() -> None:
    with pytest.raises(HimatchError, match="paper has no piece 'xvel'; its pieces are main, tasks"):
        chosen("paper", ["xvel"])


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], Path, Options]]:
    """What would have been run; it leaves one result."""
    found: list[tuple[tuple[str, ...], Path, Options]] = []

    def run(suites: Sequence[str], out: Path, options: Options, **more: object) -> list[Outcome]:
        found.append((tuple(suites), out, options))
        write_result(out, made("xvel", "hopper", "Categorical DT", [0.1, 0.1]))
        return [Outcome("one"), Outcome("two", "it broke" if "imitation" in suites else None)]

    monkeypatch.setattr(plans, "run_benchmark", run)
    return found


def test_a_report_is_written_after_each_piece(
    ran: list[tuple[tuple[str, ...], Path, Options]], tmp_path: Path, run: Run
) -> None:
    command = ["reproduce", "paper", "--budget", "smoke", "--only", "main", "ogbench", "--out", str(tmp_path)]
    code, said, _ = run(*command)
    assert code == 0
    assert [(out.name, options.budget) for _, out, options in ran] == [("benchmark", "smoke"), ("ogbench", "cpu")]
    assert said.count("report.html") == 2
    assert "main: 2 of 2 jobs done" in said
    assert (tmp_path / "report" / "report.html").is_file()


def test_jobs_that_failed_are_said_at_the_end(
    ran: list[tuple[tuple[str, ...], Path, Options]], tmp_path: Path, run: Run
) -> None:
    code, said, why = run("reproduce", "paper", "--out", str(tmp_path))
    assert code == 2
    assert len(ran) == len(PLANS["paper"])
    assert "failed: two: it broke" in said
    assert "some jobs failed" in why
