"""Cells, marks, ratios and what is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from report_results import Place, cell_of, every_suite, held_out, job, named, synthetic

from himatch.divergences import summarize
from himatch.errors import HimatchWarning
from himatch.reproduce.report import ResultTable, build_tables
from himatch.reproduce.report import text as wording
from himatch.reproduce.report.captions import data_hash
from himatch.reproduce.report.figures import draw
from himatch.reproduce.report.orderings import judge_orderings
from himatch.reproduce.report.rows import row_key
from himatch.reproduce.report.spreadsheet import targets_csv
from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import Specification


@pytest.fixture(scope="module")
def results() -> list[JobResult]:
    return every_suite()


@pytest.fixture(scope="module")
def tables(results: list[JobResult]) -> dict[str, ResultTable]:
    return {table.label: table for table in build_tables(results)}


def one(results: list[JobResult], suite: str, task: str, method: str, feature: str = "x_velocity") -> JobResult:
    (found,) = [
        r
        for r in results
        if (r.suite, r.task, r.method, r.feature, r.conditioning) == (suite, task, named(method), feature, "nominal")
    ]
    return found


def test_cells_are_summaries_of_the_divergences(tables: dict[str, ResultTable], results: list[JobResult]) -> None:
    table = tables["xvel_match_main"]
    scores = {task: one(results, "xvel", task, "DT").scores() for task in table.tasks}
    for task, strata in scores.items():
        assert cell_of(table, "DT", f"{task}/total").ours == summarize([strata])
    assert cell_of(table, "DT", "average").ours == summarize(list(scores.values()), list(scores))


def test_averages_draw_the_models_of_each_task_apart() -> None:
    """Two tasks with opposite luck: the seeds of one have nothing to do with those of the other."""
    luck, opposite = [0.5, 1.0, 1.5, 2.0], [2.0, 1.5, 1.0, 0.5]
    result = job("xvel", "hopper", "DT", "x_velocity", held_out(), seeds=range(4))

    def width(task: str, group: str, column: str) -> float:
        """With bad luck in one task or group, which seeds are good at otherwise."""
        jobs = []
        for name in ("hopper", "halfcheetah"):
            targets = [replace(t, w1=opposite if name == task or t.group == group else luck) for t in result.targets]
            jobs.append(replace(result, task=name, targets=targets))
        (table,) = build_tables(jobs)
        score = cell_of(table, "DT", column).ours
        assert score is not None
        return score.interval[1] - score.interval[0]

    same = width("", "", "hopper/total")
    assert width("hopper", "", "average") == pytest.approx(same / np.sqrt(2), rel=0.15)
    assert width("", "", "average") == pytest.approx(same / np.sqrt(2), rel=0.15)
    assert width("", "medium", "hopper/total") == pytest.approx(0, abs=1e-12)


def test_one_seed_has_no_interval_in_any_cell() -> None:
    jobs = [job("xvel", task, "DT", "x_velocity", held_out(), seeds=(0,)) for task in ("hopper", "walker2d")]
    (table,) = build_tables(jobs)
    for cell in (cell for row in table.methods for cell in row.cells if cell.ours is not None):
        assert "[" not in wording.ours(cell, table) + wording.middle(cell, table)
        assert wording.middle(cell, table)


def test_every_table_is_made(tables: dict[str, ResultTable]) -> None:
    """Twelve of the paper's, and one of himatch's own."""
    assert len(tables) == 13
    assert all(len(row.cells) == len(table.columns) for table in tables.values() for row in table.rows)


def test_cells(tables: dict[str, ResultTable], results: list[JobResult]) -> None:
    table = tables["xvel_match_main"]
    hopper = one(results, "xvel", "hopper", "DT")
    expert = [w for t in hopper.targets if t.group == "expert" for w in t.w1]
    cell = cell_of(table, "DT", "hopper/expert")
    assert cell.ours is not None
    assert cell.ours.mean == pytest.approx(np.mean(expert))
    assert cell.ours.std == pytest.approx(np.std(expert))
    assert cell.ours.count == 10
    assert cell.paper == (0.177, 0.053)
    assert cell.ratio == pytest.approx(np.mean(expert) / 0.177)
    total = cell_of(table, "DT", "hopper/total").ours
    assert total is not None
    assert total.mean == pytest.approx(np.mean(hopper.scores()))


def test_the_average_is_over_the_tasks_that_were_run(tables: dict[str, ResultTable]) -> None:
    table = tables["xvel_match_main"]
    totals = [cell_of(table, "DT", f"{task}/total").ours for task in ("halfcheetah", "hopper")]
    average = cell_of(table, "DT", "average")
    assert average.ours is not None
    assert average.ours.mean == pytest.approx(np.mean([t.mean for t in totals if t is not None]))
    assert average.paper is not None
    assert average.paper.mean == pytest.approx((0.911 + 0.135) / 2)  # not the printed one, which has walker2d in it
    assert "No results for walker2d." in table.notes


def test_with_all_tasks_the_average_is_the_printed_one() -> None:
    tasks = ("halfcheetah", "hopper", "walker2d")
    (table,) = build_tables([job("xvel", task, "DT", "x_velocity", held_out()) for task in tasks])
    assert cell_of(table, "DT", "average").paper == (0.387, None)


def test_only_the_lowest_of_a_column_is_marked(tables: dict[str, ResultTable]) -> None:
    table = tables["xvel_match_main"]
    for i in range(len(table.columns)):
        marked = [row.name for row in table.rows if row.cells[i].best]
        means = {row.name: score.mean for row in table.methods if (score := row.cells[i].ours) is not None}
        assert marked in ([], [min(means, key=means.__getitem__)])


@pytest.mark.parametrize(("lowest", "best"), [([0.1, 0.101], ["DT"]), ([0.1, 0.5], [])])
def test_bold_is_what_is_best_beyond_noise(lowest: list[float], best: list[str]) -> None:
    """Every seed of a target is the same but for DT's, which agree with one another or do not."""
    rows = [("Categorical DT", [0.3, 0.301]), ("DT", lowest), ("Meta-BC", [0.31, 0.311])]
    jobs = []
    for method, w1 in rows:
        result = job("xvel", "hopper", method, "x_velocity", held_out())
        jobs.append(replace(result, targets=[replace(target, w1=list(w1)) for target in result.targets]))
    (table,) = build_tables(jobs)
    i = [column.key for column in table.columns].index("hopper/total")
    assert [row.name for row in table.methods if row.cells[i].best] == best


