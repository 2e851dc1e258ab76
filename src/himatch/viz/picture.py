"""A figure of a page in two forms: SVG that takes the page's own ink, and a small PNG file."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from himatch.viz.style import PAGE, PAGE_INK, ROLLOUT, TARGET, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 150
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
    """A figure of a page."""

    name: str
    caption: str
    svg: str
    png: bytes


def picture(figure: Figure, name: str, caption: str) -> Picture:
    """Render a figure in both forms; the same figure gives the same bytes."""
    with style({**PAGE, "svg.hashsalt": name}):
        png = _png(figure)
        figure.set_layout_engine("none")  # arranged by now; doing it again takes as long as drawing
        for axis in figure.axes:  # the layout's last digits vary, and the names of clip paths are made of them
            x, y, width, height = (round(float(bound), 6) for bound in axis.get_position().bounds)
            axis.set_position((x, y, width, height))
        return Picture(name, caption, _svg(figure, name), png)


def _svg(figure: Figure, name: str) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(PAGE_INK, "currentColor")
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
