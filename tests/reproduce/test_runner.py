"""Jobs end to end with very little of everything: what is written, what is not done twice, what fails alone."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Run, assert_refused
from rich.console import Console
from short_tasks import HORIZON, short_tasks  # noqa: F401
from small_searches import shrink
from waiting import PATIENCE, TRAINED, both_at_the_lock, program, trained, wait_for

from himatch.cli import main
from himatch.data import Split, TrajectoryDataset, load_dataset, write_minari
from himatch.datagen import make_dataset
from himatch.errors import HimatchError, TargetError
from himatch.methods import METHODS, make_method
from himatch.policy import Policy, load
from himatch.rehearsal import rehearsals, temperature
from himatch.reproduce import BUDGETS, SUITES, Options, Outcome, plan_jobs, plans, read_results, run_benchmark, runner
from himatch.reproduce import budgets as budgets_module
from himatch.reproduce import execution as execution_module
from himatch.reproduce import jobs as jobs_module
from himatch.reproduce import measurements as measurements_module
from himatch.reproduce.budgets import Budget
from himatch.reproduce.plans import Piece, run_plan
from himatch.reproduce.report import build_tables, report_on
from himatch.reproduce.results import charged_scores
from himatch.reproduce.runner import show_outcomes
from himatch.reproduce.specification import display_name
from himatch.reproduce.unseen import KINDS, REPORTED_SEED
from himatch.rollout import CONDITIONINGS
from himatch.simulation import EVALUATION_SEED
from himatch.training import Interrupted
from himatch.training.update import Update

OF_DISTRIBUTIONS = tuple(c for c in CONDITIONINGS if c != "waypoints")  # those of a CDT


TINY = Budget("cpu", 2, 20, 31 * 12, 20, 1, 1)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget in which a suite takes seconds."""
    budgets = {**BUDGETS, "smoke": TINY}
    for module in (budgets_module, jobs_module, execution_module):
        monkeypatch.setattr(module, "BUDGETS", budgets)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small dataset."""
    folder = tmp_path_factory.mktemp("logs")
    make_dataset("hopper-medium-expert", folder / "hopper-medium-expert-mine-v0", episodes=20, quiet=True)
    return folder


def options(cache: str, **settings: object) -> Options:
    """Of the paper's policy, unless another is named; by default CDT has himatch's, too."""
    given = {"budget": "smoke", "policy": ("paper",), **settings}
    return Options(cache=cache, threads=1, device="cpu", **given)  # type: ignore[arg-type]


@pytest.fixture
def small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


@pytest.fixture
def few_rehearsals(selecting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rollouts that select a temperature in a second."""
    for name, value in (("EPISODES", 3), ("FEWEST", 1), ("TEMPERATURES", (0.5, 1.0))):
        monkeypatch.setattr(temperature, name, value)
    for name in ("ROLLOUTS", "FINAL_ROLLOUTS"):
        monkeypatch.setattr(temperature, name, 1)


SHORT = {
    "xvel": {"tasks": ("hopper",)},
    "reward": {"tasks": ("hopper",)},
    "synthetic": {"tasks": ("hopper",), "methods": ("cdt",), "conditioning": ("nominal", "remaining", "planned")},
    "shift": {"tasks": ("hopper",), "methods": ("cdt",)},
    "return": {"tasks": ("hopper",)},
    "cheetah-vel": {"methods": ("dt", "meta-bc", "focal", "multi-task", "hipi", "gh")},
    "zvel": {"methods": ("cdt", "meta-bc")},
    "ant-xy": {"methods": ("cdt",)},
    "imitation": {"tasks": ("hopper",), "methods": ("bdt", "dt-e2e")},
    "unseen": {"tasks": ("hopper",), "conditioning": ("nominal", "planned")},
    "hindsight-return": {"tasks": ("hopper",), "conditioning": ("nominal", "remaining")},
    "hindsight-goal": {"tasks": ("hopper",)},
    "data": {"tasks": ("hopper",)},
}


