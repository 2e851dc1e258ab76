"""What histograms were like in training at each time of an episode, and how another one is brought there.

A network knows nothing of directions in which its inputs never varied: told a histogram that no training episode had,
it may do anything, such as fall over. So of the z that a rollout is told, what goes beyond training is cut off: written
as a cumulative distribution (near in W1 is near there) along the principal axes of the training z at that time of an
episode, each coordinate is kept between the least and the largest that training had. Training z stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.types import Array

PARTS = 20  # of an episode's horizon, with axes of their own
_BLOCK = 262_144  # rows looked at together


def fit_familiar(z: Array, lengths: NDArray[np.int64], bins: int, horizon: int) -> dict[str, Tensor]:
    """Centres ``(parts, d, bins)``, axes ``(parts, d, bins, bins)``, ranges and the steps of a part, from training z.

    ``z`` are the histograms of all steps, ``(steps, d * bins)``, episode after episode.
    """
    period = -(-horizon // PARTS)
    found = [_fit(z, rows, bins) for part in range(PARTS) if len(rows := _rows(lengths, part, period))]
    columns = [torch.tensor(np.stack(column), dtype=torch.float32) for column in zip(*found, strict=True)]
    names = ("z_centre", "z_axes", "z_low", "z_high")
    return {**dict(zip(names, columns, strict=True)), "z_period": torch.tensor(period)}


def familiar(
    z: Tensor, times: Tensor, centre: Tensor, axes: Tensor, low: Tensor, high: Tensor, period: Tensor
) -> Tensor:
    """Histograms ``(..., d * bins)`` at times ``(...)``, or all at one ``(1,)``, without what goes beyond training."""
    part = torch.div(times, period, rounding_mode="floor").clamp(max=len(centre) - 1)
    middle, basis, least, most = (table[part] for table in (centre, axes, low, high))
    turn = "...i,...ij->...j"
    if times.shape == (1,):
        middle, basis, least, most = (table.squeeze(0) for table in (middle, basis, least, most))
        turn = "...di,dij->...dj"  # one basis for all: a plain product
    cumulative = z.view(*z.shape[:-1], *middle.shape[-2:]).cumsum(-1) - middle
    along = torch.einsum(turn, cumulative, basis)
    back = torch.einsum(turn, torch.minimum(torch.maximum(along, least), most), basis.mT) + middle
    return torch.cat([back[..., :1], back[..., 1:] - back[..., :-1]], dim=-1).flatten(-2)


def _rows(lengths: NDArray[np.int64], part: int, period: int) -> NDArray[np.int64]:
    """Rows of the steps that lie in a part of their episodes."""
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    first, last = np.minimum(lengths, part * period), np.minimum(lengths, (part + 1) * period)
    count = last - first
    return np.repeat(starts + first - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())


def _fit(z: Array, rows: NDArray[np.int64], bins: int) -> tuple[NDArray[np.float64], ...]:
    """Centre, axes, and the range along each of them."""
    total = sum(block.sum(axis=0) for block in _cumulative(z, rows, bins))
    centre = total / len(rows)
    products = sum(np.einsum("ndi,ndj->dij", x, x) for x in (b - centre for b in _cumulative(z, rows, bins)))
    _, axes = np.linalg.eigh(products)
    low, high = np.full(centre.shape, np.inf), np.full(centre.shape, -np.inf)
    for block in _cumulative(z, rows, bins):
        along = np.einsum("ndi,dij->ndj", block - centre, axes)
        low, high = np.minimum(low, along.min(axis=0)), np.maximum(high, along.max(axis=0))
    return centre, axes, low, high


def _cumulative(z: Array, rows: NDArray[np.int64], bins: int) -> Iterator[NDArray[np.float64]]:
    for first in range(0, len(rows), _BLOCK):
        block = np.asarray(z[rows[first : first + _BLOCK]], dtype=np.float64)
        yield np.cumsum(block.reshape(len(block), -1, bins), axis=2)