def test_alone_nothing_is_best() -> None:
    (table,) = build_tables([job("xvel", "hopper", "DT", "x_velocity", held_out())])
    assert not any(cell.best for row in table.rows for cell in row.cells)


def test_missing_jobs_are_shown(tables: dict[str, ResultTable]) -> None:
    table = tables["xvel_match_main"]
    missing = cell_of(table, "FOCAL", "hopper/total")
    assert (missing.ours, missing.ratio) == (None, None)
    assert missing.paper == (0.970, 0.649)
    assert "Missing: Meta-BC; FOCAL." in table.notes


def test_a_method_without_one_task_has_no_average() -> None:
    jobs = [job("xvel", task, "DT", "x_velocity", held_out()) for task in ("halfcheetah", "hopper")]
    jobs.append(job("xvel", "hopper", "Categorical DT", "x_velocity", held_out()))
    (table,) = build_tables(jobs)
    assert cell_of(table, "Categorical DT", "average").ours is None
    assert any("Categorical DT (halfcheetah)" in note for note in table.notes)


def test_the_reference_stands_below(tables: dict[str, ResultTable]) -> None:
    row = tables["xvel_match_main"].rows[-1]
    assert (row.name, row.kind) == ("Episode mixture", "reference")
    reference = row.cells[0].ours
    assert reference is not None
    assert reference.mean == pytest.approx(0.08)
    assert reference.count == 5  # targets, not targets of every method
    assert reference.iqm is None


def on(data: str, result: JobResult, known: float) -> JobResult:
    """A result on other data, whose targets have this reference and this return."""
    targets = [replace(target, reference=known, target_return=known) for target in result.targets]
    return replace(result, targets=targets, provenance={**result.provenance, "data": {"name": data, "hash": data}})


