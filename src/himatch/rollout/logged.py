"""What a policy would do at every step of a logged episode: windows as at run time, all steps at once."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from himatch._runtime.shapes import Float, shaped
from himatch.methods import Agent
from himatch.methods.batch import Batch
from himatch.methods.conditioner import Conditioner
from himatch.methods.normalizers import Normalizers
from himatch.methods.window import cut
from himatch.types import Trajectory

BLOCK = 2048  # windows evaluated together


@shaped
def logged_outputs(
    agent: Agent,
    normalizers: Normalizers,
    trajectory: Trajectory,
    conditioner: Conditioner,
) -> Float[Tensor, "K T outputs"]:
    """Head outputs of every seed given the episode's own past, conditioned on one target.

    ``conditioner`` is for ``T + N`` rollouts under that target, one for each time of a window.
    """
    device, blocks = normalizers.state_mean.device, []
    with torch.no_grad():
        for batch, places in _windows(agent, normalizers, trajectory, conditioner):
            outputs = agent(batch)
            blocks.append(outputs[:, torch.arange(len(places), device=device), places])
        found: Tensor = torch.cat(blocks, dim=1)
    return found


def _windows(
    agent: Agent, normalizers: Normalizers, trajectory: Trajectory, conditioner: Conditioner
) -> Iterator[tuple[Batch, Tensor]]:
    """Every step's window as networks see it and the position to read, in blocks; for t < N tokens stand at 0..t."""
    device, spec, stack = normalizers.state_mean.device, agent.spec, len(agent.seeds)
    steps = len(trajectory)
    everything = torch.arange(steps + spec.context, device=device)
    z = conditioner.z(everything.expand(1, -1))
    if z is not None:
        z = normalizers.clipped_z(z, everything.expand(len(z), -1))
    arrays = (trajectory.observations, trajectory.actions)
    observations, actions = (torch.tensor(array, device=device) for array in arrays)
    order, target_order = (torch.arange(n, device=device) for n in (spec.context, spec.target_states))
    for first in range(0, steps, BLOCK):
        now = torch.arange(first, min(first + BLOCK, steps), device=device)
        times, _ = cut(spec, now, order, target_order)
        rows = times.clamp(max=steps - 1)

        def stacked(tensor: Tensor) -> Tensor:
            return tensor.expand(stack, *tensor.shape)

        states = conditioner.target_states(torch.zeros_like(now), now)
        raw = Batch(
            stacked(observations[rows]),
            stacked(actions[rows]),
            stacked(times),
            target_states=None if states is None else stacked(states),
            now=stacked(now),
        )
        given = None if z is None else z.expand(stack, -1, -1)[:, times]
        yield normalizers(raw)._replace(z=given), now - times[:, 0]
