from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import himatch as hm
from himatch.data.inspection import inspect_dataset, show_report
from himatch.data.inspection.plot import plot_report
from himatch.data.inspection.report import sparkline
from himatch.errors import HimatchError


def test_the_numbers_are_those_of_the_data(hopper: hm.TrajectoryDataset) -> None:
    report = inspect_dataset(hopper)
    velocity = hopper.observations[:, 5].astype(np.float64)
    found = next(feature for feature in report.features if feature.name == "x_velocity")
    assert report.episodes == 20
    assert report.steps == sum(range(20, 40))
    assert found.mean == pytest.approx(velocity.mean())
    assert found.std == pytest.approx(velocity.std())
    assert (found.minimum, found.maximum) == (velocity.min(), velocity.max())
    assert found.spread == pytest.approx(np.std([t.observations[:, 5].mean(dtype=np.float64) for t in hopper]))
    assert report.returns is not None
    assert report.returns["max"] == pytest.approx(hopper.returns.max())
    for weights in found.distributions.values():
        assert sum(weights) == pytest.approx(1.0)


def test_groups_are_the_best_middle_and_worst(hopper: hm.TrajectoryDataset) -> None:
    groups = inspect_dataset(hopper).groups
    order = list(np.argsort(hopper.returns, kind="stable"))
    assert groups == {"best": order[-5:], "middle": order[8:13], "worst": order[:5]}


def test_json_has_everything(hopper: hm.TrajectoryDataset) -> None:
    content = json.loads(json.dumps(inspect_dataset(hopper, warnings=("repaired",)).as_json()))
    assert content["warnings"][0] == "repaired"
    assert content["content_hash"] == hopper.content_hash
    assert {feature["name"] for feature in content["features"]} >= {"reward", "x_velocity", "height"}


