"""The episode mixture nearest to a target, as a linear program: on cells of one feature, on joint cells of several.

In one dimension W1 is the area between cumulative distributions, which is linear in the weights of the mixture. Its
cells lie where values are, whatever the bins of a histogram, and are cut finer until the program's distance is that of
the samples. In several dimensions the program holds the transport plan itself, so its cells are made wider until it is
small enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack
from scipy.spatial.distance import cdist

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.errors import HimatchError
from himatch.statistics.fences import sample_rows
from himatch.types import Array

CELLS, CUTS = 64, 8  # quantiles of either side that cells begin with; parts that a cell is cut at
AGREED = 1e-3  # of the values' usual distance: so near are the distance of a program and that of the samples
ROUNDS = 6  # of cutting cells; as a rule one or two do
AT_ONCE = 256  # episodes that a program begins with, and that enter together
LEAST_GAIN = 1e-7  # of a reduced cost: the solver's own tolerance
WIDEST = 1e6  # of a cell, in usual distances, and of what is moved, in spreads
FAR, WIDER = 100, 10.0  # cells from the middle half of all from which on they are wider, and about twice after so many
MOST_PAIRS = 12_000  # of cells in the joint program: about a second


@shaped
def nearest_mixture(
    values: Float[Array, " steps"],
    lengths: Int[NDArray[np.int64], " E"],
    wanted: Float[Array, " m"],
    due: Float[Array64, " E"] | None = None,
) -> Float[Array64, " E"]:
    """Weights of the mixture of episodes whose values are nearest to the wanted ones in W1.

    ``values`` are those of all steps, episode after episode. The program sees the mean of F w - f in every cell, for
    cumulative distributions F of the episodes and f of the target, so its distance is too short by what F w lies above
    f in one part of a cell and below in another. Cells where that is much are cut, and the program is solved again.
    Given when every episode is ``due``, a part of one, episodes that are due by then weigh no more than that together.
    """
    rows, goal = values.astype(np.float64), wanted.astype(np.float64)
    unit, edges = _unit(rows, goal), _edges(rows, goal)
    best, least = np.zeros(len(lengths)), np.inf
    for _ in range(ROUNDS):
        weights = _nearest_on_cells(rows, lengths, goal, edges, unit, due)
        chosen = np.repeat(weights, lengths) > 0
        mass = np.repeat(weights / lengths, lengths)[chosen]
        breaks, ends, gaps, distance = _compared(rows[chosen], mass / mass.sum(), goal, edges)
        if distance < least:
            best, least = weights, distance
        if gaps.sum() <= AGREED * unit:
            break
        cut = gaps > 0.5 * AGREED * unit / len(gaps)
        edges = np.unique(np.concatenate([edges, *(_parts(breaks[a:b]) for a, b in ends[cut])]))
    return best


def _unit(rows: Float[Array64, " n"], goal: Float[Array64, " m"]) -> float:
    """How far values usually are from one another: the range of the middle half, which no sentinel stretches."""
    for outer in (0.25, 0.01, 0.0):
        low, high = np.quantile(rows[sample_rows(len(rows))], (outer, 1 - outer))
        if high > low:
            return float(high - low)
    return float(np.ptp(goal)) or 1.0


def _edges(rows: Float[Array64, " n"], goal: Float[Array64, " m"]) -> Float[Array64, " edges"]:
    """Quantiles of the training values and of the target's, with the ends of both."""
    some = rows[sample_rows(len(rows))]
    parts = [np.quantile(x, np.linspace(0, 1, CELLS + 1), method="nearest") for x in (some, goal)]
    edges = np.unique(np.concatenate([*parts, [rows.min(), rows.max()]]))
    return edges if len(edges) > 1 else np.append(edges, np.nextafter(edges[0], np.inf))


def _parts(breaks: Float[Array64, " n"]) -> Float[Array64, " m"]:
    """Where a cell with these values is cut."""
    return breaks[np.linspace(0, len(breaks) - 1, CUTS + 2).round().astype(np.int64)[1:-1]]