# What reaches goals has tests of its own.
@pytest.mark.parametrize("name", [name for name, suite in SUITES.items() if suite.scoring == "distance"])
def test_every_suite_runs_end_to_end(name: str, tiny: None, cache: str, tmp_path: Path) -> None:
    chosen = options(cache, **SHORT[name])
    outcomes = run_benchmark([name], tmp_path, chosen, quiet=True)
    assert [outcome.failure for outcome in outcomes] == [None] * len(outcomes)
    results = read_results([tmp_path])
    assert len(results) == sum(len(job.results) for job in plan_jobs([name], chosen))
    for result in results:
        assert result.suite == name
        assert result.provenance["data"]["hash"]
        assert len(result.provenance["source"]) == 40
        assert result.provenance.get("device") != "cpu"  # which says nothing of the machine
        if SUITES[name].methods:
            assert result.provenance["cores"] >= 1
            assert result.provenance["rollout_cpu_seconds"] > 0
            assert result.provenance["training"]["cpu_seconds"] > 0
        for target in result.targets:
            assert bool(target.returns) == (not SUITES[name].mixes_rewards)
            if SUITES[name].targets in ("held-out", "shift", "best"):  # a moved target has its episode's
                assert target.target_return is not None
            assert (target.missed is not None) == (SUITES[name].targets == "goals")
            if SUITES[name].targets in ("best", "goals"):  # which are no distributions
                assert target.w1 == []
                assert len(target.played) == 1
                assert target.missed is None or len(target.missed) == 1
                continue
            assert sum(_flat(target.histograms["target"])) == pytest.approx(1.0, abs=1e-3)
            if name != "data":
                assert len(target.w1) == len(target.within_episode) == len(result.seeds) == 1
                assert (target.in_order is None) == (" then " not in target.name)
                assert target.reference is not None
                assert sum(_flat(target.histograms["rollouts"])) == pytest.approx(1.0, abs=1e-3)
    groups = {target.group for result in results for target in result.targets}
    expected = {
        "synthetic": {"synthetic", "synthetic (shuffled)"},
        "cheetah-vel": {"0.5", "1.5", "2.5"},
        "zvel": {"uni-modal", "bi-modal"},
        "unseen": set(KINDS),
        "hindsight-return": {"best", "best tenth", "expert"},
        "data": {"best", "middle", "worst", "all"},
    }
    assert groups == expected.get(name, {"expert", "medium"})


def test_conditionings_are_left_out_where_rollouts_would_refuse_them(
    tiny: None, small_search: None, cache: str, tmp_path: Path
) -> None:
    methods = ("cdt", "dt", "bc", "meta-bc", "moments", "goal")
    chosen = options(cache, tasks=("hopper",), methods=methods, conditioning=CONDITIONINGS)
    jobs = plan_jobs(["xvel"], chosen)
    outcomes = run_benchmark(["xvel"], tmp_path, chosen, quiet=True)
    assert [outcome.failure for outcome in outcomes] == [None] * len(methods)
    for job in jobs:
        policy = load(tmp_path / "models" / job.key)
        for conditioning in set(CONDITIONINGS) - {result.conditioning for result in job.results}:
            with pytest.raises(TargetError, match=f"^{conditioning} conditioning"):
                policy.match("heldout(0)", episodes=1, conditioning=conditioning)


