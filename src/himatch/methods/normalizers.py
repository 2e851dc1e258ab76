"""The maps from raw observations, actions and statistics to what networks see; they travel with the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from himatch._runtime.shapes import Array64, Float, Int, shaped
from himatch.data import TrajectoryDataset
from himatch.methods.batch import Batch
from himatch.methods.support import ZSupport
from himatch.statistics.fences import Fences, sample_rows
from himatch.types import Array, StepRows

_SUPPORT = "support."  # what the tensors of ZSupport are called in a run folder
_BLOCK = 262_144  # rows read together
FARTHEST = 30.0  # middle halves from the quartiles; statistics of sound logs lie within ten or so


class ZScale(NamedTuple):
    """How z is scaled, ``(z - mean) / std``, and what of it training has shown; ``None`` leaves it as it is."""

    mean: Tensor | None = None
    std: Tensor | None = None
    support: ZSupport | None = None


@dataclass(frozen=True)
class Normalizers:
    """States and z become ``(x - mean) / std``, actions ``(a - middle) / half``: the task's range becomes [-1, 1].

    What never moved in the data has an infinite deviation: nothing was learned of it, so it has no effect later either.
    Rewards become ``r / std``: taking a mean from them would change what ending an episode is worth. ``support`` clips
    histograms at run time to what training has shown. ``state_low`` and ``state_high`` are the least and the greatest
    of every number of an observation; runs of earlier versions do not have them.
    """

    state_mean: Tensor
    state_std: Tensor
    action_middle: Tensor
    action_half: Tensor
    z_mean: Tensor | None = None
    z_std: Tensor | None = None
    reward_std: Tensor | None = None
    support: ZSupport | None = None
    state_low: Tensor | None = None
    state_high: Tensor | None = None

    @classmethod
    def fit(cls, train: TrajectoryDataset, scale: ZScale | None = None, *, rewarded: bool = False) -> Normalizers:
        """Take means and deviations from training episodes, the action range from the task (or the data).

        ``rewarded`` methods see rewards too.
        """
        scale, packed, steps = scale or ZScale(), train.packed, train.steps
        low, high = action_range(train)
        observations = partial(_usual_blocks, train, "observations")
        mean, std = moments(steps, observations)
        reward_std = None
        if rewarded and packed.rewards is not None:
            _, reward_std = moments(steps, partial(_usual_blocks, train, "rewards"))
            reward_std = torch.where(reward_std.isinf(), 1.0, reward_std)  # every step is worth the same, not nothing
        return cls(
            mean,
            std,
            _tensor((low + high) / 2),
            _tensor((high - low) / 2),
            scale.mean,
            scale.std,
            reward_std,
            scale.support,
            *map(_tensor, span(observations())),
        )

    def to(self, device: torch.device) -> Normalizers:
        """The same on another device."""
        return Normalizers.of({name: tensor.to(device) for name, tensor in self.tensors().items()})

    def __call__(self, batch: Batch) -> Batch:
        """Normalise a raw batch."""
        return batch._replace(
            states=self.states(batch.states),
            actions=self.actions(batch.actions),
            z=None if batch.z is None else self.z(batch.z),
            target_states=None if batch.target_states is None else self.states(batch.target_states),
            next_states=None if batch.next_states is None else self.states(batch.next_states),
            rewards=None if batch.rewards is None else self.rewards(batch.rewards),
        )

    @shaped
    def states(self, states: Float[Tensor, "*rows obs"]) -> Float[Tensor, "*rows obs"]:
        """Normalise observations."""
        return (states - self.state_mean) / self.state_std

    @shaped
    def actions(self, actions: Float[Tensor, "*rows act"]) -> Float[Tensor, "*rows act"]:
        """The task's range to [-1, 1]."""
        return (actions - self.action_middle) / self.action_half

    @shaped
    def raw_actions(self, actions: Float[Tensor, "*rows act"]) -> Float[Tensor, "*rows act"]:
        """Back from [-1, 1] to the task's range."""
        return actions * self.action_half + self.action_middle

    @shaped
    def rewards(self, rewards: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows"] | None:
        """Rewards in units of their spread; ``None`` for methods that see none."""
        return None if self.reward_std is None else rewards / self.reward_std

    @shaped
    def z(self, z: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows k"]:
        """Scale statistics, where the method does."""
        return z if self.z_mean is None or self.z_std is None else (z - self.z_mean) / self.z_std

    @shaped
    def clipped_z(
        self, z: Float[Tensor, "*rows k"], times: Int[Tensor, "*rows"] | Int[Tensor, " 1"]
    ) -> Float[Tensor, "*rows k"]:
        """Scale statistics for a policy in use: first clipped to the training support at these times."""
        return self.z(z if self.support is None else self.support(z, times))

    def tensors(self) -> dict[str, Tensor]:
        """By name, for a checkpoint."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "support"}
        known = {} if self.support is None else {_SUPPORT + k: t for k, t in self.support._asdict().items()}
        return {name: tensor for name, tensor in (named | known).items() if tensor is not None}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Normalizers:
        """From what :meth:`tensors` gave."""
        known = {name.removeprefix(_SUPPORT): t for name, t in tensors.items() if name.startswith(_SUPPORT)}
        named = {name: t for name, t in tensors.items() if not name.startswith(_SUPPORT)}
        return cls(**named, support=ZSupport(**known) if known else None)


@shaped
def action_range(train: TrajectoryDataset) -> tuple[Float[Array64, " act"], Float[Array64, " act"]]:
    """Low and high of every action coordinate: the task's, or where it has none what the data spans.

    One-hot rows of discrete actions stay as they are.
    """
    task, width = train.task, train.action_width
    if task.discrete is not None:
        return np.full(width, -1.0), np.ones(width)
    if task.action_low is not None and task.action_high is not None:
        low, high = (
            np.broadcast_to(np.asarray(b, dtype=np.float64), (width,)) for b in (task.action_low, task.action_high)
        )
        return low, high
    low, high = span(_usual_blocks(train, "actions"))
    slack = np.where(high > low, 0.0, 1.0)  # an action that never moves still needs a range
    return low - slack, high + slack


@shaped
def moments(count: int, blocks: Callable[[], Iterator[Array]]) -> tuple[Float[Tensor, " d"], Float[Tensor, " d"]]:
    """Mean and standard deviation of the columns of so many rows, in double precision, a block at a time.

    That of a column that never moves is infinite.
    """
    mean = sum(block.sum(axis=0, dtype=np.float64) for block in blocks()) / count
    square = sum(((block - mean) ** 2).sum(axis=0) for block in blocks()) / count
    std = np.sqrt(square)
    return _tensor(mean), _tensor(np.where(std > 1e-6, std, np.inf))


@shaped
def span(blocks: Iterator[Array]) -> tuple[Float[Array64, " d"], Float[Array64, " d"]]:
    """Least and greatest of the columns, a block at a time."""
    lows, highs = zip(*((block.min(axis=0), block.max(axis=0)) for block in blocks), strict=True)
    return np.min(lows, axis=0).astype(np.float64), np.max(highs, axis=0).astype(np.float64)


def _usual_blocks(train: TrajectoryDataset, name: str) -> Iterator[Array]:
    """The rows of an array in blocks, extreme values drawn in to the usual ones: a bad reading is no deviation."""
    array = getattr(train.packed, name)
    rows = array if array.ndim == 2 else array[:, None]
    usual = {column.name: (column.low, column.high) for column in train.extremes()}
    called = [train.packed.called(name, column) for column in range(rows.shape[1])]
    low, high = np.array([usual.get(one, (-np.inf, np.inf)) for one in called], dtype=np.float32).T
    for block in train.blocks(rows, _BLOCK):
        yield np.clip(block, low, high) if np.isfinite(low).any() else block


@shaped
def usual_moments(rows: StepRows) -> tuple[Float[Tensor, " d"], Float[Tensor, " d"]]:
    """Mean and standard deviation of statistics, far ones drawn in: a bad reading would make all others seem alike.

    Fences tell what is extreme. Of one reading a moment has an episode of far values, all different, which in little
    data are too many for fences; so nothing counts beyond many times the middle half either.
    """
    sample = rows[sample_rows(len(rows))]
    found = Fences(sample)
    for block in slices(rows):
        found.add(block)
    first, third = np.quantile(sample, (0.25, 0.75), axis=0)
    reach = np.where(third > first, FARTHEST * (third - first), np.inf)
    low, high = np.maximum(found.usual[0], first - reach), np.minimum(found.usual[1], third + reach)
    mean, std = moments(len(rows), lambda: (np.clip(block, low, high) for block in slices(rows)))
    if not std.isinf().any():
        return mean, std
    # What moved only beyond the fences still did.
    plain_mean, plain_std = moments(len(rows), partial(slices, rows))
    return torch.where(std.isinf(), plain_mean, mean), torch.where(std.isinf(), plain_std, std)


def slices(rows: StepRows) -> Iterator[Array]:
    """Rows in blocks."""
    return (rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK))


def _tensor(values: object) -> Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32)
