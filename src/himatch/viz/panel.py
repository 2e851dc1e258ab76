"""The half of a video that shows numbers: charts, and tiles with the distance so far, the present value and the time.

The figure is drawn once; for every picture only what moves is drawn over it.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from himatch.evaluation.result import MatchResult, w1
from himatch.viz.charts import INK, Chart, make_charts
from himatch.viz.match_plot import ROLLOUT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

QUIET = "#6b7280"
STYLE: dict[Any, Any] = {
    **{"text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": "#848d97", "axes.linewidth": 0.8},
    **{"xtick.color": "#848d97", "ytick.color": "#848d97", "xtick.labelcolor": INK, "ytick.labelcolor": INK},
    **{"font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 8.5},
    **{"axes.labelsize": 8.5, "xtick.labelsize": 7.5, "ytick.labelsize": 7.5},
    **{"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 8.5},
}
OFTEN = 50  # times that W1 is worked out in several dimensions, where it takes long


class Panel:
    """Target, rollout so far and numbers, as pictures of ``(width, height)`` pixels.

    Parameters
    ----------
    result
        What is shown of it is the first rollout.
    dt
        Seconds that a step takes.
    size, dpi
        Pixels, and how many of them are an inch of text.
    """

    def __init__(self, result: MatchResult, dt: float, size: tuple[int, int], dpi: int) -> None:
        self._result, self._phi, self._dt = result, result.features[0][0], dt
        self._steps = len(self._phi)
        self._w1: tuple[int, float] | None = None
        width, height = size
        with mpl.rc_context(STYLE):
            self._figure = Figure(figsize=(width / dpi, height / dpi), dpi=dpi, facecolor="white")
            self._canvas = cast(Any, FigureCanvasAgg(self._figure))  # its methods have no types
            self._charts = self._arrange()
            self._tiles = self._numbers()
            self._moving = [artist for chart in self._charts for artist in chart.moving] + list(self._tiles)
            for artist in self._moving:
                artist.set_animated(True)
            self._canvas.draw()
        self._still = self._canvas.copy_from_bbox(self._figure.bbox)

    def draw(self, step: int) -> NDArray[np.uint8]:
        """The panel when steps 0 to ``step`` have been played, ``(height, width, 3)``."""
        self._canvas.restore_region(self._still)
        for chart in self._charts:
            chart.show(step)
        over = step == self._steps - 1 and self._result.example.terminated
        texts = (*self._texts(step), "ended after" if over else "time")
        for tile, text in zip(self._tiles, texts, strict=True):
            tile.set_text(text)
        for artist in self._moving:
            self._figure.draw_artist(artist)
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()

    # -- what stands where -------------------------------------------------------------------------------------------

    def _arrange(self) -> list[Chart]:
        """Heading, charts and their legend; text keeps its size, so that heights come in inches."""
        figure, (width, height) = self._figure, self._figure.get_size_inches()
        lines = _lines(self._result.target.name, int(9.8 * width))
        top = 1 - 0.14 / height
        figure.text(0.06, top, "\n".join(lines), va="top", fontsize=10.5, fontweight="bold", linespacing=1.15)
        below = top - (0.19 * len(lines) + 0.03) / height
        figure.text(0.06, below, self._heading(), va="top", fontsize=8, color=QUIET)
        axes = self._axes(below - 0.47 / height, 1.12 / height)
        charts = make_charts(axes, self._result, self._phi, self._dt)
        handles, labels = axes[0].get_legend_handles_labels()
        corner = (0.045, below - 0.16 / height)
        figure.legend(handles, labels, loc="upper left", bbox_to_anchor=corner, ncols=2, handlelength=1.4)
        return charts

    def _axes(self, top: float, bottom: float) -> list[Axes]:
        """One pair, or of a feature with many dimensions one for each of the first four."""
        dimensions = self._result.frame.bins.dimensions
        distribution = self._result.target.matches == "distribution"
        count = 1 if distribution and dimensions == 2 else min(dimensions, 4)
        left = 0.06 if distribution and dimensions != 2 else 0.16
        rows, columns = -(-count // 2), min(count, 2)
        grid = self._figure.add_gridspec(
            rows, columns, left=left, right=0.955, bottom=bottom, top=top, hspace=0.9, wspace=0.3
        )
        return [self._figure.add_subplot(grid[i // columns, i % columns]) for i in range(count)]

    def _heading(self) -> str:
        result = self._result
        task = "" if result.replay is None else f"{result.replay.task.name}, "
        seed = "" if len(result.seeds) == 1 else f" of seed {result.seeds[0]}"
        return f"{task}rollout 1 of {result.returns.shape[1]}{seed}, {result.conditioning} conditioning"

    def _numbers(self) -> tuple[Text, ...]:
        """Labels, and numbers below them that move; the label of the time moves too."""
        figure, height = self._figure, self._figure.get_size_inches()[1]
        places, labels = (0.06, 0.38, 0.70), self._labels()
        named = [
            figure.text(place, 0.45 / height, label, va="bottom", fontsize=8, color=QUIET)
            for place, label in zip(places, labels, strict=True)
        ]
        numbers = [
            figure.text(place, 0.39 / height, "", va="top", fontsize=15, fontweight="bold", color=color)
            for place, color in zip(places, (ROLLOUT, INK, INK), strict=True)
        ]
        return (*numbers, named[-1])

    # -- numbers -----------------------------------------------------------------------------------------------------

    def _labels(self) -> tuple[str, str, str]:
        matches, several = self._result.target.matches, self._phi.shape[1] > 1
        what = self._result.frame.feature.name.replace("_", " ")
        if matches == "return":
            return ("earned so far", "asked for", "time")
        now = what if not several else "step"
        return ("W\N{SUBSCRIPT ONE} so far", now, "time") if matches == "distribution" else (what, "goal", "time")

    def _texts(self, step: int) -> tuple[str, str, str]:
        result, phi = self._result, self._phi
        time = f"{self._dt * (step + 1):.1f} s"
        if result.target.matches == "return":
            earned, asked = phi[: step + 1].sum(axis=0, dtype=np.float64), result.values.sum(axis=0, dtype=np.float64)
            return _text(earned, asked), _text(asked, asked), time
        span = result.frame.bins.widths * result.frame.bins.count
        if result.target.matches == "goal":
            return _text(phi[step], span), _text(result.values[-1], span), time
        now = _text(phi[step], span) if phi.shape[1] == 1 else f"{step + 1}"
        return f"{self._distance(step):.2f}", now, time

    def _distance(self, step: int) -> float:
        """W1 of the steps so far, worked out anew at every step in one dimension and now and then in several."""
        several = self._phi.shape[1] > 1
        due = self._w1 is None or not several or step == self._steps - 1
        if not due and self._w1 is not None:
            due = not 0 <= step - self._w1[0] < self._steps / OFTEN
        if due:
            self._w1 = step, w1(self._phi[: step + 1], self._result.values, self._result.frame)
        assert self._w1 is not None
        return self._w1[1]


def _lines(name: str, width: int) -> list[str]:
    """A target's name on one line or two; sums are broken at their signs."""
    lines = wrap(name.replace("+", " + "), width)
    return lines if len(lines) <= 2 else [lines[0], lines[1][: width - 4] + " ..."]


def _text(values: NDArray[np.floating], span: NDArray[np.floating]) -> str:
    """One or two numbers, with the digits that count for what ranges over ``span``."""
    exponents = np.floor(np.log10(np.maximum(np.abs(span), 1e-6)))
    places = [int(2 + max(0, -e) if e < 2 else max(0, 3 - e)) for e in exponents]
    # Adding zero turns a negative one into a plain one.
    text = ", ".join(f"{round(float(v), p) + 0.0:,.{p}f}" for v, p in zip(values[:2], places, strict=False))
    return text.replace("-", "\N{MINUS SIGN}")  # as matplotlib writes it below the axes
