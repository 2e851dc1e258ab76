"""Suites of success rates: what is run by default, that a job is done once, and what its files and tables hold."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from himatch.datagen.mazes import MAZES
from himatch.errors import HimatchError
from himatch.evaluation.goals import Reached, own_tests
from himatch.reproduce import BUDGETS, SUITES, Options, goals, plan_jobs, read_results, run_benchmark
from himatch.reproduce import budgets as budgets_module
from himatch.reproduce import execution as execution_module
from himatch.reproduce import jobs as jobs_module
from himatch.reproduce.budgets import Budget
from himatch.reproduce.ogbench import GOALS, PUBLISHED, TASKS
from himatch.reproduce.report import build_tables, judge_claims, write_report
from himatch.reproduce.report.differences import AS_CLAIMED, OTHER_WAY
from himatch.reproduce.results import JobResult, TargetScore
from himatch.reproduce.specification import Specification
from himatch.reproduce.suites import find_suites
from himatch.simulation import EVALUATION_SEED
from himatch.simulation.point_mazes import cells_of
from himatch.tasks import get_task

MEDIUM = "ogbench-pointmaze-medium"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty episodes, two steps of training, rollouts of ten steps."""
    budgets = {**BUDGETS, "smoke": Budget("cpu", 2, 20, 20, 20, 2, 1, maze_share=0.004)}
    for module in (budgets_module, jobs_module, execution_module):
        monkeypatch.setattr(module, "BUDGETS", budgets)
    for name in ("ogbench-stitch", "ogbench-navigate"):
        monkeypatch.setitem(SUITES, name, replace(SUITES[name], steps=10))  # type: ignore[index]


def test_by_default_rows_are_flat_and_with_waypoints_on_both_kinds_of_data() -> None:
    jobs = plan_jobs(["ogbench"], Options())
    assert {job.dataset for job in jobs} == set(MAZES)
    assert {job.method for job in jobs} == {"gcsl", "goal"}
    assert {job.policy for job in jobs} == {"himatch"}
    assert all([result.conditioning for result in job.results] == ["nominal", "waypoints"] for job in jobs)
    assert len({job.key for job in jobs}) == len(jobs) == 12
    chosen = plan_jobs(["ogbench-stitch"], Options(conditioning=("waypoints",), methods=("gcsl",)))
    assert [result.conditioning for job in chosen for result in job.results] == ["waypoints"] * 3


def test_a_family_is_its_suites() -> None:
    assert [suite.name for suite in find_suites(("ogbench",))] == ["ogbench-stitch", "ogbench-navigate"]
    assert [suite.name for suite in find_suites(("ogbench-navigate", "xvel"))] == ["ogbench-navigate", "xvel"]
    with pytest.raises(HimatchError, match=r"known are xvel, .*, ogbench, ogbench-stitch, "):
        find_suites(("ogbenc",))


def test_budgets_have_a_part_of_the_episodes() -> None:
    sizes = {name: budget.dataset_size("ogbench-pointmaze-giant-navigate") for name, budget in BUDGETS.items()}
    assert sizes == {"smoke": 50, "cpu": 500, "fast": 500, "paper": 500}


def test_test_goals_lie_where_ogbench_has_them() -> None:
    cases = own_tests(get_task(MEDIUM), 3)
    assert cases.groups == [goal for goal in GOALS for _ in range(3)]
    assert len(set(cases.goals)) == 15
    starts = np.array([setting["start"] for setting in cases.settings])
    first = {(1, 1): (6, 6), (6, 1): (1, 6), (5, 3): (4, 2), (6, 5): (6, 1), (2, 6): (1, 1)}
    pairs = zip(cells_of(starts).tolist(), cells_of(np.array(cases.goals)).tolist(), strict=True)
    assert [(tuple(start), tuple(goal)) for start, goal in pairs] == [pair for pair in first.items() for _ in range(3)]
    assert [setting["goal"] for setting in cases.settings] == cases.goals
    assert own_tests(get_task(MEDIUM), 2).goals == [goal for i, goal in enumerate(cases.goals) if i % 3 < 2]
    assert EVALUATION_SEED  # beyond those of data


