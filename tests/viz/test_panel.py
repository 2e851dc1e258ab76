"""The half of a video that shows numbers: counts are NumPy's, moving parts are drawn as the whole figure would be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filming import hopping

import himatch as hm
from himatch.errors import HimatchWarning
from himatch.evaluation.result import MatchResult
from himatch.policy import Policy
from himatch.viz.charts import CourseChart, HistogramChart, MapChart
from himatch.viz.film import LARGE, SMALL
from himatch.viz.panel import Panel, _lines, _text


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return hopping(tmp_path_factory.mktemp("cdt"))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """So little data covers no target."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)
        yield


@pytest.fixture
def result(policy: Policy) -> MatchResult:
    return policy.match("0.5*normal(0.2,0.1) + 0.5*normal(0.6,0.1)", episodes=2)


def panel_of(result: MatchResult) -> Panel:
    return Panel(result.rollout_picture, 0.008, LARGE.panel, LARGE.dpi)


def texts(panel: Panel, step: int) -> list[str]:
    panel.draw(step)
    return [tile.get_text() for tile in panel._tiles]


@pytest.mark.parametrize(
    "target", ["0.5*normal(0.2,0.1) + 0.5*normal(0.6,0.1)", np.linspace(0.0, 0.8, 30), np.linspace(0.0, 0.8, 5000)]
)
def test_counts_grow_into_the_rollouts_histogram(target: Any, policy: Policy) -> None:
    """A whole rollout has the steps of the target, however many samples it is compared with."""
    result = policy.match(target, episodes=2)
    panel, phi = panel_of(result), result.features[0][0][:, 0]
    (chart,) = panel._charts
    assert isinstance(chart, HistogramChart)
    bins = result.frame.bins
    for step in (0, 4, len(phi) - 1):
        panel.draw(step)
        drawn = chart._line.get_data().values * bins.widths[0]
        inside = np.clip(phi[: step + 1].astype(np.float64), bins.low[0], bins.high[0])
        counts, _ = np.histogram(inside, bins.edges[0])
        np.testing.assert_allclose(drawn, counts / result.frame.horizon, atol=1e-12)
        assert chart._dot.get_xdata()[0] == pytest.approx(np.clip(phi[step], *chart._range))  # type: ignore[index]


def test_the_number_is_w1_of_the_steps_so_far(policy: Policy) -> None:
    result = policy.match("normal(0.3,0.1)", episodes=1)
    panel, phi = panel_of(result), result.features[0][0]
    assert texts(panel, len(phi) - 1)[0] == f"{result.w1:.2f}"
    half = replace(result, features=((phi[: len(phi) // 2],),))
    assert texts(panel, len(phi) // 2 - 1)[0] == f"{half.w1:.2f}"
    assert texts(panel, 0)[1:3] == [f"{phi[0, 0]:.2f}".replace("-", "\N{MINUS SIGN}"), "0.0 s"]
    assert result.example.terminated
    assert [texts(panel, step)[3] for step in (0, len(phi) - 1)] == ["time", "ended after"]
    alive = panel_of(replace(result, example=replace(result.example, terminated=False)))
    assert texts(alive, len(phi) - 1)[3] == "time"


@pytest.mark.parametrize("form", [LARGE, SMALL])
def test_what_moves_is_drawn_as_the_whole_figure_would_be(result: MatchResult, form: Any) -> None:
    panel = Panel(result.rollout_picture, 0.008, form.panel, form.dpi)
    first, later = panel.draw(3), panel.draw(len(result.example) - 1)
    assert first.shape == (form.panel[1], form.panel[0], 3)
    np.testing.assert_array_equal(panel.draw(3), first)  # nothing of the later picture is left
    assert (first != later).any(axis=2).sum() > 500
    whole = Panel(result.rollout_picture, 0.008, form.panel, form.dpi)
    whole.draw(3)
    for artist in whole._moving:
        artist.set_animated(False)
    whole._canvas.draw()
    whole_figure = np.asarray(whole._canvas.buffer_rgba())[..., :3].astype(int)
    # The order in which overlapping edges are drawn shows in a few pixels.
    assert (np.abs(whole_figure - first).max(axis=2) > 60).mean() < 2e-3


def test_two_dimensions_are_a_map(tmp_path: Path) -> None:
    policy = hopping(tmp_path, hm.CDT("x_velocity,z_velocity"))
    result = policy.match("joint(normal(0.3,0.1), normal(0,0.1))", episodes=1)
    panel, phi = panel_of(result), result.features[0][0]
    (chart,) = panel._charts
    assert isinstance(chart, MapChart)
    panel.draw(6)
    np.testing.assert_allclose(np.transpose(chart._past.get_data()), phi[:7])
    np.testing.assert_allclose(np.ravel(chart._now.get_data()), phi[6])
    assert texts(panel, len(phi) - 1)[0] == f"{result.w1:.2f}"


def test_more_dimensions_are_several_charts(tmp_path: Path) -> None:
    for feature, count in (("x_velocity,z_velocity,height", 3), ("state", 4)):
        policy = hopping(tmp_path / feature[:5], hm.CDT(feature))
        panel = panel_of(policy.match(hm.demo(policy_demo(policy)), episodes=1))
        assert len(panel._charts) == count
        assert panel.draw(5).shape == (*LARGE.panel[::-1], 3)


def policy_demo(policy: Policy) -> hm.Trajectory:
    return policy.match(np.zeros((40, policy.reference().frame.bins.dimensions)), episodes=1).example


def test_a_return_is_what_was_earned_against_the_target(tmp_path: Path) -> None:
    result = hopping(tmp_path, hm.DT()).match("return(1500)", episodes=1)
    panel, rewards = panel_of(result), result.example.rewards
    assert rewards is not None
    (chart,) = panel._charts
    assert isinstance(chart, CourseChart)
    last = len(rewards) - 1
    assert texts(panel, last)[:2] == [f"{rewards.sum(dtype=np.float64):,.0f}", "1,500"]
    np.testing.assert_allclose(chart._line.get_ydata(), np.cumsum(rewards, dtype=np.float64))
    assert len(np.asarray((texts(panel, 4), chart._line.get_xdata())[1])) == 5


def test_a_goal_is_the_value_against_the_goal(tmp_path: Path) -> None:
    result = hopping(tmp_path, hm.GoalDT("height")).match("goal(1.2)", episodes=1)
    panel, phi = panel_of(result), result.features[0][0][:, 0]
    (chart,) = panel._charts
    assert isinstance(chart, CourseChart)
    assert float(texts(panel, 4)[0]) == pytest.approx(phi[4], abs=0.01)
    np.testing.assert_allclose(chart._line.get_ydata(), phi[:5])


def test_numbers_have_the_digits_that_count() -> None:
    for value, span, text in (
        (-0.001, 12.0, "0.00"),
        (-2.5, 12.0, "\N{MINUS SIGN}2.50"),
        (0.12345, 0.05, "0.1235"),
        (6543.21, 5000.0, "6,543"),
        (543.21, 500.0, "543.2"),
    ):
        assert _text(np.array([value]), np.array([span])) == text


def test_long_names_take_two_lines() -> None:
    assert _lines("normal(5,1)", 30) == ["normal(5,1)"]
    assert _lines("0.5*normal(4,1)+0.5*normal(11,1)", 24) == ["0.5*normal(4,1) +", "0.5*normal(11,1)"]
    three = _lines("+".join(["0.2*normal(4,1)"] * 5), 30)
    assert len(three) == 2
    assert three[1].endswith(" ...")
    assert max(map(len, three)) <= 30
