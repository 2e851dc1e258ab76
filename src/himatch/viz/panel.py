"""The half of a video that shows numbers: charts, and tiles with the distance so far, the present value and the time.

The figure is drawn once; for every picture only what moves is drawn over it.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from himatch.viz.charts import Chart, RolloutPicture, make_charts
from himatch.viz.style import FAINT, INK, PANEL, ROLLOUT, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

OFTEN = 50  # times that W1 is computed in several dimensions, where it takes long


class Panel:
    """Target, rollout so far and numbers, as pictures of ``(width, height)`` pixels.

    Parameters
    ----------
    picture
        The rollout and its target.
    dt
        Seconds that a step takes.
    size, dpi
        Pixels, and how many of them are an inch of text.
    """

    def __init__(self, picture: RolloutPicture, dt: float, size: tuple[int, int], dpi: int) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._picture, self._dt = picture, dt
        self._steps = len(picture.rollout)
        self._w1: tuple[int, float] | None = None
        width, height = size
        with style(PANEL):
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
        over = step == self._steps - 1 and self._picture.terminated
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
        lines = _lines(self._picture.title, int(9.8 * width))
        top = 1 - 0.14 / height
        figure.text(0.06, top, "\n".join(lines), va="top", fontsize=10.5, fontweight="bold", linespacing=1.15)
        below = top - (0.19 * len(lines) + 0.03) / height
        figure.text(0.06, below, self._picture.heading, va="top", fontsize=8, color=FAINT)
        axes = self._axes(below - 0.47 / height, 1.12 / height)
        charts = make_charts(axes, self._picture, self._dt)
        handles, labels = axes[0].get_legend_handles_labels()
        corner = (0.045, below - 0.16 / height)
        figure.legend(handles, labels, loc="upper left", bbox_to_anchor=corner, ncols=2, handlelength=1.4)
        return charts

    def _axes(self, top: float, bottom: float) -> list[Axes]:
        """One pair, or of a feature with many dimensions one for each of the first four."""
        picture = self._picture
        count = 1 if picture.is_map else min(picture.dimensions, 4)
        left = 0.06 if picture.matches == "distribution" and not picture.is_map else 0.16
        rows, columns = -(-count // 2), min(count, 2)
        grid = self._figure.add_gridspec(
            rows, columns, left=left, right=0.955, bottom=bottom, top=top, hspace=0.9, wspace=0.3
        )
        return [self._figure.add_subplot(grid[i // columns, i % columns]) for i in range(count)]

    def _numbers(self) -> tuple[Text, ...]:
        """Labels, and numbers below them that move; the label of the time moves too."""
        figure, height = self._figure, self._figure.get_size_inches()[1]
        places, labels = (0.06, 0.38, 0.70), self._labels()
        named = [
            figure.text(place, 0.45 / height, label, va="bottom", fontsize=8, color=FAINT)
            for place, label in zip(places, labels, strict=True)
        ]
        numbers = [
            figure.text(place, 0.39 / height, "", va="top", fontsize=15, fontweight="bold", color=color)
            for place, color in zip(places, (ROLLOUT, INK, INK), strict=True)
        ]
        return (*numbers, named[-1])

    # -- numbers -----------------------------------------------------------------------------------------------------

    def _labels(self) -> tuple[str, str, str]:
        picture = self._picture
        if picture.matches == "return":
            return ("earned so far", "target", "time")
        if picture.matches == "goal":
            return (picture.feature, "goal", "time")
        if picture.dimensions > 1:
            return ("W\N{SUBSCRIPT ONE} so far, in spreads", "step", "time")
        return ("W\N{SUBSCRIPT ONE} so far", picture.feature, "time")

    def _texts(self, step: int) -> tuple[str, str, str]:
        picture = self._picture
        now, time = picture.rollout[step], f"{self._dt * (step + 1):.1f} s"
        if picture.matches == "return":
            earned = picture.rollout[: step + 1].sum(axis=0, dtype=np.float64)
            target = picture.target.sum(axis=0, dtype=np.float64)
            return _text(earned, target), _text(target, target), time
        span = picture.edges[:, -1] - picture.edges[:, 0]
        if picture.matches == "goal":
            return _text(now, span), _text(picture.target[-1], span), time
        return f"{self._distance(step):.2f}", _text(now, span) if picture.dimensions == 1 else f"{step + 1}", time

    def _distance(self, step: int) -> float:
        """W1 of the steps so far, computed at every step in one dimension and now and then in several."""
        due = self._w1 is None or self._picture.dimensions == 1 or step == self._steps - 1
        if not due and self._w1 is not None:
            due = not 0 <= step - self._w1[0] < self._steps / OFTEN
        if due:
            self._w1 = step, self._picture.distance(step + 1)
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
