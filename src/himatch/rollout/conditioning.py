"""What the policy is told at every step of a rollout.

``open`` is the paper: the target's own z_t, whatever was achieved. ``closed`` tells what remains of the target after
what was achieved. ``planned`` projects a histogram on the nearest mixture of training episodes that can be played one
after the other and tells each stretch its episode's own z_t: an unseen distribution is out of distribution for the
network, its projection is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.aggregators import DiscountedSum, Histogram, Moments
from himatch.errors import TargetError
from himatch.information import InformationStatistic
from himatch.policy.baselines import TaskMethod
from himatch.policy.methods import LearnedMethod
from himatch.targets import Context, EpisodeReference, Target
from himatch.targets.distribution import apportion
from himatch.types import Array, Trajectory

Conditioning = Literal["open", "closed", "planned"]
CONDITIONINGS: tuple[Conditioning, ...] = get_args(Conditioning)


class Feed:
    """Tells every rollout its z, step by step; this one tells nothing (behavioural cloning).

    Rollouts are ``(K, B)``, and each belongs to one of the targets.
    """

    wants_features = False
    """Whether ``achieved`` must be called after every step."""
    target: Tensor | None = None
    """The number of every rollout's target, ``(K, B)``."""

    def z(self, step: int) -> Tensor | None:
        """Statistics for this step, ``(K, B, k)``, or ``None`` for a policy that is told none."""
        return None

    def targets(self, step: int) -> Tensor | None:
        """States of each of the n targets that a learned statistic reads at this step, ``(n, S, obs)``."""
        return None

    def achieved(self, phi: Tensor) -> None:
        """Take note of the feature of the step that was just made, ``(K, B, d)``."""

    def reset(self) -> None:
        """Begin again at step 0."""


class Scheduled(Feed):
    """Tables of z, one for each target, read off by the clock; past its end a table's last row holds."""

    def __init__(self, tables: Sequence[Array], target: Tensor) -> None:
        longest = max(len(table) for table in tables)
        padded = np.stack([table[np.minimum(np.arange(longest), len(table) - 1)] for table in tables])
        self.table = torch.from_numpy(np.ascontiguousarray(padded, dtype=np.float32)).to(target.device)
        self.target = target

    def z(self, step: int) -> Tensor:
        """The row of every rollout's table for this step."""
        return self.table[:, min(step, self.table.shape[1] - 1)][self.target]


class Remaining(Feed):
    """Closed conditioning: the target's total over its T steps, minus what was achieved, as the aggregator says it.

    In double precision: late in an episode little is left of large totals.
    """

    wants_features = True

    def __init__(self, values: Sequence[Array], statistic: InformationStatistic, target: Tensor) -> None:
        self.aggregator, self.target = statistic.aggregator, target

        def numbers(values: object) -> Tensor:
            return torch.tensor(values, dtype=torch.float64, device=target.device)

        def for_rollouts(rows: Sequence[Tensor]) -> Tensor:
            return torch.stack(list(rows)).double().to(target.device)[target]

        if isinstance(self.aggregator, Histogram):
            self.low, self.widths = numbers(self.aggregator.bins.low), numbers(self.aggregator.bins.widths)
        if isinstance(self.aggregator, Moments):
            self.center = numbers(self.aggregator.center or 0.0)
        steps = [numbers(v) for v in values]
        self.lengths = for_rollouts([torch.tensor([len(v)]) for v in values])
        self.totals = for_rollouts([self._contributions(v).sum(0) for v in steps])
        self.whole = for_rollouts([torch.tensor(self.aggregator(v)[0]) for v in values])
        self.done = torch.zeros_like(self.totals)

    def reset(self) -> None:
        """Nothing is achieved yet."""
        self.done.zero_()

    def _contributions(self, phi: Tensor) -> Tensor:
        """What a step adds to the total, ``(..., d)`` to ``(..., j)``: counts, the value, or its powers."""
        aggregator = self.aggregator
        if isinstance(aggregator, Histogram):
            place = ((phi - self.low) / self.widths).clamp(0, aggregator.count - 1).long()
            return torch.nn.functional.one_hot(place, aggregator.count).flatten(-2).double()
        if isinstance(aggregator, Moments):
            centred = phi - self.center
            return torch.cat([centred**p for p in range(1, aggregator.order + 1)], dim=-1)
        return phi

    def achieved(self, phi: Tensor) -> None:
        """Add a step."""
        self.done += self._contributions(phi.double())

    def z(self, step: int) -> Tensor:
        """The statistic of what remains; the whole target's once nothing does."""
        return self._remaining(self.totals - self.done, step).float()

    def _remaining(self, rest: Tensor, step: int) -> Tensor:
        aggregator = self.aggregator
        if isinstance(aggregator, DiscountedSum):
            return rest / aggregator.scale
        if isinstance(aggregator, Histogram):
            shares = _by_dimension(rest.clamp(min=0), aggregator.count)
            mass = shares.sum(-1, keepdim=True)
            whole = _by_dimension(self.whole, aggregator.count)
            return torch.where(mass > 0, shares / mass.clamp(min=1), whole).flatten(-2)
        assert isinstance(aggregator, Moments)
        left = self.lengths - step
        return torch.where(left > 0, _moments(rest / left.clamp(min=1), aggregator.order, self.center), self.whole)


