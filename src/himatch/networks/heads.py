"""What every policy network has in common: how its last numbers become an action in [-1, 1], and what they cost."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, Int, shaped
from himatch.networks import squashed

Head = Literal["tanh", "gaussian", "squashed", "categorical"]

LEAST = 1e-7  # of what is random between 0 and 1, which single precision cannot tell from 1 above 1 - 6e-8
ACCURACY = 50.0  # of squared error beside a Gaussian's likelihood, which weighs it so where the deviation is 0.1


class PolicyNetwork(nn.Module):
    """K policies: z and states to an action for every step.

    The head is a deterministic tanh with squared error (the paper), or a Gaussian with log-likelihood, clipped or
    squashed by tanh: a ``stochastic`` policy, whose actions are sampled. Agents that are trained by SAC squash. Of
    discrete actions, which are one-hot rows, the head is categorical, with cross entropy.

    A likelihood alone weighs errors of the mean by the inverse of the variance, so hardly at all where the agent was
    noisy. Rollouts pay for them there too: the clipped Gaussian adds squared error.
    """

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head
        self.stochastic = head != "tanh"

    def forward(
        self,
        z: Float[Tensor, "K B #N k"] | None,
        states: Float[Tensor, "K B N obs"],
        actions: Float[Tensor, "K B N act"],
        times: Int[Tensor, "K B N"],
    ) -> Float[Tensor, "K B N outputs"]:
        """Head outputs for every step of windows, before tanh."""
        raise NotImplementedError

    def outputs(self, action: int) -> int:
        """How many numbers the head needs for ``action`` coordinates."""
        return action if self.head in ("tanh", "categorical") else 2 * action

    @shaped
    def loss(
        self, outputs: Float[Tensor, "K B N outputs"], actions: Float[Tensor, "K B N act"]
    ) -> Float[Tensor, "K B N"]:
        """What each step costs: squared error, negative log-likelihood for stochastic heads, or both."""
        if self.head == "categorical":
            return -(outputs.float().log_softmax(-1) * actions).sum(-1)
        if self.head == "tanh":
            return (torch.tanh(outputs.float()) - actions).square().mean(-1)
        mean, log_std = self.gaussian(outputs)
        if self.head == "squashed":
            return -squashed.log_likelihood(mean, log_std, actions).mean(-1)
        error = (actions - mean).square()
        return (error * (0.5 * (-2.0 * log_std).exp() + ACCURACY) + log_std).mean(-1)

    @shaped
    def action(
        self,
        outputs: Float[Tensor, "*rows outputs"],
        noise: Float[Tensor, "*rows act"] | None = None,
        temperature: float = 1.0,
    ) -> Float[Tensor, "*rows act"]:
        """The action in [-1, 1], or a one-hot row; of a stochastic head the mean, or the likeliest, or a sample.

        Samples are made by ``noise``: standard normal numbers times the ``temperature``.
        """
        if self.head == "tanh":
            return torch.tanh(outputs.float())
        if self.head == "categorical":
            scores = self.scores(outputs, noise, temperature)
            return torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
        mean, log_std = self.gaussian(outputs)
        drawn = mean if noise is None else mean + log_std.exp() * noise
        return torch.tanh(drawn) if self.head == "squashed" else drawn.clamp(-1.0, 1.0)

    @shaped
    def scores(
        self,
        logits: Float[Tensor, "*rows act"],
        noise: Float[Tensor, "*rows act"] | None = None,
        temperature: float = 1.0,
    ) -> Float[Tensor, "*rows act"]:
        """What is greatest for the action of a categorical head: logits, with Gumbel noise where that is sampled.

        ``argmax(logits + T gumbel)`` is a sample of ``softmax(logits / T)`` (Gumbel 1954). The numbers come from normal
        ones, as those of other heads: -log(-log(u)), u being their distribution function.
        """
        if noise is None:
            return logits.float()
        u = 0.5 * (1.0 + torch.erf(noise / (temperature * 2.0**0.5)))
        return logits.float() - temperature * torch.log(-torch.log(u.clamp(LEAST, 1.0 - LEAST)))

    @shaped
    def mean(self, outputs: Float[Tensor, "*rows outputs"]) -> Float[Tensor, "*rows act"]:
        """What is compared with logged actions: the action without noise, of a categorical head probabilities."""
        return outputs.float().softmax(-1) if self.head == "categorical" else self.action(outputs)

    @shaped
    def gaussian(
        self, outputs: Float[Tensor, "*rows outputs"]
    ) -> tuple[Float[Tensor, "*rows act"], Float[Tensor, "*rows act"]]:
        """Mean and log standard deviation of a Gaussian head, before squashing."""
        if self.head == "squashed":
            return squashed.gaussian(outputs.float())
        mean, log_std = outputs.float().chunk(2, dim=-1)
        return mean, log_std.clamp(*squashed.LOG_STD_RANGE)
