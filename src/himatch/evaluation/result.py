"""How well rollouts match a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.files import check_picture
from himatch.divergences import energy_distance, wasserstein_marginal
from himatch.errors import HimatchError
from himatch.evaluation.bounds import BoundScore
from himatch.evaluation.distances import Stretch, binned_w1, charged, exact_w1, in_order, stretches_of, whole_range
from himatch.evaluation.kept import KeptRollouts, save_rollouts
from himatch.evaluation.page import histograms, result_table
from himatch.evaluation.pictures import WHOLE, rollout_picture, step_histograms, view_of
from himatch.evaluation.wording import JOINT, measure, of_each, share, time
from himatch.simulation.replay import Playback, Replay
from himatch.statistics.bins import Bins
from himatch.targets import Frame, Mixture, Target
from himatch.types import Array, Trajectory
from himatch.viz.charts import RolloutPicture
from himatch.viz.course import Course
from himatch.viz.encoder import check_writable
from himatch.viz.film import LARGE, Format, clip, film, format_of
from himatch.viz.match_plot import EpisodeValues, MatchPicture, StepHistograms, match_figure, plot_match

if TYPE_CHECKING:
    from himatch.data import TrajectoryDataset
    from himatch.viz.match_plot import Figure


@dataclass(frozen=True, eq=False)
class MatchResult:
    """Rollouts of K seeds under one target, E each, and how they compare with it.

    ``features[k][e]`` is ``(T, d)``; ``returns`` and ``lengths`` are ``(K, E)``. Distances are between a seed's
    rollouts, pooled, and the target; those without ``_per_seed`` are means over seeds.

    ==================  ============================================================================================
    ``w1``              exact, in feature units; of several features joint, each in units of its ``spread``
    ``within_episode``  the same of every rollout by itself, on average; of targets one after another in their order
    ``in_order``        w1 of what was played in the steps of each target to that one, where several follow one another
    ``played``          p, the part of the target's steps that rollouts lasted
    ``charged``         ``p w1 + (1 - p) R``: steps not played cost R, the spread; so they do of a goal's error
    ``binned``          the paper's W1, on the bins of z
    ==================  ============================================================================================
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
    spread: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))
    """The 1 to 99 % range of every feature in training, ``(d,)``."""
    mixture: Mixture | None = None
    """The episode mixture nearest to the target, for distributions."""
    outside: float = 0.0
    """Part of the target that lies outside what the training episodes cover."""
    replay: Replay | None = None
    """How the first rollout is played again, to be filmed."""
    binnable: bool = True
    """Whether the bins of z tell targets apart; not where nearly all usual training values lie in one of them."""
    conditioned: NDArray[np.float64] | None = None
    """Of the histogram that the first rollout was conditioned on: mean, 10 and 90 % quantile a step, ``(T, 3, d)``.

    A goal is all three.
    """
    to_go: NDArray[np.float64] | None = None
    """The return-to-go that the first rollout was conditioned on, at every step, ``(T, d)``."""
    grid: Bins | None = None
    """Where joint distances have their cells, if not on the bins of z."""
    bounds: tuple[BoundScore, ...] = ()
    """How well rollouts kept within each bound of the target."""
    rollouts: KeptRollouts | None = None
    """The rollouts themselves, where they are kept."""

    def pooled(self, seed: int) -> Array:
        """All feature rows of one seed's rollouts, ``(n, d)``."""
        return np.concatenate(self.features[seed])

    @cached_property
    def values(self) -> Array:
        """Feature values of the target that rollouts are compared with, ``(n, d)``."""
        return self.target.compared(self.frame)

    @property
    def cells(self) -> Bins:
        """The grid of joint distances."""
        return self.frame.bins if self.grid is None else self.grid

    @cached_property
    def w1_per_seed(self) -> NDArray[np.float64]:
        """Wasserstein-1 between each seed's rollouts and the target, exact: see the table above."""
        return self._of_seeds(lambda rows: exact_w1(rows, self.values, self.cells, self.spread))

    @property
    def w1(self) -> float:
        """Mean over seeds of W1."""
        return float(self.w1_per_seed.mean())

    @cached_property
    def stretches(self) -> list[Stretch]:
        """What is wanted in which steps: of targets one after another each in its own."""
        return stretches_of(self.target, self.frame)

    @cached_property
    def in_order_per_seed(self) -> NDArray[np.float64]:
        """W1 of what was played in the steps of each target to that one, on average over steps.

        Of a single target it is ``w1_per_seed``.
        """
        if len(self.stretches) == 1:
            return self.w1_per_seed
        return np.array([self._in_order(rollouts) for rollouts in self.features])

    @property
    def in_order(self) -> float:
        """Mean over seeds of that."""
        return float(self.in_order_per_seed.mean())

    @cached_property
    def within_episode_per_seed(self) -> NDArray[np.float64]:
        """W1 of every rollout by itself, in the order of targets that follow one another, mean over a seed's rollouts.

        Pooled rollouts may share a target out among them; here each has to match it alone.
        """
        return np.array([np.mean([self._in_order([phi]) for phi in rollouts]) for rollouts in self.features])

    @property
    def within_episode(self) -> float:
        """Mean over seeds of that."""
        return float(self.within_episode_per_seed.mean())

    def _in_order(self, rollouts: Sequence[Array]) -> float:
        return in_order(rollouts, self.stretches, lambda rows, wanted: exact_w1(rows, wanted, self.cells, self.spread))

    @cached_property
    def binned_per_seed(self) -> NDArray[np.float64]:
        """The paper's W1, on the bins of z; not a number where these tell nothing apart."""
        if not self.binnable:
            return np.full(len(self.seeds), np.nan)
        return self._of_seeds(lambda rows: binned_w1(rows, self.values, self.frame.bins))

    @property
    def binned(self) -> float:
        """Mean over seeds of the paper's W1."""
        return float(self.binned_per_seed.mean())

    @cached_property
    def marginal(self) -> NDArray[np.float64]:
        """Mean over seeds of every feature's own W1, in its own units, ``(d,)``."""
        found: NDArray[np.float64] = self._of_seeds(lambda rows: wasserstein_marginal(rows, self.values)).mean(axis=0)
        return found

    @cached_property
    def steps(self) -> int:
        """How many steps the target gives a rollout."""
        return min(len(self.target.values(self.frame)), self.frame.horizon)

    @cached_property
    def played_per_rollout(self) -> NDArray[np.float64]:
        """The part of the target's steps that every rollout lasted, from 0 to 1, ``(K, E)``."""
        shares: NDArray[np.float64] = np.minimum(self.lengths / self.steps, 1.0)
        return shares

    @property
    def played_per_seed(self) -> NDArray[np.float64]:
        """Mean over the rollouts of each seed of that."""
        means: NDArray[np.float64] = self.played_per_rollout.mean(axis=1)
        return means

    @property
    def played(self) -> float:
        """Mean over seeds of that: p."""
        return float(self.played_per_seed.mean())

    @property
    def ended_early(self) -> float:
        """The part of the rollouts that did not last as long as the target."""
        return float((self.lengths < self.steps).mean())

    @cached_property
    def charged_per_seed(self) -> NDArray[np.float64]:
        """What the target asks to be small, with the time charged that was not played.

        Of a distribution ``p w1 + (1 - p) R``. The same of every rollout's distance to a goal: nobody knows the last
        value of an episode that ended before its time. A return is what was earned until the end, whenever that came,
        so of its error nothing is missing.
        """
        if self.target.matches == "return":
            return self.error_per_seed
        if self.target.matches == "goal":
            box = whole_range(self.spread, in_spreads=False)
            found: NDArray[np.float64] = charged(self.misses, self.played_per_rollout, box).mean(axis=1)
            return found
        return charged(self.w1_per_seed, self.played_per_seed, whole_range(self.spread, in_spreads=True))

    @property
    def charged(self) -> float:
        """Mean over seeds of that."""
        return float(self.charged_per_seed.mean())

    @cached_property
    def energy_per_seed(self) -> NDArray[np.float64]:
        """Energy distance, exact in one dimension, between joint cells in several."""
        if self.frame.bins.dimensions == 1:
            return self._of_seeds(lambda rows: energy_distance(rows, self.values))
        bins = self.cells
        goal, mass = np.unique(bins.cells(self.values), axis=0, return_counts=True)

        def energy(rows: Array) -> float:
            points, weights = np.unique(bins.cells(rows), axis=0, return_counts=True)
            unit = bins.widths / self.spread
            return energy_distance(points * unit, goal * unit, weights, mass)

        return self._of_seeds(energy)

    @property
    def energy(self) -> float:
        """Mean over seeds of the energy distance."""
        return float(self.energy_per_seed.mean())

    def _of_seeds(self, distance: Callable[[Array], Any]) -> NDArray[np.float64]:
        return np.array([distance(self.pooled(k)) for k in range(len(self.seeds))])

    @cached_property
    def beyond(self) -> float:
        """Part of the rollouts' steps that lie beyond all bins; the paper's W1 counts them in the last one."""
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
        """What the target asks to be small: W1, or how far each rollout's total or last value is, on average."""
        if self.target.matches == "distribution":
            return self.w1_per_seed
        missed: NDArray[np.float64] = self.misses.mean(axis=1)
        return missed

    @cached_property
    def misses(self) -> NDArray[np.float64]:
        """How far every rollout's total or last value is from the target's, ``(K, E)``."""
        distances: NDArray[np.float64] = np.linalg.norm(self.reached - self.wanted, axis=2)
        return distances

    @property
    def error(self) -> float:
        """Mean over seeds of that."""
        return float(self.error_per_seed.mean())

    @property
    def names(self) -> list[str]:
        """What each feature is called."""
        return list(self.frame.feature.names(self.frame.bins.dimensions))

    @property
    def joint(self) -> bool:
        """Whether W1 is that of several features together, which are divided by their spreads."""
        return self.target.matches == "distribution" and self.frame.bins.dimensions > 1

    @property
    def joint_unit(self) -> str:
        """What joint distances are measured in; nothing of others, which are in feature units."""
        return f"W1 is {JOINT} ({of_each(self.names, self.spread)})" if self.joint else ""

    @property
    def scored(self) -> str:
        """``W1 0.217`` or ``error 0.0072 ± 0.003 a rollout``: the number that is to be small, and what it is."""
        if self.target.matches == "distribution":
            what, *unit = measure(self.target.matches, self.frame.bins.dimensions).split(",")
            return ",".join([f"{what} {self.error:.3f}", *unit])
        return f"error {self.error:.4g} ± {self.misses.std():.3g} a rollout"

    @property
    def lasted(self) -> str:
        """``played 17%, charged 1.53``: how much of the time was played, and the score with the rest of it charged."""
        if self.target.matches == "return":  # charged is the error itself
            return f"played {share(self.played)}" + (", ended early" if self.played < 1 else "")
        return time(self.played, self.charged, digits=".4g" if self.target.matches == "goal" else ".3f")

    def __repr__(self) -> str:
        mixture = "" if self.mixture is None else f", episode mixture {self.mixture.w1:.3f}"
        bounds = "".join(f", {bound}" for bound in self.bounds)
        return (
            f"MatchResult({self.target.name}: {self.scored}{mixture}, {self.lasted}{bounds}, "
            f"return {self.returns.mean():.0f}, {self.returns.size} rollouts, {self.conditioning})"
        )

    def as_json(self) -> dict[str, Any]:
        """The numbers, in built-in types; of the rollouts there are means."""
        matched, several = self.target.matches == "distribution", len(self.stretches) > 1
        alone = matched and not self.joint
        return {
            "name": self.target.name,
            "w1": self.w1,
            "w1_per_seed": self.w1_per_seed.tolist(),
            # A joint transport for every rollout is slow.
            "within_episode": self.within_episode if alone else None,
            "within_episode_per_seed": self.within_episode_per_seed.tolist() if alone else None,
            **({"in_order": self.in_order, "in_order_per_seed": self.in_order_per_seed.tolist()} if several else {}),
            "w1_of_each_feature": self.marginal.tolist(),
            "w1_binned": self.binned if self.binnable else None,
            "played": self.played,
            "w1_charged": self.charged if matched else None,
            "charged": self.charged,
            "ended_early": self.ended_early,
            "spread": self.spread.tolist(),
            "energy": self.energy,
            "error": self.error,
            "error_std": float((self.w1_per_seed if matched else self.misses).std()),
            "return_mean": float(self.returns.mean()),
            "length_mean": float(self.lengths.mean()),
            "mixture": None if self.mixture is None else self.mixture.w1,
            "outside": self.outside,
            "beyond": self.beyond,
            "bounds": [bound.as_json() for bound in self.bounds],
        }

    @property
    def picture(self) -> MatchPicture:
        """Target and rollouts as arrays to draw."""
        mixture = "" if self.mixture is None else f" (episode mixture {self.mixture.w1:.3f})"
        names = [name.replace("_", " ") for name in self.names]
        values: StepHistograms | EpisodeValues
        if self.target.matches == "distribution":
            values = step_histograms(self.frame, self.values, [self.pooled(k) for k in range(len(self.seeds))])
        else:
            rows = np.concatenate([self.reached.reshape(-1, len(names)), self.wanted[None]])
            values = EpisodeValues(self.wanted, self.reached, view_of(self.target.matches, rows, self.spread))
        return MatchPicture(
            self.target.name,
            f"{self.scored}{mixture}" + (f"\n{self.lasted}" if self.played < 1 else ""),
            [WHOLE.get(self.target.matches, "") + name for name in names],
            self.seeds,
            values,
            self._course(names),
        )

    def _course(self, names: Sequence[str]) -> Course:
        """The first rollout over time: its feature, or where a return is wanted what it has earned so far."""
        phi, matches = self.features[0][0], self.target.matches
        if matches == "distribution":
            in_time = self.values if self.target.in_time else None
            return Course(phi, names, self.steps, target=in_time, conditioned=self.conditioned)
        if matches == "goal":
            rows = np.concatenate([phi, self.wanted[None]])
            view = view_of(matches, rows, self.spread)
            return Course(phi, names, self.steps, wanted=self.wanted, conditioned=self.conditioned, view=view)
        earned, named = np.cumsum(phi, axis=0, dtype=np.float64), [f"sum of {name} so far" for name in names]
        return Course(earned, named, self.steps, wanted=self.wanted, to_go=self._rest(), summed=True)

    def _rest(self) -> NDArray[np.float64] | None:
        """The return-to-go that the first rollout was conditioned on; a histogram's is its mean at every step left."""
        if self.to_go is not None or self.conditioned is None:
            return self.to_go
        left = np.maximum(self.steps - np.arange(len(self.conditioned)), 0)
        found: NDArray[np.float64] = self.conditioned[:, 0] * left[:, None]
        return found

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
            lambda steps: exact_w1(phi[:steps], self.values, self.cells, self.spread),
            task=task,
            heading=which if task is None else f"{task.name}, {which}",
            terminated=self.example.terminated,
        )

    def save(self, out: str | Path, *, overwrite: bool = False) -> TrajectoryDataset:
        """Write all rollouts of all seeds as a Minari folder, labelled with the target and with who played them."""
        return save_rollouts([self], out, overwrite=overwrite)

    @overload
    def plot(self) -> Figure: ...

    @overload
    def plot(self, path: str | Path) -> Path: ...

    def plot(self, path: str | Path | None = None) -> Path | Figure:
        """Draw target and rollouts, and below the first rollout over time with what it was conditioned on.

        Into a file where one is named; else the matplotlib figure, which a notebook shows.
        """
        if path is None:
            return match_figure(self.picture)
        check_picture(Path(path))
        return plot_match(self.picture, Path(path))

    def _repr_html_(self) -> str:
        """For a notebook."""
        notes = [self.joint_unit, *map(str, self.bounds)]
        return result_table([self.html_row()], self.conditioning, "; ".join(note for note in notes if note))

    def html_row(self, group: str = "") -> list[str]:
        """The cells of a table of results; those that say nothing of such a target are empty."""
        matched = self.target.matches == "distribution"
        rolled = np.concatenate([self.pooled(k) for k in range(len(self.seeds))])
        return [
            escape(self.target.name),
            escape(group),
            f"{self.w1:.3f}" if matched else "",
            of_each(self.names, self.marginal) if self.joint else "",
            "" if matched else f"{self.error:.4g} ± {self.misses.std():.3g}",
            escape(share(self.played)),
            f"{self.charged:.3f}" if matched else f"{self.charged:.4g}",
            "" if self.mixture is None else f"{self.mixture.w1:.3f}",
            f"{self.returns.mean():.0f}",
            histograms(self.frame.bins, rolled, self.values) if matched else "",
        ]

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


def _of_whole(matches: str, phi: Array) -> NDArray[np.float64]:
    """What of a whole episode is compared: the total of a feature, or its last value."""
    found: NDArray[np.float64] = (
        phi.sum(axis=0, dtype=np.float64) if matches == "return" else phi[-1].astype(np.float64)
    )
    return found
