"""Target and rollouts over one another, as small multiples on a page.

All panels are drawn into one axes, in inches from its corner: matplotlib takes tens of milliseconds for axes of their
own, and a page has a thousand panels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from himatch.viz.style import AXIS, DASHES, PAGE, ROLLOUT, TARGET, BinShares, blank, span, style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (1.5, 0.72)  # inches
GAP = (0.14, 0.1)
LETTER, LINE = 0.062, 0.135  # inches that a letter of the page's text takes, and a line of it
TICKS = 0.17  # below a panel that shows the numbers of its axis
BELOW_REMARK = 0.82  # of a panel's height
ROOM = 1.22  # for the remark, above the highest bin


@dataclass(frozen=True)
class RolloutLine:
    """The rollouts of one method."""

    rollouts: BinShares
    label: str = "rollouts"
    color: str = ROLLOUT


@dataclass(frozen=True)
class HistogramPanel:
    """A target, rollouts over it, a remark in the corner, and dashed lines at some ``levels`` in their colours."""

    target: BinShares
    lines: Sequence[RolloutLine]
    remark: str = ""
    levels: Sequence[tuple[float, str]] = ()

    @property
    def drawn(self) -> list[BinShares]:
        """All histograms of the panel."""
        return [self.target, *(line.rollouts for line in self.lines)]


@dataclass(frozen=True)
class PanelPlace:
    """Where a panel lies on the page, and the range that it shows."""

    left: float
    bottom: float
    size: tuple[float, float]
    bounds: tuple[float, float]
    top: float

    def x(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the feature as inches."""
        low, high = self.bounds
        part: NDArray[np.float64] = np.clip((values - low) / (high - low), 0.0, 1.0)
        return self.left + self.size[0] * part

    def y(self, densities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Densities as inches."""
        return self.bottom + self.size[1] * densities / self.top

    def outline(self, shares: BinShares) -> NDArray[np.float64]:
        """The corners of a histogram, from the foot of its first bin to that of its last."""
        edges, density = np.asarray(shares.edges, dtype=np.float64), shares.density
        heights = np.concatenate(([0.0], np.repeat(density, 2), [0.0]))
        return np.column_stack((self.x(np.repeat(edges, 2)), self.y(heights)))


def histogram_grid(
    grid: Sequence[Sequence[HistogramPanel | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    feature: str,
    *,
    one_x: bool = False,
    one_y: bool = False,
    legend: bool = False,
    panel: tuple[float, float] = PANEL,
) -> Figure:
    """Panels with titles above the columns and names beside the rows; holes stay empty.

    The panels of a row are compared and share their ranges; with ``one_x`` and ``one_y`` all panels do.
    """
    from matplotlib.collections import LineCollection

    named = _named(grid) if legend else {}
    places, (width, height), beside = _places(grid, rows, columns, panel, one_x, one_y, len(named))
    with style(PAGE):
        figure = blank(width, height)
        figure.set_layout_engine("none")  # everything has its place
        page = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, width), ylim=(0, height))
        page.axis("off")
        _histograms(page, grid, places)
        axes = [
            part for line in places for at in line for part in _axis(page, at, numbered=not one_x or line is places[-1])
        ]
        page.add_collection(LineCollection(axes, colors=AXIS, linewidths=0.7), autolim=False)
        for shown, line in zip(grid, places, strict=True):
            for each, place in zip(shown, line, strict=True):
                if each is not None and each.remark:
                    right, up = place.left + place.size[0], place.bottom + place.size[1]
                    page.text(right, up, each.remark, ha="right", va="top", fontsize=7)
        for name, line in zip(rows, places, strict=True):
            page.text(beside - GAP[0], line[0].bottom + panel[1] / 2, name, ha="right", va="center", linespacing=1.15)
        for title, place in zip(columns, places[0], strict=True):
            up = place.bottom + panel[1] + 0.06
            page.text(place.left + panel[0] / 2, up, title, ha="center", va="bottom", linespacing=1.15)
        page.text((beside + width) / 2, 0.04, feature, ha="center", va="bottom")
        if named:
            handles: list[Artist] = [page.plot([], [], color=color, lw=1.3)[0] for color in named.values()]
            handles.append(page.fill_between([], [], color=TARGET, alpha=0.55, lw=0))
            page.legend(handles, [*named, "target"], loc="upper center", ncols=3, handletextpad=0.5, borderaxespad=0.2)
    return figure


def _places(
    grid: Sequence[Sequence[HistogramPanel | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    panel: tuple[float, float],
    one_x: bool,
    one_y: bool,
    named: int,
) -> tuple[list[list[PanelPlace]], tuple[float, float], float]:
    """Of every panel, the size of the page, and where the panels begin."""
    everything = [shown for panels in grid for shown in panels]
    beside = 2 * GAP[0] + LETTER * max(len(line) for name in rows for line in name.splitlines() or [""])
    above = 0.12 + LINE * max(title.count("\n") + 1 for title in columns)
    above += 0.08 + 0.17 * -(-(named + 1) // 3) if named else 0.0
    step = panel[0] + GAP[0], panel[1] + GAP[1] + (0.0 if one_x else TICKS)
    below = 0.08 + LINE + TICKS
    width = beside + step[0] * len(columns) + 0.06
    height = above + step[1] * len(rows) + below - (0.0 if one_x else TICKS)
    places = []
    for i, panels in enumerate(grid):
        bounds = span(_drawn(everything if one_x else panels))
        tops = [float(shares.density.max()) for shares in _drawn(everything if one_y else panels)]
        bottom, top = height - above - panel[1] - step[1] * i, ROOM * (max(tops, default=0.0) or 1.0)
        places.append([PanelPlace(beside + step[0] * j, bottom, panel, bounds, top) for j in range(len(panels))])
    return places, (width, height), beside


def _histograms(
    page: Axes, grid: Sequence[Sequence[HistogramPanel | None]], places: Sequence[Sequence[PanelPlace]]
) -> None:
    """Targets as grey areas, rollouts as lines over them, levels: each kind at once."""
    from matplotlib.collections import LineCollection, PolyCollection

    areas, lines, levels = [], defaultdict(list), defaultdict(list)
    for shown, line in zip(grid, places, strict=True):
        for panel, place in zip(shown, line, strict=True):
            if panel is None:
                continue
            areas.append(place.outline(panel.target))
            for rolled in panel.lines:
                lines[rolled.color].append(place.outline(rolled.rollouts))
            for level, color in panel.levels:
                x = float(place.x(np.array([level]))[0])
                levels[color].append(np.array([(x, place.bottom), (x, place.bottom + BELOW_REMARK * place.size[1])]))
    page.add_collection(PolyCollection(areas, facecolors=TARGET, alpha=0.55, linewidths=0), autolim=False)
    for color, segments in lines.items():
        page.add_collection(LineCollection(segments, colors=color, linewidths=1.2), autolim=False)
    for color, segments in levels.items():
        page.add_collection(LineCollection(segments, colors=color, linewidths=0.9, linestyles=[DASHES]), autolim=False)


def _axis(page: Axes, place: PanelPlace, *, numbered: bool) -> list[NDArray[np.float64]]:
    """The line that a panel stands on and its ticks, to be drawn; a few numbers below."""
    from matplotlib.ticker import MaxNLocator

    low, high = place.bounds
    ticks = np.array([tick for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high])
    decimals = max((len(f"{tick:.6g}".partition(".")[2]) for tick in ticks), default=0)
    foot = np.array([(place.left, place.bottom), (place.left + place.size[0], place.bottom)])
    marks = [np.array([(x, place.bottom), (x, place.bottom - 0.03)]) for x in place.x(ticks)]
    if numbered:
        for tick, x in zip(ticks, place.x(ticks), strict=True):
            text = f"{tick:.{decimals}f}".replace("-", "\N{MINUS SIGN}")
            page.text(x, place.bottom - 0.045, text, ha="center", va="top", fontsize=7)
    return [foot, *marks]


def _named(grid: Sequence[Sequence[HistogramPanel | None]]) -> dict[str, str]:
    """The colour of every label, each once."""
    return {line.label: line.color for panels in grid for panel in panels if panel is not None for line in panel.lines}


def _drawn(panels: Sequence[HistogramPanel | None]) -> list[BinShares]:
    return [shares for panel in panels if panel is not None for shares in panel.drawn]
