"""The paper's figures: some cells read off the page, and the sums the paper itself prints."""

from __future__ import annotations

import pytest

from himatch.reproduce.report import paper_tables
from himatch.reproduce.report.layouts import LAYOUTS, columns_of
from himatch.reproduce.report.methods import canonical, has_option
from himatch.reproduce.report.paper import PaperTable
from himatch.reproduce.suites import SUITES

TABLES = paper_tables()
ROUNDING = 0.0011  # three printed decimals, of which both sides were rounded


@pytest.mark.parametrize(
    ("label", "method", "column", "mean", "std"),
    [
        ("xvel_match_main", "Categorical DT", "halfcheetah/expert", 0.633, 0.329),
        ("xvel_match_main", "FOCAL", "average", 1.147, None),
        ("reward_match", "DT", "walker2d/medium", 0.626, 0.495),
        ("synthesized_smm", "DT", "halfcheetah/listed", 4.256, 2.220),
        ("cheetah_vel_match_main", "Meta-BC", "cheetah-vel/2.5", 0.167, 0.055),
        ("zvel_match_main", "Categorical DT", "halfcheetah/bi-modal", 1.625, 0.902),
        ("xyvel_match_main", "DT", "ant/expert", 1.714, 0.121),
        ("unsupervised_xvel_16", "BDT (N=50)", "average", 0.443, None),
        ("unsupervised_xvel", "BDT (m=16, N=100)", "walker2d/expert", 0.051, 0.006),
        ("unsupervised_reward", "DT-CPC (m=1)", "walker2d/medium", 0.139, 0.032),
        ("shift_xvel_match", "DT", "hopper/total", 0.482, 0.088),
        ("shift_reward_match_full", "Categorical DT", "walker2d/total", 0.655, 0.375),
        ("imitation", "Held-out", "halfcheetah/expert", 11146.200, 59.070),
    ],
)
def test_cells(label: str, method: str, column: str, mean: float, std: float | None) -> None:
    assert TABLES[label].figure(method, column) == (mean, std)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_averages_agree_with_the_cells(table: PaperTable) -> None:
    for row in table.rows.values():
        for task in ("halfcheetah", "hopper", "walker2d"):
            if f"{task}/total" in row:
                parts = [row[f"{task}/{group}"].mean for group in ("expert", "medium")]
                assert row[f"{task}/total"].mean == pytest.approx(sum(parts) / 2, abs=ROUNDING)
        if "average" in row:
            parts = [figure.mean for column, figure in row.items() if column.endswith(("/total", "/listed"))]
            parts = parts or [figure.mean for column, figure in row.items() if column != "average"]
            assert row["average"].mean == pytest.approx(sum(parts) / len(parts), abs=ROUNDING)


def test_the_deviations_of_totals_agree_but_for_the_ones_noted() -> None:
    odd = set()
    for table in TABLES.values():
        for method, row in table.rows.items():
            for task in (t for t in ("halfcheetah", "hopper", "walker2d") if f"{t}/total" in row):
                (a, sa), (b, sb), (_, std) = (row[f"{task}/{group}"] for group in ("expert", "medium", "total"))
                assert sa is not None
                assert sb is not None
                if ((sa**2 + sb**2) / 2 + (a - b) ** 2 / 4) ** 0.5 != pytest.approx(std, abs=0.002):
                    odd.add((table.label, method, task))
    assert odd == {(label, "FOCAL", "halfcheetah") for label in ("xvel_match_main", "reward_match")}


def test_the_short_table_repeats_the_long_one() -> None:
    short, long = TABLES["unsupervised_xvel_16"], TABLES["unsupervised_xvel"]
    for method in short.methods:
        assert all(long.figure(method, column) == figure for column, figure in short.rows[method].items())


def test_every_layout_has_its_table_and_every_column_of_it() -> None:
    assert {layout.label for layout in LAYOUTS} == set(TABLES)
    for layout in LAYOUTS:
        keys = {column.key for column in columns_of(layout, layout.tasks)}
        assert set(TABLES[layout.label].columns) <= keys


def test_names_of_methods_meet() -> None:
    assert canonical("DT-AE (joint)") == canonical("DT-AE (m=16, joint)") == canonical("DT-AE (joint, m=16)")
    assert canonical("DT-AE") == canonical("DT-AE (unsupervised, m=16)") != canonical("DT-AE (m=1)")
    assert canonical("BDT") == canonical("BDT (m=16, N=20)") != canonical("BDT (m=16, N=20, literal)")
    assert canonical("BDT (m=16, N=20) literal") == canonical("BDT (m=16, N=20, literal)")
    assert canonical("BC") == canonical("BC (no-context)")
    assert canonical("Categorical DT") == "Categorical DT"
    assert has_option("BDT (N=50)", "m=16")
    assert not has_option("DT-E2E (m=1)", "m=16")


@pytest.mark.parametrize("label", ["unsupervised_xvel", "unsupervised_reward"])
def test_imitation_has_the_paper_s_rows_and_the_literal_readings(label: str) -> None:
    ours = {canonical(variant.name) for variant in SUITES["imitation"].variants}
    literal = {name for name in ours if has_option(name, "literal")}
    assert {canonical(name) for name in TABLES[label].rows} == ours - literal
    assert len(literal) == 2