def test_targets_are_rehearsed_a_few_at_a_time_and_once(
    tiny: None,
    small_search: None,
    cache: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Suites share the model, its repertoire and the time; what was found stays with the model."""
    real, searched, library = rehearsals.search, [], []

    def search(arena: Any, targets: Any, repertoire: Any, **more: Any) -> Any:
        searched.append((len(targets), more["seconds"]))
        library.append(repertoire.entries)
        return real(arena, targets, repertoire, **more)

    monkeypatch.setattr(rehearsals, "search", search)
    monkeypatch.setattr(rehearsals, "TOGETHER", 10)
    settings = {"tasks": ("hopper",), "methods": ("cdt",), "conditioning": OF_DISTRIBUTIONS, "target_seed": 1}
    chosen = options(cache, **settings, rehearsal=4800.0)
    suites = ["synthetic", "unseen"]
    outcomes = run_benchmark(suites, tmp_path, chosen)
    shown = capsys.readouterr().err
    assert "repertoire" in shown
    assert "rehearsing 11 to 20 of 24" in shown
    assert [outcome.failure for outcome in outcomes] == [None]
    assert [count for count, _ in searched] == [10, 10, 4]
    assert searched[0][1] == pytest.approx(2000, rel=0.01)  # of the time that is left, its share
    assert len(set(library)) == 1
    (model,) = (tmp_path / "models").iterdir()
    assert {"programs.json", "repertoire.safetensors"} <= {path.name for path in model.iterdir()}
    found = {(r.suite, r.conditioning): r for r in read_results([tmp_path])}
    assert set(found) == {(suite, conditioning) for suite in suites for conditioning in OF_DISTRIBUTIONS}
    for (suite, conditioning), result in found.items():
        assert result.provenance.get("target_seed") == (1 if suite == "unseen" else None)
        assert ("rehearsal" in result.provenance) == (conditioning == "rehearsed")
    facts = found["unseen", "rehearsed"].provenance["rehearsal"]
    assert facts["limit"] == 4800.0
    assert min(facts["seconds"], facts["cpu_seconds"]) > 0
    assert facts["initial_states"][0] > EVALUATION_SEED + 1_000_000
    targets = found["unseen", "rehearsed"].targets
    for promised, target in zip(facts["targets"], targets, strict=True):
        assert promised["name"] == target.name
        assert promised["low"] <= promised["score"] <= promised["high"]
        assert 1 <= promised["rounds"] <= 2
        assert 0 < promised["played"] <= 1
    assert [t.name for t in targets] == [t.name for t in found["unseen", "nominal"].targets]
    for path in (tmp_path / "scores").glob("*-rehearsed.json"):
        path.unlink()
    run_benchmark(suites, tmp_path, chosen, quiet=True)
    assert len(searched) == 3
    assert {(r.suite, r.conditioning): r for r in read_results([tmp_path])}["unseen", "rehearsed"].targets == targets
    with pytest.raises(HimatchError, match=f"holds other results \\(target_seed 1, now {REPORTED_SEED}\\)"):
        run_benchmark(suites, tmp_path, replace(chosen, target_seed=REPORTED_SEED), quiet=True)


def _flat(shares: list[object]) -> list[float]:
    return [x for row in shares for x in (row if isinstance(row, list) else [row])]  # type: ignore[misc]


def test_a_plan_goes_on_where_it_stopped_and_its_pieces_share_models(
    tiny: None, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {"tasks": ("hopper",), "methods": ("dt",)}
    pieces = (
        Piece("first", "benchmark", ("xvel",), chosen),
        Piece("second", "benchmark", ("synthetic",), {**chosen, "conditioning": ("nominal", "remaining")}),
    )
    monkeypatch.setattr(plans, "PLANS", {"paper": pieces})
    running = run_plan("paper", tmp_path, options(cache), quiet=True)
    piece, outcomes = next(running)
    assert (piece.name, [outcome.failure for outcome in outcomes]) == ("first", [None])
    running.close()  # as by Ctrl-C
    (model,) = (tmp_path / "benchmark" / "models").iterdir()
    trained = (model / "finished.json").stat().st_mtime_ns
    found = {piece.name: outcomes for piece, outcomes in run_plan("paper", tmp_path, options(cache), quiet=True)}
    assert [outcome.failure for outcomes in found.values() for outcome in outcomes] == [None, None]
    assert (model / "finished.json").stat().st_mtime_ns == trained
    assert {(r.suite, r.conditioning) for r in read_results([tmp_path])} == {
        ("xvel", "nominal"),
        ("synthetic", "nominal"),
        ("synthetic", "remaining"),
    }
    report = report_on([tmp_path], tmp_path / "report")
    assert (report.results, report.failed) == (3, 0)


def test_finished_jobs_are_not_done_again_and_new_suites_use_the_model(tiny: None, cache: str, tmp_path: Path) -> None:
    chosen = options(cache, tasks=("hopper",), methods=("cdt",))
    run_benchmark(["xvel"], tmp_path, chosen, quiet=True)
    files = sorted(tmp_path.rglob("*.safetensors")) + sorted((tmp_path / "scores").iterdir())
    before = {path: path.stat().st_mtime_ns for path in files}
    run_benchmark(["xvel", "synthetic"], tmp_path, chosen, quiet=True)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    found = read_results([tmp_path])
    assert {result.suite for result in found} == {"xvel", "synthetic"}
    heads = {result.provenance["training"]["head"] for result in found}
    assert heads == {"tanh"}  # the paper's policy, whatever the preset has


def test_a_model_of_other_settings_or_other_data_is_not_used(tiny: None, cache: str, tmp_path: Path) -> None:
    """Such as one that was copied there, or that stayed when the results were removed."""
    chosen = options(cache, tasks=("hopper",), methods=("dt",))
    run_benchmark(["xvel"], tmp_path, chosen, quiet=True)
    (tmp_path / "benchmark.json").unlink()
    (first,) = run_benchmark(["synthetic"], tmp_path, replace(chosen, steps=3), quiet=True)
    (tmp_path / "benchmark.json").unlink()
    other = tmp_path / "other-v0"
    make_dataset("hopper-medium-expert", other, episodes=20, seed=1, quiet=True)
    (second,) = run_benchmark(["synthetic"], tmp_path, replace(chosen, data=str(other)), quiet=True)
    assert "other settings (steps 2, now 3" in str(first.failure)
    assert "other data" in str(second.failure)
    assert len(read_results([tmp_path])) == 1


def test_a_table_is_of_one_dataset(tiny: None, cache: str, tmp_path: Path) -> None:
    """Whatever the files are called."""
    for seed, name in enumerate(("a", "b")):
        make_dataset("hopper-medium-expert", tmp_path / name / "same-v0", episodes=20, seed=seed, quiet=True)
    chosen = options(cache, tasks=("hopper",), methods=("bc",), data=str(tmp_path / "a" / "same-v0"))
    assert run_benchmark(["xvel"], tmp_path / "out", chosen, quiet=True)[0].failure is None
    chosen = replace(chosen, methods=("dt",), data=str(tmp_path / "b" / "same-v0"))
    assert "holds results of hopper on other data" in str(
        run_benchmark(["xvel"], tmp_path / "out", chosen, quiet=True)[0].failure
    )


def test_features_at_the_next_state_are_results_of_another_folder(tiny: None, cache: str, tmp_path: Path) -> None:
    """The same models and rollouts, read elsewhere, and told apart by the folder, the file and the caption."""
    known = {"tasks": ("hopper",), "methods": ("cdt",), "policy": ("paper",)}
    run_benchmark(["xvel"], tmp_path / "t", options(cache, **known), quiet=True)
    shutil.copytree(tmp_path / "t" / "models", tmp_path / "after" / "models")
    later = options(cache, **known, recorded_at="t+1")
    run_benchmark(["xvel"], tmp_path / "after", later, quiet=True)
    (one,), (other,) = (read_results(tmp_path / name) for name in ("t", "after"))
    assert [result.provenance.get("recorded_at") for result in (one, other)] == [None, "t+1"]
    assert [t.lengths for t in one.targets] == [t.lengths for t in other.targets]
    assert [t.w1 for t in one.targets] != [t.w1 for t in other.targets]
    said = [build_tables([result])[0].caption for result in (one, other)]
    assert ["at s_t+1 in all rows, as in the authors' code" in caption for caption in said] == [False, True]
    with pytest.raises(HimatchError, match=r"recorded_at t, now t\+1"):
        run_benchmark(["xvel"], tmp_path / "t", later, quiet=True)


def test_results_that_share_targets_share_rollouts(
    tiny: None, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And score each feature as rollouts of its own would have."""
    play, played = Policy.match_features, []

    def counted(*arguments: Any, **settings: Any) -> Any:
        played.append(settings["features"])
        return play(*arguments, **settings)

    monkeypatch.setattr(Policy, "match_features", counted)
    chosen = options(cache, tasks=("hopper",), methods=("bc",))
    run_benchmark(["xvel", "reward"], tmp_path / "together", chosen, quiet=True)
    assert played == [("x_velocity", "reward")]
    run_benchmark(["reward"], tmp_path / "alone", chosen, quiet=True)
    together, alone = ({r.suite: r for r in read_results([tmp_path / name])} for name in ("together", "alone"))
    assert set(together) == {"xvel", "reward"}
    assert together["reward"].targets == alone["reward"].targets
    assert together["reward"].targets != together["xvel"].targets


def test_a_failure_is_listed_and_does_not_stop_the_rest(
    tiny: None, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = execution_module.train

    def failing(method: object, *rest: object, **settings: object) -> object:
        if getattr(method, "name", "") == "dt":
            raise RuntimeError("the disk has gone away")
        return train(method, *rest, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(execution_module, "train", failing)
    chosen = options(cache, tasks=("hopper",), methods=("dt", "bc"))
    outcomes = run_benchmark(["xvel"], tmp_path, chosen, quiet=True)
    assert sorted(outcome.failure or "" for outcome in outcomes) == ["", "RuntimeError: the disk has gone away"]
    assert [display_name(result.method) for result in read_results([tmp_path])] == ["BC (no-context)"]
    assert "Traceback" in next((tmp_path / "failures").iterdir()).read_text()
    monkeypatch.setattr(execution_module, "train", train)
    again = run_benchmark(["xvel"], tmp_path, chosen, quiet=True)
    assert all(outcome.failure is None for outcome in again)
    assert not list((tmp_path / "failures").iterdir())


def test_failures_are_shown_word_for_word() -> None:
    shown = io.StringIO()
    show_outcomes(
        [Outcome("a"), Outcome("b", "no file /data/[old]/logs.hdf5, or none that can be read")],
        Console(file=shown, width=40),
    )
    assert shown.getvalue().splitlines() == [
        "1 of 2 jobs done",
        "failed: b: no file /data/[old]/logs.hdf5, or none that can be read",
    ]


def test_himatchs_policy_says_what_it_is(tiny: None, few_rehearsals: None, cache: str, tmp_path: Path) -> None:
    """The preset as it is, at the temperature that training selects, and how much of the time it played."""
    chosen = options(cache, tasks=("hopper",), methods=("dt", "meta-bc"), policy=("himatch",))
    assert all(outcome.failure is None for outcome in run_benchmark(["xvel"], tmp_path, chosen, quiet=True))
    results = read_results([tmp_path])
    assert [result.policy for result in results] == ["himatch"] * 2
    for result in results:
        facts = result.provenance["training"]
        assert facts["head"] == "gaussian"
        assert facts["chosen_by"].startswith("x_velocity, mean charged W1 to 3 training episodes, 1 rollouts each")
        assert sorted(facts["tried"]) == ["0.5", "1"]
        assert facts["temperature"] in (0.5, 1.0)
        for target in result.targets:
            assert 0 < target.played[0] <= 1
            assert charged_scores(target)[0] >= target.played[0] * target.exact[0]


def test_cdt_has_two_rows_in_one_folder(tiny: None, few_rehearsals: None, cache: str, tmp_path: Path) -> None:
    chosen = options(cache, tasks=("hopper",), methods=("cdt", "dt"), policy=())
    assert all(outcome.failure is None for outcome in run_benchmark(["xvel"], tmp_path, chosen, quiet=True))
    results = read_results([tmp_path])
    training = {(r.method.name, r.policy): r.provenance["training"] for r in results if r.method is not None}
    assert training.keys() == {("cdt", "paper"), ("cdt", "himatch"), ("dt", "paper")}
    for (_, policy), facts in training.items():
        assert facts["head"] == ("gaussian" if policy == "himatch" else "tanh")
        assert ("temperature" in facts) == (policy == "himatch")
    (table,) = build_tables(results)
    names = [row.name for row in table.methods if not row.is_missing]
    assert names == ["Categorical DT (paper's policy)", "Categorical DT (himatch)", "DT"]


def test_a_folder_of_another_head_is_left_alone(tiny: None, cache: str, tmp_path: Path) -> None:
    """Such as were written while a folder had one: its files have the names of the paper's policy."""
    chosen = options(cache, tasks=("hopper",), methods=("bc",))
    run_benchmark(["xvel"], tmp_path, chosen, quiet=True)
    kind = json.loads((tmp_path / "benchmark.json").read_text())
    assert run_benchmark(["xvel"], tmp_path, chosen, quiet=True)[0].failure is None
    (tmp_path / "benchmark.json").write_text(json.dumps({**kind, "head": "gaussian"}))
    with pytest.raises(HimatchError, match="holds other results \\(head gaussian, now None\\)"):
        run_benchmark(["xvel"], tmp_path, chosen, quiet=True)


@pytest.mark.usefixtures("selecting")
def test_the_temperature_is_chosen_alike_in_whatever_order_suites_are_named(
    tiny: None, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temperature, "training_scores", lambda *_, **__: {0.5: np.ones((1, 1))})
    chosen = options(cache, tasks=("hopper",), methods=("bc",), policy=("himatch",))
    for order in (("xvel", "reward"), ("reward", "xvel")):
        run_benchmark(order, tmp_path / order[0], chosen, quiet=True)
    by = {result.provenance["training"]["chosen_by"].partition(",")[0] for result in read_results([tmp_path])}
    assert by == {"x_velocity"}


@pytest.mark.usefixtures("selecting")
def test_each_method_has_the_temperature_that_suits_it(
    tiny: None, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen once, by training episodes; suites that are run later use it, too."""
    chosen = options(cache, tasks=("hopper",), methods=("dt",), policy=("himatch",))
    monkeypatch.setattr(
        temperature, "training_scores", lambda *_, **__: {0.7: np.full((1, 1), 3), 0.5: np.ones((1, 1))}
    )
    assert run_benchmark(["xvel"], tmp_path, chosen, quiet=True)[0].failure is None
    monkeypatch.delattr(temperature, "training_scores")
    acted: list[float] = []
    real = Policy.match_features

    def noted(policy: Any, *rest: Any, **settings: Any) -> Any:
        acted.append(policy.temperature)
        return real(policy, *rest, **settings)

    monkeypatch.setattr(Policy, "match_features", noted)
    assert run_benchmark(["synthetic"], tmp_path, chosen, quiet=True)[0].failure is None
    assert acted == [0.5]
    assert {result.provenance["training"]["temperature"] for result in read_results([tmp_path])} == {0.5}


OWN_METHOD = """
from dataclasses import dataclass
from typing import ClassVar

from himatch.methods import METHODS
from himatch.methods import CDT


@dataclass(frozen=True)
class Coarse(CDT):
    name: ClassVar[str] = "coarse"
    bins: int = 5


METHODS[Coarse.name] = Coarse
"""


def test_several_processes_know_a_method_of_ones_own(cache: str, logs: Path, tmp_path: Path) -> None:
    own = tmp_path / "coarse.py"
    own.write_text(OWN_METHOD)
    few = {"steps": 2, "seeds": 1, "episodes": 1, "data": str(logs)}
    try:
        chosen = options(cache, tasks=("hopper",), methods=("coarse", "bc"), imports=(str(own),), **few)
        outcomes = run_benchmark(["xvel"], tmp_path / "out", chosen, workers=2, quiet=True)
    finally:
        METHODS.pop("coarse", None)
    assert [outcome.failure for outcome in outcomes] == [None, None]
    results = {display_name(result.method): result for result in read_results([tmp_path / "out"])}
    assert set(results) == {"coarse", "BC (no-context)"}
    assert results["coarse"].provenance["method"] == {
        "name": "coarse",
        "feature": "x_velocity",
        "gamma": 1.0,
        "bins": 5,
        "z": "histogram",
    }
    with pytest.raises(HimatchError, match=r"--import .*missing\.py: no such file"):
        options(cache, imports=(str(tmp_path / "missing.py"),))


SLOW_TO_SAVE = """
import os
import shutil
import time
from pathlib import Path

from importlib import import_module

from himatch.runs.folder import RunFolder

here, write = Path(__file__).parent, RunFolder.write_weights
import_module("himatch.training.train").SAVE_EVERY = float("inf")  # only what a signal asks for


def held(*arguments):
    (here / f"{os.getpid()}.saves").touch()
    while not (here / "go-on").exists():
        time.sleep(0.02)
    write(*arguments)


RunFolder.write_weights = held
"""


def test_sigterm_to_the_first_of_several_processes_stops_them_all(logs: Path, tmp_path: Path) -> None:
    """They save what they train and leave, though all are told once more; a job that waits is not begun."""
    own, out = tmp_path / "own.py", tmp_path / "out"
    own.write_text(TRAINED + SLOW_TO_SAVE)
    command = ["benchmark", "xvel", "--tasks", "hopper", "--methods", "cdt", "dt", "bc", "--budget", "smoke"]
    command += ["--steps", "1000000", "--workers", "2", "--data", str(logs), "--import", str(own), "--out", str(out)]
    with program(*command) as process:
        wait_for(lambda: trained(tmp_path) == 2, "two processes that train", process)
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: len(list(tmp_path.glob("*.saves"))) == 2, "two processes that save", process)
        os.killpg(process.pid, signal.SIGTERM)  # as systems do that tell every process
        (tmp_path / "go-on").touch()
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert len(list((out / "models").glob("*/training.safetensors"))) == 2
    assert len(list((out / "models").iterdir())) == 2
    assert not (out / "failures").exists()


def test_an_interrupt_while_processes_begin_stops_those_that_have(
    cache: str, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, submitted = runner.ProcessPoolExecutor.submit, []

    def interrupted(pool: Any, *arguments: Any) -> Any:
        if submitted:
            raise KeyboardInterrupt
        submitted.append(submit(pool, *arguments))
        return submitted[0]

    monkeypatch.setattr(runner.ProcessPoolExecutor, "submit", interrupted)
    few = {"steps": 2, "seeds": 1, "episodes": 1, "data": str(logs)}
    chosen = options(cache, tasks=("hopper",), methods=("dt", "bc"), **few)
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(["xvel"], tmp_path, chosen, workers=2, quiet=True)
    assert submitted[0].done()  # nobody is left behind
    assert not (tmp_path / "scores").exists()


def test_fewer_steps_pretrain_less_too(cache: str, logs: Path, tmp_path: Path) -> None:
    few = options(cache, tasks=("hopper",), methods=("dt-ae",), steps=2, seeds=1, episodes=1, data=str(logs))
    assert [outcome.failure for outcome in run_benchmark(["imitation"], tmp_path, few, quiet=True)] == [None] * 3
    methods = [result.provenance["method"] for result in read_results([tmp_path])]
    assert {method["mode"] for method in methods} == {"unsupervised", "joint", "frozen"}
    assert {method["pretrain_steps"] for method in methods} == {5}  # 10,000 are usual with 4,000 of training
    usual, alike = make_method("dt-ae"), make_method("meta-bc")  # which trains its encoder as long as its policy
    assert execution_module._shortened(usual, options(cache)) == usual
    assert execution_module._shortened(alike, few) == alike


def test_data_of_ones_own(tiny: None, cache: str, logs: Path, tmp_path: Path) -> None:
    """Whoever made them is said, not whether they were named."""
    folder = logs / "hopper-medium-expert-mine-v0"
    theirs = write_minari(load_dataset(folder), tmp_path / "hopper-medium-expert-theirs-v0")
    for data, made in ((logs, True), (folder / "data", True), (theirs, False)):
        chosen = options(cache, tasks=("hopper",), methods=("bc",), data=str(data))
        out = tmp_path / f"out-{data.name}"
        assert run_benchmark(["xvel"], out, chosen, quiet=True)[0].failure is None
        assert read_results([out])[0].provenance["data"]["made_by_himatch"] is made
    chosen = options(cache, tasks=("walker2d",), methods=("bc",), data=str(logs))
    assert "holds no dataset for walker2d" in str(
        run_benchmark(["xvel"], tmp_path / "w", chosen, quiet=True)[0].failure
    )


def test_targets_beside_the_data_are_new_and_named(
    tiny: None, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The patchworks of zvel are himatch's own episodes, with data of one's own as well."""
    real, seen = measurements_module.suite_targets, []

    def watched(suite: Any, task: str, split: Split, seed: int, additional: Any) -> Any:
        extra: TrajectoryDataset = additional()
        seen.append((split.train, extra))
        return real(suite, task, split, seed, lambda: extra)

    monkeypatch.setattr(measurements_module, "suite_targets", watched)
    chosen = options(cache, methods=("dt",))
    assert run_benchmark(["zvel"], tmp_path / "usual", chosen, quiet=True)[0].failure is None
    (trained_on, extra), _ = seen  # one model for each feature
    known = {episode.observations.tobytes() for episode in trained_on}
    assert (len(known), len(extra)) == (20, 10)
    assert not known & {episode.observations.tobytes() for episode in extra}
    theirs = write_minari(trained_on, tmp_path / "theirs-v0")
    mine = replace(chosen, data=str(theirs))
    assert run_benchmark(["zvel"], tmp_path / "mine", mine, quiet=True)[0].failure is None
    results = read_results([tmp_path / "mine"])
    data, targets = (results[0].provenance[name] for name in ("data", "target_data"))
    assert (data["name"], data["made_by_himatch"]) == ("theirs-v0", False)
    assert (targets["hash"], targets["made_by_himatch"]) == (extra.content_hash, True)
    caption = build_tables(results)[0].caption
    assert "Data: theirs-v0 (not made by himatch, 20 episodes, " in caption
    assert f"; {targets['name']} (targets, made by himatch, 10 episodes, sha256 {targets['hash'][:8]})." in caption


LOST_WHILE_TRAINING = """
import os
import shutil
import signal
from pathlib import Path

from himatch.training.update import Update

killed, step, done = Path(__file__).parent / "killed", Update._one_step, 0


def counted(self):
    global done
    step(self)
    done += 1
    if done == 3 and os.getpid() != {test}:
        try:
            killed.touch(exist_ok=False)
        except FileExistsError:  # one is enough
            return
        os.kill(os.getpid(), signal.SIGKILL)


Update._one_step = counted
"""


@pytest.mark.filterwarnings("ignore")
def test_a_ray_worker_that_is_killed_loses_nothing(
    cache: str, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a training."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(Update, "_one_step", Update._one_step)  # put back, since options import here, too
    own, out = tmp_path / "own.py", tmp_path / "out"
    own.write_text(LOST_WHILE_TRAINING.replace("{test}", str(os.getpid())))
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)  # whatever else runs on this machine
    try:
        few = {"steps": 20, "seeds": 1, "episodes": 1, "imports": (str(own),)}
        chosen = options(cache, tasks=("hopper",), methods=("cdt", "dt", "bc"), data=str(logs), **few)
        outcomes = run_benchmark(["xvel"], out, chosen, executor="ray", quiet=True)
    finally:
        ray.shutdown()
    assert (tmp_path / "killed").exists()
    assert [outcome.failure for outcome in outcomes] == [None, None, None]
    assert len(read_results([out])) == 3


def test_the_command(tiny: None, cache: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    command = ["benchmark", "data", "--tasks", "hopper", "--budget", "smoke", "--cache", cache, "--out", out]
    with pytest.raises(SystemExit) as exit_:
        main(command)
    assert exit_.value.code == 0
    assert "1 of 1 jobs done" in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "benchmark.json").read_text())["budget"] == "smoke"
    with pytest.raises(SystemExit) as exit_:
        main([*command, "--seeds", "3"])
    assert exit_.value.code == 2
    assert "holds other results (seeds 1, now 3); choose another --out" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit) as exit_:
        main(["benchmark", "nonsense", "--out", out])
    assert exit_.value.code == 2
    assert "unknown suite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--out", "afile"), "a part of that path is a file"),
        (("--out", "out", "--data", "nowhere.hdf5"), "there is no file or folder nowhere.hdf5"),
        (("--out", "out", "--threads", "-1"), "threads must be 0 (all) or more"),
        (("--out", "out", "--policy", "paper", "mine"), "unknown policy 'mine'; known are paper, himatch"),
        # Not "auto", which finds whatever cluster runs on this machine, that of another test, too.
        (("--out", "out", "--executor", "ray", "--address", "nowhere"), "there is no Ray cluster at nowhere"),
    ],
)
def test_what_cannot_begin_is_one_line(
    options: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "afile").write_text("mine")
    assert_refused(run("benchmark", "data", "--tasks", "hopper", "--budget", "smoke", *options), message)


