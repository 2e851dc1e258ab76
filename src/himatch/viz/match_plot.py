"""Pictures of matches: what was asked for and what happened, over one another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from himatch._runtime.files import new_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from himatch.evaluation.result import MatchResult

TARGET, ROLLOUT = "#9aa0a6", "#1a73e8"


def plot_match(result: MatchResult, path: Path) -> Path:
    """One panel for each feature dimension, the target in grey: distributions, or what every rollout came to."""
    dimensions = result.frame.bins.dimensions
    names = result.frame.feature.names(dimensions)
    figure = Figure(figsize=(5.2 * dimensions, 3.4), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, dimensions))
    of_steps = result.target.matches == "distribution"
    for d, axis in enumerate(axes):
        (_distributions if of_steps else _wholes)(axis, result, d)
        what = {"return": "total ", "goal": "last "}.get(result.target.matches, "")
        axis.set_xlabel(what + names[d].replace("_", " "))
        axis.spines[["top", "right"]].set_visible(False)
    reference = "" if result.reference is None else f" (episode mixture {result.reference:.2f})"
    name = result.target.name
    name = name if len(name) <= 60 else f"{name[:57]}..."
    measured = f"W1 {result.w1:.2f}" if of_steps else f"error {result.error:.4g}"
    axes[0].set_title(f"{name}\n{measured}{reference}", loc="left", fontsize=10)
    axes[-1].legend(frameon=False)
    with new_file(path) as partial:
        figure.savefig(partial, dpi=130)
    return path


def _distributions(axis: Axes, result: MatchResult, d: int) -> None:
    """The target as an area, the rollouts of every seed as lines."""
    bins = result.frame.bins
    edges, width = bins.edges[d], bins.widths[d]
    axis.stairs(bins.histogram(result.values)[d] / width, edges, fill=True, color=TARGET, alpha=0.55, label="target")
    for k, (color, label) in enumerate(_seeds(result)):
        axis.stairs(bins.histogram(result.pooled(k))[d] / width, edges, color=color, lw=1.6, label=label)
    axis.set_ylabel("density" if d == 0 else "")


def _wholes(axis: Axes, result: MatchResult, d: int) -> None:
    """What is asked for as a line, every rollout as a point, a row for each seed."""
    axis.axvline(result.asked[d], color=TARGET, lw=5, alpha=0.55, label="target")
    for k, (color, label) in enumerate(_seeds(result)):
        reached = result.reached[k, :, d]
        axis.plot(reached, np.full(len(reached), k), "o", color=color, alpha=0.45, mew=0, label=label)
    axis.set_yticks(range(len(result.seeds)), [f"seed {seed}" for seed in result.seeds])
    axis.set_ylim(len(result.seeds) - 0.4, -0.6)


def _seeds(result: MatchResult) -> list[tuple[str, str]]:
    """Colour and label of each."""
    if len(result.seeds) == 1:
        return [(ROLLOUT, "rollouts")]
    return [(f"C{k % 10}", f"seed {seed}") for k, seed in enumerate(result.seeds)]