def test_a_job_is_run_once_and_its_rates_are_of_every_goal_and_seed(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rollouts are counted, not believed: what the loop reports of made-up ones is what the file has."""
    asked = []

    def made_up(*given: object, **settings: object) -> Reached:
        asked.append((given[2], settings["conditioning"], settings["steps"]))
        reached = np.zeros((2, 20), bool)
        reached[0, :4], reached[1, 2:5] = True, True  # goal 1 always and in half, goal 2 not and in a quarter
        return Reached(reached, np.where(reached, 5, 10))

    monkeypatch.setattr(goals, "goals_reached", made_up)
    chosen = Options(
        budget="smoke", cache=str(tmp_path / "cache"), device="cpu", threads=1, methods=("gcsl",), tasks=(MEDIUM,)
    )
    chosen = replace(chosen, episodes=4)
    for _ in range(2):
        outcomes = run_benchmark(["ogbench-stitch"], tmp_path / "out", chosen, quiet=True)
        assert [outcome.failure for outcome in outcomes] == [None]
    assert [(conditioning, steps) for _, conditioning, steps in asked] == [("nominal", 10), ("waypoints", 10)]
    results = read_results(tmp_path / "out")
    assert [result.conditioning for result in results] == ["nominal", "waypoints"]
    for result in results:
        assert [target.group for target in result.targets] == list(GOALS)
        assert [target.success for target in result.targets] == [[1, 0.5], [0, 0.25], *[[0, 0]] * 3]
        assert [target.lengths for target in result.targets[:2]] == [[5, 7.5], [10, 8.75]]
        assert (result.episodes, result.seeds) == (4, [0, 1])
        assert result.provenance["data"]["episodes"] == 20
        assert not any(target.w1 or target.returns or target.histograms for target in result.targets)


def test_goals_are_rolled_out_of_both_kinds_of_data_in_one_folder(tiny: None, tmp_path: Path) -> None:
    chosen = Options(budget="smoke", cache=str(tmp_path / "cache"), device="cpu", threads=1, episodes=1)
    chosen = replace(chosen, methods=("gcsl",), tasks=(MEDIUM,), seeds=1, imports=())
    outcomes = run_benchmark(["ogbench"], tmp_path / "out", chosen, quiet=True)
    assert [outcome.failure for outcome in outcomes] == [None, None]
    results = read_results(tmp_path / "out")
    assert {result.suite for result in results} == {"ogbench-stitch", "ogbench-navigate"}
    assert all(target.lengths == [10] for result in results for target in result.targets)


def result(task: str, conditioning: str, rates: list[list[float]]) -> JobResult:
    targets = [
        TargetScore(goal, goal, [], [], [], [100.0], success=rate) for goal, rate in zip(GOALS, rates, strict=True)
    ]
    provenance = {
        "data": {"name": f"{task}-stitch-5000", "made_by_himatch": True, "hash": "ab" * 32, "episodes": 5000},
        "training": {"steps": 10_000, "head": "gaussian", "seconds": 60.0},
        "method": {"name": "gcsl"},
    }
    place = "ogbench-stitch", task, Specification("gcsl"), "xy", conditioning, "cpu"
    return JobResult(*place, list(range(len(rates[0]))), 50, targets, provenance, policy="himatch")


@pytest.fixture
def results() -> list[JobResult]:
    flat = [[0.5, 0.7], [0.1, 0.1], [0.0, 0.0], [0.0, 0.2], [0.4, 0.0]]
    ways = [[1.0, 1.0], [0.96, 1.0], [1.0, 1.0], [1.0, 0.98], [1.0, 1.0]]
    return [result(MEDIUM, "nominal", flat), result(MEDIUM, "waypoints", ways)]


def test_a_table_has_rates_over_seeds_and_published_rows_below(results: list[JobResult]) -> None:
    whole, each = build_tables(results)
    assert (whole.label, each.label) == ("ogbench_stitch", "ogbench_stitch_goals")
    flat, ways = whole.methods
    assert flat.name == "GCSL (himatch), regenerated data"
    assert ways.name == "GCSL (himatch), waypoints, regenerated data"
    score = flat.cells[0].ours
    assert score is not None
    assert (score.mean, score.std, score.iqm) == (pytest.approx(0.2), None, None)
    assert (score.mean_low, score.mean_high) == (pytest.approx(0.2), pytest.approx(0.2))  # both seeds: a fifth
    assert [row.cells[0].best for row in whole.methods] == [False, True]
    published = [row for row in whole.rows if row.kind == "reference"]
    assert [row.name for row in published] == [
        f"{name}, published (from secondary sources)" for name in PUBLISHED["stitch"]
    ]
    by_name = {row.name.split(",")[0]: row.cells[0].ours for row in published}
    gcbc, rival = by_name["GCBC"], by_name["CompDiffuser"]
    assert gcbc is not None
    assert rival is not None
    assert (gcbc.mean, gcbc.std, rival.mean, rival.std) == (0.23, 0.18, 1.0, None)
    assert by_name["ALPS"] is None  # nothing was found for this maze
    assert [column.title for column in each.columns] == [goal.capitalize() for goal in GOALS]
    shown = [cell.ours.mean for cell in each.methods[0].cells if cell.ours is not None]
    np.testing.assert_allclose(shown, [0.6, 0.1, 0.0, 0.1, 0.2])
    assert len(each.rows) == 2  # published figures are of all goals together


def test_claims_about_rates(results: list[JobResult]) -> None:
    def verdicts(found: list[JobResult]) -> dict[str, str]:
        return {f.claim.partition(":")[0]: str(f) for f in judge_claims(build_tables(found)) if "way-points" in f.claim}

    said = verdicts(results)
    assert len(said) == 6
    assert said.pop(f"{MEDIUM}-stitch") == "holds"
    assert {verdict.partition(" ")[0] for verdict in said.values()} == {"not"}
    low = [[0.8, 0.99]] * 5
    near = verdicts([result(MEDIUM, "waypoints", [[0.88, 0.99]] * 5)])[f"{MEDIUM}-stitch"]
    assert near == f"too close to call ({AS_CLAIMED})"
    assert verdicts([result(MEDIUM, "waypoints", low)])[f"{MEDIUM}-stitch"] == f"too close to call ({OTHER_WAY})"
    assert verdicts([result(MEDIUM, "waypoints", [[0.8, 0.85]] * 5)])[f"{MEDIUM}-stitch"] == "does not hold"
    finding = next(f for f in judge_claims(build_tables(results)) if f.verdict == "holds")
    assert finding.ours is not None
    assert finding.other is not None
    assert (finding.ours.figure, finding.other.figure) == ("99.4 [99.2, 99.6] %", "90 %")


def test_every_format_has_them_in_percent(results: list[JobResult], tmp_path: Path) -> None:
    write_report(results, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "| GCSL (himatch), waypoints, regenerated data | **99.4 [99.2, 99.6]** |" in text
    assert "| GCBC, published (from secondary sources) | 23 ± 18 |" in text
    assert "Rows that name no policy" not in text.split("## OGBench's PointMazes, stitch")[1].split("##")[0]
    assert "23 $\\pm$ 18" in (tmp_path / "tables.tex").read_text()
    page = (tmp_path / "ogbench-stitch.html").read_text()
    assert "Rollouts that reach their goal, in percent" in page
    assert "99.4" in page
    rows = list(csv.DictReader((tmp_path / "targets.csv").read_text().splitlines()))
    assert [(row["target"], row["success"]) for row in rows[:2]] == [("goal 1", "0.5"), ("goal 1", "0.7")]
    cells = list(csv.DictReader((tmp_path / "tables.csv").read_text().splitlines()))
    assert {cell["measure"] for cell in cells} == {"success"}


def test_published_figures_are_of_every_maze_or_of_none() -> None:
    for rows in PUBLISHED.values():
        for figures in rows.values():
            assert len(figures) == len(TASKS)
            assert all(figure is None or 0 <= figure[0] <= 100 for figure in figures)