@shaped
def _compared(
    rows: Float[Array64, " n"], mass: Float[Array64, " n"], goal: Float[Array64, " m"], edges: Float[Array64, " e"]
) -> tuple[Float[Array64, " k"], Int[NDArray[np.int64], "c 2"], Float[Array64, " c"], float]:
    """Where F of a mixture's values or f of the target's has steps, and W1, the area between them.

    Between them, of every cell: from which to which of these steps it goes, and by how much its area is more than that
    of the means.
    """
    breaks = np.unique(np.concatenate([rows, goal, edges]))
    order = np.argsort(rows, kind="stable")
    reached = np.concatenate([[0.0], np.cumsum(mass[order])])[np.searchsorted(rows[order], breaks, side="right")]
    asked = np.searchsorted(np.sort(goal), breaks, side="right") / len(goal)
    areas = ((reached - asked)[:-1]) * np.diff(breaks)
    starts = np.searchsorted(breaks, edges)
    whole, above = np.add.reduceat(np.abs(areas), starts[:-1]), np.add.reduceat(areas, starts[:-1])
    return breaks, np.stack([starts[:-1], starts[1:] + 1], axis=1), whole - np.abs(above), float(whole.sum())


@shaped
def _mean_cumulative(
    rows: Float[Array64, " n"], lengths: Int[NDArray[np.int64], " E"], edges: Float[Array64, " e"]
) -> Float[Array64, "E c"]:
    """The mean of every episode's cumulative distribution in every cell.

    A value adds one to all cells after its own, and to its own the part that lies above it.
    """
    cells, owner = len(edges) - 1, np.repeat(np.arange(len(lengths)), lengths)
    place = np.clip(np.searchsorted(edges, rows, side="right") - 1, 0, cells - 1)
    part, flat = (edges[place + 1] - rows) / np.diff(edges)[place], owner * cells + place
    counts = np.bincount(flat, minlength=len(lengths) * cells).reshape(-1, cells)
    parts = np.bincount(flat, part, minlength=len(lengths) * cells).reshape(-1, cells)
    return (np.cumsum(counts, axis=1) - counts + parts) / lengths[:, None]


@shaped
def _nearest_on_cells(
    rows: Float[Array64, " n"],
    lengths: Int[NDArray[np.int64], " E"],
    goal: Float[Array64, " m"],
    edges: Float[Array64, " e"],
    unit: float,
    due: Float[Array64, " E"] | None,
) -> Float[Array64, " E"]:
    """Minimise ``sum_j width_j (over_j + under_j)`` over weights w, with ``F w - over + under = f``, ``sum w = 1``.

    All are at least 0. It begins with some of the episodes; others enter where their reduced costs are below 0.
    """
    episodes, cells = len(lengths), len(edges) - 1
    cumulative = _mean_cumulative(rows, lengths, edges)
    wanted = _mean_cumulative(goal, np.array([len(goal)]), edges)[0]
    # In usual widths: a solver's tolerances are numbers, and beyond 1e20 is infinite to it.
    costs = np.minimum(np.diff(edges) / unit, WIDEST)
    early, times = _deadlines(due, episodes)
    early = early.toarray()
    active = np.zeros(episodes, dtype=bool)
    active[np.linspace(0, episodes - 1, min(episodes, AT_ONCE)).astype(np.int64)] = True
    active[0 if due is None else int(np.argmax(due))] = True  # one that is never due, else there may be no mixture
    while True:
        chosen = np.flatnonzero(active)
        n = len(chosen)
        solution = linprog(
            np.concatenate([np.zeros(n), costs, costs]),
            A_ub=_wider(csr_array(early[:, chosen]), 2 * cells) if len(times) else None,
            b_ub=times if len(times) else None,
            A_eq=vstack(
                [
                    hstack([csr_array(cumulative[chosen].T), -eye_array(cells), eye_array(cells)]),
                    _wider(csr_array(np.ones((1, n))), 2 * cells),
                ]
            ),
            b_eq=np.append(wanted, 1.0),
            bounds=(0, None),
            method="highs",
        )
        weights = np.zeros(episodes)
        weights[chosen] = _weights(solution, n)
        prices = solution.eqlin.marginals
        reduced = -(cumulative @ prices[:-1]) - prices[-1]
        if len(times):
            reduced -= early.T @ solution.ineqlin.marginals
        reduced[active] = 0.0
        better = np.argsort(reduced)[:AT_ONCE]
        better = better[reduced[better] < -LEAST_GAIN]
        if not len(better):
            return weights
        active[better] = True


