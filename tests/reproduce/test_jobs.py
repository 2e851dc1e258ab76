"""Suites become jobs: each model once, only what was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from himatch.errors import HimatchError
from himatch.methods import CDT, METHODS, make_method
from himatch.reproduce import SUITES, Job, Options, plan_jobs
from himatch.reproduce.specification import display_name
from himatch.reproduce.suites import SYNTHETIC, methods_of
from himatch.targets import parse_target
from himatch.training import configure


def test_every_row_of_every_suite_is_a_method_with_settings_it_has() -> None:
    for suite in SUITES.values():
        for row in methods_of(suite, "paper", (), all_variants=True):
            name = row.specification.name
            method = make_method(name, **row.settings(suite.features[0]))
            assert method.name == name
            configure("paper", method, **row.changes())


def test_rows_are_named_once() -> None:
    for suite in SUITES.values():
        names = [display_name(row.specification) for row in suite.methods]
        assert len(names) == len(set(names))


def test_suites_share_models() -> None:
    """x-velocity matching, synthetic targets and shifts share a Categorical DT."""
    chosen = Options(tasks=("hopper",), methods=("cdt",), policy=("paper",))
    jobs = plan_jobs(["xvel", "synthetic", "shift"], chosen)
    by_feature = {dict(job.settings)["feature"]: job for job in jobs}
    assert set(by_feature) == {"x_velocity", "reward"}
    assert [result.suite for result in by_feature["x_velocity"].results] == ["xvel", "synthetic", "shift"]
    assert [result.suite for result in by_feature["reward"].results] == ["shift"]


def test_rows_of_the_authors_choices() -> None:
    """Settings of the method, of the network and of the sampler tell rows apart; the rest is the paper's DT."""
    jobs = plan_jobs(["cheetah-vel"], Options(methods=("dt",)))
    changes = [(dict(job.settings), dict(job.overrides)) for job in jobs]
    coded = {"time_std": 1.0, "sampling": "episodes"}
    assert changes[0] == ({"feature": "x_velocity"}, {})
    assert ({"feature": "reward"}, {}) in changes
    assert ({"feature": "reward", "scale": 1000.0}, coded) in changes
    assert ({"feature": "x_velocity", "scale": 1000.0}, coded) in changes
    assert len({job.key for job in jobs}) == len({job.results[0].path(Path()) for job in jobs}) == len(jobs) == 6
    assert all(result.feature == "x_velocity" for job in jobs for result in job.results)
    scored_twice = [job for job in plan_jobs(["zvel"], Options(methods=("dt",))) if len(job.results) == 2]
    assert [dict(job.settings)["feature"] for job in scored_twice] == ["reward", "reward"]


def test_methods_of_tasks_have_rows_on_cheetah_vel_and_wherever_they_are_named() -> None:
    found = {job.method for job in plan_jobs(["cheetah-vel"], Options(budget="smoke"))}
    assert {"hipi", "gh", "multi-task", "bc"} < found
    for suite, task in (("xvel", "hopper"), ("cheetah-vel", "cheetah-vel"), ("zvel", "halfcheetah")):
        assert {job.method for job in plan_jobs([suite], Options(methods=("hipi",), tasks=(task,)))} == {"hipi"}
    assert not {job.method for job in plan_jobs(["xvel"], Options(tasks=("hopper",)))} & {"hipi", "gh", "multi-task"}


def test_a_method_without_a_feature_is_trained_once_and_scored_on_both() -> None:
    jobs = plan_jobs(["xvel", "reward"], Options(tasks=("hopper",), methods=("bc",)))
    assert len(jobs) == 1
    assert {result.feature for result in jobs[0].results} == {"x_velocity", "reward"}


def test_a_suite_of_two_features_can_be_run_on_one() -> None:
    options = Options(tasks=("hopper",), methods=("cdt",), features=("reward",))
    assert {result.feature for job in plan_jobs(["shift", "data"], options) for result in job.results} == {"reward"}
    assert {result.suite for job in plan_jobs(["xvel", "reward"], options) for result in job.results} == {"reward"}


