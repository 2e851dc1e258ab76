"""Pictures of arrays alone: no policy, no dataset, no report."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from PIL import Image

import himatch
from himatch.viz.charts import RolloutPicture
from himatch.viz.film import LARGE, SMALL, film, format_of
from himatch.viz.histogram_grid import HistogramPanel, RolloutLine, histogram_grid
from himatch.viz.losses import LossCurve, loss_figure, plot_losses
from himatch.viz.match_plot import EpisodeValues, MatchPicture, StepHistograms, plot_match
from himatch.viz.picture import picture
from himatch.viz.style import BinShares, span

PACKAGE = Path(himatch.__file__).parent
ALLOWED = {"himatch.viz", "himatch._runtime", "himatch.errors", "himatch.types"}
RNG = np.random.default_rng(0)
EDGES = np.linspace(0.0, 5.0, 6)


def shares(count: int = 5) -> np.ndarray:
    drawn = RNG.random(count)
    return drawn / drawn.sum()


def imported(path: Path) -> set[str]:
    """All modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_pictures_know_nothing_but_arrays() -> None:
    for path in (PACKAGE / "viz").glob("*.py"):
        rooms = {".".join(name.split(".")[:2]) for name in imported(path) if name.startswith("himatch")}
        assert rooms <= ALLOWED, path


def test_nothing_else_draws() -> None:
    others = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "viz"]
    assert not [path for path in others if any(name.startswith("matplotlib") for name in imported(path))]


def test_matplotlib_waits_until_something_is_drawn() -> None:
    code = "import sys, himatch.policy, himatch.viz.film, himatch.viz.losses; print('matplotlib' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_matches(tmp_path: Path) -> None:
    histograms = StepHistograms(
        np.stack([EDGES, EDGES]), np.stack([shares(), shares()]), np.array([[shares(), shares()]] * 3)
    )
    shown = MatchPicture("a target" * 20, "W1 0.12", ["x", "y"], (0, 1, 2), histograms)
    with Image.open(plot_match(shown, tmp_path / "steps.png")) as wide:
        assert wide.size == (2 * 676, 442)
    values = EpisodeValues(np.array([3.0]), RNG.normal(3, 1, (1, 4, 1)))
    with Image.open(plot_match(replace(shown, names=["x"], seeds=(4,), values=values), tmp_path / "one.png")) as narrow:
        assert narrow.size == (676, 442)


def test_densities_do_not_depend_on_the_bins() -> None:
    fine = BinShares(np.linspace(0, 5, 11), np.full(10, 0.1))
    np.testing.assert_allclose(fine.density, np.full(10, 0.2))
    np.testing.assert_allclose(BinShares([0.0, 1.0, 5.0], [0.2, 0.8]).density, [0.2, 0.2])


def test_ranges_hold_what_is_filled() -> None:
    assert span([BinShares(EDGES, [0, 0, 1, 0, 0])]) == (1.0, 4.0)
    assert span([BinShares(EDGES, [1, 0, 0, 0, 0]), BinShares(EDGES + 5, [0, 0, 0, 0, 1])]) == (0.0, 10.0)
    assert span([BinShares(EDGES, np.zeros(5))]) == (0.0, 1.0)


@pytest.mark.parametrize(("one_x", "one_y"), [(False, False), (True, False), (True, True)])
def test_small_multiples_share_the_ranges_that_are_compared(one_x: bool, one_y: bool) -> None:
    near, far = BinShares(EDGES, [0, 1, 0, 0, 0]), BinShares(EDGES + 10, [0.5, 0.5, 0, 0, 0])
    grid = [[HistogramPanel(near, [RolloutLine(near)], "0.00"), None], [HistogramPanel(far, []), None]]
    figure = histogram_grid(grid, ["near", "far"], ["DT", "CDT"], "speed", one_x=one_x, one_y=one_y)
    (page,) = figure.axes
    (areas,) = [part for part in page.collections if isinstance(part, PolyCollection)]
    first, second = (path.get_extents() for path in areas.get_paths())
    texts = [text.get_text() for text in page.texts]
    assert [texts.count(text) for text in ("0.00", "near", "far", "DT", "CDT", "speed")] == [1] * 6
    # One range: the far target lies to the right of the near one, and its two bins are half as high.
    assert (second.x0 > first.x1) == one_x
    assert (second.height < 0.6 * first.height) == one_y


def test_the_last_digits_of_a_layout_do_not_change_a_picture() -> None:
    def drawn(more: float) -> str:
        figure = Figure(figsize=(3, 2))
        axis = figure.add_axes((0.1 + more, 0.1, 0.8, 0.8))
        axis.plot([0, 1], [0, 1])
        return picture(figure, "name", "caption").svg

    assert drawn(0) == drawn(1e-12)
    assert "clip-path" in drawn(0)


@pytest.mark.usefixtures("whole_ends")
def test_losses(tmp_path: Path) -> None:
    rows = [{"step": 10.0, "loss": 0.5}, {"step": 20.0, "loss": 0.25, "validation": 0.3}]
    curve, empty = LossCurve.of_rows("seed 0", rows), LossCurve.of_rows("seed 1", [])
    np.testing.assert_array_equal(curve.steps, [10, 20])
    np.testing.assert_array_equal((curve.validation_steps, curve.validation), [[20], [0.3]])
    assert plot_losses([empty], "nothing", tmp_path / "loss.png") is None
    with Image.open(plot_losses([curve, empty], "run", tmp_path / "loss.png") or "") as drawn:
        assert drawn.size == (832, 494)
    assert loss_figure([curve]).axes[0].get_yscale() == "log"
    below = LossCurve.of_rows("log-likelihood", [{"step": 10.0, "loss": -0.5}])
    assert loss_figure([curve, below]).axes[0].get_yscale() == "linear"


def test_pictures_of_a_page_take_its_ink() -> None:
    shown = picture(loss_figure([LossCurve.of_rows("x", [{"step": 1.0, "loss": 1.0}])]), "curves", "Losses.")
    assert "currentColor" in shown.svg
    assert "#010203" not in shown.svg
    assert shown.png.startswith(b"\x89PNG")


def test_a_film_needs_frames_and_arrays_only(tmp_path: Path) -> None:
    rollout = np.linspace(0.5, 4.5, 30)[:, None]
    drawn = RolloutPicture(
        title="normal(2,1)",
        heading="robot",
        matches="distribution",
        feature="speed",
        names=["speed"],
        target=rollout,
        target_steps=30,
        rollout=rollout,
        edges=EDGES[None],
        target_bins=rollout.astype(int),
        rollout_bins=rollout.astype(int),
        terminated=False,
        distance=lambda steps: 1.0 / steps,
    )
    assert format_of(Path("a.mp4")) is LARGE
    steps = SMALL.steps(len(rollout), 0.04)
    assert steps == [*range(0, 29, 2), 29]
    robots = ((step, np.full((270, 340, 3), 9 * step % 255, np.uint8)) for step in steps)
    with Image.open(film(tmp_path / "a.gif", drawn, robots, 0.04, len(steps))) as moving:
        assert moving.n_frames == len(steps)  # type: ignore[attr-defined]
        assert moving.size == (640, 270)