def test_the_reference_is_of_the_main_budgets_data() -> None:
    """Whatever comes first, in the results or in the table."""
    smoke = on("few", job("xvel", "hopper", "DT", "x_velocity", held_out()), 0.9)
    fast = [
        on("many", job("xvel", "hopper", method, "x_velocity", held_out(), budget="fast"), 0.1)
        for method in ("Meta-BC", "FOCAL")
    ]
    (table,) = build_tables([smoke, *fast])
    below = cell_of(table, "Episode mixture", "hopper/total").ours
    assert below is not None
    assert below.mean == pytest.approx(0.1)
    for name, known in (("DT, smoke", 0.9), ("Meta-BC, fast", 0.1)):
        own = cell_of(table, name, "hopper/total").reference
        assert own is not None
        assert own.mean == pytest.approx(known)
    assert "Episode mixture: not of the data of DT, smoke." in table.notes
    (table,) = build_tables(fast)
    assert not any("Episode mixture" in note for note in table.notes)
    (table,) = build_tables([smoke])
    below = cell_of(table, "Episode mixture", "hopper/total").ours
    assert below is not None
    assert below.mean == pytest.approx(0.9)


def test_a_return_is_held_against_the_held_out_ones_of_its_own_data() -> None:
    jobs = []
    for method, own, reached in (("Categorical DT", 1000.0, 1100.0), ("DT", 3000.0, 3010.0)):
        result = on(method, job("return", "hopper", method, "reward", held_out()), own)
        jobs.append(replace(result, targets=[replace(t, returns=[reached] * 2) for t in result.targets]))
    (table,) = build_tables(jobs)
    found = [row.cells[0].reference for row in table.methods if not row.is_missing]
    assert [None if score is None else score.mean for score in found] == [1000.0, 3000.0]
    assert not any(row.cells[0].best for row in table.methods)  # other targets: neither is before the other


def test_orderings_are_columns_and_conditionings_are_rows(
    tables: dict[str, ResultTable], results: list[JobResult]
) -> None:
    table = tables["synthesized_smm"]
    assert [c.key for c in table.columns][:2] == ["halfcheetah/listed", "halfcheetah/shuffled"]
    assert [row.name for row in table.methods][:2] == ["Categorical DT", "Categorical DT, planned"]
    listed = [t.w1 for t in one(results, "synthetic", "hopper", "Categorical DT").targets if t.ordering == "listed"]
    cell = cell_of(table, "Categorical DT", "hopper/listed")
    assert cell.ours is not None
    assert cell.ours.mean == pytest.approx(np.mean(listed))
    assert cell_of(table, "Categorical DT", "hopper/shuffled").paper is None


def test_sizes_and_choices_of_codes(tables: dict[str, ResultTable]) -> None:
    short = [row.name for row in tables["unsupervised_xvel_16"].methods if not row.is_missing]
    assert short == ["DT-AE (joint)", "BDT (N=20)", "BDT (m=16, N=20, public)"]
    assert cell_of(tables["unsupervised_xvel"], "DT-E2E (m=4)", "hopper/total").ours is not None
    assert cell_of(tables["unsupervised_xvel"], "BDT (m=16, N=20, public)", "hopper/total").paper is None


def test_returns_come_with_scores_and_the_nearest_is_best(tables: dict[str, ResultTable]) -> None:
    table = tables["imitation"]
    assert table.rows[-1].name == "Held-out"
    goal = cell_of(table, "Held-out", "hopper/expert").ours
    assert goal is not None
    assert goal.mean == pytest.approx(3520)
    cells = {row.name: row.cells[2] for row in table.methods}
    distance = {name: abs(c.ours.mean - goal.mean) for name, c in cells.items() if c.ours is not None}
    assert [name for name, cell in cells.items() if cell.best] in ([], [min(distance, key=distance.__getitem__)])
    score = cells["DT"]
    assert score.ours is not None
    assert score.normalized == pytest.approx(100 * (score.ours.mean + 20.272305) / (3234.3 + 20.272305))


