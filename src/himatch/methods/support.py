"""The training support of histograms at each time of an episode, and how z is clipped to it.

A network is undefined in directions in which its inputs never varied: conditioned on a histogram that no training
episode had, a policy may do anything, such as fall over. So z of a rollout is clipped to the training support: written
as a cumulative distribution (near in W1 is near there) along the principal axes of the training z at that time of an
episode, each coordinate is clipped to the range that training had. Training z stay as they are.

A clipped z can leave the simplex slightly. It still sums to one, but clipping one axis and not another can take a bin
below zero: -0.043 was measured for normal(3,1) on a tiny dataset. The network never asks for a proper histogram.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.types import StepRows

PARTS = 20  # of an episode's horizon, with axes of their own
MOST = 4_000_000  # steps that are looked at; of more, a random one of every so many
_BLOCK = 262_144  # rows read together


class ZSupport(NamedTuple):
    """Of every part of an episode: the mean histogram, the way to the axes and back, and the range along each axis."""

    mean: Float[Tensor, "parts d bins"]
    to: Float[Tensor, "parts d bins bins"]
    back: Float[Tensor, "parts d bins bins"]
    low: Float[Tensor, "parts d bins"]
    high: Float[Tensor, "parts d bins"]
    period: Int[Tensor, ""]
    """Steps of a part."""

    @shaped
    def __call__(
        self, z: Float[Tensor, "*rows k"], times: Int[Tensor, "*rows"] | Int[Tensor, " 1"]
    ) -> Float[Tensor, "*rows k"]:
        """Histograms, k is d * bins, at these times, or all at one, clipped."""
        part = torch.div(times, self.period, rounding_mode="floor").clamp(max=len(self.mean) - 1)
        mean, to, back, low, high = (table[part] for table in self[:5])
        if times.shape == (1,):  # one way for all: a plain product for each dimension
            rows = z.reshape(-1, *mean.shape[-2:]).transpose(0, 1)
            to, back = to[0], back[0]
            mean, low, high = (table.transpose(0, 1) for table in (mean, low, high))
            kept = torch.clamp((rows - mean) @ to, low, high) @ back + mean
            return kept.transpose(0, 1).reshape(z.shape)
        rows = z.view(*z.shape[:-1], *mean.shape[-2:])
        kept = torch.clamp(((rows - mean).unsqueeze(-2) @ to).squeeze(-2), low, high)
        return ((kept.unsqueeze(-2) @ back).squeeze(-2) + mean).flatten(-2)


@shaped
def fit_support(z: StepRows, lengths: Int[NDArray[np.int64], " E"], bins: int, horizon: int) -> ZSupport:
    """From the histograms of training steps, ``(steps, k)``, k is d * bins, episode after episode; of at most ``MOST``.

    Steps of an episode beside one another have nearly the same histogram, so a sample of very many shows what all do.
    """
    period, every = -(-horizon // PARTS), -(-len(z) // MOST)
    found = [_fit(z, rows, bins) for part in range(PARTS) if len(rows := _rows(lengths, part, period, every))]
    columns = (torch.tensor(np.stack(column), dtype=torch.float32) for column in zip(*found, strict=True))
    mean, to, back, low, high = columns
    return ZSupport(mean, to, back, low, high, torch.tensor(period))


def _rows(lengths: NDArray[np.int64], part: int, period: int, every: int) -> NDArray[np.int64]:
    """Rows of the steps that lie in a part of their episodes: one of ``every`` so many, always the same."""
    starts = np.cumsum(lengths) - lengths
    first, last = np.minimum(lengths, part * period), np.minimum(lengths, (part + 1) * period)
    ends = np.cumsum(last - first)
    number = np.arange(0, ends[-1], every)
    if every > 1:  # not evenly: episodes of one length would show the same few times
        number += np.random.default_rng(part).integers(every, size=len(number))
        number = np.minimum(number, ends[-1] - 1)
    shift: NDArray[np.int64] = (starts + last - ends)[np.searchsorted(ends, number, side="right")]
    return number + shift


def _fit(z: StepRows, rows: NDArray[np.int64], bins: int) -> tuple[Array64, ...]:
    """Mean, ways, and the range along each axis; the axes are those of cumulative distributions."""
    cumulate = np.triu(np.ones((bins, bins)))  # h @ cumulate is the cumulative distribution
    blocks = partial(_blocks, z, rows, bins)
    if len(rows) <= _BLOCK:  # read once: z may have to be computed
        kept = list(blocks())
        blocks = partial(iter, kept)
    mean = sum(block.sum(axis=0) for block in blocks()) / len(rows)
    products = np.zeros((len(mean), bins, bins))
    for block in blocks():
        cumulative = (block - mean) @ cumulate
        products += np.einsum("ndi,ndj->dij", cumulative, cumulative)
    _, axes = np.linalg.eigh(products)
    to, back = cumulate @ axes, axes.swapaxes(1, 2) @ np.linalg.inv(cumulate)
    low, high = np.full(mean.shape, np.inf), np.full(mean.shape, -np.inf)
    for block in blocks():
        along = np.einsum("ndi,dij->ndj", block - mean, to)
        low, high = np.minimum(low, along.min(axis=0)), np.maximum(high, along.max(axis=0))
    return mean, to, back, low, high


def _blocks(z: StepRows, rows: NDArray[np.int64], bins: int) -> Iterator[Float[Array64, "n d bins"]]:
    for first in range(0, len(rows), _BLOCK):
        block = np.asarray(z[rows[first : first + _BLOCK]], dtype=np.float64)
        yield block.reshape(len(block), -1, bins)
