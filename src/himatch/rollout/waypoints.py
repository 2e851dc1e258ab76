"""Way-points: a far goal as a row of near ones, which a policy that imitates single episodes cannot find by itself.

Two episodes that cross show a way that neither of them went. A graph over logged states finds it: its nodes are
*landmarks*, training states that lie apart from one another in the goal's feature, and its edges are what single
episodes did between two of them, with the steps that it took. States of different episodes are joined where they have
the same nearest landmark. Joining each to its neighbours instead would let a shortest path creep from neighbour to
neighbour to anywhere, at no cost. One search from the goal backwards finds the way from every landmark, so that a loop
only looks up where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree
from torch import Tensor

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.errors import TargetError, note
from himatch.methods.conditioner import ALL, Conditioner, Some
from himatch.statistics.features import Stepwise
from himatch.statistics.information import Statistic
from himatch.targets import EpisodeReference, Target
from himatch.types import Array

GRAIN = 5  # steps; landmarks lie as far apart as episodes move within so many
MOVING = 0.75  # quantile of that distance: some of the time episodes may rest
GAP = 25  # steps between two states of an episode that an edge may join, at most
AHEAD = 25  # steps to a way-point, at most
PASSAGE = 0.25  # quantile of the steps that episodes took: others dawdled on the way
NEIGHBOURS, FEW = 1.5, 8  # how far neighbours are apart at most, in radii of landmarks; how many are looked at
REACHED = 0.9  # of the landmarks from which any of them can be reached
SAMPLED = 100_000  # states that landmarks are chosen from
MOST = 20_000  # landmarks; they lie further apart where more would be needed


class Landmarks:
    """The graph over the training episodes of a reference, in its feature divided by its spread."""

    def __init__(self, reference: EpisodeReference) -> None:
        if not len(reference.values):
            raise TargetError("way-points need the training episodes, which this run does not hold")
        self._spread = reference.spread
        values = reference.values / self._spread
        episode = np.repeat(np.arange(len(reference.lengths)), reference.lengths)
        self.values, self.radius = _cover(values, _grain(values, episode))
        self._tree = cKDTree(self.values)
        self.graph = self._joined(values, episode)

    def nearest(self, phi: Float[Array, "n d"]) -> Int[NDArray[np.int64], " n"]:
        """The landmark nearest to each of these values."""
        found: NDArray[np.int64] = np.asarray(self._tree.query(phi / self._spread)[1], dtype=np.int64)
        return found

    def around(self, phi: Float[Array, " d"]) -> list[int]:
        """The few landmarks that are as near as neighbours are, the nearest first; at least that."""
        gaps, found = self._tree.query(phi / self._spread, k=min(FEW, len(self.values)))
        gaps, found = np.atleast_1d(gaps), np.atleast_1d(found)
        near: list[int] = found[(gaps <= NEIGHBOURS * self.radius) | (np.arange(len(gaps)) == 0)].tolist()
        return near

    @property
    def places(self) -> Float[Array, "n d"]:
        """The feature at every landmark."""
        return (self.values * self._spread).astype(np.float32)

    def neighbours(self, of: NDArray[np.bool_], among: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Array64]:
        """For some landmarks the nearest one among others, and how far away it is, in radii."""
        others = np.flatnonzero(among)
        gaps, found = cKDTree(self.values[others]).query(self.values[of])
        return others[found], gaps / self.radius

    def _joined(self, values: Array64, episode: NDArray[np.int64]) -> csr_array:
        """Edges between landmarks that an episode visited within ``GAP`` steps, with the steps."""
        distance, landmark = self._tree.query(values)
        # A visit is a stretch of steps at one landmark; its time is that of the step nearest to the landmark.
        begins = np.flatnonzero(np.diff(landmark, prepend=-1) | np.diff(episode, prepend=-1))
        visit = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(values)))
        time = np.lexsort((distance, visit))[begins]
        at, of = landmark[time], episode[time]
        pairs, gaps, count = [], [], len(self.values)
        for later in range(1, len(time)):
            gap = time[later:] - time[:-later]
            near = (of[later:] == of[:-later]) & (gap <= GAP)
            if not near.any():
                break
            pairs.append((at[:-later] * count + at[later:])[near])
            gaps.append(gap[near])
        if not pairs:
            return csr_array((count, count))
        pair, steps = np.concatenate(pairs), np.concatenate(gaps)
        order = np.lexsort((steps, pair))
        pair, steps = pair[order], steps[order]
        found, first, times = np.unique(pair, return_index=True, return_counts=True)
        usual = steps[first + (PASSAGE * (times - 1)).astype(np.int64)]
        return csr_array((usual.astype(np.float64), (found // count, found % count)), shape=(count, count))


def _grain(values: Array64, episode: NDArray[np.int64]) -> float:
    """How far episodes move within a few steps."""
    same = episode[GRAIN:] == episode[:-GRAIN]
    moved = np.linalg.norm(values[GRAIN:] - values[:-GRAIN], axis=1)[same]
    found = float(np.quantile(moved, MOVING)) if moved.size else 0.0
    return found if found > 0.0 else 1e-6


def _cover(values: Array64, radius: float) -> tuple[Array64, float]:
    """States so far apart that each of the others is near to one of them, and how far that is."""
    some = values[:: max(1, len(values) // SAMPLED)]
    some = some[np.random.default_rng(0).permutation(len(some))]
    tree = cKDTree(some)
    while True:
        covered, chosen = np.zeros(len(some), bool), []
        for number in range(len(some)):
            if not covered[number]:
                chosen.append(number)
                covered[tree.query_ball_point(some[number], radius)] = True
                if len(chosen) > MOST:
                    break
        if len(chosen) <= MOST:
            return some[chosen].astype(np.float64), radius
        radius *= 1.5


@dataclass(frozen=True, eq=False)
class Way:
    """From every landmark the next way-point to a goal.

    ``left`` are the steps from a landmark to the goal. ``point`` is the landmark of its way-point and ``steps`` how far
    ahead that is; ``places`` are the landmarks' values, with the goal itself in its landmark's row.
    """

    left: Array64
    point: NDArray[np.int64]
    steps: NDArray[np.int64]
    places: Array

    @classmethod
    def to(cls, goal: Float[Array, " d"], landmarks: Landmarks, ahead: int = AHEAD) -> Way:
        """The shortest."""
        # Some landmarks lie where episodes begin and none comes back to: then a neighbour stands for the goal's.
        backwards, around = landmarks.graph.T.tocsr(), landmarks.around(goal)
        lefts, afters = dijkstra(backwards, indices=around, return_predecessors=True)
        reached = np.isfinite(lefts).sum(axis=1)
        chosen = int((reached >= REACHED * reached.max()).argmax())
        last, left, after = around[chosen], lefts[chosen], afters[chosen]
        everywhere = np.arange(len(left))
        reachable = np.isfinite(left)
        after = np.where(after >= 0, after, last)
        point = after.astype(np.int64)  # at least one edge on
        while True:
            further = after[point]
            going = (left - np.where(reachable, left[further], 0.0) <= ahead) & reachable & (point != last)
            if not going.any():
                break
            point = np.where(going, further, point)
        point[~reachable] = last
        steps = np.where(reachable, left - left[point], ahead)
        steps = np.where(everywhere == last, GRAIN, steps).clip(1).round().astype(np.int64)
        if not reachable.all() and reachable.sum() > 1:  # where episodes end and none goes on, a neighbour's way
            near, gaps = landmarks.neighbours(~reachable, reachable)
            joined = np.flatnonzero(~reachable)[gaps <= NEIGHBOURS]
            near, gaps = near[gaps <= NEIGHBOURS], gaps[gaps <= NEIGHBOURS]
            left[joined] = left[near] + GRAIN * gaps
            point[joined], steps[joined] = point[near], steps[near] + np.ceil(GRAIN * gaps).astype(np.int64)
        places = landmarks.places
        places[last] = goal
        return cls(left, point, steps, places)


_known: WeakKeyDictionary[EpisodeReference, Landmarks] = WeakKeyDictionary()


def landmarks_of(reference: EpisodeReference) -> Landmarks:
    """Those of a reference, made once."""
    if reference not in _known:
        _known[reference] = Landmarks(reference)
    return _known[reference]


class WayPoints(Conditioner):
    """Conditions every rollout on its next way-point, and on the steps until then where the statistic has them.

    A way-point holds until the rollout is there, or nearer to the goal than it, or its steps are over; the next one is
    that from where the rollout then is.
    """

    wants_states = True
    target_of: Tensor

    @shaped
    def __init__(
        self,
        statistic: Statistic,
        targets: Sequence[Target],
        reference: EpisodeReference,
        target_of: Int[Tensor, "#K B"],
        seeds: int,
        ahead: int = AHEAD,
    ) -> None:
        if statistic.matched is None:
            raise TargetError("way-points are for policies that are conditioned on values of a feature")
        self.target_of, self._statistic, self._feature = target_of, statistic, Stepwise(statistic.matched)
        self._landmarks = landmarks_of(reference)
        goals = [target.values(reference.frame)[-1] for target in targets]
        known: dict[bytes, Way] = {}
        for goal, target in zip(goals, targets, strict=True):
            if goal.tobytes() not in known:
                way = known[goal.tobytes()] = Way.to(goal, self._landmarks, ahead)
                if np.isfinite(way.left).sum() < 2:
                    note(f"no training episode leads to {target.name}: there are no way-points to it")
        self._ways = [known[goal.tobytes()] for goal in goals]
        self._on_host = np.broadcast_to(target_of.cpu().numpy(), (seeds, target_of.shape[1])).copy()
        shape = self._on_host.shape
        self._points, self._elapsed = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._steps = np.zeros(shape, np.int64)  # to the way-point; 0: there is none yet
        self._tables: list[list[Array]] = [[self._table(goals[way], 1) for way in row] for row in self._on_host]
        self._checked = False

    def reset(self, rollouts: Some = ALL) -> None:
        """No way-point yet."""
        self._steps[:, rollouts] = self._elapsed[:, rollouts] = 0

    @shaped
    def seen(self, states: Float[Array, "K B obs"], actions: int) -> None:
        """Where the rollouts are now."""
        rows = states.reshape(-1, states.shape[-1])
        still = np.zeros((len(rows), actions), np.float32)
        phi = self._feature(rows, still, None)
        if not self._checked:
            self._checked = True
            if not np.array_equal(phi, self._feature.feature_of(rows, still + 1.0)):
                raise TargetError(
                    f"{self._feature.feature.name!r} depends on actions, so nobody can be there: it has no way-points"
                )
        here = self._landmarks.nearest(phi).reshape(self._points.shape)
        self._elapsed += 1
        for seed, rollout in np.ndindex(*here.shape):
            way, at = self._ways[self._on_host[seed, rollout]], here[seed, rollout]
            due = self._elapsed[seed, rollout] >= self._steps[seed, rollout]
            if due or way.left[at] <= way.left[self._points[seed, rollout]]:
                self._points[seed, rollout] = point = way.point[at]
                self._steps[seed, rollout] = steps = way.steps[at]
                self._elapsed[seed, rollout] = 0
                self._tables[seed][rollout] = self._table(way.places[point], int(steps))

    @shaped
    def z(self, clock: Int[Tensor, "#K #B"]) -> Float[Tensor, "K B k"]:
        """That of the way-point, with the steps that are left to it."""
        rows = [
            [table[min(int(self._elapsed[seed, rollout]), len(table) - 1)] for rollout, table in enumerate(tables)]
            for seed, tables in enumerate(self._tables)
        ]
        return torch.from_numpy(np.array(rows, dtype=np.float32)).to(self.target_of.device)

    def take(self, other: Conditioner, rollouts: Some = ALL) -> None:
        """Their goals, from where the rollouts are."""
        assert isinstance(other, type(self))
        numbers = np.arange(self._on_host.shape[1])[rollouts]
        for rollout, new in zip(numbers.tolist(), other._on_host[0], strict=True):
            for seed in range(len(self._on_host)):
                self._ways[self._on_host[seed, rollout]] = other._ways[new]
        self.reset(rollouts)

    def _table(self, place: Array, steps: int) -> Array:
        """Z at every step to a place that is so many steps ahead."""
        rows: Array = self._statistic.of_values(np.tile(place, (steps + 1, 1)))[:-1]
        return rows