def test_conditionings_apply_to_the_methods_they_are_for() -> None:
    options = Options(tasks=("hopper",), methods=("cdt", "dt", "bc"), conditioning=("nominal", "remaining", "planned"))
    taken = {job.method: [result.conditioning for result in job.results] for job in plan_jobs(["xvel"], options)}
    assert taken == {"cdt": ["nominal", "remaining", "planned"], "dt": ["nominal", "remaining"], "bc": ["nominal"]}


@dataclass(frozen=True)
class Impatient(CDT):
    """What lies far ahead counts less, so that nothing can be taken from a total."""

    name: ClassVar[str] = "impatient"
    gamma: float = 0.9


def test_conditionings_apply_to_methods_of_no_table_by_their_statistic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, Impatient.name, Impatient)
    methods = ("moments", "goal", "impatient", "meta-bc", "bdt")
    options = Options(tasks=("hopper",), methods=methods, conditioning=("remaining", "planned"))
    jobs = plan_jobs(["xvel", "imitation"], options)
    taken = {(job.method, result.conditioning) for job in jobs for result in job.results}
    assert taken == {("moments", "remaining"), ("goal", "remaining"), ("impatient", "planned")}


def planned_policies(*suites: str, **settings: object) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for job in plan_jobs(suites, Options(**settings)):  # type: ignore[arg-type]
        assert {result.policy for result in job.results} == {job.policy}
        found.setdefault(job.method, set()).add(job.policy)
    return found


def test_cdt_has_both_policies_and_the_others_the_papers() -> None:
    rest = {method: {"paper"} for method in ("dt", "bc", "meta-bc", "focal")}
    for budget in ("smoke", "fast"):
        assert planned_policies("xvel", budget=budget) == {"cdt": {"paper", "himatch"}, **rest}
    for suite in SUITES.values():
        if any(row.specification.name == "cdt" for row in suite.methods):
            assert planned_policies(suite.name, methods=("cdt",)) == {"cdt": {"paper", "himatch"}}


def test_himatchs_policy_is_for_methods_that_can_have_it() -> None:
    assert planned_policies("xvel", policy=("himatch",)) == {m: {"himatch"} for m in ("cdt", "dt", "bc", "meta-bc")}
    both = planned_policies("xvel", policy=("paper", "himatch"))
    assert {method for method, names in both.items() if names == {"paper"}} == {"focal"}
    assert both["dt"] == {"paper", "himatch"}


def test_a_preset_with_the_papers_policy_has_no_other() -> None:
    for chosen in ((), ("himatch",), ("paper", "himatch")):
        assert planned_policies("xvel", budget="paper", methods=("cdt",), policy=chosen) == {"cdt": {"paper"}}


def test_policies_share_neither_folders_nor_files() -> None:
    """Those of the paper's are named as they were before there was another."""
    jobs = plan_jobs(["xvel"], Options(tasks=("hopper",), methods=("cdt",)))
    assert [job.key.partition("=")[2] for job in jobs] == ["x_velocity", "x_velocity-himatch"]
    assert [job.results[0].path(Path("a")).stem for job in jobs] == [
        "xvel-hopper-cdt-x_velocity-nominal",
        "xvel-hopper-cdt-x_velocity-nominal-himatch",
    ]


def test_a_method_of_no_table_has_a_row_where_it_is_named() -> None:
    options = Options(tasks=("hopper",), methods=("moments", "cdt"))
    jobs = plan_jobs(["xvel", "imitation", "data"], options)
    planned = {(job.method, dict(job.settings).get("feature"), r.suite) for job in jobs for r in job.results}
    matched = {(method, "x_velocity", "xvel") for method in ("moments", "cdt")}
    assert planned == matched | {
        ("moments", "x_velocity", "imitation"),
        ("moments", "reward", "imitation"),
        ("", None, "data"),
    }
    assert "moments" not in {job.method for job in plan_jobs(["xvel"], Options())}


