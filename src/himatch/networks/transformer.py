"""The sequence policy: a causal transformer over (z, s, a) that predicts actions (Figure dt_visuals).

Read it top to bottom: configuration, attention block, transformer, policy. Attention has no padding masks. Where fewer
than N steps are known, they stand at positions 0..t: at run time for t < N, in training in windows of episodes shorter
than N. Attention is causal and the only position signal is the time-step embedding, so what stands after t does not
matter to it. At run time position t is read; in training the loss leaves out what stands after (``Batch.mask``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from himatch._runtime.graphs import fused
from himatch._runtime.settings import make_plain
from himatch._runtime.shapes import Bool, Float, Int, shaped
from himatch.errors import HimatchError
from himatch.networks.heads import Head, PolicyNetwork
from himatch.networks.stacked import Embedding, LayerNorm, Linear, draw, dropout

Tokens = Literal["triples", "pairs", "states"]
Activation = Literal["relu", "gelu"]

HIDDEN = -1e4  # added to scores of hidden positions, as in GPT-2: far, but finite where all are hidden
SHORT = 12  # positions up to which attention is cheaper as plain sums, where these are fused
STD = 0.02  # of the weights of transformers and of embeddings of time at first, as in GPT-2


@dataclass(frozen=True)
class ModelConfig:
    """Size and form of the policy; the defaults are Table dt_hyper.

    ``tokens`` are z, s and a as three tokens a step (the paper), z added to the state token (two a step), or that token
    alone, without past actions; ``head`` is a deterministic tanh with squared error (the paper), or a Gaussian with
    log-likelihood, as it is or squashed by tanh. With discrete actions it is categorical, whatever a preset says.
    """

    context: int = 20
    """Steps that the policy sees (the paper's N)."""
    layers: int = 3
    """Layers of the policy."""
    heads: int = 1
    """Attention heads."""
    width: int = 128
    """Width of the layers."""
    dropout: float = 0.1
    """Dropout."""
    tokens: Tokens = "triples"
    """z, s and a as three tokens a step, z added to the state token, or this token without the actions."""
    head: Head = "tanh"
    """A deterministic policy, trained by squared error, or a stochastic one: Gaussian actions, plain or squashed.
    Discrete actions have the categorical one."""
    activation: Activation = "relu"
    """Of the feed-forward layers."""
    time_std: float = STD
    """Deviation of the embeddings of time at first; 1 in the authors' code."""

    def __post_init__(self) -> None:
        make_plain(self)
        for name in ("context", "layers", "heads", "width"):
            if getattr(self, name) < 1:
                raise HimatchError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.width % self.heads:
            raise HimatchError(f"width {self.width} cannot be divided among {self.heads} heads")
        if not 0 < self.time_std < float("inf"):
            raise HimatchError(f"time_std must be a positive number, got {self.time_std}")
        if not 0 <= self.dropout < 1:
            raise HimatchError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        for name, choices in (("tokens", Tokens), ("head", Head), ("activation", Activation)):
            known = get_args(choices)
            if getattr(self, name) not in known:
                raise HimatchError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")


class Block(nn.Module):
    """One layer of a GPT-2: attention and a four times wider network, both residual and normalised before."""

    def __init__(self, stack: int, width: int, heads: int, dropout: float, activation: Activation = "relu") -> None:
        super().__init__()
        self.heads, self.dropout, self.activation = heads, dropout, getattr(nn.functional, activation)
        self.attention_norm = LayerNorm(stack, width)
        self.qkv = Linear(stack, width, 3 * width, STD)
        self.attention_out = Linear(stack, width, width, STD)
        self.mlp_norm = LayerNorm(stack, width)
        self.mlp_in = Linear(stack, width, 4 * width, STD)
        self.mlp_out = Linear(stack, 4 * width, width, STD)

    @shaped
    def forward(
        self, x: Float[Tensor, "K B L width"], bias: Float[Tensor, "K*B 1 L L"] | None = None
    ) -> Float[Tensor, "K B L width"]:
        """Of L positions, i sees those up to i; a ``bias`` of scores, where there is one, says so itself."""
        stack, batch, length, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(stack * batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        rate = self.dropout if self.training else 0.0
        if bias is None and fused(x) and length <= SHORT and not rate:
            attended = short_attention(q, k, v)
        else:
            mask = None if bias is None else bias.to(q.dtype)
            attended = nn.functional.scaled_dot_product_attention(q, k, v, mask, rate, is_causal=bias is None)
        attended = attended.transpose(1, 2).reshape(stack, batch, length, width)
        x = x + dropout(self.attention_out(attended), self.dropout, self.training)
        hidden = self.activation(self.mlp_in(self.mlp_norm(x)))
        return x + dropout(self.mlp_out(hidden), self.dropout, self.training)


@shaped
def short_attention(
    q: Float[Tensor, "rows heads L c"], k: Float[Tensor, "rows heads L c"], v: Float[Tensor, "rows heads L c"]
) -> Float[Tensor, "rows heads L c"]:
    """Causal attention over a few positions, as sums of products in single precision.

    Libraries work in tiles of 64 positions. With five, that was two thirds of a training step on an H200.
    """
    later = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q.float().unsqueeze(3) * k.float().unsqueeze(2)).sum(-1) * q.shape[-1] ** -0.5
    shares = scores.masked_fill(later, -torch.inf).softmax(-1)
    attended: Tensor = (shares.unsqueeze(-1) * v.float().unsqueeze(2)).sum(3).to(v.dtype)
    return attended


class Transformer(nn.Module):
    """A causal GPT-2 without position embeddings of its own; the residual stream stays in single precision."""

    def __init__(
        self, stack: int, width: int, layers: int, heads: int, dropout: float, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.blocks = nn.ModuleList(Block(stack, width, heads, dropout, activation) for _ in range(layers))
        self.norm = LayerNorm(stack, width)

    @shaped
    def forward(
        self, x: Float[Tensor, "K B L width"], seen: Bool[Tensor, "K B L"] | None = None
    ) -> Float[Tensor, "K B L width"]:
        """Of L positions, i sees those up to i, or of these the ones that can be ``seen``."""
        bias = None if seen is None else _scores_bias(seen)
        x = dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x, bias)
        hidden: Tensor = self.norm(x)
        return hidden


def _scores_bias(seen: Bool[Tensor, "K B L"]) -> Float[Tensor, "K*B 1 L L"]:
    """What is added to the scores of attention: later positions are never seen, hidden ones where nothing else is."""
    later = torch.full((seen.shape[2], seen.shape[2]), -torch.inf, device=seen.device).triu(1)
    return (~seen).flatten(0, 1)[:, None, None].float() * HIDDEN + later


class SequencePolicy(PolicyNetwork):
    """``K`` policies that read (z, s, a, t) windows and give an action for every step.

    ``z_width`` 0 is behavioural cloning without context: the z tokens are left out.
    """

    def __init__(
        self, config: ModelConfig, observation: int, action: int, z_width: int, horizon: int, stack: int = 1
    ) -> None:
        super().__init__(config.head)
        self.config, self.horizon, self.z_width = config, horizon, z_width
        width = config.width
        self.embed_time = Embedding(stack, horizon, width, config.time_std)
        self.embed_z = Linear(stack, z_width, width) if z_width else None
        self.embed_state = Linear(stack, observation, width)
        self.embed_action = None if config.tokens == "states" else Linear(stack, action, width)
        self.embed_norm = LayerNorm(stack, width)
        self.transformer = Transformer(stack, width, config.layers, config.heads, config.dropout, config.activation)
        self.predict = Linear(stack, width, self.outputs(action))

    @shaped
    def forward(
        self,
        z: Float[Tensor, "K B #N k"] | None,
        states: Float[Tensor, "K B N obs"],
        actions: Float[Tensor, "K B N act"],
        times: Int[Tensor, "K B N"],
    ) -> Float[Tensor, "K B N outputs"]:
        """Head outputs for every step before tanh: one for each action coordinate, of a Gaussian two, or logits.

        Actions are in [-1, 1], times are steps since the start of the episode.
        """
        time = self.embed_time(times.clamp(max=self.horizon - 1))
        tokens = [self.embed_state(states) + time]
        if self.embed_z is not None and z is not None:
            code = self.embed_z(z)
            if self.config.tokens == "triples":
                tokens.insert(0, code + time)
            else:
                tokens[0] = tokens[0] + code
        state = len(tokens) - 1
        if self.embed_action is not None:
            tokens.append(self.embed_action(actions) + time)
        x = torch.stack(tokens, dim=3).flatten(2, 3).float()
        hidden = self.transformer(self.embed_norm(x))
        # The action is read off the state token, which has seen z_t, s_t and everything before.
        outputs: Tensor = self.predict(hidden[:, :, state :: len(tokens)])
        return outputs


def initialize(module: nn.Module, seeds: tuple[int, ...]) -> None:
    """Draw the weights of every model in the stack from its own seed.

    Linear layers outside transformers (embeddings of z, s and a, heads, encoders) get PyTorch's default, as in the
    public Decision Transformer. Its time embeddings start at unit size and drown the state; ours start small. A model's
    weights depend on its seed alone, not on what it is stacked with.
    """
    draw(module, [torch.Generator().manual_seed(seed) for seed in seeds])