def test_a_folder_without_results_may_become_another_kind(
    tiny: None, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise HimatchError("mistyped")

    with monkeypatch.context() as patched:
        patched.setattr(execution_module, "job_dataset", broken)
        (failed,) = run_benchmark(["data"], tmp_path, options(cache, tasks=("hopper",), seeds=7), quiet=True)
    assert failed.failure == "mistyped"
    (done,) = run_benchmark(["data"], tmp_path, options(cache, tasks=("hopper",)), quiet=True)
    assert done.failure is None


def test_of_two_processes_one_does_a_job(
    tiny: None, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = options(cache, tasks=("hopper",), methods=("bc",))
    (job,) = plan_jobs(["xvel"], chosen)
    trainings, train = [], execution_module.train

    def counted(*args: Any, **settings: Any) -> Any:
        trainings.append(settings["out"])
        return train(*args, **settings)

    monkeypatch.setattr(execution_module, "train", counted)
    both_at_the_lock("himatch.reproduce.execution", monkeypatch)
    with ThreadPoolExecutor(2) as pool:
        written = list(pool.map(lambda _: execution_module.run_job(job, tmp_path, chosen), range(2)))
    assert sorted(map(len, written)) == [0, 1]
    assert len(trainings) == 1


def test_an_interrupted_command_says_how_to_go_on(
    tiny: None, cache: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with an option that only training has."""
    command = ["benchmark", "xvel", "--tasks", "hopper", "--methods", "dt", "--budget", "smoke", "--device", "cpu"]
    command += ["--cache", cache, "--threads", "1", "--out", str(tmp_path / "out")]

    def interrupted(*_: object, **__: object) -> None:
        raise Interrupted("stopped at step 1 of 2; everything is saved, continue with --resume")

    with monkeypatch.context() as patched:
        patched.setattr(execution_module, "train", interrupted)
        with pytest.raises(SystemExit) as exit_:
            main(command)
    said = capsys.readouterr().err
    assert exit_.value.code == 130
    assert "the same command goes on from there" in said
    assert "--resume" not in said
    with pytest.raises(SystemExit) as exit_:
        main(command)
    assert exit_.value.code == 0
