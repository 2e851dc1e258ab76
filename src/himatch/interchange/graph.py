"""A policy as one function of raw arrays: what an exported file computes.

Windows hold the last N steps, newest last, so that a caller's context is a plain shift. ``step`` says how many steps
came before in the episode, and with that which rows are filled yet, what their times are and which position is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from himatch.errors import HimatchError
from himatch.methods.baselines import TaskMethod
from himatch.methods.paper import LearnedMethod
from himatch.policy import Policy
from himatch.statistics.aggregators import DiscountedSum, FinalValue, Histogram, Moments
from himatch.statistics.information import InformationStatistic


@dataclass(frozen=True)
class Port:
    """An input or output: ``shape`` without the batch, and what the numbers mean."""

    name: str
    shape: tuple[int, ...]
    meaning: str


class PolicyGraph(nn.Module):
    """One seed of a policy, normalisation and code network inside: ``(B, ...)`` raw windows to raw actions.

    The first argument is z ``(B, N, k)``, for learned statistics the target's states ``(B, S, obs)``, and missing for
    policies that are told nothing.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        if len(policy.seeds) != 1:
            raise HimatchError("a file holds one seed; choose it with policy.only(seed)")
        self.agent, self.normalizers = policy.agent, policy.normalizers
        self.context = policy.context

    def forward(self, *arguments: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Arguments in the order of :func:`inputs_of`; the action ``(B, act)`` and, where learned, its codes."""
        *told, states, actions, step = arguments
        normalize, policy, last = self.normalizers, self.agent.policy, self.context - 1
        order = torch.arange(self.context)
        place = step.clamp(max=last)
        # The policy wants its first step at position 0; what comes after position `place` it does not see.
        source = (order + (last - place).unsqueeze(1)).clamp(max=last)

        def aligned(window: Tensor) -> Tensor:
            return window.gather(1, source.unsqueeze(2).expand(-1, -1, window.shape[2]))

        times = (step - place).unsqueeze(1) + order
        z: Tensor | None = None
        if self.agent.codes is not None:
            z = self.agent.codes(normalize.states(told[0]).unsqueeze(0), self.agent.code_count)
        elif told:
            z = normalize.told(aligned(told[0]), times).unsqueeze(0)
        outputs = policy(
            z,
            normalize.states(aligned(states)).unsqueeze(0),
            ((aligned(actions) - normalize.action_middle) / normalize.action_half).unsqueeze(0),
            times.unsqueeze(0),
        )[0]
        read = outputs.gather(1, place.view(-1, 1, 1).expand(-1, 1, outputs.shape[2]))[:, 0]
        action = normalize.raw_actions(policy.action(read))
        return action if self.agent.codes is None or z is None else (action, z[0])


def inputs_of(policy: Policy) -> tuple[Port, ...]:
    """What :class:`PolicyGraph` takes, in order."""
    widths, n, task = policy.agent.widths, policy.context, policy.task.name
    known = {i: name for name, i in policy.task.features.items() if isinstance(i, int)}
    named = ", ".join(f"{i} is {known[i]}" for i in sorted(known))
    ports = [
        Port("states", (n, widths.observation), f"raw observations of {task}, newest last" + (named and f"; {named}")),
        Port("actions", (n, widths.action), f"raw actions of {task}, newest last; the newest, not yet known, is zero"),
        Port("step", (), "steps since the start of the episode, 0 at its first"),
    ]
    method = policy.method
    if isinstance(method, LearnedMethod):
        _, count = method.codes_and_states(n)
        first = "the window's first step, max(step - N + 1, 0)" if method.literal else "the present step"
        told = f"raw observations of the target from {first} on; past its end its last one repeats"
        ports.insert(0, Port("target_states", (count, widths.observation), told))
    elif isinstance(policy.statistic, InformationStatistic):
        ports.insert(0, Port("z", (n, widths.z), f"{z_meaning(policy.statistic)}; newest last"))
    elif isinstance(method, TaskMethod):
        told = "embedding of the whole target episode, the same at every step: himatch's policy.embed([episode])"
        ports.insert(0, Port("z", (n, widths.z), told))
    return tuple(ports)


def outputs_of(policy: Policy) -> tuple[Port, ...]:
    """What :class:`PolicyGraph` gives, in order."""
    middle, half = (t.tolist() for t in (policy.normalizers.action_middle, policy.normalizers.action_half))
    limits = ", ".join(f"{m - h:g} to {m + h:g}" for m, h in zip(middle, half, strict=True))
    kind = "raw, middle" if policy.agent.policy.sampled else "raw"
    ports = [Port("action", (policy.agent.widths.action,), f"{kind} action of {policy.task.name} ({limits})")]
    if isinstance(policy.method, LearnedMethod):
        ports.append(Port("code", (policy.agent.code_count, policy.method.m), "what the policy was told of the target"))
    return tuple(ports)


def z_meaning(statistic: InformationStatistic) -> str:
    """The statistic in words, with the numbers somebody needs who computes it."""
    name, aggregator = statistic.feature.name, statistic.aggregator
    rest = "over the rest of the episode"
    if isinstance(aggregator, DiscountedSum):
        return f"sum of {name} {rest}{_discount(aggregator.gamma)}, divided by {aggregator.scale:g}"
    if isinstance(aggregator, Histogram):
        bins = aggregator.bins
        ranges = ", ".join(f"{low:.9g} to {high:.9g}" for low, high in zip(bins.low, bins.high, strict=True))
        return (
            f"distribution of {name} {rest}{_discount(aggregator.gamma)}: shares in {bins.count} equal bins from "
            f"{ranges}, what lies outside in the end bins"
        )
    if isinstance(aggregator, Moments):
        what = ("mean", "standard deviation", "third", "fourth central moment, as signed roots")
        return f"{', '.join(what[: aggregator.order])} of {name} {rest}{_discount(aggregator.gamma)}"
    if isinstance(aggregator, FinalValue):
        return f"{name} at the end of the episode"
    return f"{aggregator.kind} of {name} {rest}"


def _discount(gamma: float) -> str:
    return "" if gamma == 1.0 else f" discounted by {gamma:g}"
