"""Meta-BC's encoder, which tells tasks apart (Appendix B); its policy is one of single steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Bool, Float, Int, shaped
from himatch.networks.stacked import MLP, Linear

REPULSION = 0.1  # epsilon of the metric loss: what two tasks with the same embedding cost is its inverse


class TaskEncoder(nn.Module):
    """A deterministic embedding of single (s, a, r) steps; that of an episode is the mean over its steps."""

    def __init__(self, stack: int, observation: int, action: int, m: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.mlp = MLP(stack, (observation + action + 1, *hidden, m))

    @shaped
    def forward(
        self,
        states: Float[Tensor, "K *rows obs"],
        actions: Float[Tensor, "K *rows act"],
        rewards: Float[Tensor, " K *rows"],
    ) -> Float[Tensor, "K *rows m"]:
        """Embeddings of normalised steps."""
        embedding: Tensor = self.mlp(torch.cat([states, actions, rewards.unsqueeze(-1)], dim=-1))
        return embedding.float()

    @torch.no_grad()
    @shaped
    def rescale(self, codes: Float[Tensor, "K E m"]) -> None:
        """Move and scale embeddings so that these, of E episodes, have mean zero and unit size.

        The metric loss pushes tasks as far apart as it can; beside such numbers a policy would not see the state. One
        factor for all coordinates leaves the geometry as it was learned.
        """
        last = self.mlp.layers[-1]
        assert isinstance(last, Linear)
        mean = codes.mean(1)
        size = (codes - mean.unsqueeze(1)).square().mean((1, 2)).sqrt().clamp(min=1e-6).unsqueeze(1)
        last.bias.copy_((last.bias - mean) / size)
        last.weight.div_(size.unsqueeze(2))


@shaped
def metric_loss(codes: Float[Tensor, "K C m"], tasks: Int[Tensor, "K C"]) -> Float[Tensor, " K"]:
    """FOCAL's distance-metric loss of the embeddings of C contexts and the numbers of their tasks.

    With d^2 the mean squared difference of two embeddings, pairs of one task cost d^2 and pairs of two tasks
    1 / (d^2 + epsilon), the inverse power two; each kind of pair counts by its mean.
    """
    distance = (codes.unsqueeze(2) - codes.unsqueeze(1)).square().mean(-1)
    same = tasks.unsqueeze(2) == tasks.unsqueeze(1)
    alike = same & ~torch.eye(tasks.shape[1], dtype=torch.bool, device=tasks.device)
    return _mean(distance, alike) + _mean(1.0 / (distance + REPULSION), ~same)


def _mean(values: Float[Tensor, "K C C"], chosen: Bool[Tensor, "K C C"]) -> Float[Tensor, " K"]:
    """Mean of the chosen, zero where there are none."""
    return (values * chosen).sum((1, 2)) / chosen.sum((1, 2)).clamp(min=1)
