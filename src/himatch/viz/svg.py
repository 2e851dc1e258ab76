"""Small histograms as SVG, for HTML in notebooks; they need no matplotlib."""

from __future__ import annotations

from collections.abc import Sequence

from himatch.viz.style import ROLLOUT, TARGET

BAR, HIGH = 5, 40  # pixels


def bars(shares: Sequence[float], behind: Sequence[float] | None = None, *, bar: int = BAR, high: int = HIGH) -> str:
    """A histogram in blue, over another one in grey."""
    layers = [(shares, ROLLOUT, 1.0)] if behind is None else [(behind, TARGET, 0.6), (shares, ROLLOUT, 0.5)]
    most = max((max(layer, default=0.0) for layer, *_ in layers), default=0.0) or 1.0
    drawn = "".join(
        f'<rect x="{bar * i}" y="{high * (1 - s / most):.1f}" width="{bar - 1}" height="{high * s / most:.1f}" '
        f'fill="{color}" fill-opacity="{alpha}"/>'
        for layer, color, alpha in layers
        for i, s in enumerate(layer)
        if s > 0
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{bar * len(shares)}" height="{high}">{drawn}</svg>'
