"""What is achievable: where a target lies with respect to the training episodes.

A policy that time-shares whole behaviours of its data reaches convex mixtures of training-episode histograms. The
nearest such mixture is a small linear program; its W1 is the *episode-mixture reference* that stands beside every
score. It is no strict bound: mixtures of shorter stretches can come closer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.data import TrajectoryDataset
from himatch.divergences import wasserstein_bins, wasserstein_cells, wasserstein_marginal, wasserstein_samples
from himatch.errors import HimatchError, TargetError
from himatch.statistics.bins import Bins
from himatch.statistics.features import Feature, of_each, resolve_feature
from himatch.statistics.fences import fences, sample_rows
from himatch.targets.like import TargetLike, as_target
from himatch.targets.mixture import nearest_binned_mixture, nearest_joint_mixture, nearest_mixture
from himatch.targets.resolution import resolved, usual_values
from himatch.targets.target import Frame, Target
from himatch.types import Array, Trajectory

NO_WEIGHT = 1e-9
FOLLOWED = 0.9  # of an episode that ends early: what comes after leads to its end
DEADLINES = 20  # times by which parts of a schedule can be due
TAILS = (0.01, 0.99)  # a feature's spread lies between these quantiles of its training values
CELLS_OF_MIDDLE = 8  # between the quartiles of a feature's training values; with half as many a grid is stretched
OCCUPIED = 1e-3  # of all training steps: with fewer a bin holds outliers
WHEN = 20  # of a target in time, the times that are distinguished: less is noise


@dataclass(frozen=True)
class Support:
    """Whether a target lies inside what the data covers.

    ``outside`` is the part of it that does not: mass in bins that no episode ever visits, or 1 for a return or goal
    beyond every episode's.
    """

    inside: bool
    outside: float


@dataclass(frozen=True)
class Nearest:
    """The training episode nearest to a target, and how far it is (W1, or the distance of returns or goals)."""

    episode: int
    distance: float


@dataclass(frozen=True)
class Mixture:
    """The convex mixture of training episodes nearest to a target.

    ``weights`` maps episodes to their share of time; ``w1`` is the distance that remains, as rollouts are measured:
    exact, joint for several features. ``binned`` is the paper's, on the bins of z, and of one feature that of the
    mixture nearest on these; not a number where they tell nothing apart.
    """

    weights: dict[int, float]
    w1: float
    binned: float


class EpisodeReference:
    """What targets need to know about a set of training episodes: feature values, sums and last values.

    Parameters
    ----------
    frame
        The matched feature, its bins and the horizon.
    values
        The feature at all steps, episode after episode.
    lengths
        Steps of every episode.
    totals, finals
        Sum and last value of the feature in every episode.
    """

    @shaped
    def __init__(
        self,
        frame: Frame,
        values: Float[Array, "steps d"],
        lengths: Int[NDArray[np.int64], " E"],
        totals: Float[Array64, "E d"],
        finals: Float[Array64, "E d"],
    ) -> None:
        self.frame, self.values, self.lengths = frame, values, lengths
        self.totals, self.finals = totals, finals
        bins = frame.bins
        self.histograms = np.zeros((len(lengths), bins.dimensions, bins.count))
        indices, episode = bins.indices(values), np.repeat(np.arange(len(lengths)), lengths)
        for dimension in range(bins.dimensions):
            flat = episode * bins.count + indices[:, dimension]
            counts = np.bincount(flat, minlength=len(lengths) * bins.count)
            self.histograms[:, dimension] = counts.reshape(len(lengths), bins.count)
        self.histograms /= np.asarray(lengths)[:, None, None]

    @classmethod
    def of_rows(cls, frame: Frame, episodes: Sequence[Array] | NDArray[np.float32]) -> EpisodeReference:
        """Episodes by their feature values alone, ``(T, d)`` each; at least one."""
        return cls(
            frame,
            np.concatenate(episodes).astype(np.float32),
            np.array([len(rows) for rows in episodes], dtype=np.int64),
            np.array([rows.sum(axis=0, dtype=np.float64) for rows in episodes]),
            np.array([rows[-1] for rows in episodes], dtype=np.float64),
        )

    @cached_property
    @shaped
    def spread(self) -> Float[Array64, " d"]:
        """From the 1 to the 99 % quantile of every feature: the unit of joint distances, and R of time not played.

        Extreme values and marks of missing ones do not count.
        """
        if not len(self.values):
            whole_range: Array64 = np.array(self.frame.bins.high) - np.array(self.frame.bins.low)
            return whole_range
        low, high = np.quantile(self.values, TAILS, axis=0).astype(np.float64)
        whole = np.ptp(self.values, axis=0).astype(np.float64)
        some = self.values[sample_rows(len(self.values))]  # what is beyond a quantile of a hundredth is in it too
        for dimension, (column, usual) in enumerate(zip(some.T, usual_values(some).T, strict=True)):
            if not usual.all():
                low[dimension], high[dimension] = np.quantile(column[usual], TAILS)
                whole[dimension] = np.ptp(column[usual])
        found: Array64 = np.where(high > low, high - low, np.where(whole > 0, whole, 1.0))
        return found

    @cached_property
    def grid(self) -> Bins:
        """Where joint distances have their cells: the bins of z, or narrower ones where outliers stretch these.

        They are stretched where the middle half of the values, which outliers do not reach, has fewer than four.
        """
        bins = self.frame.bins
        if not len(self.values):
            return bins
        some = self.values[sample_rows(len(self.values))].astype(np.float64)
        low, high = np.quantile(some, (0.25, 0.75), axis=0)
        # Values that are mostly the same have no middle half.
        return bins.narrowed(low, np.where(high > low, (high - low) / CELLS_OF_MIDDLE, np.inf))

    @cached_property
    @shaped
    def occupied(self) -> Int[NDArray[np.int64], " d"]:
        """How many bins of every feature hold a thousandth of the training steps or more: one tells nothing."""
        steps = np.einsum("edb,e->db", self.histograms, self.lengths.astype(np.float64))
        found: NDArray[np.int64] = (steps >= max(0.5, OCCUPIED * float(self.lengths.sum()))).sum(axis=1)
        return found

    @cached_property
    def resolved(self) -> NDArray[np.bool_]:
        """Whether the bins of every feature tell its behaviours apart, ``(d,)``."""
        return resolved(self.values, self.frame.bins)

    def episode(self, number: int) -> Float[Array, "T d"]:
        """The feature of one episode, step by step."""
        end = int(self.lengths[: number + 1].sum())
        return self.values[end - int(self.lengths[number]) : end]

    @classmethod
    def of(
        cls,
        episodes: Iterable[Trajectory],
        feature: str | Feature,
        bins: Bins | None = None,
        horizon: int | None = None,
        *,
        fenced: bool = True,
    ) -> EpisodeReference:
        """Build it from training episodes; bins and horizon default to what the episodes span, extreme values apart.

        A dataset knows its task: features have names, and the horizon is the task's unless an episode is longer.
        """
        task = episodes.task if isinstance(episodes, TrajectoryDataset) else None
        if isinstance(feature, str):
            if task is None:
                raise HimatchError(
                    f"which feature {feature!r} is says a dataset's task; hand over a dataset in place of mere episodes"
                )
            feature = resolve_feature(feature, task)
        found = list(of_each(feature, episodes))
        if not found:
            raise HimatchError("a reference needs at least one training episode")
        if fenced:  # a bad reading is nothing that an episode did
            low, high = fences(np.concatenate(found))
            found = [np.clip(phi, low, high) for phi in found]
        fitted = bins or Bins.fit(found)
        lengths = np.array([len(phi) for phi in found], dtype=np.int64)
        least = 1 if task is None else task.horizon
        frame = Frame(feature, fitted, horizon or max(least, int(lengths.max())))
        return cls(
            frame,
            np.concatenate(found, dtype=np.float32),
            lengths,
            np.array([phi.sum(axis=0, dtype=np.float64) for phi in found]),
            np.array([phi[-1] for phi in found], dtype=np.float64),
        )

    @classmethod
    def empty(cls, frame: Frame) -> EpisodeReference:
        """No episodes at all: of a policy whose training data nobody has. Nothing is inside, nothing is near."""
        none = np.zeros((0, frame.bins.dimensions))
        return cls(frame, none.astype(np.float32), np.zeros(0, np.int64), none, none)

    def support(self, target: TargetLike) -> Support:
        """Whether the data covers the target."""
        target = as_target(target)
        values = target.compared(self.frame)
        if not len(self.lengths):
            return Support(False, 1.0)
        if target.matches == "distribution":
            visited = self.histograms.sum(axis=0) > 0
            bins = self.frame.bins
            # A value beyond the data's range falls into an end bin when binned, but is no less outside for that.
            beyond = (values < np.array(bins.low) - 1e-6) | (values > np.array(bins.high) + 1e-6)
            indices = bins.indices(values)
            covered = visited[np.arange(bins.dimensions), indices] & ~beyond
            outside = float((~covered).mean(axis=0).max())
            return Support(outside == 0.0, outside)
        wanted = values.sum(axis=0, dtype=np.float64) if target.matches == "return" else values[-1]
        seen = self.seen(target)
        slack = 1e-6 * np.maximum(1.0, np.abs(seen).max(axis=0))
        inside = bool(np.all((wanted >= seen.min(axis=0) - slack) & (wanted <= seen.max(axis=0) + slack)))
        return Support(inside, 0.0 if inside else 1.0)

    def seen(self, target: Target) -> Float[Array64, "E d"]:
        """The total or last value of every episode; of its first steps where the return or goal lasts fewer."""
        of_return, steps = target.matches == "return", len(target.values(self.frame))
        if steps >= self.lengths.max(initial=0):
            return self.totals if of_return else self.finals
        starts = np.cumsum(self.lengths) - self.lengths
        parts = [
            self.values[a : a + min(steps, n)] for a, n in zip(starts.tolist(), self.lengths.tolist(), strict=True)
        ]
        found = [part.sum(axis=0, dtype=np.float64) if of_return else part[-1].astype(np.float64) for part in parts]
        return np.array(found)

    def nearest(self, target: TargetLike) -> Nearest:
        """The training episode whose statistic is nearest."""
        target = as_target(target)
        self._check_any(target)
        if target.matches == "distribution":
            # Marginal distances add up; with one feature this is W1 itself.
            wanted = target.compared(self.frame)
            episodes = np.split(self.values, np.cumsum(self.lengths)[:-1])
            distances = np.array([wasserstein_marginal(phi, wanted).sum() for phi in episodes])
        else:
            values = target.values(self.frame)
            whole = values.sum(axis=0, dtype=np.float64) if target.matches == "return" else values[-1]
            distances = np.linalg.norm(self.seen(target) - whole, axis=1)
        episode = int(np.argmin(distances))
        return Nearest(episode, float(distances[episode]))

    @shaped
    def typical(self, episodes: Int[NDArray[np.int64], " n"]) -> int:
        """The one of some episodes that is nearest to all of them together, in W1 on the bins.

        Of episodes of two kinds that is one of a kind: what they do together none of them does.
        """
        shares, steps = self.histograms[episodes], self.lengths[episodes].astype(np.float64)
        pooled = np.einsum("edb,e->db", shares, steps / steps.sum())
        widths = self.frame.bins.widths / self.spread
        return int(episodes[np.argmin(wasserstein_bins(shares, pooled[None], widths[None]).sum(axis=1))])

    def mixture(self, target: TargetLike) -> Mixture:
        """The nearest convex mixture of episodes, by linear programming (HiGHS)."""
        target = as_target(target)
        self.check_mixable(target)
        weights = self._weights(target)
        chosen = np.flatnonzero(weights > NO_WEIGHT)
        shares = weights[chosen] / weights[chosen].sum()
        rows = np.concatenate([self.episode(int(episode)) for episode in chosen])
        mass = np.repeat(shares / self.lengths[chosen], self.lengths[chosen])
        values, bins = target.compared(self.frame), self.grid
        if bins.dimensions == 1:
            exact = wasserstein_samples(rows, values, mass)
        else:
            exact = wasserstein_cells(bins.cells(rows), bins.cells(values), bins.widths / self.spread, mass)
        found = {int(episode): float(share) for episode, share in zip(chosen, shares, strict=True)}
        return Mixture(found, exact, self._binned_distance(rows, mass, target))

    @shaped
    def _weights(self, target: Target, due: Float[Array64, " E"] | None = None) -> Float[Array64, " E"]:
        bins = self.grid
        if bins.dimensions == 1:
            return nearest_mixture(self.values[:, 0], self.lengths, target.compared(self.frame)[:, 0], due)
        wanted = bins.cells(target.compared(self.frame))
        return nearest_joint_mixture(self._cells, self.lengths, wanted, bins.widths / self.spread, due)

    @cached_property
    def _cells(self) -> NDArray[np.int64]:
        return self.grid.cells(self.values)

    def schedule(self, target: Target, steps: int, start: int = 0) -> list[tuple[int, float]]:
        """The nearest mixture that can be played in ``steps`` steps: episodes and their shares of time, in order.

        They are those from ``start`` on, where other targets came before this one.

        An episode that ends before the target does (a fall, say) can only be followed while it lasts. Its part must be
        over before that, so parts come in order of these deadlines, and the shares of all that are due by some time fit
        into that time. For a target that outlasts all episodes, all deadlines are put off as far as the longest's, so
        that there still is a mixture. Where deadlines are equal, parts of a target in time come in its order, else slow
        ones first.

        An example, with a target of 100 steps. Episodes 0 (fast) and 1 (slow) last 100 steps; episode 2 has a middle
        speed and falls after 50, so its part is due by 0.45, nine tenths of that. Of 30 % slow, 40 % middle and 30 %
        fast comes ``[(2, 0.4), (1, 0.3), (0, 0.3)]``: what is due first, then slow before fast. Of 20 %, 60 % and 20 %
        comes ``[(2, 0.45), (1, 0.2), (0, 0.35)]``: 60 % do not fit before the fall, and a neighbour in W1 gets the
        rest.
        """
        self.check_mixable(target)
        due = self.due(steps, start)
        weights = self._weights(target, due)
        order = self.in_order(weights, due, target.values(self.frame) if target.in_time else None)
        return [(int(episode), float(weights[episode] / weights[order].sum())) for episode in order]

    @shaped
    def due(self, steps: int, start: int = 0) -> Float[Array64, " E"]:
        """By when the part of every episode must be over, in parts of so many steps from ``start`` on."""
        ends = np.where(self.lengths < start + steps, FOLLOWED * self.lengths, start + steps)
        ends = np.maximum(ends - start, 0.0) if (ends > start).any() else ends
        due: Array64 = np.floor(DEADLINES * ends / ends.max()) / DEADLINES
        due[ends == ends.max()] = 1.0
        return due

    @shaped
    def in_order(
        self,
        weights: Float[Array64, " E"],
        due: Float[Array64, " E"],
        values: Float[Array, "T d"] | None = None,
        running: int | None = None,
    ) -> Int[NDArray[np.int64], " n"]:
        """The episodes of a mixture as they are played: by deadline, by the order of ``values``, the slowest first.

        One that is ``running`` already comes before slower ones.
        """
        chosen = np.flatnonzero(weights > NO_WEIGHT)
        when = np.zeros(len(chosen)) if values is None else np.round(WHEN * self._when(chosen, weights[chosen], values))
        speed = (self.totals.sum(axis=1) / self.lengths)[chosen]
        found: NDArray[np.int64] = chosen[np.lexsort((speed, chosen != running, when, due[chosen]))]
        return found

    @shaped
    def _when(
        self, episodes: Int[NDArray[np.int64], " n"], weights: Float[Array64, " n"], values: Float[Array, "T d"]
    ) -> Float[Array64, " n"]:
        """When in a target's values, from 0 to 1, there is what each episode of a mixture contributes, on average.

        A step of the target is shared out among the episodes by how often they are in its bins.
        """
        indices = self.frame.bins.indices(values)
        seen = self.histograms[episodes][:, np.arange(indices.shape[1]), indices].prod(axis=2)
        parts = weights[:, None] * seen
        total = parts.sum(axis=0)
        shares = np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)
        mass = shares.sum(axis=1)
        middle = (np.arange(len(indices)) + 0.5) / len(indices)
        found: Array64 = np.divide(shares @ middle, mass, out=np.full(len(mass), 0.5), where=mass > 0)
        return found

    def check_mixable(self, target: Target) -> None:
        """Refuse a target that no mixture of episodes approximates."""
        if target.matches != "distribution":
            raise TargetError(f"{target.name} is not a distribution, so no mixture of episodes approximates it")
        self._check_any(target)

    def _check_any(self, target: Target) -> None:
        if not len(self.lengths):
            raise TargetError(
                f"no training episodes are known to compare {target.name} with (himatch import --data SOURCE)"
            )

    def _binned_distance(self, rows: Float[Array, "m d"], mass: Float[Array64, " m"], target: Target) -> float:
        """The paper's W1, of one feature that of the mixture nearest in it; none where its bins tell nothing apart."""
        bins = self.frame.bins
        if not self.resolved.any():
            return np.nan
        if bins.dimensions > 1:
            return wasserstein_cells(bins.indices(rows), bins.indices(target.compared(self.frame)), bins.widths, mass)
        wanted, width = target.histogram(self.frame)[0], bins.widths[0]
        weights = nearest_binned_mixture(self.histograms, wanted[None], bins.widths)
        chosen = np.flatnonzero(weights > NO_WEIGHT)
        mixed = np.einsum("e,eb->b", weights[chosen] / weights[chosen].sum(), self.histograms[chosen, 0])
        return float(wasserstein_bins(mixed, wanted, width))


def usual_of_labels(reference: EpisodeReference, labels: Sequence[str | None]) -> dict[str, dict[str, Any]]:
    """What an episode of each label usually does, in plain numbers: a run keeps it, so that nobody takes one for all.

    Quartiles ``(3, d)`` of the feature in a typical episode, and the medians ``(d,)`` of all sums and last values.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(label for label in labels if label is not None):
        episodes = np.array([number for number, label in enumerate(labels) if label == name])
        chosen = reference.episode(reference.typical(episodes)).astype(np.float64)
        found[name] = {
            "quartiles": np.quantile(chosen, (0.25, 0.5, 0.75), axis=0).tolist(),
            "total": np.median(reference.totals[episodes], axis=0).tolist(),
            "final": np.median(reference.finals[episodes], axis=0).tolist(),
        }
    return found