def test_captions_name_the_data(tables: dict[str, ResultTable]) -> None:
    caption = tables["xvel_match_main"].caption
    assert "hopper-medium-expert (made by himatch, 100 episodes, sha256 " in caption
    assert "2 seeds, 5 rollouts" in caption
    assert "Budget smoke" in caption
    assert "the data differ" in caption
    assert "back-flips of an agent of its own and D4RL's" in tables["zvel_match_main"].caption
    for name, words in (("hopper_medium_expert-v2.hdf5", "(D4RL file, "), ("mine.npz", "(not made by himatch, ")):
        result = job("xvel", "hopper", "DT", "x_velocity", held_out(), data=name)
        (small,) = build_tables([result])  # as anybody may call a file
        assert f"{name} (not made by himatch, " in small.caption
        assert "differ" in small.caption
        result.provenance["data"]["steps"] = 1_989_000
        (other,) = build_tables([result])
        assert name + " " + words in other.caption
        assert ("differ" in other.caption) == (name == "mine.npz")


def test_data_that_only_gave_targets_are_named_after_those_trained_on() -> None:
    result = job("zvel", "halfcheetah", "DT", "z_velocity", [Place("run 1", "uni-modal", {})], data="mine.npz")
    result.provenance["target_data"] = {"name": "flips", "made_by_himatch": True, "hash": "ab" * 32, "episodes": 20}
    (table,) = build_tables([result])
    assert "; flips (targets, made by himatch, 20 episodes, sha256 abababab)." in table.caption
    assert table.caption.index("mine.npz") < table.caption.index("flips")
    assert data_hash(result) != "ab" * 32


def test_budgets_have_rows_of_their_own_and_repeats_are_noted() -> None:
    jobs = [job("xvel", "hopper", "DT", "x_velocity", held_out(), budget=budget) for budget in ("smoke", "paper")]
    (table,) = build_tables(jobs)
    assert [row.name for row in table.methods if not row.is_missing] == ["DT, paper", "DT, smoke"]
    assert "DT" not in [row.name for row in table.methods]
    with pytest.warns(HimatchWarning, match="found twice"):
        build_tables([jobs[0], jobs[0]])


def test_targets_of_another_seed_are_a_row_of_their_own() -> None:
    usual = job("xvel", "hopper", "DT", "x_velocity", held_out())
    reported = replace(usual, provenance={**usual.provenance, "target_seed": 100})
    others = [replace(target, name=f"another {target.name}") for target in usual.targets]
    drawn = replace(usual, provenance={**usual.provenance, "target_seed": 7}, targets=others)
    (table,) = build_tables([drawn, reported])  # without a warning
    assert [row.name for row in table.methods if not row.is_missing] == ["DT", "DT, targets of seed 7"]
    assert table.row(row_key(Specification("dt"), reported)) is table.row(row_key(Specification("dt"), usual))
    assert "They are those of seed 7 and 100." in table.caption


def test_rollouts_that_were_read_at_the_next_state_are_a_row_of_their_own() -> None:
    usual = job("xvel", "hopper", "DT", "x_velocity", held_out())
    later = replace(usual, provenance={**usual.provenance, "recorded_at": "t+1"})
    (table,) = build_tables([later, usual])  # without a warning
    assert [row.name for row in table.methods if not row.is_missing] == ["DT", "DT, read at s_t+1"]
    assert "are read at s_t+1 in rows that say so" in table.caption
    key = row_key(Specification("dt"), usual)
    assert table.row(key) is not None
    assert table.row(key) is not table.row(replace(key, recorded_at="t+1"))
    (alone,) = build_tables([later])
    assert alone.row(key) is not None  # claims are about what there is
    assert [row.name for row in alone.methods if not row.is_missing] == ["DT"]
    *_, plain = targets_csv([usual]).splitlines()
    *_, read = targets_csv([later]).splitlines()
    assert (plain.rsplit(",", 1)[1], read.rsplit(",", 1)[1]) == ("t", "t+1")


