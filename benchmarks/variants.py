"""Variants of the sequence policy that the lab (``fidelity.py``) tries, in one network with a switch for each.

What earns its place moves into ``himatch.networks``; the rest stays here, so that its row can be repeated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, logsigmoid, one_hot, silu

import himatch as hm
from himatch.methods import METHODS, Agent
from himatch.methods.batch import Batch, Dims
from himatch.methods.gdt import SequenceMethod
from himatch.methods.gdt.method import SequenceAgent
from himatch.networks.heads import PolicyNetwork
from himatch.networks.squashed import gaussian, log_likelihood
from himatch.networks.stacked import Embedding, LayerNorm, Linear, dropout
from himatch.networks.transformer import STD, Block, ModelConfig, initialize

ACTIVATIONS = {"relu": torch.relu, "gelu": gelu, "silu": silu}
EDGE = 0.99  # beyond it an action counts as saturated: its likelihood is the mass of the tail
LOG_SPREAD = (-5.0, 1.0)
CELLS = 41  # of a categorical head
FLOW_STEPS = 8


@dataclass(frozen=True)
class Switches(SequenceMethod):
    """What a variant does otherwise than himatch's sequence policy."""

    activation: str = "relu"
    """Of the feed-forward layers."""
    actions: bool = True
    """Whether past actions are tokens."""
    embedding: float = 1.0
    """The initial embeddings of z, s and a, in parts of their usual size."""
    modulated: bool = False
    """z scales and shifts every layer (adaLN) in place of being part of a token."""
    cumulative: bool = False
    """z is the cumulative histogram."""
    form: str = ""
    """Of the head: squashed, cloned, added, mixture, joint, categorical, flow; else as the model is configured.

    ``cloned`` is a squashed Gaussian whose mean action is trained by squared error, as a deterministic policy's is, and
    whose deviation is read off the same features by likelihood without changing them; ``added`` is the same with noise
    that is added to the action, and not before squashing.
    """
    components: int = 3
    """Of a mixture."""
    chunk: int = 1
    """Actions that every step predicts, its own and those that follow; the first is played."""
    uses_time: bool = True
    """Whether the step's number is embedded."""
    beta: float = 0.0
    """The likelihood of a squashed Gaussian is weighted by its own variance to this power (Seitzer et al. 2022)."""
    accuracy: float = 0.0
    """Of squared error beside the likelihood of a Gaussian, which himatch's own head adds."""
    dropped: float = 0.0
    """How many windows are trained without z, so that its effect can be enlarged (classifier-free guidance)."""

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """Stacked variants."""
        return VariantAgent(self, config, dims, seeds)


@dataclass(frozen=True)
class LabCDT(Switches, hm.CDT):
    """CDT with switches."""

    name: ClassVar[str] = "lab-cdt"


@dataclass(frozen=True)
class LabDT(Switches, hm.DT):
    """DT with switches."""

    name: ClassVar[str] = "lab-dt"


for method in (LabCDT, LabDT):
    METHODS[method.name] = method


class VariantBlock(Block):
    """A block with another activation, and scaled, shifted and gated by z where it is modulated."""

    def __init__(self, stack: int, config: ModelConfig, switches: Switches) -> None:
        super().__init__(stack, config.width, config.heads, config.dropout)
        self.activation = ACTIVATIONS[switches.activation]
        self.modulate = Linear(stack, config.width, 6 * config.width, 0.0) if switches.modulated else None

    def forward(self, x: Tensor, code: Tensor | None = None) -> Tensor:
        """Of L positions, i sees those up to i."""
        stack, batch, length, width = x.shape
        changes: list[Tensor | float] = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]
        if self.modulate is not None and code is not None:
            changes = list(self.modulate(code).chunk(6, dim=-1))
            changes[2], changes[5] = 1.0 + changes[2], 1.0 + changes[5]
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = changes
        n = self.attention_norm(x) * (1.0 + scale) + shift
        qkv = self.qkv(n).view(stack * batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        rate = self.dropout if self.training else 0.0
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=rate)
        attended = attended.transpose(1, 2).reshape(stack, batch, length, width)
        x = x + gate * dropout(self.attention_out(attended), self.dropout, self.training)
        n = self.mlp_norm(x) * (1.0 + mlp_scale) + mlp_shift
        hidden = self.activation(self.mlp_in(n))
        return x + mlp_gate * dropout(self.mlp_out(hidden), self.dropout, self.training)


