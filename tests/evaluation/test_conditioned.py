"""What the first rollout was conditioned on over time, and how results look in pictures and notebooks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from untrained import fallen_hoppers, untrained

import himatch as hm
from himatch.errors import HimatchWarning
from himatch.evaluation.conditioned import summary
from himatch.policy import Policy


@pytest.fixture(scope="module")
def data() -> hm.TrajectoryDataset:
    return hm.load_dataset([*fallen_hoppers(range(8)), *fallen_hoppers(range(20, 28), 0.2)], "hopper")


@pytest.fixture(scope="module")
def policy(data: hm.TrajectoryDataset, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return untrained(hm.CDT("x_velocity"), data, tmp_path_factory.mktemp("cdt"), seeds=(0, 5))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)
        yield


def test_mean_and_quantiles_of_histograms_are_numpys() -> None:
    bins, rng = hm.Bins((0.0, -5.0), (10.0, 5.0), 10), np.random.default_rng(0)
    values = rng.uniform((0, -5), (10, 5), size=(41, 2))
    centred = np.stack([bins.centers[d][bins.indices(values)[:, d]] for d in range(2)], axis=1)
    found = summary(bins.histogram(values).reshape(1, -1), bins)[0]
    np.testing.assert_allclose(found[0], centred.mean(axis=0))
    for row, tail in ((1, 0.1), (2, 0.9)):
        np.testing.assert_allclose(found[row], np.quantile(centred, tail, axis=0, method="inverted_cdf"))


def test_a_rollout_remembers_what_it_was_conditioned_on(policy: Policy, data: hm.TrajectoryDataset) -> None:
    """A training episode is inside the support, so z is its own: the distribution of what is left of it."""
    both = policy.match_all([data[3], data[12]], episodes=2)
    for result, wanted in zip(both, (data[3], data[12]), strict=True):
        assert result.conditioned is not None
        steps = len(result.example)
        assert result.conditioned.shape == (steps, 3, 1)
        bins = result.frame.bins
        centred = bins.centers[0][bins.indices(wanted.observations[:, [5]])[:, 0]]
        rest = [centred[min(t, len(centred) - 1) :].mean() for t in range(steps)]
        np.testing.assert_allclose(result.conditioned[:, 0, 0], rest, atol=2e-3)


def test_other_features_and_methods_have_nothing_to_remember(
    policy: Policy, data: hm.TrajectoryDataset, tmp_path: Path
) -> None:
    policy.add_reference(hm.EpisodeReference.of(data, "z_velocity"))
    assert policy.match(data[3], episodes=1, feature="z_velocity").conditioned is None
    other = untrained(hm.BDT(m=2, target_window=4), data, tmp_path / "bdt")
    assert other.match(data[3], episodes=1).conditioned is None


def test_the_picture_shows_the_rollout_over_time(policy: Policy, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    result = policy.match(data[3], episodes=2, conditioning="planned")
    figure = result.plot()
    top, below = figure.axes
    assert below.get_xlabel() == "step"
    _, labels = below.get_legend_handles_labels()
    assert labels[:2] == ["target", "conditioned on (z): mean, 10 to 90 %"]
    assert labels[2].startswith("first rollout")
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert "target" in top.get_legend_handles_labels()[1]
    with Image.open(result.plot(tmp_path / "match.png")) as drawn:
        assert drawn.height > drawn.width


def test_a_return_is_drawn_as_it_is_earned(policy: Policy, data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    """Under ``remaining`` the return-to-go is the target less what was earned before."""
    dt = untrained(hm.DT(), data, tmp_path / "dt")
    result = dt.match("return(20)", episodes=2, conditioning="remaining")
    earned = np.cumsum(result.features[0][0], axis=0, dtype=np.float64)
    assert result.to_go is not None
    assert result.to_go.shape == earned.shape
    inside = slice(0, 3)  # later the support clips it
    np.testing.assert_allclose(result.to_go[inside][1:], 20 - earned[inside][:-1], rtol=1e-3)
    top, below = result.plot().axes
    lines = {line.get_label(): line for line in below.lines}
    steps = len(earned)
    np.testing.assert_allclose(lines[f"first rollout, ended after {steps} of 1000 steps"].get_ydata(), earned[:, 0])
    np.testing.assert_allclose(lines["return-to-go that it was conditioned on"].get_ydata(), result.to_go[:, 0])
    np.testing.assert_allclose(lines["target return"].get_ydata(), 20)
    assert below.get_ylabel() == "sum of reward so far"
    low, high = top.get_xlim()
    assert low <= 0 < 20 <= high
    other = policy.match("return(20)", episodes=1).plot().axes[1]  # a histogram, whose mean is that of every step left
    rest = dict(zip(*reversed(other.get_legend_handles_labels()), strict=True))
    assert rest["return-to-go that it was conditioned on"].get_ydata()[0] > 0


def test_a_goal_is_drawn_with_the_feature_over_time(data: hm.TrajectoryDataset, tmp_path: Path) -> None:
    result = untrained(hm.GoalDT("height"), data, tmp_path).match("goal(1.2)", episodes=2)
    top, below = result.plot().axes
    spread = float(result.spread[0])
    for low, high in (top.get_xlim(), below.get_ylim()):
        assert high - low >= spread
        assert low < 1.2 < high
    lines = {line.get_label(): line for line in below.lines}
    assert {"goal", "conditioned on (z)"} < set(lines)
    assert below.get_ylabel() == "height"
    assert below.get_xlim() == (0, 999)


def test_notebooks_show_tables_and_histograms(policy: Policy, data: hm.TrajectoryDataset) -> None:
    found = policy.evaluate([("logged", data[3]), ("<drawn>", "normal(0.2,0.3)")], episodes=1)
    for html in (found._repr_html_(), found.results[1]._repr_html_()):
        assert "<svg" in html
        assert f"{found.results[1].w1:.3f}" in html
        assert "<drawn>" not in html
    assert "&lt;drawn&gt;" in found._repr_html_()
    assert "<svg" not in policy.match("return(20)", episodes=1)._repr_html_()
