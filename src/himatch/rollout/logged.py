"""What a policy would do at every step of a logged episode: windows as at run time, all steps at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from himatch.evaluation.match import conditioning_frame
from himatch.methods.agent import Batch
from himatch.methods.baselines import TaskMethod
from himatch.methods.paper import LearnedMethod
from himatch.rollout.conditioning import demonstrated
from himatch.statistics.information import InformationStatistic
from himatch.targets import Target
from himatch.types import Trajectory

if TYPE_CHECKING:
    from himatch.policy import Policy

BLOCK = 2048  # windows evaluated together


def logged_actions(policy: Policy, trajectory: Trajectory, target: Target) -> NDArray[np.float32]:
    """Actions of every seed, ``(K, T, act)``, given the episode's own past and told what ``target`` says."""
    blocks = [_read(policy, batch, places) for batch, places in _windows(policy, trajectory, target)]
    return torch.cat(blocks, dim=1).cpu().numpy()


def _windows(policy: Policy, trajectory: Trajectory, target: Target) -> Iterator[tuple[Batch, Tensor]]:
    """Every step's window as networks see it and the position to read, in blocks; for t < N tokens stand at 0..t."""
    steps, n = len(trajectory), policy.context
    now = np.arange(steps)
    start = np.maximum(now - n + 1, 0)
    rows = start[:, None] + np.arange(n)
    own = np.minimum(rows, steps - 1)
    z = _told(policy, target, steps + n)
    code = None
    if isinstance(policy.method, TaskMethod):
        code = policy.embed([demonstrated(target)]).unsqueeze(2)  # (K, 1, 1, m)

    def stack(numbers: NDArray[Any] | Tensor) -> Tensor:
        """The same for every seed, on the policy's device."""
        tensor = torch.as_tensor(numbers).to(policy.device)
        return tensor.expand(len(policy.seeds), *tensor.shape)

    for i in range(0, steps, BLOCK):
        part = slice(i, i + BLOCK)
        targets = None
        if isinstance(policy.method, LearnedMethod):
            _, count = policy.method.codes_and_states(n)
            first = start[part] if policy.method.literal else now[part]
            shown = demonstrated(target).observations
            targets = stack(shown[np.minimum(first[:, None] + np.arange(count), len(shown) - 1)])
        batch = Batch(
            stack(trajectory.observations[own[part]]),
            stack(trajectory.actions[own[part]]),
            stack(rows[part]),
            targets=targets,
        )
        told = code if z is None else stack(z[torch.from_numpy(rows[part])])
        yield policy.normalizers(batch)._replace(z=told), torch.from_numpy(now[part] - start[part]).to(policy.device)


def _told(policy: Policy, target: Target, count: int) -> Tensor | None:
    """What the policy is told of the target at each of ``count`` steps, its last z once it is over, ``(count, k)``."""
    frame = conditioning_frame(policy)
    if frame is None or not isinstance(policy.statistic, InformationStatistic):
        return None
    times, table = torch.arange(count), policy.statistic.aggregator(target.values(frame))
    z = torch.from_numpy(table)[times.clamp(max=len(table) - 1)]
    return policy.normalizers.told(z.to(policy.device), times.to(policy.device))


@torch.no_grad()
def _read(policy: Policy, batch: Batch, places: Tensor) -> Tensor:
    """Actions at the given position of every window, ``(K, B, act)``, in the task's range."""
    outputs = policy.agent(batch)
    chosen = outputs[:, torch.arange(len(places), device=policy.device), places]
    return policy.normalizers.raw_actions(policy.agent.policy.action(chosen))
