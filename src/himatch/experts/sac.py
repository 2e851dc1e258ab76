"""Soft actor-critic (Haarnoja et al. 2018) for a stack of K agents at once.

Two critics with layer normalisation, automatic temperature, no delayed updates. All agents' numbers lie in a few flat
buffers, so that an update of the whole stack is a few hundred kernels, captured in one CUDA graph where there is a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from himatch._runtime.files import damaged
from himatch._runtime.flat import FlatParameters, load_optimizer
from himatch._runtime.graphs import CompiledPart, Undo, make_step
from himatch._runtime.shapes import Float, shaped
from himatch.errors import HimatchError
from himatch.experts.networks import Actor, Critics, NetworkDims, initialize
from himatch.experts.replay_buffer import Experience, ReplayBuffer


@dataclass(frozen=True)
class SACConfig:
    """Settings of a stack, the same for every agent in it."""

    hidden: tuple[int, ...] = (256, 256)
    copies: int = 16
    """Simulations of each agent, stepped together."""
    updates: int = 8
    """Updates after each step of all copies; half an update a transition by default."""
    batch_size: int = 256
    learning_rate: float = 3e-4
    discount: float = 0.99
    averaging: float = 0.005
    """How far target critics move towards the critics in an update."""
    entropy: float = 1.0
    """Target entropy, in negative numbers of action coordinates."""
    memory: int = 1_000_000
    """Transitions restore_point for each agent."""
    first: int = 5_000
    """Transitions of random actions before learning."""

    def __post_init__(self) -> None:
        for name in ("copies", "updates", "batch_size", "memory"):
            if getattr(self, name) < 1:
                raise HimatchError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.hidden or min(self.hidden) < 1:
            raise HimatchError(f"hidden layers need at least one unit, got {self.hidden}")
        if self.memory < max(self.first, self.copies):
            raise HimatchError(f"memory ({self.memory}) must hold the first {max(self.first, self.copies)} transitions")
        if not self.learning_rate > 0.0:
            raise HimatchError(f"the learning rate must be above 0, got {self.learning_rate}")
        for name in ("discount", "averaging"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise HimatchError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")


class SAC:
    """K agents that learn side by side; nothing passes between them."""

    def __init__(
        self,
        config: SACConfig,
        dims: NetworkDims,
        action_widths: tuple[int, ...],
        seeds: tuple[int, ...],
        device: torch.device,
    ) -> None:
        self.config, self.device, self.stack = config, device, len(seeds)
        self.dims = dims
        self.actor = Actor(action_widths, self.dims)
        critics, targets = Critics(self.stack, self.dims), Critics(self.stack, self.dims)
        initialize(self.actor, critics, seeds)
        targets.load_state_dict(critics.state_dict())
        self.actor.to(device)
        self.critics, self.targets = critics.to(device), targets.to(device)
        self.flat_actor = FlatParameters(self.actor.named_parameters(), torch.float32)
        self.flat_critics = FlatParameters(self.critics.named_parameters(), torch.float32)
        self.flat_targets = FlatParameters(self.targets.named_parameters(), torch.float32)
        self.log_temperature = torch.zeros(self.stack, device=device)
        self.target_entropy = -config.entropy * torch.tensor([float(w) for w in action_widths], device=device)
        self.optimizers = [
            self._adam(t) for t in (self.flat_actor.master, self.flat_critics.master, self.log_temperature)
        ]
        rows = config.memory // config.copies
        self.replay = ReplayBuffer(rows, self.stack, config.copies, self.dims.observation, self.dims.action, device)
        self.losses = torch.zeros(2, self.stack, device=device)
        self._critic_loss, self._actor_loss = CompiledPart(self.critic_loss), CompiledPart(self.actor_loss)
        if device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        parts = self._critic_loss, self._actor_loss
        self._learn = make_step(self._update, device, snapshot=self._snapshot, parts=parts, purpose="training")

    @property
    def how(self) -> str:
        """How an update runs: eager, compiled, CUDA graph or compiled CUDA graph."""
        return str(getattr(self._learn, "how", "eager"))

    def _adam(self, numbers: Tensor) -> torch.optim.Adam:
        numbers.grad = torch.zeros_like(numbers)
        return torch.optim.Adam(
            [numbers], lr=self.config.learning_rate, fused=True, capturable=self.device.type == "cuda"
        )

    # -- losses: per agent, (K,) --------------------------------------------------------------------------------

    @shaped
    def critic_loss(self, batch: Experience, noise: Float[Tensor, "K B act"]) -> Float[Tensor, " K"]:
        """Squared error of both critics against the soft value of the next state."""
        with torch.no_grad():
            actions, likelihood = self.actor.sample(batch.next_observations, noise)
            value = self.targets(batch.next_observations, actions).amin(1)
            value = value - self.log_temperature.exp().unsqueeze(1) * likelihood
            goal = batch.rewards + self.config.discount * (1.0 - batch.terminated) * value
        error = self.critics(batch.observations, batch.actions) - goal.unsqueeze(1)
        loss: Tensor = error.square().mean(2).sum(1)
        return loss

    @shaped
    def actor_loss(
        self, observations: Float[Tensor, "K B obs"], noise: Float[Tensor, "K B act"]
    ) -> tuple[Float[Tensor, " K"], Float[Tensor, " K"]]:
        """Soft value of the actor's own actions, negated, and the likelihood of those actions."""
        actions, likelihood = self.actor.sample(observations, noise)
        value = self.critics(observations, actions).amin(1)
        temperature = self.log_temperature.exp().unsqueeze(1)
        return (temperature * likelihood - value).mean(1), likelihood.detach().mean(1)

    # -- an update ----------------------------------------------------------------------------------------------

    def update(self) -> None:
        """One step of every network of every agent."""
        self._learn()

    def _update(self) -> None:
        batch = self.replay.draw(self.config.batch_size)
        noise = torch.randn(2, *batch.actions.shape, device=self.device)
        loss = self._critic_loss(batch, noise[0])
        gradients = torch.autograd.grad(loss.sum(), self.flat_critics.parameters)
        self._step(1, self.flat_critics.gradient(gradients))
        value, likelihood = self._actor_loss(batch.observations, noise[1])
        gradients = torch.autograd.grad(value.sum(), self.flat_actor.parameters)
        self._step(0, self.flat_actor.gradient(gradients))
        with torch.no_grad():
            # d/d log(temperature) of -temperature (likelihood + target entropy)
            self._step(2, -self.log_temperature.exp() * (likelihood + self.target_entropy))
            self.flat_targets.master.lerp_(self.flat_critics.master, self.config.averaging)
            self.losses[0].copy_(loss)
            self.losses[1].copy_(value)

    @torch.no_grad()
    def _step(self, which: int, gradient: Tensor) -> None:
        optimizer = self.optimizers[which]
        grad = optimizer.param_groups[0]["params"][0].grad
        grad.copy_(gradient)
        optimizer.step()

    # -- acting -------------------------------------------------------------------------------------------------

    @torch.no_grad()
    @shaped
    def act(self, observations: Float[Tensor, "K E obs"]) -> Float[Tensor, "K E act"]:
        """Sampled actions."""
        noise = torch.randn(*observations.shape[:2], self.dims.action, device=self.device)
        return self.actor.act(observations, noise)

    # -- state --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """Everything learning changes except the memory."""
        state = {"targets": self.flat_targets.master}
        for name, optimizer in zip(("actor", "critics", "temperature"), self.optimizers, strict=True):
            numbers = optimizer.param_groups[0]["params"][0]
            state[name] = numbers
            state |= {f"{name}.{k}": torch.as_tensor(v) for k, v in optimizer.state.get(numbers, {}).items()}
        return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}

    def check_state(self, state: dict[str, Tensor], where: str) -> None:
        """Refuse a stored state that is not one of such a stack; called before the first update."""
        for name, tensor in self.state().items():
            if name not in state:
                raise damaged(where, f"no {name} in it")
            for stored in (name, f"{name}.exp_avg", f"{name}.exp_avg_sq"):
                if stored in state and state[stored].shape != tensor.shape:
                    raise damaged(where, f"{stored} has shape {tuple(state[stored].shape)}, not {tuple(tensor.shape)}")

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take over a stored state, in place."""
        self.flat_targets.load(state["targets"])
        for name, optimizer in zip(("actor", "critics", "temperature"), self.optimizers, strict=True):
            numbers = optimizer.param_groups[0]["params"][0]
            with torch.no_grad():
                numbers.copy_(state[name])
            keys = ("step", "exp_avg", "exp_avg_sq")
            load_optimizer(optimizer, numbers, {k: state[f"{name}.{k}"] for k in keys if f"{name}.{k}" in state})

    def _snapshot(self) -> Undo:
        """What undoes the updates that are tried out before recording."""
        saved = self.state()
        return lambda: self.load_state(saved)


def chosen_agents(state: dict[str, Tensor], agents: list[int]) -> dict[str, Tensor]:
    """The state of some agents of a stack, in the order given."""
    pairs = [model for agent in agents for model in (2 * agent, 2 * agent + 1)]
    return {
        name: tensor if tensor.dim() == 0 else tensor[pairs if name.startswith(("critics", "targets")) else agents]
        for name, tensor in state.items()
    }
