"""Families of rewards: r_psi(phi), what a step with the feature phi is worth to the task with the parameter psi.

A parameter is what the task asks the feature to be, in the feature's own units: a velocity to run at, a place to be.
Runs store a family by its name, so one of your own is registered before they are loaded:
``REWARDS["mine"] = lambda phi, psi: ...``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from himatch._runtime.shapes import Array64, Float, shaped
from himatch.errors import HimatchError

Rewards = Callable[[Float[Array64, "T d"], Float[Array64, "n d"]], Float[Array64, "T n"]]
"""The reward of every step under every one of n tasks."""


@shaped
def distance(phi: Float[Array64, "T d"], psi: Float[Array64, "n d"]) -> Float[Array64, "T n"]:
    """``-|phi - psi|``, of several features the Euclidean distance; cheetah-vel's, its psi a velocity."""
    if phi.shape[1] == 1:
        return -np.abs(phi - psi.T)
    return -np.sqrt(-square(phi, psi))


@shaped
def square(phi: Float[Array64, "T d"], psi: Float[Array64, "n d"]) -> Float[Array64, "T n"]:
    """``-|phi - psi|^2``: what is far off counts more."""
    total = np.zeros((len(phi), len(psi)))
    for column, wanted in zip(phi.T, psi.T, strict=True):  # (T, n, d) would be large
        total -= np.square(column[:, None] - wanted)
    return total


REWARDS: dict[str, Rewards] = {"distance": distance, "square": square}
"""Every family by the name it is stored under."""


def find_rewards(name: str) -> Rewards:
    """The family of that name."""
    if name not in REWARDS:
        raise HimatchError(f"unknown rewards {name!r}; known are {', '.join(REWARDS)}")
    return REWARDS[name]