class Variant(PolicyNetwork):
    """The sequence policy with switches."""

    def __init__(self, config: ModelConfig, dims: Dims, switches: Switches, stack: int) -> None:
        super().__init__(config.head)
        self.config, self.switches, self.act, self.horizon = config, switches, dims.action, dims.horizon
        self.form = switches.form or config.head
        self.stochastic = self.form != "tanh"
        self.guidance = 1.0  # how far to go from the output without z to that with it
        width = config.width
        self.embed_time = Embedding(stack, dims.horizon, width, STD) if switches.uses_time else None
        self.embed_z = Linear(stack, dims.z, width) if dims.z else None
        self.embed_state = Linear(stack, dims.observation, width)
        self.embed_action = Linear(stack, dims.action, width) if switches.actions else None
        self.code = Linear(stack, width, width) if switches.modulated else None
        self.embed_norm = LayerNorm(stack, width)
        self.blocks = nn.ModuleList(VariantBlock(stack, config, switches) for _ in range(config.layers))
        self.norm = LayerNorm(stack, width)
        self.predict = Linear(stack, width, self.numbers(dims.action) * switches.chunk)
        self.spread = Linear(stack, width, dims.action) if self.form in ("cloned", "added") else None
        if self.form == "flow":
            inputs = config.width + dims.action + 1
            self.field = nn.ModuleList(
                [Linear(stack, inputs, 256), Linear(stack, 256, 256), Linear(stack, 256, dims.action)]
            )

    def numbers(self, action: int) -> int:
        """What the head needs for one action."""
        parts = self.switches.components
        return {
            "tanh": action,
            "cloned": action,
            "added": action,
            "gaussian": 2 * action,
            "squashed": 2 * action,
            "mixture": 3 * parts * action,
            "joint": parts + 2 * parts * action,
            "categorical": CELLS * action,
            "flow": self.config.width,
        }[self.form]

    def forward(self, z: Tensor | None, states: Tensor, actions: Tensor, times: Tensor) -> Tensor:
        """Head outputs for every step."""
        if self.training or self.guidance == 1.0 or z is None:
            return self.read(z, states, actions, times)
        given, free = self.read(z, states, actions, times), self.read(z, states, actions, times, known=False)
        guided = free + self.guidance * (given - free)
        if self.form in ("gaussian", "squashed", "cloned"):  # the mean alone
            return torch.cat([guided[..., : self.act], given[..., self.act :]], dim=-1)
        return guided

    def read(self, z: Tensor | None, states: Tensor, actions: Tensor, times: Tensor, known: bool = True) -> Tensor:
        """Head outputs; of windows whose z is known or not."""
        time = 0.0 if self.embed_time is None else self.embed_time(times.clamp(max=self.horizon - 1))
        token = self.embed_state(states) + time
        code = None
        if self.embed_z is not None and z is not None:
            if self.switches.cumulative:
                z = 2.0 * z.cumsum(-1) / math.sqrt(z.shape[-1]) - 1.0
            code = self.embed_z(z)
            if self.switches.dropped and self.training:
                code = code * (torch.rand_like(code[:, :, :1, :1]) >= self.switches.dropped)
            code = code if known else torch.zeros_like(code)
            if self.code is None:
                token, code = token + code, None
            else:
                code = self.code(silu(code)).expand(*token.shape)
        tokens = [token]
        if self.embed_action is not None:
            tokens.append(self.embed_action(actions) + time)
        count = len(tokens)
        x = self.embed_norm(torch.stack(tokens, dim=3).flatten(2, 3).float())
        if code is not None:
            code = silu(code.repeat_interleave(count, dim=2) if count > 1 else code)
        x = dropout(x, self.config.dropout, self.training)
        for block in self.blocks:
            x = block(x, code)
        hidden = self.norm(x)[:, :, ::count]
        outputs: Tensor = self.predict(hidden)
        if self.spread is not None:
            outputs = torch.cat([outputs, self.spread(hidden.detach())], dim=-1)
        return outputs

    # -- heads --------------------------------------------------------------------------------------------------

    def loss(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """What each step costs; of chunks the mean over those that lie in the window."""
        chunk = self.switches.chunk
        if chunk == 1:
            return self.cost(outputs, actions)
        parts, steps = outputs.chunk(chunk, dim=-1), actions.shape[2]
        total, count = torch.zeros(actions.shape[:3], device=actions.device), 0
        for ahead, part in enumerate(parts):
            cost = self.cost(part[:, :, : steps - ahead], actions[:, :, ahead:])
            total = total + nn.functional.pad(cost, (0, ahead)) * (steps / (steps - ahead))
            count += 1
        return total / count

    def cost(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Squared error or negative log-likelihood."""
        if self.form == "tanh":
            return super().loss(outputs, actions)
        outputs = outputs.float()
        if self.form == "gaussian":
            mean, log_std = self.gaussian(outputs)
            error = (actions - mean).square()
            return (error * (0.5 * (-2.0 * log_std).exp() + self.switches.accuracy) + log_std).mean(-1)
        if self.form == "squashed":
            mean, log_std = gaussian(outputs)
            weight = (2.0 * self.switches.beta * log_std.detach()).exp()
            return -(weight * log_likelihood(mean, log_std, actions)).mean(-1)
        if self.form == "cloned":
            mean, log_std = gaussian(outputs)
            likelihood = log_likelihood(mean.detach(), log_std, actions)
            return (torch.tanh(shrunk(mean, log_std.detach())) - actions).square().mean(-1) - likelihood.mean(-1)
        if self.form == "added":
            mean, log_std = gaussian(outputs)
            error = torch.tanh(mean) - actions
            return (error.square() + 0.5 * (error.detach() / log_std.exp()).square() + log_std).mean(-1)
        if self.form == "categorical":
            place = ((actions + 1.0) * (CELLS / 2)).long().clamp(0, CELLS - 1)
            logs = outputs.unflatten(-1, (self.act, CELLS)).log_softmax(-1)
            return -(logs * one_hot(place, CELLS)).sum(-1).mean(-1)
        if self.form == "flow":
            noise = torch.randn_like(actions)
            when = torch.rand_like(actions[..., :1])
            velocity = self.velocity(outputs, when * actions + (1.0 - when) * noise, when)
            return (velocity - (actions - noise)).square().mean(-1)
        weights, mean, log_std = self.mixture(outputs)
        value = actions.unsqueeze(-2)
        inner = -0.5 * ((value - mean) / log_std.exp()).square() - log_std - 0.5 * math.log(2 * math.pi)
        above = logsigmoid(1.702 * (mean - EDGE) / log_std.exp())
        below = logsigmoid(1.702 * (-EDGE - mean) / log_std.exp())
        logs = torch.where(value >= EDGE, above, torch.where(value <= -EDGE, below, inner))
        if self.form == "joint":
            return -torch.logsumexp(weights.squeeze(-1) + logs.sum(-1), -1) / self.act
        return -torch.logsumexp(weights + logs, -2).mean(-1)

    def mixture(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log weights, means and log spreads, (..., components, act); weights of ``joint`` are (..., components, 1)."""
        parts = self.switches.components
        if self.form == "joint":
            weights, rest = outputs[..., :parts].unsqueeze(-1), outputs[..., parts:]
            mean, raw = rest.unflatten(-1, (2, parts, self.act)).unbind(-3)
        else:
            weights, mean, raw = outputs.unflatten(-1, (3, parts, self.act)).unbind(-3)
        low, high = LOG_SPREAD
        return weights.log_softmax(-2), mean, low + (high - low) * torch.sigmoid(raw)

    def velocity(self, hidden: Tensor, actions: Tensor, when: Tensor) -> Tensor:
        """Of a flow from noise to actions."""
        x = torch.cat([hidden, actions, when], dim=-1)
        for layer in self.field[:-1]:
            x = gelu(layer(x))
        return self.field[-1](x).float()

    def action(self, outputs: Tensor, noise: Tensor | None = None, temperature: float = 1.0) -> Tensor:
        """The action in [-1, 1]: the mean, or a sample where there is ``noise``."""
        if self.switches.chunk > 1:
            outputs = outputs.chunk(self.switches.chunk, dim=-1)[0]
        if self.form in ("tanh", "gaussian"):
            return super().action(outputs, noise)
        outputs = outputs.float()
        if self.form == "squashed":
            mean, log_std = gaussian(outputs)
            return torch.tanh(mean if noise is None else mean + log_std.exp() * noise)
        if self.form == "cloned":
            mean, log_std = gaussian(outputs)
            return torch.tanh(shrunk(mean, log_std) if noise is None else mean + log_std.exp() * noise)
        if self.form == "added":
            mean, log_std = gaussian(outputs)
            return (torch.tanh(mean) + (0.0 if noise is None else log_std.exp() * noise)).clamp(-1.0, 1.0)
        if self.form == "categorical":
            shares = outputs.unflatten(-1, (self.act, CELLS)).softmax(-1)
            centers = torch.linspace(-1 + 1 / CELLS, 1 - 1 / CELLS, CELLS, device=outputs.device)
            if noise is None:
                return (shares * centers).sum(-1)
            drawn = torch.rand(*shares.shape[:-1], 1, device=outputs.device)
            place = (shares.cumsum(-1) < drawn).sum(-1).clamp(max=CELLS - 1)
            return centers[place] + (torch.rand_like(place.float()) - 0.5) * (2 / CELLS)
        if self.form == "flow":
            x = torch.zeros(*outputs.shape[:-1], self.act, device=outputs.device) if noise is None else noise
            for step in range(FLOW_STEPS):
                when = torch.full_like(x[..., :1], step / FLOW_STEPS)
                x = x + self.velocity(outputs, x, when) / FLOW_STEPS
            return x.clamp(-1.0, 1.0)
        weights, mean, log_std = self.mixture(outputs)
        if noise is None:
            return (weights.exp() * mean.clamp(-1.0, 1.0)).sum(-2)
        gumbel = -torch.log(-torch.log(torch.rand_like(weights).clamp(1e-7, 1 - 1e-7)))
        place = (weights + gumbel).argmax(-2, keepdim=True).expand(*mean.shape[:-2], 1, self.act)
        mean, log_std = mean.gather(-2, place).squeeze(-2), log_std.gather(-2, place).squeeze(-2)
        return (mean + log_std.exp() * noise).clamp(-1.0, 1.0)


def shrunk(mean: Tensor, log_std: Tensor) -> Tensor:
    """What tanh takes to about the mean of a squashed Gaussian: the probit approximation of a logistic function."""
    return mean / (1.0 + 0.5 * math.pi * (2.0 * log_std).exp()).sqrt()


class VariantAgent(SequenceAgent):
    """K variants."""

    def __init__(self, method: Switches, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> None:
        Agent.__init__(self, method, config, dims, seeds)
        self.policy = Variant(config, dims, method, len(seeds))
        initialize(self, seeds)
        with torch.no_grad():
            for layer in (self.policy.embed_state, self.policy.embed_action, self.policy.embed_z):
                if layer is not None:
                    layer.weight.mul_(method.embedding)

    def losses(self, batch: Batch) -> Tensor:
        """As any agent's; in windows that are longer than their episode chunks end with it."""
        return super().losses(batch)


class Ensemble(PolicyNetwork):
    """Groups of stacked policies that act as one: the mean of their actions, or of their Gaussians."""

    def __init__(self, policy: PolicyNetwork, group: int) -> None:
        super().__init__(policy.head)
        self.policy, self.group, self.stochastic = policy, group, policy.stochastic

    def forward(self, z: Tensor | None, states: Tensor, actions: Tensor, times: Tensor) -> Tensor:
        """Outputs of all members beside one another."""
        given = [None if x is None else x.repeat_interleave(self.group, dim=0) for x in (z, states, actions)]
        outputs: Tensor = self.policy(*given, times.expand(*states.shape[:3]).repeat_interleave(self.group, dim=0))
        return outputs.unflatten(0, (-1, self.group)).movedim(1, -2).flatten(-2)

    def action(self, outputs: Tensor, noise: Tensor | None = None, temperature: float = 1.0) -> Tensor:
        """The mean action, or a sample of the mean Gaussian."""
        members = outputs.unflatten(-1, (self.group, -1))
        if noise is None:
            return torch.stack([self.policy.action(x) for x in members.unbind(-2)]).mean(0)
        return self.policy.action(members.mean(-2), noise)


def ensemble(policy: hm.Policy, group: int) -> hm.Policy:
    """The policy's seeds in groups that act as one."""
    agent: Any = policy.method.build(policy.agent.config, policy.agent.dims, policy.seeds[::group]).to(policy.device)
    agent.policy = Ensemble(policy.agent.policy, group)
    found = hm.Policy(policy.run, agent)
    found.temperature, found.weights = policy.temperature, policy.weights
    return found
