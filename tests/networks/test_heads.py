"""What the heads of policies cost, against PyTorch's own distributions."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import chisquare
from torch.distributions import Normal
from torch.nn.functional import cross_entropy, one_hot

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


def test_a_categorical_head_pays_cross_entropy() -> None:
    generator = torch.Generator().manual_seed(0)
    logits, numbers = torch.randn(2, 3, 5, 4, generator=generator), torch.randint(4, (2, 3, 5), generator=generator)
    found = PolicyNetwork("categorical").loss(logits, one_hot(numbers, 4).float())
    torch.testing.assert_close(found, cross_entropy(logits.movedim(-1, 1), numbers, reduction="none"))
    assert PolicyNetwork("categorical").outputs(4) == 4


@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.0])
def test_samples_of_a_categorical_head_come_as_often_as_its_probabilities_say(temperature: float) -> None:
    """The noise is normal, times the temperature, as for Gaussian heads; SciPy's chi-squared test judges."""
    head, count = PolicyNetwork("categorical"), 100_000
    logits = torch.tensor([0.5, -0.3, 0.0, -1.5])
    noise = temperature * torch.randn(count, 4, generator=torch.Generator().manual_seed(1))
    rows = head.action(logits.expand(count, 4), noise, temperature)
    assert set(rows.unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(rows.sum(-1), torch.ones(count))
    expected = count * (logits.double() / temperature).softmax(-1)
    assert chisquare(rows.sum(0).numpy(), expected.numpy()).pvalue > 0.01


def test_without_noise_a_categorical_head_takes_the_likeliest() -> None:
    logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(2))
    head = PolicyNetwork("categorical")
    assert torch.equal(head.action(logits), one_hot(logits.argmax(-1), 4).float())
    torch.testing.assert_close(head.mean(logits), logits.softmax(-1))
    far = torch.tensor([[0.0, 0.0]])
    for noise in (40.0, -40.0):  # where the distribution function is 0 or 1 in single precision
        assert head.scores(far, torch.full((1, 2), noise)).isfinite().all()
