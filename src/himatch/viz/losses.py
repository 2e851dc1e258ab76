"""Training and validation loss over gradient steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from himatch.viz.style import FILE, PAGE, SERIES, blank, legend_above, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NAMED = 10  # curves with a legend


@dataclass(frozen=True)
class LossCurve:
    """Losses ``(n,)`` after ``steps (n,)``, and validation losses, which are measured at fewer of them."""

    label: str
    steps: NDArray[np.float64]
    loss: NDArray[np.float64]
    validation_steps: NDArray[np.float64]
    validation: NDArray[np.float64]

    @classmethod
    def of_rows(cls, label: str, rows: Sequence[Mapping[str, float]]) -> LossCurve:
        """From rows with a ``step``, a ``loss``, and here and there a ``validation``."""
        trained = np.array([(row["step"], row["loss"]) for row in rows], dtype=np.float64).reshape(-1, 2)
        checked = [(row["step"], row["validation"]) for row in rows if "validation" in row]
        validated = np.array(checked, dtype=np.float64).reshape(-1, 2)
        return cls(label, *trained.T, *validated.T)


def plot_losses(curves: Sequence[LossCurve], title: str, path: Path) -> Path | None:
    """Into a picture file; without any losses there is none."""
    if not any(len(curve.steps) for curve in curves):
        return None
    with style(FILE):
        figure = blank(6.4, 3.8)
        axis = figure.subplots()
        for i, curve in enumerate(curves):
            color = f"C{i % 10}"
            axis.plot(curve.steps, curve.loss, color=color, label=curve.label)
            axis.plot(curve.validation_steps, curve.validation, color=color, linestyle="--")
        axis.set(xlabel="steps", ylabel="action loss (dashed: validation)", title=title)
        _scale(axis, curves)
        axis.grid(alpha=0.25)
        if len(curves) <= MOST_NAMED:
            axis.legend()
        return save(figure, path)


def loss_figure(curves: Sequence[LossCurve]) -> Figure:
    """The same for a page, small, one colour a curve."""
    with style(PAGE):
        figure = blank(5.4, 2.6)
        axis = figure.subplots()
        for color, curve in zip(SERIES, curves, strict=False):
            axis.plot(curve.steps, curve.loss, color=color, label=curve.label, lw=1.3)
            label = f"{curve.label}, validation"
            axis.plot(curve.validation_steps, curve.validation, color=color, ls="--", lw=1, label=label)
        axis.set(xlabel="gradient steps", ylabel="action loss")
        _scale(axis, curves)
        legend_above(figure, [axis])
    return figure


def _scale(axis: Axes, curves: Sequence[LossCurve]) -> None:
    positive = all((curve.loss > 0).all() for curve in curves)  # a log-likelihood may not be
    axis.set_yscale("log" if positive else "linear")