def test_budgets_include_more_rows() -> None:
    counts = [len(methods_of(SUITES["imitation"], budget, ())) for budget in ("smoke", "fast", "paper")]
    assert counts == sorted(counts)
    assert counts[0] == 8
    read = [row for row in SUITES["imitation"].methods if row.specification.get("codes") == "public"]
    largest = [row for row in SUITES["imitation"].methods if row.specification.get("m") == 16]
    whole = [row for row in read if row.specification.get("public_mask")]
    assert len(whole) == 2  # of BDT and DT-E2E, with everything else that is the public code's
    # BDT with three windows and seven DT-X, each with three codes
    assert len(largest) - len(whole) == 3 * (len(read) - len(whole)) == 3 * 10
    assert (
        counts[2]
        == len(methods_of(SUITES["imitation"], "smoke", (), all_variants=True))
        == len(SUITES["imitation"].methods)
    )


def test_the_public_code_s_rows_have_all_of_its_choices() -> None:
    """Its codes with the mask and the first step, time embeddings of unit size, and episodes drawn evenly."""
    rows = [row for row in SUITES["imitation"].methods if row.specification.get("public_mask")]
    assert [row.specification.name for row in rows] == ["bdt", "dt-e2e"]
    for row in rows:
        settings, changes = row.settings("reward"), row.changes()
        assert {name: settings[name] for name in ("codes", "public_mask", "public_start", "m")} == {
            **{"codes": "public", "public_mask": True, "public_start": True, "m": 16}
        }
        assert {name: changes[name] for name in ("time_std", "sampling", "context")} == {
            **{"time_std": 1.0, "sampling": "episodes", "context": 20}
        }


def test_jobs_travel_as_text() -> None:
    for job in plan_jobs(["all"], Options(all_variants=True)):
        assert Job.from_json(job.as_json()) == job


def test_every_model_has_a_folder_of_its_own() -> None:
    jobs = plan_jobs(["all"], Options(all_variants=True))
    assert len({job.key for job in jobs}) == len(jobs)


def test_a_job_without_a_model_is_called_by_its_dataset() -> None:
    assert [job.key for job in plan_jobs(["data"], Options(tasks=("hopper",)))] == ["hopper-medium-expert"]


def test_suites_that_share_a_dataset_split_it_alike() -> None:
    """Else they would share models, too, that some of them had trained on what others hold out."""
    splits: dict[str, set[str]] = {}
    for suite in SUITES.values():
        for task in suite.tasks:
            splits.setdefault(suite.dataset.format(task=task), set()).add(suite.split)
    assert all(len(found) == 1 for found in splits.values())


def test_the_papers_synthetic_targets_are_six_a_task() -> None:
    for texts in SYNTHETIC.values():
        assert len(texts) == 6
        assert [parse_target(text).name.count("normal") for text in texts] == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("suites", "settings", "message"),
    [
        (["nonsense"], {}, "unknown suite 'nonsense'"),
        ([], {}, "name at least one suite"),
        (["xvel"], {"budget": "huge"}, "unknown budget"),
        (["xvel"], {"methods": ("td3",)}, "unknown method 'td3'"),
        (["xvel"], {"tasks": ("ant",)}, "no chosen suite has the task 'ant'"),
        (["xvel"], {"features": ("height",)}, "no chosen suite has the feature 'height'; they have x_velocity"),
        (["xvel"], {"conditioning": ("ajar",)}, "unknown conditioning"),
        (["xvel"], {"seeds": 0}, "seeds must be at least 1"),
        (["zvel"], {"methods": ("bc",)}, "nothing is left to do"),
        (["xvel"], {"methods": ("bc",), "conditioning": ("remaining",)}, "or none that takes remaining conditioning$"),
        (
            ["xvel"],
            {"methods": ("focal",), "policy": ("himatch",)},
            "none that takes nominal conditioning and the policy himatch",
        ),
        (["xvel"], {"rehearsal": 30.0}, "rehearsal is for rehearsed conditioning"),
        (["xvel"], {"rehearsal": 0.0, "conditioning": ("rehearsed",)}, "takes more than 0 seconds"),
        (["unseen"], {"target_seed": -1}, "the seed of targets must be 0 or more"),
        (["xvel"], {"policy": ("mine",)}, "unknown policy 'mine'; known are paper, himatch"),
    ],
)
def test_mistakes_are_named(suites: list[str], settings: dict[str, object], message: str) -> None:
    with pytest.raises(HimatchError, match=message):
        plan_jobs(suites, Options(**settings))  # type: ignore[arg-type]
