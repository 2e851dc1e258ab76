"""The one style: colours, sizes of text, and the few marks that all pictures share.

Pictures appear in three places: in a file of their own, in the panel of a video, on a page. They differ in ink and in
the size of their text only. matplotlib is slow to import, so it is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from himatch._runtime.files import new_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

TARGET, ROLLOUT = "#9aa0a6", "#1a73e8"
INK, FAINT, DARK = "#202124", "#6b7280", "#5f6368"
PAGE_INK = "#010203"  # black on paper; in an SVG this very value becomes currentColor: dark pages get light text
AXIS = "#848d97"  # seen on white and on black
# Okabe-Ito's colours: distinct to colour-blind readers and in print.
GREEN, ORANGE, RED = "#009E73", "#E69F00", "#D55E00"
SERIES = (ROLLOUT, ORANGE, GREEN, "#CC79A7", RED, "#56B4E9")
"""Methods in overlays, in an order that sets neighbours apart."""
GROUPS = {"best": GREEN, "middle": ORANGE, "worst": RED, "all": "#999999"}
"""Episodes by return."""
DPI = 130  # of picture files
DASHES = (0, (4, 3))

Rc = Mapping[Any, Any]
FILE: Rc = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
_GREY_AXES: Rc = {
    **{"axes.edgecolor": AXIS, "xtick.color": AXIS, "ytick.color": AXIS},
    **{"font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"]},
}


def _inked(ink: str) -> Rc:
    inked = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
    return dict.fromkeys(inked, ink)


PANEL: Rc = {
    **FILE,
    **_GREY_AXES,
    **_inked(INK),
    **{"font.size": 8.5, "axes.labelsize": 8.5, "legend.fontsize": 8.5, "xtick.labelsize": 7.5, "ytick.labelsize": 7.5},
    **{"axes.linewidth": 0.8},
}
PAGE: Rc = {
    **FILE,
    **_GREY_AXES,
    **_inked(PAGE_INK),
    **{"axes.titlecolor": PAGE_INK, "legend.labelcolor": PAGE_INK},
    **{"font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 8},
    **{"xtick.labelsize": 7, "ytick.labelsize": 7, "axes.linewidth": 0.7},
    **{"xtick.major.width": 0.7, "ytick.major.width": 0.7, "xtick.major.size": 2.5, "ytick.major.size": 2.5},
    **{"svg.fonttype": "none", "path.simplify": True},
}


@dataclass(frozen=True)
class BinShares:
    """A one-dimensional histogram: edges ``(n + 1,)`` and the share of every bin ``(n,)``."""

    edges: ArrayLike
    shares: ArrayLike

    @property
    def density(self) -> NDArray[np.float64]:
        """Shares by bin width, so that panels of different bin widths compare."""
        density: NDArray[np.float64] = np.divide(self.shares, np.diff(np.asarray(self.edges, dtype=np.float64)))
        return density


@contextmanager
def style(rc: Rc) -> Iterator[None]:
    """Whatever is drawn inside has the style of a ``FILE``, a ``PANEL`` or a ``PAGE``."""
    import matplotlib as mpl

    with mpl.rc_context(dict(rc)):
        yield


def blank(width: float, height: float) -> Figure:
    """A figure of that many inches, whose parts make room for one another."""
    from matplotlib.figure import Figure  # no pyplot, so no display and no global state

    return Figure(figsize=(width, height), layout="constrained")


def notebook_figure(width: float, height: float) -> Figure:
    """The same, and a notebook shows it: figures that pyplot did not make have no picture of their own there."""
    figure = blank(width, height)
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def _png(figure: Figure) -> bytes:
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=DPI)
    return stream.getvalue()


def save(figure: Figure, path: Path) -> Path:
    """Write a picture file, whole or not at all."""
    with new_file(path) as partial:
        figure.savefig(partial, dpi=DPI)
    return path


def target_area(
    axis: Axes, target: BinShares, *, color: str = TARGET, alpha: float = 0.55, label: str = "target"
) -> None:
    """A target as a grey area."""
    axis.stairs(target.density, target.edges, fill=True, color=color, alpha=alpha, lw=0, label=label)


def rollout_line(
    axis: Axes, rollouts: BinShares, *, color: str = ROLLOUT, width: float = 1.3, label: str = "rollouts"
) -> None:
    """Rollouts as a line over it."""
    axis.stairs(rollouts.density, rollouts.edges, color=color, lw=width, label=label)


def feature_axis_only(axis: Axes) -> None:
    """What small panels of densities have: the feature's axis and no other."""
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.locator_params(axis="x", nbins=4)


def legend_above(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend above all panels, each label once."""
    known = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    columns = min(len(known), max(1, int(figure.get_size_inches()[0] / 1.4)))
    figure.legend(known.values(), known.keys(), loc="outside upper center", ncols=columns, handletextpad=0.5)


def ramp(color: str, most: float = 1.0) -> Colormap:
    """From nothing to the colour: empty cells of a map show what lies below, white or black."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    return LinearSegmentedColormap.from_list("ramp", [(*to_rgb(color), alpha) for alpha in (0.0, most)])


def span(histograms: Iterable[BinShares]) -> tuple[float, float]:
    """Range that holds nearly everything of some histograms: panels are too small to waste width."""
    low, high = np.inf, -np.inf
    for drawn in histograms:
        edges, shares = np.asarray(drawn.edges), np.asarray(drawn.shares)
        filled = np.flatnonzero(shares > 2e-3)
        if len(filled):
            low, high = min(low, edges[max(filled[0] - 1, 0)]), max(high, edges[min(filled[-1] + 2, len(shares))])
    return (float(low), float(high)) if low < high else (0.0, 1.0)
