"""A feature while episodes go on: row by row, and refused where it cannot be known so."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from himatch._runtime.shapes import Float, shaped
from himatch.errors import DataError, TaskError
from himatch.statistics.features.feature import Feature
from himatch.types import Array, Trajectory, concatenate

LONGEST = 1024  # rows that are compared at most: about an episode


class Stepwise:
    """A feature of the present steps of several rollouts, for whoever must know it before their episodes are over.

    A user's function may look at other steps of its episode, and the rows it is given here are no steps of one. Whether
    it does is found out on the way: each time that twice as many steps were made, the feature of some rows, one a step,
    is computed in one stretch. A function of single steps gives what it gave for them before, whatever rows they are.
    """

    def __init__(self, feature: Feature) -> None:
        self.feature = feature
        self._seen: list[tuple[Array, Array, np.float32 | None]] = []
        self._given: list[Array] = []

    @shaped
    def __call__(
        self, observations: Float[Array, "B obs"], actions: Float[Array, "B act"], rewards: Float[Array, " B"] | None
    ) -> Float[Array, "B d"]:
        """The feature of every row."""
        phi = self._feature_of(Trajectory(observations, actions, rewards))
        if len(self._seen) < LONGEST:
            row = len(self._seen) % len(phi)  # another one each time: a rollout may have come to rest
            reward = None if rewards is None else rewards[row]
            self._seen.append((observations[row].copy(), actions[row].copy(), reward))
            self._given.append(phi[row].copy())
            if len(self._seen).bit_count() == 1:  # 1, 2, 4, ...
                self._compare()
        return phi

    @shaped
    def feature_of(self, observations: Float[Array, "B obs"], actions: Float[Array, "B act"]) -> Float[Array, "B d"]:
        """The same, of rows that are no steps of anybody."""
        return self._feature_of(Trajectory(observations, actions))

    def _compare(self) -> None:
        observations, actions, rewards = zip(*self._seen, strict=True)
        together = None if None in rewards else np.array(rewards)
        stretch = self._feature_of(Trajectory(np.stack(observations), np.stack(actions), together))
        slack = 1e-5 * max(1.0, float(np.abs(stretch).max()))  # sums are rounded otherwise in another company
        if not np.allclose(stretch, np.stack(self._given), rtol=1e-4, atol=slack):
            raise self._refusal()

    def _feature_of(self, steps: Trajectory) -> Array:
        """The feature; one that fails of a single step, but not of the same step twice, looks at several."""
        try:
            return self.feature(steps)
        except DataError:
            if len(steps) == 1:
                with suppress(DataError):
                    self.feature(concatenate(steps, steps))
                    raise self._refusal() from None
            raise

    def _refusal(self) -> TaskError:
        return TaskError(
            f"feature {self.feature.name!r} looks at more than one step, so it is not known while an episode goes on; "
            "remaining conditioning, and planning again, need a feature of single steps; nominal does not"
        )
