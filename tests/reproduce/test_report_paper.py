"""The paper's figures: some cells read off the page, and the sums the paper itself prints."""

from __future__ import annotations

import pytest
from report_results import named

from himatch.reproduce.paper import PaperTable, paper_tables
from himatch.reproduce.specification import Specification, display_name
from himatch.reproduce.suites import SUITES
from himatch.reproduce.suites import TABLES as SUITE_TABLES

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
        ("unsupervised_xvel_16", "BDT (m=16, N=50)", "average", 0.443, None),
        ("unsupervised_xvel", "BDT (m=16, N=100)", "walker2d/expert", 0.051, 0.006),
        ("unsupervised_reward", "DT-CPC (unsupervised, m=1)", "walker2d/medium", 0.139, 0.032),
        ("shift_xvel_match", "DT", "hopper/total", 0.482, 0.088),
        ("shift_reward_match_full", "Categorical DT", "walker2d/total", 0.655, 0.375),
        ("imitation", "DT", "hopper/expert", 2113.207, 807.246),
    ],
)
def test_cells(label: str, method: str, column: str, mean: float, std: float | None) -> None:
    assert TABLES[label].figure(named(method), column) == (mean, std)


def test_the_held_out_episodes_have_returns() -> None:
    assert TABLES["imitation"].held_out["halfcheetah/expert"] == (11146.200, 59.070)
    assert [label for label, table in TABLES.items() if table.held_out] == ["imitation"]


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
    assert odd == {(label, named("FOCAL"), "halfcheetah") for label in ("xvel_match_main", "reward_match")}


def test_the_short_table_repeats_the_long_one() -> None:
    short, long = TABLES["unsupervised_xvel_16"], TABLES["unsupervised_xvel"]
    for method in short.rows:
        assert all(long.figure(method, column) == figure for column, figure in short.rows[method].items())


def test_every_table_has_its_figures_and_every_column_of_them() -> None:
    papers = {label: layout for label, (_, layout) in SUITE_TABLES.items() if layout.is_papers}
    assert {layout.paper_label for layout in papers.values()} == set(TABLES)
    own = {"unseen", "hindsight_return", "hindsight_goal"} | {
        *(f"ogbench_{data}{more}" for data in ("stitch", "navigate") for more in ("", "_goals"))
    }
    assert set(SUITE_TABLES) - set(papers) == own
    for layout in papers.values():
        keys = {column.key for column in layout.columns(layout.tasks)}
        assert layout.paper is TABLES[layout.paper_label]
        assert set(layout.paper.columns) <= keys


@pytest.mark.parametrize("label", SUITE_TABLES)
def test_every_row_of_the_paper_is_one_of_its_suite(label: str) -> None:
    suite, layout = SUITE_TABLES[label]
    assert set(layout.paper.rows) <= {row.specification for row in suite.methods}
    assert layout.proposed in layout.paper.rows or not layout.is_papers
    assert layout.feature in suite.features
    assert set(layout.tasks) == set(suite.tasks)


def test_specifications_are_equal_in_any_order_of_their_settings() -> None:
    one = Specification.of("bdt", m=16, target_window=50, codes="public")
    assert one == Specification.of("bdt", codes="public", target_window=50, m=16)
    assert Specification.of(**one.as_json()) == one
    assert len({one, Specification("bdt"), Specification.of("bdt", m=16)}) == 3
    assert (one.get("m"), one.get("mode")) == (16, None)
    assert Specification("a", (("layers", [1, 2]),)) == Specification.of("a", layers=(1, 2))


def test_names_of_methods() -> None:
    names = {
        "Categorical DT": Specification("cdt"),
        "BC (no-context)": Specification("bc"),
        "moments": Specification("moments"),
        "BDT (m=16, N=20)": Specification.of("bdt", m=16, target_window=20),
        "BDT (m=16, N=20, pseudocode)": Specification.of("bdt", m=16, target_window=20, codes="pseudocode"),
        "BDT (m=16, N=20, public, its mask, its first step, time std 1)": Specification.of(
            **{"name": "bdt", "m": 16, "target_window": 20, "codes": "public"},
            **{"public_mask": True, "public_start": True, "time_std": 1.0},
        ),
        "DT-AE (unsupervised, m=16)": Specification.of("dt-ae", m=16, mode="unsupervised"),
        "DT-E2E (m=1)": Specification.of("dt-e2e", m=1),
        "DT (sum of reward, scale 1000, time std 1, by episodes)": Specification.of(
            "dt", feature="reward", scale=1000.0, time_std=1.0, sampling="episodes"
        ),
        "Categorical DT (z counts)": Specification.of("cdt", z="counts"),
    }
    assert [display_name(method) for method in names.values()] == list(names)
    assert display_name(None) == "dataset"


def test_rows_of_the_paper_have_the_papers_names() -> None:
    short, long = (SUITE_TABLES[label][1] for label in ("unsupervised_xvel_16", "unsupervised_xvel"))
    joint, alone = (Specification.of("dt-ae", m=16, mode=mode) for mode in ("joint", "unsupervised"))
    bdt, public = (Specification.of("bdt", m=16, target_window=20, **codes) for codes in ({}, {"codes": "public"}))
    assert [short.row_name(method) for method in (joint, alone, bdt)] == ["DT-AE (joint)", "DT-AE", "BDT (N=20)"]
    assert [long.row_name(method) for method in (joint, alone, bdt)] == [
        *("DT-AE (m=16, joint)", "DT-AE (m=16)", "BDT (m=16, N=20)"),
    ]
    assert short.row_name(public) == long.row_name(public) == "BDT (m=16, N=20, public)"  # it has no such row


@pytest.mark.parametrize("label", list(TABLES))
def test_names_tell_the_rows_of_a_table_apart(label: str) -> None:
    suite, layout = SUITE_TABLES[label]
    names = [layout.row_name(row.specification) for row in suite.methods if layout.includes(row.specification)]
    assert len(names) == len(set(names))


def test_the_short_table_has_the_largest_codes() -> None:
    layout = SUITE_TABLES["unsupervised_xvel_16"][1]
    assert layout.includes(Specification.of("dt-e2e", m=16))
    assert not layout.includes(Specification.of("dt-e2e", m=1))
    assert not layout.includes(Specification("moments"))
    assert not layout.includes(None)


@pytest.mark.parametrize("label", ["unsupervised_xvel", "unsupervised_reward"])
def test_imitation_has_the_paper_s_rows_and_other_codes(label: str) -> None:
    ours = {row.specification for row in SUITES["imitation"].methods}
    whole = {method for method in ours if method.get("public_mask")}
    others = [method for method in ours - whole if method.get("codes")]
    assert set(TABLES[label].rows) == ours - set(others) - whole
    plain = [Specification.of(**{k: v for k, v in method.as_json().items() if k != "codes"}) for method in others]
    largest = {method for method in TABLES[label].rows if method.get("m") == 16}
    assert {method.get("codes") for method in others} == {"pseudocode", "public"}
    assert sorted(map(display_name, plain)) == sorted(map(display_name, (*largest, *largest)))  # each with both