def test_tables_fit_eighty_columns(hopper: hm.TrajectoryDataset) -> None:
    console = Console(width=80, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    show_report(inspect_dataset(hopper), console)
    text = console.export_text()
    console.file.close()
    assert "x_velocity" in text
    assert "20" in text
    assert "…" not in text


def test_a_report_shows_itself_as_the_command_does(hopper: hm.TrajectoryDataset) -> None:
    report = inspect_dataset(hopper)
    console = Console(width=100, record=True, file=StringIO())
    show_report(report, console)
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert repr(report).splitlines() == str(report).splitlines() == lines
    assert "\x1b" not in str(report)
    assert len(str(report)) < 3000
    assert repr(report.features[0]).startswith("FeatureReport(reward: ")
    assert len(repr(report.features)) < 1000


def test_nothing_is_copied_to_learn_a_width(hopper: hm.TrajectoryDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered, copied = hopper[::2], property(lambda self: pytest.fail("all steps were copied"))
    for name in ("observations", "actions"):
        monkeypatch.setattr(hm.TrajectoryDataset, name, copied)
    report = inspect_dataset(scattered)
    assert (report.observation_width, report.action_width) == (11, 3)


def test_the_picture_is_written(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    path = plot_report(inspect_dataset(hopper), tmp_path / "deep" / "p.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in path.parent.iterdir()] == ["p.png"]
    with pytest.raises(HimatchError, match="must end in"):
        plot_report(inspect_dataset(hopper), tmp_path / "p.doc")


def test_logs_without_rewards_or_features(tmp_path: Path) -> None:
    arrays = {"observations": np.random.default_rng(0).normal(size=(20, 3)), "actions": np.zeros((20, 1))}
    data = hm.load_dataset({**arrays, "lengths": [5, 15]})
    report = inspect_dataset(data)
    assert report.returns is None
    assert [feature.name for feature in report.features] == ["obs[0]", "obs[1]", "obs[2]"]
    assert any("no rewards" in warning for warning in report.warnings)
    assert plot_report(report, tmp_path / "p.svg").exists()


def test_a_feature_that_fails_is_shown_as_failed(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    features = {"double": lambda obs, act, rew: rew * 2, "height": 0}
    logs = [hm.Trajectory(episode.observations, episode.actions) for episode in hopper]
    data = hm.load_dataset(logs, hm.Task("logs", 100, 11, 3, features=features))
    report = inspect_dataset(data)
    assert [feature.name for feature in report.features] == ["height"]
    assert json.loads(json.dumps(report.as_json()))["failed"].keys() == {"double"}
    with (tmp_path / "out").open("w") as file:
        show_report(report, Console(width=80, file=file))
    text = (tmp_path / "out").read_text()
    assert re.search(r"double +failed", text)
    assert "failed with TypeError" in text
    with pytest.raises(HimatchError, match="'double' failed"):  # it was asked for
        inspect_dataset(data, ("double",))
    del features["height"]
    with pytest.raises(HimatchError, match="nothing to draw"):
        plot_report(inspect_dataset(hm.load_dataset(logs, hm.Task("logs", 100, features=features))), tmp_path / "x.png")


@pytest.mark.parametrize(
    ("env_id", "remark"),
    [
        ("Hopper-v5", "which version of Hopper it was recorded in"),
        ("Pendulum-v1", None),  # there is one version
        ("NoSuchRig-v0", None),
    ],
)
def test_the_version_of_an_environment_is_asked_for_where_there_are_several(env_id: str, remark: str | None) -> None:
    arrays = {"observations": np.eye(6), "actions": np.zeros((6, 1)), "lengths": [6]}
    warnings = inspect_dataset(hm.load_dataset(arrays, hm.Task("rig", 10, env_id=env_id))).warnings
    assert [w for w in warnings if "version" in w] == ([f"the source does not say {remark}"] if remark else [])


def test_d4rl_is_spoken_of_where_the_task_is_its_own(hopper: hm.TrajectoryDataset) -> None:
    assert any("of Hopper it was recorded in (D4RL's own files: v2-era" in w for w in inspect_dataset(hopper).warnings)


def test_a_constant_feature_is_remarked_upon() -> None:
    data = hm.load_dataset({"observations": np.ones((6, 1)), "actions": np.zeros((6, 1)), "lengths": [6]})
    assert any("constant" in warning for warning in inspect_dataset(data).warnings)


def test_sparklines_show_small_bins() -> None:
    assert sparkline([0.0, 0.001, 0.5, 1.0]) == " ▁▄█"


def test_names_and_missing_labels_of_a_table_are_shown(tmp_path: Path) -> None:
    rows = ["episode,obs_x,obs_y,act_u,label", "a,1,2,0.5,walk", "b,3,4,0.25,", "c,5,6,0.5,walk"]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    report = inspect_dataset(hm.load_dataset(tmp_path / "log.csv"))
    assert (report.observation_names, report.action_names) == (["obs_x", "obs_y"], ["act_u"])
    assert (report.labels, report.unlabelled) == ({"walk": 2}, 1)
    text = str(report)
    assert re.search(r"^observations +obs_x, obs_y$", text, re.MULTILINE)
    assert re.search(r"^actions +act_u$", text, re.MULTILINE)
    assert re.search(r"^labels +walk \(2\) +without a label 1$", text, re.MULTILINE)


def test_what_has_no_names_shows_none(hopper: hm.TrajectoryDataset) -> None:
    report = inspect_dataset(hopper)
    assert report.observation_names == report.action_names == []
    assert not re.search("^(observations|actions) ", str(report), re.MULTILINE)


def test_of_many_names_the_first_are_shown(tmp_path: Path) -> None:
    header = ",".join(["episode", "act_u", *(f"obs_{i}" for i in range(100))])
    (tmp_path / "log.csv").write_text(f"{header}\na{',0.5' * 101}\n")
    text = " ".join(str(inspect_dataset(hm.load_dataset(tmp_path / "log.csv"))).split())
    assert "obs_23, ... 100 in all" in text
    assert "obs_24," not in text
