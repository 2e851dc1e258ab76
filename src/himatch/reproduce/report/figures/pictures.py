"""How pictures look, and their two forms: SVG that takes the page's own ink, and a small PNG file."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

from himatch.viz.match_plot import ROLLOUT, TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"  # black on paper; in the SVG this very value becomes currentColor, so that dark pages get light text
AXIS = "#848d97"  # seen on white and on black
# Methods in overlays: the project's blue, then Okabe-Ito's, in an order that neighbours are told apart.
COLORS = (ROLLOUT, "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
DPI = 150
STYLE: dict[Any, Any] = {
    **{"text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK, "legend.labelcolor": INK},
    **{"axes.edgecolor": AXIS, "xtick.color": AXIS, "ytick.color": AXIS},
    **{"xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.linewidth": 0.7},
    **{"xtick.major.width": 0.7, "ytick.major.width": 0.7, "xtick.major.size": 2.5, "ytick.major.size": 2.5},
    **{"font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 8},
    **{"axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7},
    **{"legend.frameon": False, "legend.fontsize": 8, "axes.spines.top": False, "axes.spines.right": False},
    **{"svg.fonttype": "none", "path.simplify": True, "figure.constrained_layout.use": True},
}
# What matplotlib writes for stand-alone files. Pictures share a page: plain ids would meet there, salted ones (clips,
# markers) get the picture's name in front; fonts are the page's.
_CLEANING = (
    (r"<metadata>.*?</metadata>|<defs>\s*<style.*?</defs>|<!--.*?-->", ""),
    (r' (?:xmlns(?::\w+)?|version)="[^"]*"', ""),
    (r' (?:width|height)="[\d.]+pt"', ""),
    (r' id="[A-Za-z0-9.]+_\d+"', ""),
    (r"xlink:href", "href"),
    (r"font-family: [^;\"]*;? ?", ""),
    (r' transform="rotate\(-?0 [^"]*"', ""),
    (r"\s*\n\s*", " "),
    (r"> <", "><"),
)


@dataclass(frozen=True)
class Picture:
    """A figure of the report."""

    name: str
    caption: str
    svg: str
    png: bytes


@contextmanager
def style() -> Iterator[None]:
    """Everything that is drawn inside looks like the report."""
    with mpl.rc_context(STYLE):
        yield


def blank(width: float, height: float) -> Figure:
    """A figure of that many inches."""
    from matplotlib.figure import Figure  # slow to import; no pyplot, so no display and no global state

    return Figure(figsize=(width, height))


def picture(figure: Figure, name: str, caption: str) -> Picture:
    """Render a figure in both forms; the same figure gives the same bytes."""
    with style(), mpl.rc_context({"svg.hashsalt": name}):
        png = _png(figure)
        figure.set_layout_engine("none")  # arranged by now; doing it again takes as long as drawing
        return Picture(name, caption, _svg(figure, name), png)


def target_area(axis: Axes, edges: list[float], shares: list[float]) -> None:
    """The target as a grey area; densities, so that panels of different bin widths compare."""
    axis.stairs(np.divide(shares, np.diff(edges)), edges, fill=True, color=TARGET, alpha=0.55, lw=0, label="target")


def rollout_line(axis: Axes, edges: list[float], shares: list[float], color: str = ROLLOUT, label: str = "") -> None:
    """Rollouts as a line over it."""
    axis.stairs(np.divide(shares, np.diff(edges)), edges, color=color, lw=1.3, label=label or "rollouts")


def quiet(axis: Axes) -> None:
    """A small panel: only the feature's axis."""
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.locator_params(axis="x", nbins=4)


def legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend above all panels, each label once."""
    known = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    columns = min(len(known), max(1, int(figure.get_size_inches()[0] / 1.4)))
    figure.legend(known.values(), known.keys(), loc="outside upper center", ncols=columns, handletextpad=0.5)


def _svg(figure: Figure, name: str) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    for variable, color in (("rollout", ROLLOUT), ("target", TARGET)):  # the page lightens them in the dark
        text = text.replace(color, f"var(--{variable}, {color})")
    for pattern, replacement in _CLEANING:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    text = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r"<[^>]*>", _rounded, text)
    width = figure.get_size_inches()[0] * 96
    # A narrow screen scrolls wide pictures instead of shrinking their text beyond reading.
    shape = f"min-width:{0.85 * width:.0f}px;max-width:{1.25 * width:.0f}px"
    return text.replace("<svg", f'<svg role="img" style="{shape}"', 1)


def _rounded(tag: re.Match[str]) -> str:
    """Two decimals for coordinates; numbers between tags are text and stay."""
    return re.sub(r"-?\d+\.\d{3,}", lambda match: f"{float(match.group()):.2f}".rstrip("0").rstrip("."), tag.group())


def _png(figure: Figure) -> bytes:
    from PIL import Image

    raw, small = io.BytesIO(), io.BytesIO()
    figure.savefig(raw, format="png", dpi=DPI, facecolor="white")
    Image.open(raw).convert("RGB").quantize(256).save(small, "PNG", optimize=True)
    return small.getvalue()
