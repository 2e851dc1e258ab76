"""What the heads of policies cost, against PyTorch's own distributions."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal

from himatch.networks.heads import ACCURACY, PolicyNetwork


def test_a_gaussian_pays_for_unlikely_actions_and_for_errors_of_its_mean() -> None:
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(2, 3, 5, 8, generator=generator).clamp(-1.5, 1.5)
    actions = torch.rand(2, 3, 5, 4, generator=generator) * 2 - 1
    mean, log_std = outputs.chunk(2, dim=-1)
    likelihood = Normal(mean, log_std.exp()).log_prob(actions) + 0.5 * math.log(2 * math.pi)
    expected = (ACCURACY * (actions - mean).square() - likelihood).mean(-1)
    torch.testing.assert_close(PolicyNetwork("gaussian").loss(outputs, actions), expected)


@pytest.mark.parametrize("std", [0.01, 0.1, 1.0])
def test_errors_count_where_the_agent_was_noisy_too(std: float) -> None:
    """By likelihood alone an error of the mean would weigh 10,000 times less at a deviation of 1 than at 0.01."""
    mean = torch.zeros(1, 1, 1, 1, requires_grad=True)
    outputs = torch.cat([mean, torch.full((1, 1, 1, 1), math.log(std))], dim=-1)
    (slope,) = torch.autograd.grad(PolicyNetwork("gaussian").loss(outputs, torch.full((1, 1, 1, 1), 0.1)).sum(), mean)
    assert slope.item() == pytest.approx(-0.1 * (1 / std**2 + 2 * ACCURACY), rel=1e-4)


def test_the_deviation_that_costs_least_is_that_of_the_actions() -> None:
    """Squared error moves the mean and not the deviation."""
    actions = 0.2 * torch.randn(1, 20_000, 1, 1, generator=torch.Generator().manual_seed(1))
    costs = {}
    for std in (0.15, 0.19, 0.2, 0.21, 0.25):
        outputs = torch.tensor([0.0, math.log(std)]).expand(1, 20_000, 1, 2)
        costs[std] = PolicyNetwork("gaussian").loss(outputs, actions).mean().item()
    assert min(costs, key=lambda std: costs[std]) == 0.2