@shaped
def nearest_binned_mixture(
    histograms: Float[Array64, "E d bins"],
    wanted: Float[Array64, "d bins"],
    widths: Float[Array64, " d"],
    due: Float[Array64, " E"] | None = None,
) -> Float[Array64, " E"]:
    """Weights of the mixture whose histograms are nearest to the wanted ones in the paper's W1, summed over features.

    Minimise ``sum_j width_j u_j`` over weights w and slacks u, with ``u >= |F w - f|``, ``w >= 0``, ``sum w = 1``,
    where F holds cumulative distributions. What is wanted may be less than nothing in a bin that has too much already.
    ``due`` is as in :func:`nearest_mixture`.
    """
    episodes, features, bins = histograms.shape
    # The last cumulative value is one for everybody.
    cumulative = csr_array(np.cumsum(histograms, axis=2)[:, :, :-1].reshape(episodes, -1).T)
    goal = np.cumsum(wanted, axis=1)[:, :-1].ravel()
    rows = features * (bins - 1)
    slack = eye_array(rows) if rows else csr_array((0, 0))
    early, times = _deadlines(due, episodes)
    solution = linprog(
        np.concatenate([np.zeros(episodes), np.repeat(widths, bins - 1)]),
        A_ub=vstack([hstack([cumulative, -slack]), hstack([-cumulative, -slack]), _wider(early, rows)]),
        b_ub=np.concatenate([goal, -goal, times]),
        A_eq=np.concatenate([np.ones(episodes), np.zeros(rows)])[None, :],
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
    places, goals, step, band = _coarse(cells, wanted)
    found, cell_of = np.unique(places, axis=0, return_inverse=True)
    goal, counts = np.unique(goals, axis=0, return_counts=True)
    costs = np.minimum(cdist(*(_expanded(x * step, *band) * scale for x in (found, goal))), WIDEST)
    n, m, episodes = len(found), len(goal), len(lengths)
    share = csr_array(((1.0 / lengths)[owner], (cell_of.ravel(), owner)), shape=(n, episodes))
    share.sum_duplicates()
    moved_from = kron(eye_array(n), np.ones((1, m)))
    moved_to = kron(np.ones((1, n)), eye_array(m))
    early, times = _deadlines(due, episodes)
    solution = linprog(
        np.concatenate([np.zeros(episodes), costs.ravel()]),
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


Band = tuple[Int[NDArray[np.int64], " d"], Int[NDArray[np.int64], " d"]]


def _coarse(
    cells: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int, Band]:
    """Both in cells so many times wider that few enough pairs of them are occupied; those far away are wider still."""
    quartiles = np.quantile(cells, (0.25, 0.75), axis=0, method="nearest")
    band = quartiles[0] - FAR, quartiles[1] + FAR
    occupied, back = np.unique(_compressed(cells, *band), axis=0, return_inverse=True)
    wanted, step = _compressed(wanted, *band), 1
    while True:
        here, there = occupied // step, wanted // step
        if len(np.unique(here, axis=0)) * len(np.unique(there, axis=0)) <= MOST_PAIRS:
            return here[back.ravel()], there, step, band
        step += 1


def _compressed(cells: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells from low to high as they are and those beyond by the logarithm of how far: else outliers would be most."""
    near = np.clip(cells, low, high)
    beyond = np.round(WIDER * np.log1p(np.abs(cells - near) / WIDER)).astype(np.int64)
    found: NDArray[np.int64] = near + np.sign(cells - near) * beyond
    return found


def _expanded(cells: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]) -> Array64:
    """Where cells that were compressed lie."""
    near = np.clip(cells, low, high)
    found: Array64 = near + np.sign(cells - near) * WIDER * np.expm1(np.abs(cells - near) / WIDER)
    return found


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
