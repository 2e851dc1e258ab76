"""The files of results: small, a target a line, and nothing lost that anybody needs."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from report_results import Place, every_suite, held_out, job, unseen

from himatch.errors import HimatchError
from himatch.reproduce import SUITES
from himatch.reproduce.report import build_tables
from himatch.reproduce.report.spreadsheet import targets_csv
from himatch.reproduce.results import JobResult, TargetScore, read_result, read_results, write_result


@pytest.fixture(scope="module")
def results() -> list[JobResult]:
    return [result for result in every_suite(("hopper",)) if result.suite in ("xvel", "ant-xy", "shift", "data")]


def test_what_is_written_is_read(results: list[JobResult], tmp_path: Path) -> None:
    for result in results:
        again = read_result(write_result(tmp_path, result))
        assert asdict(again) | {"targets": []} == asdict(result) | {"targets": []}
        for ours, theirs in zip(again.targets, result.targets, strict=True):
            assert (ours.name, ours.group, ours.shift, ours.ordering) == (
                *(theirs.name, theirs.group, theirs.shift, theirs.ordering),
            )
            for name in ("w1", "energy"):
                assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=5e-7)
            for name in ("returns", "lengths"):
                assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=5e-4)
            assert ours.histograms.keys() == theirs.histograms.keys()
            for name, shares in theirs.histograms.items():
                np.testing.assert_allclose(ours.histograms[name], shares, atol=5.1e-6)


def test_a_file_written_again_stays_the_same(results: list[JobResult], tmp_path: Path) -> None:
    path = write_result(tmp_path, results[0])
    first = path.read_bytes()
    write_result(tmp_path, read_result(path))
    assert path.read_bytes() == first


def test_a_target_is_a_line_and_bins_are_written_once(results: list[JobResult], tmp_path: Path) -> None:
    result = next(result for result in results if result.suite == "shift")
    text = write_result(tmp_path, result).read_text()
    lines = [line for line in text.splitlines() if line.startswith('  {"name":')]
    assert len(lines) == len(result.targets) == 70
    assert text.count('"edges"') == 1
    assert "1000.0" not in text
    assert "null" not in text
    assert len(text) < 0.4 * len(json.dumps(asdict(result), indent=1))


def test_what_older_files_lack_is_empty(tmp_path: Path) -> None:
    """W1 within episodes; W1 in order is written where several targets follow one another only."""
    result = job("unseen", "hopper", "Categorical DT", "x_velocity", unseen())
    result.targets[-1] = replace(result.targets[-1], in_order=[0.5, 0.25])
    path = write_result(tmp_path, result)
    content = json.loads(path.read_text())
    assert [target.get("in_order") for target in content["targets"]] == [None] * 11 + [[0.5, 0.25]]
    assert path.read_text().count('"in_order"') == 1
    again = read_result(path)
    for ours, theirs in zip(again.targets, result.targets, strict=True):
        assert ours.within_episode == pytest.approx(theirs.within_episode, abs=5e-7)
        assert ours.in_order == theirs.in_order
    rows = list(csv.DictReader(targets_csv([again]).splitlines()))
    assert [row["w1_in_order"] for row in rows] == [""] * 22 + ["0.5", "0.25"]
    assert all(float(row["within_episode"]) == pytest.approx(1.2 * float(row["w1"]), abs=1e-5) for row in rows)
    for target in content["targets"]:
        for name in ("within_episode", "exact_reference", "in_order"):
            target.pop(name, None)
    path.write_text(json.dumps(content))
    assert all((target.within_episode, target.in_order) == ([], None) for target in read_result(path).targets)


def test_targets_on_bins_of_their_own_keep_them(tmp_path: Path) -> None:
    result = job("xvel", "hopper", "DT", "x_velocity", held_out())
    result.targets[1].histograms["edges"] = [[0.0, 0.5, 1.0]]
    again = read_result(write_result(tmp_path, result))
    assert again.targets[1].histograms["edges"] == [[0, 0.5, 1]]
    assert len(again.targets[2].histograms["edges"][0]) == 32


def test_files_with_everything_spelt_out_are_read_too(tmp_path: Path) -> None:
    result = job("xvel", "hopper", "DT", "x_velocity", held_out())
    path = tmp_path / "scores" / "plain.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**asdict(result), "method": {"name": "dt"}}, indent=1))
    assert read_results([tmp_path]) == [result]


@pytest.mark.parametrize(("suite", "task"), [("cheetah-vel", "cheetah-vel"), ("zvel", "halfcheetah")])
def test_returns_of_mixed_rewards_are_left_out_of_older_files_too(suite: str, task: str, tmp_path: Path) -> None:
    """Rollouts are rewarded for one thing, the episodes that were their targets for others."""
    path = tmp_path / "scores" / "older.json"
    path.parent.mkdir()
    older = asdict(job("xvel", task, "DT", "x_velocity", held_out()))
    assert older["targets"][0]["returns"]
    path.write_text(json.dumps({**older, "suite": suite, "method": {"name": "dt"}}))
    (result,) = read_results([tmp_path])
    assert all(target.returns == [] and target.target_return is None for target in result.targets)
    assert 'returns":[]' in write_result(tmp_path, result).read_text()
    rows = list(csv.DictReader(targets_csv([result]).splitlines()))
    assert len(rows) == 2 * len(result.targets)
    assert {(row["return"], row["target_return"]) for row in rows} == {("", "")}
    assert all(row["w1"] and row["length"] for row in rows)


def test_results_are_found_below_a_published_folder(tmp_path: Path) -> None:
    for budget in ("fast", "paper"):
        write_result(tmp_path / budget, job("xvel", "hopper", "DT", "x_velocity", held_out(), budget=budget))
    write_result(tmp_path / "fast", JobResult("data", "arm", None, "x", "nominal", "fast", [], 0, [], {}))
    assert [(r.suite, r.budget) for r in read_results([tmp_path])] == [
        *(("data", "fast"), ("xvel", "fast"), ("xvel", "paper")),
    ]


def test_numbers_that_are_none_survive(tmp_path: Path) -> None:
    place = Place("a", "expert", {})
    result = job("xvel", "hopper", "DT", "x_velocity", [place])
    result.targets[0] = TargetScore("a", "expert", [float("nan"), 1.0], [], [], [])
    (target,) = read_result(write_result(tmp_path, result)).targets
    assert np.isnan(target.w1[0])
    assert target.w1[1] == 1
    assert target.histograms == {}


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = write_result(tmp_path, job("xvel", "hopper", "DT", "x_velocity", held_out()))
    path.write_text(path.read_text()[:-40])
    with pytest.raises(HimatchError, match=path.name):
        read_results([tmp_path])


def test_a_file_is_named_by_the_specification(tmp_path: Path) -> None:
    """Whatever tables call the method."""
    result = job("imitation", "hopper", "BDT (m=16, N=50)", "reward", held_out())
    path = write_result(tmp_path, result)
    assert path.name == "imitation-hopper-bdt-m=16-target_window=50-reward-nominal.json"
    content = json.loads(path.read_text())
    assert content["method"] == {"name": "bdt", "m": 16, "target_window": 50}
    for earlier in ("BDT (m=16, N=50)", {**content["method"], "literal": False}):
        path.write_text(json.dumps({**content, "method": earlier}))
        with pytest.raises(HimatchError, match="written by an earlier himatch"):
            read_results([tmp_path])


def test_results_of_every_row_are_read_back(tmp_path: Path) -> None:
    """Whatever tells it apart: settings of the method, of its network or of its training."""
    for suite in SUITES.values():
        for row in suite.methods:
            result = replace(job(suite.name, "hopper", "DT", "reward", held_out()), method=row.specification)
            assert read_result(write_result(tmp_path, result)).method == row.specification


RESULTS = Path(__file__).parents[2] / "results"


def test_published_results_have_the_right_rows() -> None:
    """Those that name no policy came before policies were recorded; one Gaussian network was no preset."""
    results = [result for result in read_results(RESULTS) if result.suite == "xvel" and result.feature == "x_velocity"]
    assert {result.policy for result in results} == {None, "himatch", "paper"}
    table, public = build_tables(results)
    assert public.layout.data == "hopper_medium_expert-v2"
    names = [row.name for row in table.methods if not row.is_missing]
    assert [name for name in names if name.startswith("Categorical DT")] == [
        "Categorical DT (paper's policy), fast",
        "Categorical DT (himatch), fast",
        "Categorical DT (one Gaussian network), fast",
        "Categorical DT (paper's policy), fast, 300,000 steps",
        "Categorical DT (paper's policy), paper",
        "Categorical DT (himatch), remaining, fast",
        "Categorical DT (himatch), planned, fast",
        "Categorical DT (himatch), rehearsed, fast",
    ]
    assert "FOCAL, fast" in names


def test_whose_policy_it_is_is_kept(tmp_path: Path) -> None:
    result = job("xvel", "hopper", "DT", "x_velocity", held_out(), policy="himatch", head="gaussian")
    path = write_result(tmp_path, result)
    assert path.stem == "xvel-hopper-dt-x_velocity-nominal-himatch"
    assert read_result(path).policy == "himatch"
    path.write_text(path.read_text().replace('"policy": "himatch"', '"policy": "nobody"'))
    with pytest.raises(HimatchError, match="an unknown policy nobody"):
        read_result(path)


def test_every_published_result_is_a_row_of_its_suite() -> None:
    for result in read_results(RESULTS):
        rows = {row.specification for row in SUITES[result.suite].methods}
        assert result.method in (rows or {None})
        if result.method is not None:
            made = {**result.provenance["training"], **result.provenance["method"]}
            assert result.method.as_json().items() <= made.items()
