"""Networks of tasks: the metric loss against every pair by itself, and what the encoder's scale does."""

from __future__ import annotations

import pytest
import torch
from random_tensors import some
from torch import Tensor

from himatch.methods.focal.network import SquashedTaskPolicy
from himatch.methods.metabc.network import TaskEncoder, metric_loss
from himatch.networks.single_step import StepPolicy
from himatch.networks.transformer import initialize


def brute_force(codes: Tensor, tasks: Tensor) -> Tensor:
    """FOCAL's loss of one model, pair by pair."""
    alike, different = [], []
    for i in range(len(codes)):
        for j in range(i + 1, len(codes)):
            distance = sum((float(a) - float(b)) ** 2 for a, b in zip(codes[i], codes[j], strict=True)) / len(codes[i])
            if int(tasks[i]) == int(tasks[j]):
                alike.append(distance)
            else:
                different.append(1.0 / (distance + 0.1))
    return torch.tensor(sum(alike) / max(1, len(alike)) + sum(different) / max(1, len(different)))


@pytest.mark.parametrize("tasks", [[0, 0, 1, 1, 2, 2, 7], [3, 3, 3, 3, 3, 3, 3], [0, 1, 2, 3, 4, 5, 6]])
def test_metric_loss_is_that_of_all_pairs(tasks: list[int]) -> None:
    numbers = torch.tensor([tasks, tasks[::-1], [tasks[0], *tasks[:-1]]])
    codes = 0.7 * some(3, 7, 4)
    found = metric_loss(codes, numbers)
    for model in range(3):
        torch.testing.assert_close(found[model], brute_force(codes[model], numbers[model]))


def test_metric_loss_has_gradients_where_embeddings_coincide() -> None:
    codes = torch.zeros(1, 4, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(metric_loss(codes, torch.tensor([[0, 0, 1, 1]])).sum(), codes)
    assert gradient.isfinite().all()


def test_rescaled_embeddings_have_unit_size_and_the_same_geometry() -> None:
    encoder = TaskEncoder(2, 5, 2, 3, (8,))
    initialize(encoder, (0, 1))
    steps = some(2, 6, 10, 5), some(2, 6, 10, 2, seed=1), some(2, 6, 10, seed=2)
    before = encoder(*steps).mean(2)
    encoder.rescale(before)
    after = encoder(*steps).mean(2)
    torch.testing.assert_close(after.mean(1), torch.zeros(2, 3), atol=1e-5, rtol=0)
    torch.testing.assert_close(after.square().mean((1, 2)), torch.ones(2))
    ratio = torch.cdist(before, before) / torch.cdist(after, after).clamp(min=1e-9)
    size = (before - before.mean(1, keepdim=True)).square().mean((1, 2)).sqrt()
    off_diagonal = ~torch.eye(6, dtype=torch.bool)
    torch.testing.assert_close(ratio[:, off_diagonal], size.unsqueeze(1).expand(-1, 30), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("squashed", [False, True])
def test_a_task_policy_sees_the_state_and_z_and_nothing_else(squashed: bool) -> None:
    policy = SquashedTaskPolicy(2, 5, 3, 4, (8, 8)) if squashed else StepPolicy(2, 5, 3, 4, (8, 8), 0.0, "tanh")
    initialize(policy, (0, 1))
    z, states, times = some(2, 6, 1, 4), some(2, 6, 3, 5, seed=1), torch.zeros(2, 6, 3, dtype=torch.int64)
    actions = policy.action(policy(z, states, some(2, 6, 3, 3), times))
    assert actions.shape == (2, 6, 3, 3)
    assert actions.abs().max() <= 1.0
    assert torch.equal(actions, policy.action(policy(z, states, some(2, 6, 3, 3, seed=5), times + 9)))
    others = policy.action(policy(z, torch.cat([states[:, :, :2] + 1.0, states[:, :, 2:]], dim=2), states, times))
    assert torch.equal(actions[:, :, 2], others[:, :, 2])
    assert not torch.allclose(actions[:, :, :2], others[:, :, :2])
    assert not torch.allclose(actions, policy.action(policy(z + 1.0, states, states, times)))
