from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import himatch as hm
from himatch.errors import HimatchError
from himatch.inspection import inspect_dataset, plot_report, show_report
from himatch.inspection.table import sparkline


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


def test_a_constant_feature_is_remarked_upon() -> None:
    data = hm.load_dataset({"observations": np.ones((6, 1)), "actions": np.zeros((6, 1)), "lengths": [6]})
    assert any("constant" in warning for warning in inspect_dataset(data).warnings)


def test_sparklines_show_small_bins() -> None:
    assert sparkline([0.0, 0.001, 0.5, 1.0]) == " ▁▄█"
