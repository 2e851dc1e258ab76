"""A match as one picture: the target in grey, the rollouts over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from himatch.viz.course import Course
from himatch.viz.style import (
    FILE,
    ROLLOUT,
    TARGET,
    BinShares,
    notebook_figure,
    rollout_line,
    save,
    style,
    target_area,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure

LONGEST = 60  # characters of a title
MOST = 4  # features that are drawn


@dataclass(frozen=True)
class StepHistograms:
    """Distributions over steps: ``edges (d, n + 1)``, shares of the target ``(d, n)`` and of K seeds ``(K, d, n)``."""

    edges: NDArray[np.float64]
    target: NDArray[np.float64]
    rollouts: NDArray[np.float64]

    @property
    def dimensions(self) -> int:
        """How many features are compared."""
        return len(self.target)

    def draw(self, axis: Axes, d: int, seeds: Sequence[int]) -> None:
        """The target as an area, the rollouts of every seed as lines."""
        target_area(axis, BinShares(self.edges[d], self.target[d]))
        for shares, (color, label) in zip(self.rollouts, _named(seeds), strict=True):
            rollout_line(axis, BinShares(self.edges[d], shares[d]), color=color, width=1.6, label=label)
        axis.set_ylabel("density" if d == 0 else "")


@dataclass(frozen=True)
class EpisodeValues:
    """One value an episode, a total or a last one: the target's ``(d,)``, and of E rollouts a seed ``(K, E, d)``."""

    target: NDArray[np.float64]
    rollouts: NDArray[np.float64]
    view: NDArray[np.float64] | None = None
    """From where to where the axis goes, ``(d, 2)``."""

    @property
    def dimensions(self) -> int:
        """How many features are compared."""
        return len(self.target)

    def draw(self, axis: Axes, d: int, seeds: Sequence[int]) -> None:
        """The target as a line, every rollout as a point, a row for each seed."""
        axis.axvline(self.target[d], color=TARGET, lw=5, alpha=0.55, label="target")
        for k, (color, label) in enumerate(_named(seeds)):
            values = self.rollouts[k, :, d]
            axis.plot(values, np.full(len(values), k), "o", color=color, alpha=0.45, mew=0, label=label)
        axis.set_yticks(range(len(seeds)), [f"seed {seed}" for seed in seeds])
        axis.set_ylim(len(seeds) - 0.4, -0.6)
        if self.view is not None:
            axis.set_xlim(*self.view[d])


@dataclass(frozen=True)
class MatchPicture:
    """What a picture of a match shows: the target's name, its score, and target and rollouts in every dimension."""

    target: str
    score: str
    names: Sequence[str]
    """What each dimension is called."""
    seeds: Sequence[int]
    values: StepHistograms | EpisodeValues
    course: Course | None = None
    """The first rollout over time."""


def plot_match(picture: MatchPicture, path: Path) -> Path:
    """The same as a file."""
    return save(match_figure(picture), path)


def match_figure(picture: MatchPicture) -> Figure:
    """One panel for each feature dimension, and below it the feature over time."""
    whole, rows = picture.values.dimensions, 1 if picture.course is None else 2
    dimensions = min(whole, MOST)
    # One value an episode makes a strip of dots, which needs less room than what follows over time.
    heights = [1.0, 2.0] if rows == 2 and isinstance(picture.values, EpisodeValues) else [1.0] * rows
    with style(FILE):
        figure = notebook_figure(5.2 * dimensions, 3.4 if rows == 1 else 5.9)
        axes, *below = figure.subplots(rows, dimensions, squeeze=False, height_ratios=heights)
        for d, axis in enumerate(axes):
            picture.values.draw(axis, d, picture.seeds)
            axis.set_xlabel(picture.names[d])
        if picture.course is not None:
            for d, axis in enumerate(below[0]):
                picture.course.draw(axis, d)
            below[0][-1].legend(fontsize=8)
        name = picture.target if len(picture.target) <= LONGEST else f"{picture.target[: LONGEST - 3]}..."
        shown = "" if dimensions == whole else f" ({dimensions} of {whole} features shown)"
        axes[0].set_title(f"{name}{shown}\n{picture.score}", loc="left", fontsize=10)
        axes[-1].legend()
    return figure


def _named(seeds: Sequence[int]) -> list[tuple[str, str]]:
    """Colour and label of each seed."""
    if len(seeds) == 1:
        return [(ROLLOUT, "rollouts")]
    return [(f"C{k % 10}", f"seed {seed}") for k, seed in enumerate(seeds)]
