"""Targets that stumble: found by their returns alone, and left out of a second average."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_results import cell_of, held_out, job, shifted

from himatch.reproduce import read_results
from himatch.reproduce.report import build_tables, write_report
from himatch.reproduce.report.latex import latex
from himatch.reproduce.report.stumbles import RULE, steady, stumbling
from himatch.reproduce.report.target_returns import with_returns
from himatch.reproduce.results import JobResult

CHEETAH = (10377.5, 10378.0, 10381.3, 10385.6, 10414.7), (3921.8, 3954.4, 8241.0, 8615.7, 8872.9)
RESULTS = Path(__file__).parents[2] / "results"


def on(task: str, expert: Sequence[float | None], medium: Sequence[float | None], method: str = "DT") -> JobResult:
    """A result with targets of these returns; those that stumble are ten times as far off."""
    result = job("xvel", task, method, "x_velocity", held_out())
    targets = [replace(t, target_return=r) for t, r in zip(result.targets, (*expert, *medium), strict=True)]
    without = stumbling(targets)
    targets = [replace(t, w1=[10 * w for w in t.w1]) if t in without else t for t in targets]
    return replace(result, targets=targets)


def names(result: JobResult) -> list[str]:
    return [target.name for target in stumbling(result.targets)]


def test_the_published_results_have_three() -> None:
    """Expert episodes of HalfCheetah that stumbled, whoever was scored on them and on whatever."""
    found = {
        (result.task, *dict.fromkeys(round(target.target_return or 0.0) for target in stumbling(result.targets)))
        for result in with_returns(read_results(RESULTS))
        if result.suite in ("xvel", "reward", "imitation", "return", "ant-xy", "shift")
    }
    assert found == {("halfcheetah", 8241, 8616, 8873), ("hopper",), ("walker2d",), ("ant",)}


@given(scale=st.floats(0.01, 100), offset=st.floats(-1e4, 1e4))
def test_the_unit_of_rewards_does_not_matter(scale: float, offset: float) -> None:
    expert, medium = ([scale * value + offset for value in group] for group in CHEETAH)
    assert names(on("hopper", expert, medium)) == ["medium 3", "medium 4", "medium 5"]


def test_targets_that_are_alike_do_not_stumble() -> None:
    """Nor does an expert target, nor any where a return is not known."""
    assert names(on("hopper", *CHEETAH)) == ["medium 3", "medium 4", "medium 5"]
    assert names(on("hopper", CHEETAH[0], [8241.0, 8615.7, 8700.0, 8750.0, 8872.9])) == []
    assert names(on("hopper", [*CHEETAH[0][:4], 5000.0], [3900.0] * 5)) == []
    assert names(on("hopper", [None] * 5, [None] * 5)) == []


def test_averages_without_them_stand_below() -> None:
    results = [on("halfcheetah", *CHEETAH, method=m) for m in ("Categorical DT", "DT")]
    results += [on("hopper", CHEETAH[0], [3900.0] * 5, method=m) for m in ("Categorical DT", "DT", "FOCAL")]
    (table,) = build_tables(results)
    short = table.averages
    assert short is not None
    assert [column.key for column in short.columns] == [
        *("average", "average/steady", "halfcheetah/total", "halfcheetah/total/steady")
    ]
    wholes = [column.title for column in short.columns]
    assert wholes == ["all targets", "without stumbling"] * 2
    assert [row.name for row in short.rows] == ["Categorical DT", "DT", "Episode mixture"]  # FOCAL has no average
    assert RULE in short.caption
    assert "halfcheetah medium 3 (8,241), medium 4 (8,616), medium 5 (8,873)." in short.caption
    for name in ("Categorical DT", "DT"):
        assert cell_of(short, name, "average").ours == cell_of(table, name, "average").ours
        cell = cell_of(short, name, "average/steady")
        jobs = next(row for row in table.methods if row.name == name).jobs.values()
        assert cell.ours is not None
        assert cell.ours.mean == pytest.approx(np.mean([np.mean(steady(job).scores()) for job in jobs]))
        assert (cell.paper, cell.ours.count) == (None, 2 * (7 + 10))
        cheetah = cell_of(short, name, "halfcheetah/total/steady").ours
        assert cheetah is not None
        steadier = next(steady(job) for job in jobs if job.task == "halfcheetah")
        assert (cheetah.mean, cheetah.count) == (pytest.approx(np.mean(steadier.scores())), 2 * 7)
    assert sum(row.cells[1].best for row in short.rows) == 1


def moved(method: str, feature: str = "x_velocity") -> JobResult:
    """Shifted targets, which stumble where their episodes do; their results do not know it."""
    result = job("shift", "halfcheetah", method, feature, shifted())
    targets = [replace(t, w1=[9.0, 9.0] if t.name.startswith(OFF) else [0.5, 0.5]) for t in result.targets]
    return replace(result, targets=targets)


OFF = ("medium 3", "medium 4", "medium 5")


def test_shifted_targets_have_the_returns_of_their_episodes() -> None:
    """By name, of the same data alone; and a result that knows its own keeps them."""
    known, shift = on("halfcheetah", *CHEETAH), moved("DT")
    # Medium episodes of the suite are counted on from the expert ones.
    targets = [replace(t, name=f"{t.group} {i + 1}") for i, t in enumerate(known.targets)]
    (_, found) = with_returns([replace(known, targets=targets), shift])
    returns = {t.name: t.target_return for t in found.targets}
    assert returns["expert 1 -3"] == returns["expert 1 +3"] == CHEETAH[0][0]
    assert returns["medium 5 +0"] == CHEETAH[1][4]
    assert sorted({t.name[:8] for t in stumbling(found.targets)}) == list(OFF)
    other = replace(shift, provenance={**shift.provenance, "data": {"name": "other", "hash": "0" * 64}})
    assert with_returns([known, other])[1] == other
    own = replace(shift, targets=[replace(t, target_return=1.0) for t in shift.targets])
    assert with_returns([known, own])[1] == own


def test_tables_of_shifts_have_averages_and_slopes_without_them() -> None:
    known = on("halfcheetah", *CHEETAH)
    known = replace(known, targets=[replace(t, name=f"{t.group} {i + 1}") for i, t in enumerate(known.targets)])
    results = [known]
    for task in ("halfcheetah", "hopper"):
        results += [replace(moved(method), task=task) for method in ("Categorical DT", "DT")]
    table = next(table for table in build_tables(results) if table.label == "shift_xvel_match")
    assert table.averages is not None
    assert "halfcheetah medium 8 (8,241), medium 9 (8,616), medium 10 (8,873)." in table.averages.caption
    cells = [cell_of(table.averages, "DT", key).ours for key in ("halfcheetah/total", "halfcheetah/total/steady")]
    assert [cell.mean for cell in cells if cell is not None] == pytest.approx([0.5 + 0.3 * 8.5, 0.5])
    assert table.slopes is not None
    assert [c.key for c in table.slopes.columns][-2:] == ["average/steady", "halfcheetah/total/steady"]
    cell = cell_of(table.slopes, "DT", "halfcheetah/total/steady").ours
    assert cell is not None
    assert cell.count == 7


def test_a_table_where_none_stumbles_has_its_average_alone() -> None:
    alike = [on(task, CHEETAH[0], [3900.0] * 5) for task in ("halfcheetah", "hopper")]
    assert build_tables(alike)[0].averages is None
    assert build_tables([on("halfcheetah", *CHEETAH)])[0].averages is None  # one task has no average


def test_every_format_has_them(tmp_path: Path) -> None:
    results = [on(task, *CHEETAH) for task in ("halfcheetah", "hopper")]
    written = write_report(results, tmp_path)
    for name in ("report.md", "xvel.html"):
        assert RULE in (tmp_path / name).read_text().replace("&#39;", "'")
    rows = list(csv.DictReader((tmp_path / "tables.csv").read_text().splitlines()))
    assert [row["row"] for row in rows if row["group"] == "average/steady"] == ["DT", "Episode mixture"]
    tasks = [row["task"] for row in rows if row["group"] == "total/steady"]
    assert tasks == ["halfcheetah", "hopper"] * 2
    assert len([row for row in rows if (row["group"], row["row"]) == ("average", "DT")]) == 1
    text = latex(written.tables)
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") == len(written.tables) + 1
    assert r"\label{tab:himatch_xvel_match_main_averages}" in text
