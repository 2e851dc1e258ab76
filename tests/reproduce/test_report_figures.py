"""What the pictures of a report show: whose rows in which order, which targets, and what DT is conditioned on."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from report_results import Place, held_out, job, shifted

from himatch.reproduce.report import ResultTable, build_tables
from himatch.reproduce.report.figures import histograms
from himatch.reproduce.report.figures.selection import shown_methods, shown_targets, target_levels


def xvel() -> ResultTable:
    """Rows of two budgets, of himatch's policy, of an older network and with more steps."""
    kind = ("xvel", "hopper", "Categorical DT", "x_velocity", held_out())
    names = ("Categorical DT", "DT", "BC (no-context)", "Meta-BC", "FOCAL")
    results = [job("xvel", "hopper", name, "x_velocity", held_out(), budget="fast") for name in names]
    results += [
        job(*kind, budget="fast", policy="himatch", head="gaussian"),
        job(*kind, budget="fast", conditioning="planned"),
        job(*kind, budget="fast", steps=300_000),
        job(*kind, budget="fast", policy=None, head="gaussian"),
        job(*kind, budget="paper"),
    ]
    (table,) = build_tables(results)
    return table


def test_the_papers_rows_come_first_however_they_match() -> None:
    names = [row.name for row in shown_methods(xvel())]
    assert names == [
        *("Categorical DT (paper's policy), fast", "DT, fast", "BC (no-context), fast", "Meta-BC, fast", "FOCAL, fast"),
        *("Categorical DT (himatch), fast", "Categorical DT (paper's policy), planned, fast"),
    ]


def test_codes_of_the_proposed_size() -> None:
    methods = ("BDT (m=16, N=20)", "BDT (m=16, N=50)", "BDT (m=1, N=20)", "DT-AE (joint, m=16)", "DT-E2E (m=4)")
    results = [job("imitation", "hopper", method, "reward", held_out()) for method in methods]
    table = next(table for table in build_tables(results) if table.label == "unsupervised_reward")
    assert [row.name for row in shown_methods(table)] == [
        *("DT-AE (m=16, joint)", "BDT (m=16, N=20)", "BDT (m=16, N=50)"),
    ]


def test_two_targets_of_each_group() -> None:
    rows = shown_methods(xvel())
    assert [target.name for target in shown_targets(rows, "hopper")] == ["expert 1", "expert 5", "medium 1", "medium 5"]
    flips = [Place(f"{kind} {i}", "uni-modal", {}) for kind in ("run", "backflip") for i in (1, 2)]
    flips.append(Place("patch(run 1, backflip 1, 500)", "bi-modal", {}))
    (table,) = build_tables([job("zvel", "halfcheetah", "Meta-BC", "z_velocity", flips)])
    shown = shown_targets(shown_methods(table), "halfcheetah")
    assert [target.name for target in shown] == ["run 1", "backflip 2", "patch(run 1, backflip 1, 500)"]


def test_what_dt_is_conditioned_on_is_a_line() -> None:
    cdt, dt, *_ = shown_methods(xvel())
    target = dt.jobs["hopper"].targets[0]
    edges, shares = np.array(target.histograms["edges"][0]), np.array(target.histograms["target"])
    assert target_levels(dt, target) == [pytest.approx(float(shares @ (edges[1:] + edges[:-1]) / 2))]
    assert target_levels(cdt, target) == []
    (table,) = build_tables([job("ant-xy", "ant", "DT", "xy_velocity", held_out())])
    (row,) = shown_methods(table)
    levels = target_levels(row, row.jobs["ant"].targets[0])
    assert levels == [pytest.approx(4.8, abs=0.1), pytest.approx(0, abs=1e-6)]


def test_a_sum_of_rewards_is_no_line_among_other_features() -> None:
    names = ("DT", "DT (sum of reward)")
    (table,) = build_tables(
        [job("cheetah-vel", "cheetah-vel", n, "x_velocity", [Place("0.5 1", "0.5", {})]) for n in names]
    )
    dt, rewarded = (row for row in table.methods if row.jobs)
    target = dt.jobs["cheetah-vel"].targets[0]
    assert len(target_levels(dt, target)) == 1
    assert target_levels(rewarded, target) == []


def caught(monkeypatch: pytest.MonkeyPatch, module: object) -> list[tuple[Figure, str, str]]:
    pictures: list[tuple[Figure, str, str]] = []
    monkeypatch.setattr(module, "picture", lambda *given: pictures.append(given) or given)
    return pictures


def test_histograms_have_the_line_in_dts_panels_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures, table = caught(monkeypatch, histograms), xvel()
    histograms.match_panels(table)
    ((figure, _, caption),) = pictures
    columns = len(shown_methods(table))
    lines = [part for part in figure.axes[0].collections if isinstance(part, LineCollection)]
    (dashed,) = [part for part in lines if part.get_linestyle()[0][1] is not None]
    right = {round(float(segment[0, 0]), 3) for segment in dashed.get_segments()}
    assert len(dashed.get_segments()) == 4  # one for each target
    second = figure.axes[0].texts[-columns - 1 : -1][1].get_position()[0]  # the title of DT's column
    assert all(abs(x - second) < histograms.PANEL[0] / 2 for x in right)
    assert "The dashed line is the target's mean" in caption
    assert "the paper's rows and then himatch's own, 7 of 10: those of the main budget." in caption


def test_shifts_of_the_paper_and_of_himatch_are_two_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = caught(monkeypatch, histograms)
    kinds = [("Categorical DT", "nominal"), ("DT", "nominal"), ("Categorical DT", "planned")]
    results = [job("shift", "hopper", name, "x_velocity", shifted(), conditioning=how) for name, how in kinds]
    (table,) = build_tables(results)
    histograms.shift_panels(table)
    assert [name for _, name, _ in pictures] == ["shift-xvel-match-histograms", "shift-xvel-match-own-histograms"]
    assert ["dashed" in caption for *_, caption in pictures] == [True, False]
    said = ("The paper's rows.", "Rows that the paper does not have: Categorical DT, planned.")
    assert [text in caption for text, (*_, caption) in zip(said, pictures, strict=True)] == [True, True]


def test_maps_have_their_marginals(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("himatch.reproduce.report.figures.heat_maps")  # the package has its function by that name
    pictures = caught(monkeypatch, module)
    methods = ("Categorical DT", "DT")
    (table,) = build_tables([job("ant-xy", "ant", name, "xy_velocity", held_out()) for name in methods])
    module.heat_maps(table)
    ((figure, _, _),) = pictures
    assert len(figure.axes) == 4 * 4 * 3  # four targets; the target and two methods; a map, two marginals, a corner
    above, _, axis, beside = (figure.axes[i] for i in (2, 3, 8, 9))  # the first method's in the first row
    assert len(above.patches) == len(beside.patches) == 2
    assert axis.images
    assert above.get_xlim() == axis.get_xlim()
    assert beside.get_ylim() == axis.get_ylim()
    lines = [len(figure.axes[i].get_lines()) for i in (8, 10)]
    assert lines == [0, 2]
