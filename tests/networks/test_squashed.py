"""Squashed Gaussians against torch.distributions, and values through which only inputs learn."""

from __future__ import annotations

import torch
from random_tensors import some
from torch import Tensor
from torch.distributions import Normal, TanhTransform, TransformedDistribution, kl_divergence

from himatch.networks import squashed
from himatch.networks.transformer import initialize
from himatch.networks.values import ValueNetwork, held


def exact(*shape: int, seed: int = 0) -> Tensor:
    return some(*shape, seed=seed).double()


def test_likelihoods() -> None:
    mean, log_std = squashed.gaussian(2.0 * exact(40, 6))
    oracle = TransformedDistribution(Normal(mean, log_std.exp()), [TanhTransform()])
    actions = torch.tanh(exact(40, 3, seed=1))
    torch.testing.assert_close(squashed.log_likelihood(mean, log_std, actions), oracle.log_prob(actions))
    sampled, likelihood = squashed.sample(mean, log_std, exact(40, 3, seed=2))
    inside = sampled.abs() < 0.99
    torch.testing.assert_close(likelihood[inside], oracle.log_prob(sampled)[inside])


def test_logged_actions_at_the_end_of_their_range_are_finite() -> None:
    mean, log_std = squashed.gaussian(exact(5, 4))
    for edge in (-1.0, 1.0):
        assert squashed.log_likelihood(mean, log_std, torch.full((5, 2), edge).double()).isfinite().all()


def test_divergence_is_exact() -> None:
    mine, other = squashed.gaussian(exact(30, 6)), squashed.gaussian(exact(30, 6, seed=1))
    found = squashed.divergence(*mine, *other)
    torch.testing.assert_close(found, kl_divergence(Normal(mine[0], mine[1].exp()), Normal(other[0], other[1].exp())))
    torch.testing.assert_close(squashed.divergence(*mine, *mine), torch.zeros(30, 3).double())


def test_divergence_of_squashed_actions_is_that_before_squashing() -> None:
    """By samples: the mean log-ratio of likelihoods of the squashed actions themselves."""
    mine = torch.tensor([0.3]).double(), torch.tensor([-0.4]).double()
    other = torch.tensor([-0.2]).double(), torch.tensor([0.1]).double()
    actions, likelihood = squashed.sample(*mine, exact(200_000, 1))
    unclamped = TransformedDistribution(Normal(other[0], other[1].exp()), [TanhTransform()]).log_prob(actions)
    torch.testing.assert_close((likelihood - unclamped).mean(0), squashed.divergence(*mine, *other), rtol=0.02, atol=0)


def test_a_held_network_passes_gradients_to_its_inputs_alone() -> None:
    network = ValueNetwork(2, 5, (8, 8))
    initialize(network, (0, 1))
    states, actions = some(2, 6, 3), some(2, 6, 2, seed=1).requires_grad_()
    plain, through = network(states, actions), held(network, states, actions)
    assert torch.equal(plain, through)
    for values, learns in ((plain, True), (through, False)):
        found = torch.autograd.grad(values.sum(), [actions, *network.parameters()], allow_unused=True)
        assert found[0].abs().max() > 0
        assert all((gradient is not None) == learns for gradient in found[1:])