def test_returns_are_parts_of_the_experts_and_the_largest_is_best() -> None:
    places = [
        Place(f"return({r})", group, {"target_return": 2000.0}) for r, group in ((2100, "best"), (2000, "expert"))
    ]
    rows = {"UDRL": [[1900.0, 1700.0], [2000.0, 2200.0]], "DT": [[1000.0, 1200.0], [2000.0, 2100.0]]}
    jobs = []
    for name, returns in rows.items():
        found = job("hindsight-return", "hopper", name, "reward", places)
        targets = [replace(t, returns=r, w1=[], energy=[]) for t, r in zip(found.targets, returns, strict=True)]
        jobs.append(replace(found, targets=targets))
    (table,) = build_tables(jobs)
    udrl, dt = (cell_of(table, name, "hopper/best") for name in rows)
    assert udrl.ours is not None
    assert udrl.ours.mean == pytest.approx(0.9)
    assert (udrl.best, dt.best) == (True, False)
    assert wording.ours(udrl, table) == "90.0% ± 5.0%"
    assert table.reference is None
    (chart,) = draw(table)  # and no histograms
    assert chart.caption.startswith("Returns by method, higher is better")


def test_goals_are_missed_in_spreads_and_the_least_is_best() -> None:
    places = [Place("goal(1, within=50)", "expert", {}), Place("goal(2, within=50)", "medium", {})]
    jobs = []
    for name, missed in {"GCSL": [0.1, 0.2], "BC (no-context)": [0.4, 0.3]}.items():
        found = job("hindsight-goal", "hopper", name, "x_velocity", places)
        targets = [replace(t, w1=[], energy=[], missed=missed, played=[1.0, 0.5], spread=[3.0]) for t in found.targets]
        jobs.append(replace(found, targets=targets))
    (table,) = build_tables(jobs)
    gcsl, bc = (cell_of(table, name, "hopper/total") for name in ("GCSL", "BC (no-context)"))
    assert gcsl.ours is not None
    assert gcsl.ours.mean == pytest.approx(0.15)
    assert (gcsl.best, bc.best) == (True, False)
    assert gcsl.played == pytest.approx(0.75)
    assert gcsl.charged is None
    assert [line.rsplit(",", 6)[1] for line in targets_csv(jobs[:1]).splitlines()[1:3]] == ["0.1", "0.2"]


def test_training_for_longer_is_a_row_of_its_own() -> None:
    jobs = [
        job("xvel", "halfcheetah", "Categorical DT", "x_velocity", held_out(), budget="fast"),
        job("xvel", "halfcheetah", "Categorical DT", "x_velocity", held_out(), budget="fast", steps=300_000),
        job("xvel", "hopper", "Categorical DT", "x_velocity", held_out(), budget="fast"),
        job("xvel", "hopper", "Meta-BC", "x_velocity", held_out(), budget="fast"),
    ]
    (table,) = build_tables(jobs)  # without a warning
    names = [row.name for row in table.methods if not row.is_missing]
    assert names == ["Categorical DT", "Categorical DT, 300,000 steps", "Meta-BC"]
    assert cell_of(table, "Categorical DT, 300,000 steps", "halfcheetah/total").ours is not None
    assert cell_of(table, "Categorical DT, 300,000 steps", "average").ours is None
    jobs.append(job("xvel", "hopper", "Meta-BC", "x_velocity", held_out(), budget="paper"))
    (table,) = build_tables(jobs)
    names = [row.name for row in table.methods if not row.is_missing]
    assert names[:2] == ["Categorical DT, fast", "Categorical DT, fast, 300,000 steps"]
    assert names[2:] == ["Meta-BC, fast", "Meta-BC, paper"]  # 100,000 steps are what the paper gives it


