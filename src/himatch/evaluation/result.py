"""How well rollouts match a target."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import check_picture
from himatch.divergences import energy_distance, wasserstein_bins, wasserstein_joint
from himatch.errors import HimatchError
from himatch.evaluation.pictures import WHOLE, rollout_picture, step_histograms
from himatch.simulation.replay import Playback, Replay
from himatch.targets import Frame, Target
from himatch.types import Array, Trajectory
from himatch.viz.charts import RolloutPicture
from himatch.viz.encoder import check_writable
from himatch.viz.film import LARGE, Format, clip, film, format_of
from himatch.viz.match_plot import EpisodeValues, MatchPicture, plot_match


@dataclass(frozen=True, eq=False)
class MatchResult:
    """Rollouts of K seeds under one target, E each, and how they compare with it.

    ``features[k][e]`` is ``(T, d)``; ``returns`` and ``lengths`` are ``(K, E)``. ``w1`` and ``energy`` are means over
    seeds of the distance between a seed's rollouts, pooled, and the target; ``w1_per_seed`` has each.
    """

    target: Target
    frame: Frame
    conditioning: str
    seeds: tuple[int, ...]
    features: tuple[tuple[Array, ...], ...]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    example: Trajectory
    """The first rollout of the first seed."""
    reference: float | None = None
    """W1 of the episode mixture, for distributions."""
    outside: float = 0.0
    """Part of the target that lies outside what the training episodes cover."""
    replay: Replay | None = None
    """How the first rollout is played again, to be filmed."""

    def pooled(self, seed: int) -> Array:
        """All feature rows of one seed's rollouts, ``(n, d)``."""
        return np.concatenate(self.features[seed])

    @cached_property
    def values(self) -> Array:
        """Feature values of the target that rollouts are compared with, ``(n, d)``."""
        return self.target.compared(self.frame)

    @cached_property
    def w1_per_seed(self) -> NDArray[np.float64]:
        """Wasserstein-1 between each seed's pooled histogram and the target's, in feature units, joint in n-D."""
        return np.array([w1(self.pooled(k), self.values, self.frame) for k in range(len(self.seeds))])

    @property
    def w1(self) -> float:
        """Mean over seeds of W1."""
        return float(self.w1_per_seed.mean())

    @cached_property
    def energy_per_seed(self) -> NDArray[np.float64]:
        """Energy distance on the same bins."""
        frame = self.frame
        goal, mass = frame.bins.joint(self.values)
        found = [frame.bins.joint(self.pooled(k)) for k in range(len(self.seeds))]
        return np.array([energy_distance(points, goal, weights, mass) for points, weights in found])

    @property
    def energy(self) -> float:
        """Mean over seeds of the energy distance."""
        return float(self.energy_per_seed.mean())

    @cached_property
    def beyond(self) -> float:
        """Part of the rollouts' steps that lie beyond all bins; W1 and energy count them in the last one."""
        rows = np.concatenate([self.pooled(k) for k in range(len(self.seeds))])
        bins = self.frame.bins
        return float(((rows < bins.low) | (rows > bins.high)).any(axis=1).mean())

    @cached_property
    def wanted(self) -> NDArray[np.float64]:
        """The total, or the last value, of a target that has one, ``(d,)``."""
        return _of_whole(self.target.matches, self.values)

    @cached_property
    def reached(self) -> NDArray[np.float64]:
        """The same of every rollout, ``(K, E, d)``."""
        return np.array([[_of_whole(self.target.matches, phi) for phi in seed] for seed in self.features])

    @cached_property
    def error_per_seed(self) -> NDArray[np.float64]:
        """What the target asks to be small: W1, or the distance of the mean total or of the mean last value."""
        if self.target.matches == "distribution":
            return self.w1_per_seed
        distances: NDArray[np.float64] = np.linalg.norm(self.reached.mean(axis=1) - self.wanted, axis=1)
        return distances

    @property
    def error(self) -> float:
        """Mean over seeds of that."""
        return float(self.error_per_seed.mean())

    def __repr__(self) -> str:
        reference = "" if self.reference is None else f", reference {self.reference:.3f}"
        measure = "w1" if self.target.matches == "distribution" else "error"
        return (
            f"MatchResult({self.target.name}: {measure} {self.error:.3f}{reference}, return {self.returns.mean():.0f}, "
            f"{self.returns.size} rollouts, {self.conditioning})"
        )

    def as_json(self) -> dict[str, Any]:
        """The numbers, in built-in types; of the rollouts there are means."""
        return {
            "name": self.target.name,
            "w1": self.w1,
            "w1_per_seed": self.w1_per_seed.tolist(),
            "energy": self.energy,
            "error": self.error,
            "return_mean": float(self.returns.mean()),
            "length_mean": float(self.lengths.mean()),
            "reference": self.reference,
            "outside": self.outside,
            "beyond": self.beyond,
        }

    @property
    def picture(self) -> MatchPicture:
        """Target and rollouts as arrays to draw."""
        distributions = self.target.matches == "distribution"
        pooled = [self.pooled(k) for k in range(len(self.seeds))]
        reference = "" if self.reference is None else f" (episode mixture {self.reference:.2f})"
        names = self.frame.feature.names(self.frame.bins.dimensions)
        return MatchPicture(
            self.target.name,
            (f"W1 {self.w1:.2f}" if distributions else f"error {self.error:.4g}") + reference,
            [WHOLE.get(self.target.matches, "") + name.replace("_", " ") for name in names],
            self.seeds,
            step_histograms(self.frame, self.values, pooled)
            if distributions
            else EpisodeValues(self.wanted, self.reached),
        )

    @property
    def rollout_picture(self) -> RolloutPicture:
        """The first rollout of the first seed beside the target, as arrays to draw step by step."""
        task, phi = None if self.replay is None else self.replay.task, self.features[0][0]
        seed = "" if len(self.seeds) == 1 else f" of seed {self.seeds[0]}"
        which = f"rollout 1 of {self.returns.shape[1]}{seed}, {self.conditioning} conditioning"
        return rollout_picture(
            self.target,
            self.frame,
            self.values,
            phi,
            lambda steps: w1(phi[:steps], self.values, self.frame),
            task=task,
            heading=which if task is None else f"{task.name}, {which}",
            terminated=self.example.terminated,
        )

    def plot(self, path: str | Path) -> Path:
        """Draw the target's and the rollouts' histograms over one another."""
        check_picture(Path(path))
        return plot_match(self.picture, Path(path))

    def video(self, path: str | Path, *, progress: Callable[[int, int], None] | None = None) -> Path:
        """Film the first rollout of the first seed beside what it achieves: .mp4 (the extra ``video``), .gif or .webp.

        ``progress`` gets the number of pictures done and to do.
        """
        path = Path(path)
        check_writable(path)
        form = format_of(path)
        with self._stage(form) as stage:
            steps = form.steps(len(self.example), stage.dt)
            robots = stage.play(self.example, steps)
            return film(path, self.rollout_picture, robots, stage.dt, len(steps), progress=progress)

    def clip(self, path: str | Path, *, seconds: float = 7.5, largest: int = 1_400_000) -> Path:
        """A short .webp of the same, of about ``largest`` bytes at most, for a page.

        A longer rollout is shown in three stretches of real time: its beginning, its middle and its end.
        """
        path = Path(path)
        check_writable(path)
        with self._stage(LARGE) as stage:
            steps = LARGE.stretches(len(self.example), stage.dt, seconds)
            robots = stage.play(self.example, steps)
            return clip(path, self.rollout_picture, robots, stage.dt, largest=largest)

    def _stage(self, form: Format) -> AbstractContextManager[Playback]:
        if self.replay is None:
            raise HimatchError("this result does not say where it was rolled out; film those of policy.match")
        return self.replay.open(form.robot)


def w1(rows: Array, values: Array, frame: Frame) -> float:
    """W1 between the histograms of two samples ``(n, d)``: on bins in one dimension, over occupied cells in several."""
    bins = frame.bins
    if bins.dimensions == 1:
        return float(wasserstein_bins(bins.histogram(rows), bins.histogram(values), bins.widths)[0])
    points, weights = bins.joint(rows)
    goal, mass = bins.joint(values)
    return wasserstein_joint(points, goal, weights, mass)


def _of_whole(matches: str, phi: Array) -> NDArray[np.float64]:
    """What of a whole episode is compared: the total of a feature, or its last value."""
    found: NDArray[np.float64] = (
        phi.sum(axis=0, dtype=np.float64) if matches == "return" else phi[-1].astype(np.float64)
    )
    return found
