"""Gaussians squashed by tanh: the stochastic actions in [-1, 1] of actor-critics (SAC, BRAC).

Mean and log standard deviation are those before squashing. Likelihoods and divergences are per coordinate; coordinates
are independent, so their sums are those of the whole action.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, shaped

LOG_STD_RANGE = (-5.0, 2.0)  # of every Gaussian that a network gives, squashed or not
LARGEST = 1.0 - 1e-3  # of a logged action: tanh never reaches one, and near it a rounding error is a large step

Actions = Float[Tensor, "*#rows act"]
"""Actions, or what there is one of for each action coordinate."""


@shaped
def gaussian(
    outputs: Float[Tensor, "*rows outputs"],
) -> tuple[Float[Tensor, "*rows act"], Float[Tensor, "*rows act"]]:
    """Mean and log standard deviation from a network's outputs, the latter smoothly kept in its range."""
    mean, raw = outputs.chunk(2, dim=-1)
    low, high = LOG_STD_RANGE
    return mean, low + 0.5 * (high - low) * (torch.tanh(raw) + 1.0)


@shaped
def sample(mean: Actions, log_std: Actions, noise: Actions) -> tuple[Actions, Actions]:
    """The actions for standard normal ``noise``, and their log-likelihood."""
    unsquashed = mean + log_std.exp() * noise
    density = -0.5 * noise.square() - log_std - 0.5 * math.log(2.0 * math.pi)
    return torch.tanh(unsquashed), density - _log_slope(unsquashed)


@shaped
def log_likelihood(mean: Actions, log_std: Actions, actions: Actions) -> Actions:
    """That of given actions."""
    unsquashed = torch.atanh(actions.clamp(-LARGEST, LARGEST))
    noise = (unsquashed - mean) / log_std.exp()
    return -0.5 * noise.square() - log_std - 0.5 * math.log(2.0 * math.pi) - _log_slope(unsquashed)


@shaped
def divergence(mean: Actions, log_std: Actions, other_mean: Actions, other_log_std: Actions) -> Actions:
    """KL(one || other), exactly: squashing both alike does not change it."""
    ratio = (log_std - other_log_std).exp()
    distance = (mean - other_mean) / other_log_std.exp()
    return 0.5 * (ratio.square() + distance.square() - 1.0) - (log_std - other_log_std)


def _log_slope(unsquashed: Tensor) -> Tensor:
    """log(1 - tanh(u)^2) without the loss of precision where tanh saturates."""
    return 2.0 * (math.log(2.0) - unsquashed - nn.functional.softplus(-2.0 * unsquashed))