def test_each_policy_of_a_method_is_a_row_of_its_own() -> None:
    """Those that came before himatch had one go by what they are; a method that has the paper's alone by its name."""
    kind = ("xvel", "halfcheetah", "Categorical DT", "x_velocity", held_out())
    results = [
        job(*kind, policy=None, head="gaussian"),
        job(*kind, policy="himatch", head="gaussian"),
        job(*kind),
        job("xvel", "halfcheetah", "DT", "x_velocity", held_out()),
    ]
    (table,) = build_tables(results)
    assert [row.name for row in table.methods if not row.is_missing] == [
        "Categorical DT (paper's policy)",
        "Categorical DT (himatch)",
        "Categorical DT (one Gaussian network)",
        "DT",
    ]
    assert "(himatch) is the policy of himatch's preset (head gaussian)" in table.caption
    assert "squared error; all else is the budget's, not the paper's." in table.caption
    assert "Weights of results that record no policy are those of the lowest validation loss." in table.caption
    assert "own actor" not in table.caption
    focal = job("xvel", "halfcheetah", "FOCAL", "x_velocity", held_out(), policy=None, budget="paper")
    (table,) = build_tables([*results[:2], focal])
    assert "all else is the budget's, the paper's only with the budget paper." in table.caption
    assert "FOCAL has its own actor." in table.caption
    assert "Weights but (himatch)'s are those of the lowest validation loss, of FOCAL the last." in table.caption
    (table,) = build_tables(results[-2:])
    assert [row.name for row in table.methods if not row.is_missing] == ["Categorical DT", "DT"]
    assert "himatch's preset" not in table.caption
    assert "All rows have the paper's policy in head and loss: deterministic, squared error;" in table.caption
    assert "Time embeddings start at a deviation of 0.02 and windows are drawn by length" in table.caption
    assert "Weights" not in table.caption
    (table,) = build_tables([replace(result, policy=None) for result in results[-2:]])
    assert "Weights are those of the lowest validation loss." in table.caption


def test_captions_say_how_long_rows_were_trained() -> None:
    """A budget had other steps on other days; rows whose names have their steps are left out."""
    kind = ("xvel", "halfcheetah", "Categorical DT", "x_velocity", held_out())
    usual = [job("xvel", "halfcheetah", name, "x_velocity", held_out(), budget="fast") for name in ("DT", "Meta-BC")]
    older = job(*kind, policy=None, budget="fast", steps=30_000)
    longer = job(*kind, budget="fast", steps=150_000)
    (table,) = build_tables([*usual, older, longer, job(*kind, policy="himatch", budget="fast")])
    assert "Training steps: 15,000; 30,000 of Meta-BC and Categorical DT." in table.caption
    (table,) = build_tables([job(*kind, budget="paper")])
    assert "Training steps: 1,000,000." in table.caption
    assert "policy" not in table.caption  # it is the paper's, whole, but for these
    assert "Time embeddings start at a deviation of 0.02 and windows are drawn by length" in table.caption
    (table,) = build_tables([job("imitation", "hopper", "DT-E2E (m=16)", "x_velocity", held_out())])[:1]
    assert "all else but context and batch is the budget's, not the paper's." in table.caption


def test_captions_say_which_rows_the_paper_has_elsewhere() -> None:
    """Its short table has no windows of 100 states, its long ones do."""
    kind = ("hopper", "BDT (m=16, N=100)")
    tables = {}
    for feature in ("x_velocity", "reward"):
        tables |= {t.label: t for t in build_tables([job("imitation", *kind, feature, held_out())])}
    said = "The paper has BDT (m=16, N=100) in its table unsupervised_xvel alone."
    assert said in tables["unsupervised_xvel_16"].caption
    assert "alone." not in tables["unsupervised_xvel"].caption
    assert "alone." not in tables["unsupervised_reward"].caption


def test_results_that_name_no_policy_are_what_their_settings_say() -> None:
    kind = ("xvel", "halfcheetah", "Categorical DT", "x_velocity", held_out())
    older = [job(*kind, policy=None, head=head) for head in ("tanh", "gaussian")]
    (table,) = build_tables(older)
    names = [row.name for row in table.methods if not row.is_missing]
    assert names == ["Categorical DT (paper's policy)", "Categorical DT (one Gaussian network)"]
    one = job(*kind, policy="himatch", head="gaussian")
    one.provenance["training"]["members"] = 4  # a setting of no meaning any more
    assert [row.name for row in build_tables([one])[0].methods if not row.is_missing] == ["Categorical DT (himatch)"]


