"""Pictures of matches: what was asked for and what happened, over one another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from himatch.files import new_file

if TYPE_CHECKING:
    from himatch.matching.result import MatchResult

TARGET, ROLLOUT = "#9aa0a6", "#1a73e8"


def plot_match(result: MatchResult, path: Path) -> Path:
    """One panel for each feature dimension: the target as a grey area, the rollouts of every seed as lines."""
    bins = result.frame.bins
    names = result.frame.feature.names(bins.dimensions)
    figure = Figure(figsize=(5.2 * bins.dimensions, 3.4), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, bins.dimensions))
    target = bins.histogram(result.values)
    for d, axis in enumerate(axes):
        edges, width = bins.edges[d], bins.widths[d]
        axis.stairs(target[d] / width, edges, fill=True, color=TARGET, alpha=0.55, label="target")
        for k, seed in enumerate(result.seeds):
            rolled = bins.histogram(result.pooled(k))[d] / width
            label = "rollouts" if len(result.seeds) == 1 else f"seed {seed}"
            axis.stairs(rolled, edges, color=ROLLOUT if len(result.seeds) == 1 else f"C{k % 10}", lw=1.6, label=label)
        axis.set(xlabel=names[d].replace("_", " "), ylabel="density" if d == 0 else "")
        axis.spines[["top", "right"]].set_visible(False)
    reference = "" if result.reference is None else f" (episode mixture {result.reference:.2f})"
    name = result.target.name
    name = name if len(name) <= 60 else f"{name[:57]}..."
    axes[0].set_title(f"{name}\nW1 {result.w1:.2f}{reference}", loc="left", fontsize=10)
    axes[-1].legend(frameon=False)
    with new_file(path) as partial:
        figure.savefig(partial, dpi=130)
    return path
