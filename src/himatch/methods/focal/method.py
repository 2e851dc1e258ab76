"""FOCAL: a behaviour-regularised actor-critic (BRAC, Wu et al. 2019) with a value penalty, conditioned on a task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from himatch._runtime.shapes import Float, shaped
from himatch.errors import HimatchError
from himatch.methods.base import Agent, Stage
from himatch.methods.batch import Batch, BatchSpec, Dims
from himatch.methods.focal.network import SquashedTaskPolicy
from himatch.methods.metabc.method import ANY_EPISODE, TaskAgent, TaskMethod
from himatch.networks import squashed
from himatch.networks.transformer import ModelConfig, initialize
from himatch.networks.values import ValueNetwork, held


@dataclass(frozen=True)
class FOCAL(TaskMethod):
    """FOCAL: an offline actor-critic of single steps, conditioned on the embedding of one demonstration.

    It maximises each task's reward without leaving its behaviour: BRAC (Wu et al. 2019) with a value penalty.
    The weight of the penalty, ``alpha`` at first, follows what keeps the divergence from a learned behaviour policy at
    ``target_divergence``, in nats. ``averaging`` is how far target critics move towards the critics in a step.
    """

    name: ClassVar[str] = "focal"
    system: ClassVar[str] = "FOCAL (Li et al. 2021), meta-RL"
    conditioned_on: ClassVar[str] = "the embedding of a whole demonstration"
    unused: ClassVar[tuple[str, ...]] = ("context", "heads", "tokens", "activation", "dropout", "head")
    chooses: ClassVar[bool] = False  # the actor follows gradients of values with respect to its actions
    validated: ClassVar[bool] = False  # the better it gets, the less it need do what the data did
    discount: float = 0.99
    """Discount of rewards."""
    averaging: float = 0.005
    """How far target critics move towards the critics in a step."""
    alpha: float = 10.0
    """Initial weight of the divergence from the data's behaviour."""
    target_divergence: float = 0.05
    """How far the policy may go from the data's behaviour, in nats."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.discount < 1.0:
            raise HimatchError(f"the discount must be at least 0 and below 1, got {self.discount}")
        if not 0.0 < self.averaging <= 1.0:
            raise HimatchError(f"averaging must be above 0 and at most 1, got {self.averaging}")
        for name in ("alpha", "target_divergence"):
            if not getattr(self, name) > 0.0:
                raise HimatchError(f"{name} must be above 0, got {getattr(self, name)}")

    def stages(self, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """The encoder, then a clone of the behaviour that it tells apart."""
        return (*super().stages(steps, batch_size), Stage("behaviour", self.pretrain_steps or steps, batch_size))

    def batch_spec(self, context: int, action: int) -> BatchSpec:
        """Transitions, with noise for an action at either end."""
        return BatchSpec(1, look_ahead=ANY_EPISODE, tasks=True, transitions=True, noise=2 * action)

    def build(self, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> Agent:
        """An encoder, a behaviour clone, an actor and critics a model."""
        return FOCALAgent(self, config, dims, seeds)


class FOCALAgent(TaskAgent):
    """A stochastic policy, a clone of the behaviour, two critics and the slow copies that the critics learn from.

    Everything learns in one step from one sum of losses, with gradients cut where a part must not learn from another's.
    Values are in units of the reward's spread and of a single step: a policy that earns r at every step has value r.
    """

    method: FOCAL
    policy: SquashedTaskPolicy

    def __init__(self, method: FOCAL, config: ModelConfig, dims: Dims, seeds: tuple[int, ...]) -> None:
        super().__init__(method, config, dims, seeds)
        stack, hidden = len(seeds), (config.width,) * config.layers
        valued = dims.observation + method.m + dims.action

        def actor() -> SquashedTaskPolicy:
            return SquashedTaskPolicy(stack, dims.observation, dims.action, method.m, hidden)

        def critics() -> nn.ModuleList:
            return nn.ModuleList(ValueNetwork(stack, valued, hidden) for _ in range(2))

        self.policy, self.behaviour = actor(), actor()
        self.critics, self.targets = critics(), critics()
        self.log_alpha = nn.Parameter(torch.full((stack,), math.log(method.alpha)))
        initialize(self, seeds)
        self.targets.load_state_dict(self.critics.state_dict())
        self.targets.requires_grad_(False)

    @shaped
    def part_losses(self, part: str, batch: Batch) -> Float[Tensor, " K"]:
        """The encoder's loss, or the clone's.

        The clone's is its negative log-likelihood, weighted by its own variance (Seitzer et al. 2022): unweighted, it
        would pay for errors in rare states, such as an episode's first, with a larger spread there and not mend them.
        """
        if part == "encoder":
            return super().part_losses(part, batch)
        assert batch.z is not None
        mean, log_std = self.behaviour.gaussian(self.behaviour.outputs_for(batch.states[:, :, 0], batch.z[:, :, 0]))
        likelihood = squashed.log_likelihood(mean, log_std, batch.actions[:, :, 0])
        return -(likelihood * (2.0 * log_std.detach()).exp()).sum(-1).mean(1)

    def finish(self, part: str, codes: Tensor | None) -> None:
        """Begin as the clone, once that is learned."""
        super().finish(part, codes)
        if part == "behaviour":
            self.policy.load_state_dict(self.behaviour.state_dict())

    @shaped
    def training_losses(self, batch: Batch) -> tuple[Float[Tensor, " K"], Float[Tensor, " K"]]:
        """The sum of all losses, and the error of the policy's most likely action."""
        assert batch.z is not None
        assert batch.next_states is not None
        assert batch.noise is not None
        states, actions, z = batch.states[:, :, 0], batch.actions[:, :, 0], batch.z[:, :, 0]
        here_and_next = torch.cat([states, batch.next_states[:, :, 0]], dim=1), torch.cat([z, z], dim=1)
        mean, log_std = self.policy.gaussian(self.policy.outputs_for(*here_and_next))
        cloned = self.behaviour.gaussian(self.behaviour.outputs_for(*here_and_next))
        divergence, next_divergence = squashed.divergence(mean, log_std, *cloned).sum(-1).chunk(2, dim=1)
        noise = torch.cat(batch.noise.chunk(2, dim=-1), dim=1)
        chosen, next_chosen = squashed.sample(mean, log_std, noise)[0].chunk(2, dim=1)
        alpha = (1.0 - self.method.discount) * self.log_alpha.exp().detach().unsqueeze(1)

        target = self.target(batch, next_chosen.detach(), alpha * next_divergence.detach())
        known = torch.stack([critic(states, z, actions) for critic in self.critics], dim=1)
        critic_loss = (known - target.unsqueeze(1)).square().mean(2).sum(1)

        values = [held(critic, states, z, chosen) for critic in self.critics]
        actor_loss = (alpha * divergence - torch.minimum(*values)).mean(1)

        # Alpha rises while the policy is further from the behaviour than it may be, and falls while it is nearer.
        alpha_loss = self.log_alpha * (self.method.target_divergence - divergence.detach().mean(1))
        error = (torch.tanh(mean.chunk(2, dim=1)[0]) - actions).square().mean((1, 2))
        return critic_loss + actor_loss + alpha_loss, error

    @torch.no_grad()
    @shaped
    def target(
        self, batch: Batch, next_actions: Float[Tensor, "K B act"], penalty: Float[Tensor, "K B"]
    ) -> Float[Tensor, "K B"]:
        """What the critics learn: reward and discounted value of the next state, less the penalty there."""
        assert batch.z is not None
        assert batch.rewards is not None
        assert batch.next_states is not None
        assert batch.continues is not None
        values = [critic(batch.next_states[:, :, 0], batch.z[:, :, 0], next_actions) for critic in self.targets]
        discount = self.method.discount
        next_values = torch.minimum(*values) - penalty
        return (1.0 - discount) * batch.rewards[:, :, 0] + discount * batch.continues[:, :, 0] * next_values

    @torch.no_grad()
    def after_step(self) -> None:
        """The slow critics follow."""
        slow: list[Tensor] = list(self.targets.parameters())
        fast: list[Tensor] = list(self.critics.parameters())
        torch._foreach_lerp_(slow, fast, self.method.averaging)

    def report(self, batch: Batch) -> dict[str, Tensor]:
        """Beside the action error: values of logged actions, their range, the divergence and its weight."""
        assert batch.z is not None
        states, actions, z = batch.states[:, :, 0], batch.actions[:, :, 0], batch.z[:, :, 0]
        values = torch.minimum(*(critic(states, z, actions) for critic in self.critics))
        mine, cloned = (network.gaussian(network.outputs_for(states, z)) for network in (self.policy, self.behaviour))
        return super().report(batch) | {
            "value": values.mean(1),
            "lowest_value": values.amin(1),
            "highest_value": values.amax(1),
            "divergence": squashed.divergence(*mine, *cloned).sum(-1).mean(1),
            "alpha": self.log_alpha.exp(),
        }