def test_tasks_of_the_users_own_get_columns() -> None:
    targets = [Place("a", "expert", {}), Place("b", "medium", {})]
    jobs = [job("xvel", task, "DT", "x_velocity", targets) for task in ("hopper", "arm")]
    (table,) = build_tables(jobs)
    assert table.tasks == ("hopper", "arm")
    assert cell_of(table, "DT", "arm/total").ours is not None
    assert cell_of(table, "DT", "average").paper is None
    (only,) = build_tables([job("return", "arm", "DT", "reward", held_out())])
    assert cell_of(only, "DT", "arm/expert").normalized is None


def test_no_results_no_tables() -> None:
    assert build_tables([]) == []
    assert build_tables([job("elsewhere", "hopper", "DT", "x_velocity", synthetic())]) == []


def test_a_table_says_how_much_was_played_where_that_was_measured() -> None:
    """Half of the time in one task and all of it in the other; the rest costs the spread."""
    jobs = []
    for task, played in (("hopper", 0.5), ("halfcheetah", 1.0)):
        result = job("xvel", task, "DT", "x_velocity", held_out(), seeds=(0, 1))
        measured = [replace(t, played=[played] * 2, exact=[0.2, 0.4], spread=[4.0]) for t in result.targets]
        jobs.append(replace(result, targets=measured))
    (table,) = build_tables(jobs)
    assert wording.played(cell_of(table, "DT", "hopper/total")) == "50%, charged 2.150"
    assert wording.played(cell_of(table, "DT", "halfcheetah/total")) == "100%, charged 0.300"
    assert wording.played(cell_of(table, "DT", "average")) == "75%, charged 1.225"
    before = job("xvel", "walker2d", "DT", "x_velocity", held_out())
    (table,) = build_tables([*jobs, before])
    assert (
        wording.played(cell_of(table, "DT", "walker2d/total")) == wording.played(cell_of(table, "DT", "average")) == ""
    )


def test_a_table_that_the_paper_does_not_have(tables: dict[str, ResultTable], results: list[JobResult]) -> None:
    """Exact distances and the exact mixture; nothing of the paper's; what was played and W1 within episodes beside."""
    table = tables["unseen"]
    assert [row.name for row in table.rows] == ["Categorical DT", "Categorical DT, rehearsed", "Episode mixture"]
    kinds = ("uniform", "three modes", "narrow", "in order", "total")
    assert [column.key for column in table.columns[:5]] == [f"halfcheetah/{kind}" for kind in kinds]
    assert table.columns[-1].key == "average"
    assert all(cell.paper is None for row in table.rows for cell in row.cells)
    targets = one(results, "unseen", "hopper", "Categorical DT").targets
    cell, own = cell_of(table, "Categorical DT", "hopper/narrow"), [t for t in targets if t.group == "narrow"]
    assert cell.ours is not None
    assert cell.ours.mean == pytest.approx(np.mean([t.exact for t in own]))
    assert cell.within_episode == pytest.approx(np.mean([t.within_episode for t in own]))
    assert cell.charged == pytest.approx(0.9 * cell.ours.mean + 0.1 * 2.5)
    assert table.reference is not None
    assert cell_of(table, "Episode mixture", "hopper/total").ours.mean == pytest.approx(0.02 * 2.5)  # type: ignore[union-attr]
    labels = [line.label for line in wording.lines(table.methods[0], table)]
    assert labels == ["Categorical DT", "interquartile mean", "played", "within an episode"]
    assert "paper's figures" not in table.caption
    assert table.caption.startswith("Exact Wasserstein-1 distance")
    assert "unseen" not in {orderings.table.label for orderings in judge_orderings(list(tables.values()))}


def test_a_table_of_drawn_targets_names_their_seed(results: list[JobResult]) -> None:
    own = [
        replace(result, provenance={**result.provenance, "target_seed": 7})
        for result in results
        if result.suite == "unseen"
    ]
    (table,) = build_tables(own)
    assert "They are those of seed 7." in table.caption
