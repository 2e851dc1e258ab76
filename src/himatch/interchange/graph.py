"""A policy as one function of raw arrays: what an exported file computes.

Windows hold the last N steps, latest last, so that a caller's context is a plain shift. ``step`` says how many steps
came before in the episode, and with that which rows are filled yet, what their times are and which position is read.
A graph draws nothing: a policy that samples takes standard normal noise, and scales it by its temperature.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from himatch.errors import HimatchError
from himatch.methods.base import Port
from himatch.methods.window import cut
from himatch.policy import Policy
from himatch.rollout.limits import Bounds


class PolicyGraph(nn.Module):
    """One seed of a policy, normalisation and code network inside: ``(B, ...)`` raw windows to raw actions.

    The first argument is z ``(B, N, k)``, for learned codes the target's states ``(B, S, obs)``, and missing for
    policies that are conditioned on nothing. Observations are clipped to ``limits``, low and high of every channel,
    where they are given. An observation that is not finite makes NaN of the action, clipped or not. The temperature is
    that which the policy has now.
    """

    def __init__(self, policy: Policy, limits: tuple[Bounds, Bounds] | None = None) -> None:
        super().__init__()
        if len(policy.seeds) != 1:
            raise HimatchError("a file holds one seed; choose it with policy.only(seed)")
        self.agent, self.normalizers = policy.agent, policy.normalizers
        self.context, self.discrete = policy.context, policy.task.discrete
        self.temperature = policy.temperature if samples(policy) else None
        self.limits = None if limits is None else tuple(torch.from_numpy(bound) for bound in limits)

    def forward(self, *arguments: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Arguments in the order of :func:`inputs_of`; the action ``(B, act)`` and what :func:`outputs_of` has more."""
        given = list(arguments)
        temperature = self.temperature or 0.0
        noise = None if self.temperature is None else temperature * given.pop()
        *given, states, actions, step = given
        normalize, policy, spec, last = self.normalizers, self.agent.policy, self.agent.spec, self.context - 1
        order = torch.arange(self.context)
        times, _ = cut(spec, step, order, order)
        place = step - times[:, 0]
        # The policy takes its first step at position 0; what comes after position `place` it does not see.
        source = (order + (last - place).unsqueeze(1)).clamp(max=last)

        def aligned(window: Tensor) -> Tensor:
            return window.gather(1, source.unsqueeze(2).expand(-1, -1, window.shape[2]))

        raw = aligned(states)
        seen = raw if self.limits is None else torch.clamp(raw, *self.limits)
        z: Tensor | None = None
        if self.agent.codes_of_states:
            z = self.agent.encode(normalize.states(given[0]).unsqueeze(0), step.unsqueeze(0))
        elif given:
            z = normalize.clipped_z(aligned(given[0]), times).unsqueeze(0)
        outputs = policy(
            z,
            normalize.states(seen).unsqueeze(0),
            normalize.actions(aligned(actions)).unsqueeze(0),
            times.unsqueeze(0),
        )[0]
        read = outputs.gather(1, place.view(-1, 1, 1).expand(-1, 1, outputs.shape[2]))[:, 0]
        # Zero, and NaN where an observation is not finite, which neither clipping nor an ignored channel may hide.
        lost = (raw * 0.0).sum(dim=(1, 2)).unsqueeze(1)
        action = normalize.raw_actions(policy.action(read, noise, temperature)) + lost
        found = [action]
        if self.discrete is not None:
            number = policy.scores(read, noise, temperature).argmax(-1) + self.discrete.start
            found.append(torch.where(torch.isnan(lost[:, 0]), self.discrete.start - 1, number))
        if self.agent.codes_of_states and z is not None:
            found.append(z[0])
        return action if len(found) == 1 else tuple(found)


def samples(policy: Policy) -> bool:
    """Whether it samples its actions: a stochastic policy at temperature 0 does not."""
    return policy.agent.policy.stochastic and policy.temperature > 0.0


def inputs_of(policy: Policy) -> tuple[Port, ...]:
    """What :class:`PolicyGraph` takes, in order."""
    dims, n, task = policy.agent.dims, policy.context, policy.task
    known = {i: name for name, i in task.features.items() if isinstance(i, int)}
    named = ", ".join(f"{i} is {known[i]}" for i in sorted(known))
    conditioning = policy.agent.port(policy.statistic)
    discrete = task.discrete
    usual = "mean" if discrete is None else "likeliest"
    drawn = f"standard normal numbers, new ones at every step; zeros give the {usual} action"
    noise = Port("noise", (dims.action,), drawn)
    kind = "raw actions" if discrete is None else f"one-hot rows of the actions {discrete.start} to {discrete.last}"
    return (
        *(() if conditioning is None else (conditioning,)),
        Port(
            "states", (n, dims.observation), f"raw observations of {task.name}, latest last" + (named and f"; {named}")
        ),
        Port("actions", (n, dims.action), f"{kind} of {task.name}, latest last; the latest, not yet known, is zero"),
        Port("step", (), "steps since the start of the episode, 0 at its first"),
        *((noise,) if samples(policy) else ()),
    )


def outputs_of(policy: Policy) -> tuple[Port, ...]:
    """What :class:`PolicyGraph` gives, in order."""
    ports = [_action(policy)]
    if (discrete := policy.task.discrete) is not None:
        what = f"number of the action, {discrete.start} to {discrete.last}"
        ports.append(Port("number", (), f"{what}; {discrete.start - 1} where an observation is not finite"))
    if policy.agent.codes_of_states:
        states = torch.zeros(1, 1, policy.agent.spec.target_states, policy.agent.dims.observation)
        code = policy.agent.encode(states, torch.zeros(1, 1, dtype=torch.int64))
        ports.append(Port("code", tuple(code.shape[2:]), "the code of the target that the policy was conditioned on"))
    return tuple(ports)


def _action(policy: Policy) -> Port:
    """The action, in the range of the task, or as a one-hot row."""
    width, task = policy.agent.dims.action, policy.task
    if task.discrete is not None:
        kind = "sampled" if samples(policy) else "likeliest"
        return Port("action", (width,), f"one-hot row of the {kind} action of {task.name}")
    middle, half = (t.tolist() for t in (policy.normalizers.action_middle, policy.normalizers.action_half))
    limits = ", ".join(f"{m - h:g} to {m + h:g}" for m, h in zip(middle, half, strict=True))
    kind = "raw, sampled" if samples(policy) else "raw, mean" if policy.agent.policy.stochastic else "raw"
    return Port("action", (width,), f"{kind} action of {task.name} ({limits})")