def _by_dimension(histograms: Tensor, count: int) -> Tensor:
    """``(..., d * bins)`` to ``(..., d, bins)``."""
    return histograms.view(*histograms.shape[:-1], -1, count)


def _moments(raw: Tensor, order: int, center: Tensor) -> Tensor:
    """Moments in feature units from means of powers, ``(..., order * d)``, as the aggregator gives them."""
    powers = list(raw.chunk(order, dim=-1))
    mean = powers[0]
    columns = [mean + center]
    if order >= 2:
        columns.append((powers[1] - mean**2).clamp(min=0).sqrt())
    if order >= 3:
        third = powers[2] - 3 * mean * powers[1] + 2 * mean**3
        columns.append(third.sign() * third.abs() ** (1 / 3))
    if order >= 4:
        fourth = powers[3] - 4 * mean * powers[2] + 6 * mean**2 * powers[1] - 3 * mean**4
        columns.append(fourth.clamp(min=0) ** 0.25)
    return torch.cat(columns, dim=-1)


class Imitated(Feed):
    """Learned statistics: windows of the demonstrations' states, by the target's clock."""

    def __init__(self, states: Sequence[Array], method: LearnedMethod, context: int, target: Tensor) -> None:
        longest = max(len(s) for s in states)
        padded = np.stack([s[np.minimum(np.arange(longest), len(s) - 1)] for s in states])
        self.table = torch.from_numpy(np.ascontiguousarray(padded)).to(target.device)
        _, self.count = method.codes_and_states(context)
        self.literal, self.context, self.target = method.literal, context, target

    def targets(self, step: int) -> Tensor:
        """The window that starts at the present, or for the literal reading at the context's first step."""
        first = max(step - self.context + 1, 0) if self.literal else step
        rows = torch.arange(first, first + self.count, device=self.table.device)
        return self.table[:, rows.clamp(max=self.table.shape[1] - 1)]


class Embedded(Feed):
    """Embeddings of whole demonstrations, ``(K, n, m)``: each rollout is told its target's, all the time."""

    def __init__(self, codes: Tensor, target: Tensor) -> None:
        self.target = target
        self.told = codes.to(target.device)[torch.arange(len(codes), device=target.device).unsqueeze(1), target]

    def z(self, step: int) -> Tensor:
        """The same at every step."""
        return self.told


def plan(target: Target, reference: EpisodeReference, aggregator: Histogram, steps: int) -> Array:
    """The z table of ``planned``: the mixture's episodes in turn, each telling its own z_t."""
    parts = reference.schedule(target, steps)
    bins, starts = reference.context.bins, np.concatenate([[0], np.cumsum(reference.lengths)])
    shares = apportion([share for _, share in parts], steps)
    ends = np.cumsum(shares)
    rows: list[Array] = []
    for (episode, _), end, share in zip(parts, ends, shares, strict=True):
        clock = np.arange(end - share, end)
        indices = reference.indices[starts[episode] : starts[episode + 1]]
        centres = np.array(bins.low) + (indices + 0.5) * bins.widths
        z = aggregator(centres.astype(np.float32))
        rows.append(z[np.minimum(clock, len(z) - 1)])
    return np.concatenate(rows)


def make_feed(
    conditioning: Conditioning,
    statistic: object,
    method: object,
    context: int,
    targets: Sequence[Target],
    frame: Context | None,
    rollouts: NDArray[np.int64],
    device: torch.device,
    reference: EpisodeReference | None = None,
    embed: Callable[[Sequence[Trajectory]], Tensor] | None = None,
) -> Feed:
    """The feed for rollouts ``(K, B)`` of target numbers; ``embed`` is how the policy embeds demonstrations."""
    if conditioning not in CONDITIONINGS:
        raise TargetError(f"conditioning must be one of {', '.join(CONDITIONINGS)}, got {conditioning!r}")
    target = torch.from_numpy(rollouts).to(device)
    if isinstance(method, LearnedMethod):
        states = [_demonstration(t).observations for t in targets]
        return Imitated(states, method, context, target)
    if isinstance(method, TaskMethod):
        assert embed is not None
        return Embedded(embed([_demonstration(t) for t in targets]), target)
    if not isinstance(statistic, InformationStatistic) or frame is None:
        return Feed()
    values = [t.values(frame) for t in targets]
    aggregator = statistic.aggregator
    if conditioning == "planned":
        if not isinstance(aggregator, Histogram):
            raise TargetError("planned conditioning lays out histograms; this policy is told another statistic")
        if reference is None:
            raise TargetError("planned conditioning needs the training episodes, which this run does not hold")
        tables = [plan(t, reference, aggregator, len(v)) for t, v in zip(targets, values, strict=True)]
        return Scheduled(tables, target)
    if conditioning == "closed" and isinstance(aggregator, (Histogram, DiscountedSum, Moments)):
        if aggregator.gamma != 1.0:
            raise TargetError("closed conditioning subtracts what was achieved, which needs gamma 1")
        return Remaining(values, statistic, target)
    return Scheduled([aggregator(v) for v in values], target)


def _demonstration(target: Target) -> Trajectory:
    found = target.demonstration()
    if found is None:
        raise TargetError(f"this policy imitates demonstrations, and {target.name} is none; give demo(FILE, EPISODE)")
    return found
