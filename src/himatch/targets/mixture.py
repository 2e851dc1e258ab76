"""The episode mixture nearest to a target, as a linear program: on the bins of one feature, on joint cells of several.

In one dimension W1 is the area between cumulative distributions, which is linear in the weights of the mixture. In
several dimensions the program holds the transport plan itself, so its cells are made wider until it is small enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack
from scipy.spatial.distance import cdist

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.errors import HimatchError

MOST_PAIRS = 12_000  # of cells in the joint program: about a second


@shaped
def nearest_mixture(
    histograms: Float[Array64, "E bins"],
    wanted: Float[Array64, " bins"],
    width: float,
    due: Float[Array64, " E"] | None = None,
) -> Float[Array64, " E"]:
    """Weights of the mixture of one feature's histograms that is nearest to the wanted one in W1.

    Minimise ``sum_j width u_j`` over weights w and slacks u, with ``u >= |F w - f|``, ``w >= 0``, ``sum w = 1``, where
    F holds cumulative distributions. Given when every episode is ``due``, a part of one, episodes that are due by then
    weigh no more than that together.
    """
    episodes, bins = histograms.shape
    # The last cumulative value is one for everybody.
    cumulative = csr_array(np.cumsum(histograms, axis=1)[:, :-1].T)
    goal = np.cumsum(wanted)[:-1]
    slack = eye_array(bins - 1) if bins > 1 else csr_array((0, 0))
    early, times = _deadlines(due, episodes)
    solution = linprog(
        np.concatenate([np.zeros(episodes), np.full(bins - 1, width)]),
        A_ub=vstack([hstack([cumulative, -slack]), hstack([-cumulative, -slack]), _wider(early, bins - 1)]),
        b_ub=np.concatenate([goal, -goal, times]),
        A_eq=np.concatenate([np.ones(episodes), np.zeros(bins - 1)])[None, :],
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    return _weights(solution, episodes)


@shaped
def nearest_joint_mixture(
    cells: Int[NDArray[np.int64], "steps d"],
    lengths: Int[NDArray[np.int64], " E"],
    wanted: Int[NDArray[np.int64], "m d"],
    scale: Float[Array64, " d"],
    due: Float[Array64, " E"] | None = None,
) -> Float[Array64, " E"]:
    """Weights of the mixture of episodes whose joint distribution is nearest to the wanted one in W1.

    ``cells`` are those of all steps, episode after episode; ``scale`` is what a cell's width costs in each dimension.
    Minimise ``sum_ij c_ij pi_ij`` over weights w and plans pi, where pi moves the mixture's cells to the wanted ones.
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    places, goals, step = _coarse(cells, wanted)
    found, cell_of = np.unique(places, axis=0, return_inverse=True)
    goal, counts = np.unique(goals, axis=0, return_counts=True)
    n, m, episodes = len(found), len(goal), len(lengths)
    share = csr_array(((1.0 / lengths)[owner], (cell_of.ravel(), owner)), shape=(n, episodes))
    share.sum_duplicates()
    moved_from = kron(eye_array(n), np.ones((1, m)))
    moved_to = kron(np.ones((1, n)), eye_array(m))
    early, times = _deadlines(due, episodes)
    solution = linprog(
        np.concatenate([np.zeros(episodes), cdist(found * step * scale, goal * step * scale).ravel()]),
        A_ub=_wider(early, n * m) if len(times) else None,
        b_ub=times if len(times) else None,
        A_eq=csr_array(
            vstack(
                [
                    hstack([-share, moved_from]),
                    hstack([csr_array((m, episodes)), moved_to]),
                    hstack([csr_array(np.ones((1, episodes))), csr_array((1, n * m))]),
                ]
            )
        ),
        b_eq=np.concatenate([np.zeros(n), counts / counts.sum(), [1.0]]),
        bounds=(0, None),
        method="highs",
    )
    return _weights(solution, episodes)


def _coarse(cells: NDArray[np.int64], wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Both in cells so many times wider that few enough pairs of them are occupied."""
    occupied, back = np.unique(cells, axis=0, return_inverse=True)
    step = 1
    while True:
        here, there = occupied // step, wanted // step
        if len(np.unique(here, axis=0)) * len(np.unique(there, axis=0)) <= MOST_PAIRS:
            return here[back.ravel()], there, step
        step += 1


def _deadlines(due: Float[Array64, " E"] | None, episodes: int) -> tuple[csr_array, Array64]:
    """Which episodes are due by which times, and these times."""
    if due is None:
        return csr_array((0, episodes)), np.zeros(0)
    times = np.unique(due[due < 1.0])
    return csr_array((due <= times[:, None]), dtype=np.float64), times


def _wider(rows: csr_array, more: int) -> csr_array:
    """Constraints that leave so many more variables alone."""
    return csr_array(hstack([rows, csr_array((rows.shape[0], more))]))


def _weights(solution: OptimizeResult, episodes: int) -> Float[Array64, " E"]:
    if solution.status != 0:
        raise HimatchError(f"the linear program for the nearest mixture failed: {solution.message}")
    weights: Array64 = np.maximum(solution.x[:episodes], 0.0)
    return weights
