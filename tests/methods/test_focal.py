"""FOCAL's actor-critic against calculations by hand, and which part learns from which."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence
from torch.nn import functional

import himatch as hm
from himatch.methods.batch import Batch, Dims
from himatch.methods.focal.method import FOCALAgent
from himatch.networks.transformer import ModelConfig
from himatch.networks.values import ValueNetwork

OBS, ACT, M, K, B = 4, 2, 3, 2, 6
METHOD = hm.FOCAL(m=M, encoder=(8,), discount=0.9, averaging=0.25, alpha=2.0, target_divergence=0.5)


def some(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def agent() -> FOCALAgent:
    """An agent whose every part differs from the others."""
    made = FOCALAgent(METHOD, ModelConfig(context=1, layers=2, width=8, dropout=0.0), Dims(OBS, ACT, M, 50), (3, 4))
    with torch.no_grad():
        for i, parameter in enumerate(made.targets.parameters()):
            parameter.add_(0.3 * some(*parameter.shape, seed=i))
        made.log_alpha.copy_(torch.tensor([math.log(2.0), math.log(5.0)]))
    made.freeze("encoder")
    made.freeze("behaviour")
    return made


@pytest.fixture
def batch() -> Batch:
    continues = torch.tensor([[[1.0]] * 5 + [[0.0]], [[0.0]] + [[1.0]] * 5])
    return Batch(
        some(K, B, 1, OBS),
        torch.tanh(some(K, B, 1, ACT, seed=1)),
        torch.zeros(K, B, 1, dtype=torch.int64),
        z=some(K, B, 1, M, seed=2),
        rewards=some(K, B, 1, seed=3),
        next_states=some(K, B, 1, OBS, seed=4),
        continues=continues,
        noise=some(K, B, 2 * ACT, seed=5),
    )


def value(network: ValueNetwork, model: int, *inputs: Tensor) -> Tensor:
    """One critic of one model, from its weights."""
    x = torch.cat(inputs)
    for layer, norm in zip(network.layers, network.norms, strict=True):
        x = functional.linear(x, layer.weight[model].T, layer.bias[model])  # type: ignore[index, union-attr]
        x = torch.relu(functional.layer_norm(x, x.shape, norm.weight[model], norm.bias[model]))  # type: ignore[index, arg-type]
    return functional.linear(x, network.last.weight[model].T, network.last.bias[model]).squeeze(-1)


def gaussian(network: object, model: int, state: Tensor, z: Tensor) -> Normal:
    """The unsquashed action of one model, from its weights."""
    x = torch.cat([state, z])
    layers = list(network.layers)  # type: ignore[attr-defined]
    for layer in layers[:-1]:
        x = torch.relu(functional.linear(x, layer.weight[model].T, layer.bias[model]))
    x = functional.linear(x, layers[-1].weight[model].T, layers[-1].bias[model])
    mean, raw = x[:ACT], x[ACT:]
    return Normal(mean, (-5.0 + 3.5 * (torch.tanh(raw) + 1.0)).exp())


def by_hand(agent: FOCALAgent, batch: Batch) -> tuple[Tensor, Tensor]:
    """The critics' target and the sum of all losses, row by row: ``(K, B)`` and ``(K,)``."""
    assert batch.z is not None
    assert batch.rewards is not None
    assert batch.next_states is not None
    assert batch.continues is not None
    assert batch.noise is not None
    goals, losses = torch.zeros(K, B), torch.zeros(K)
    for k in range(K):
        alpha = (2.0, 5.0)[k] * 0.1  # a penalty is paid at every step too, hence the factor 1 - discount
        divergences = []
        for b in range(B):
            state, after, z = batch.states[k, b, 0], batch.next_states[k, b, 0], batch.z[k, b, 0]
            noise, next_noise = batch.noise[k, b, :ACT], batch.noise[k, b, ACT:]
            mine, clone = (gaussian(net, k, after, z) for net in (agent.policy, agent.behaviour))
            penalty = alpha * kl_divergence(mine, clone).sum()
            action = torch.tanh(mine.mean + mine.stddev * next_noise)
            following = min(value(target, k, after, z, action) for target in agent.targets)  # type: ignore[type-var, arg-type]
            goal = 0.1 * batch.rewards[k, b, 0] + 0.9 * batch.continues[k, b, 0] * (following - penalty)
            goals[k, b] = goal
            for critic in agent.critics:
                losses[k] += (value(critic, k, state, z, batch.actions[k, b, 0]) - goal).square() / B  # type: ignore[arg-type]
            mine, clone = (gaussian(net, k, state, z) for net in (agent.policy, agent.behaviour))
            divergence = kl_divergence(mine, clone).sum()
            divergences.append(divergence)
            action = torch.tanh(mine.mean + mine.stddev * noise)
            best = min(value(critic, k, state, z, action) for critic in agent.critics)  # type: ignore[type-var, arg-type]
            losses[k] += (alpha * divergence - best) / B
        losses[k] += agent.log_alpha[k] * (0.5 - torch.stack(divergences).mean())
    return goals, losses


@torch.no_grad()
def test_target_and_losses_by_hand(agent: FOCALAgent, batch: Batch) -> None:
    goals, losses = by_hand(agent, batch)
    found: list[Tensor] = []
    original = agent.target

    def watched(*arguments: Tensor) -> Tensor:
        found.append(original(*arguments))  # type: ignore[arg-type]
        return found[-1]

    agent.target = watched  # type: ignore[method-assign, assignment]
    minimised, reported = agent.training_losses(batch)
    torch.testing.assert_close(found[0], goals)
    torch.testing.assert_close(minimised, losses)
    torch.testing.assert_close(reported, agent.losses(batch))


def test_after_a_termination_nothing_comes_and_after_a_time_limit_it_continues(agent: FOCALAgent, batch: Batch) -> None:
    assert batch.rewards is not None
    actions, penalty = torch.zeros(K, B, ACT), torch.full((K, B), 7.0)
    goals = agent.target(batch, actions, penalty)
    last = batch.rewards[0, 5, 0]  # terminated: the reward alone, no value and no penalty
    torch.testing.assert_close(goals[0, 5], 0.1 * last)
    assert (goals[0, :5] - 0.1 * batch.rewards[0, :5, 0]).abs().min() > 0.1


def gradient_of(agent: FOCALAgent, loss: Tensor) -> dict[str, float]:
    """How strongly each part would learn from a loss."""
    named = [(name, p) for name, p in agent.named_parameters() if p.requires_grad]
    gradients = torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)
    found: dict[str, float] = {}
    for (name, _), gradient in zip(named, gradients, strict=True):
        part = name.split(".")[0]
        found[part] = max(found.get(part, 0.0), 0.0 if gradient is None else float(gradient.abs().max()))
    return found


def test_everything_learns_but_what_is_frozen(agent: FOCALAgent, batch: Batch) -> None:
    learned = gradient_of(agent, agent.training_losses(batch)[0].sum())
    assert set(learned) == {"policy", "critics", "log_alpha"}
    assert min(learned.values()) > 0.0


def test_critics_learn_from_the_target_alone(agent: FOCALAgent, batch: Batch) -> None:
    """Neither does the actor flatter the critics, nor do the critics' errors move the actor."""
    with torch.no_grad():
        goals, _ = by_hand(agent, batch)
    assert batch.z is not None
    known = [critic(batch.states[:, :, 0], batch.z[:, :, 0], batch.actions[:, :, 0]) for critic in agent.critics]
    expected = torch.stack([(values - goals).square().mean(1) for values in known]).sum()
    critics = list(agent.critics.parameters())
    alone = torch.autograd.grad(expected, critics)
    together = torch.autograd.grad(agent.training_losses(batch)[0].sum(), critics)
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-3)


def test_alpha_rises_where_the_policy_is_too_far_and_falls_where_it_is_near(agent: FOCALAgent, batch: Batch) -> None:
    with torch.no_grad():
        agent.policy.load_state_dict(agent.behaviour.state_dict())
    (near,) = torch.autograd.grad(agent.training_losses(batch)[0].sum(), agent.log_alpha)
    torch.testing.assert_close(near, torch.full((K,), 0.5))  # downhill is down
    with torch.no_grad():
        agent.policy.layers[-1].bias.add_(3.0)  # type: ignore[operator, union-attr]
    (far,) = torch.autograd.grad(agent.training_losses(batch)[0].sum(), agent.log_alpha)
    assert (far < 0.0).all()


def test_slow_critics_follow(agent: FOCALAgent) -> None:
    before = [parameter.clone() for parameter in agent.targets.parameters()]
    agent.after_step()
    for was, now, fast in zip(before, agent.targets.parameters(), agent.critics.parameters(), strict=True):
        torch.testing.assert_close(now, 0.75 * was + 0.25 * fast)


def test_it_begins_as_the_clone(agent: FOCALAgent, batch: Batch) -> None:
    assert agent.report(batch)["divergence"].min() > 0.0
    agent.finish("behaviour", None)
    assert agent.report(batch)["divergence"].abs().max() < 1e-6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"discount": 1.0}, "discount must be at least 0 and below 1"),
        ({"averaging": 0.0}, "averaging must be above 0"),
        ({"alpha": 0.0}, "alpha must be above 0"),
        ({"target_divergence": -1.0}, "target_divergence must be above 0"),
        ({"m": 0}, "at least one dimension"),
        ({"encoder": ()}, "hidden layers"),
        ({"tasks": 1}, "two tasks of one step at least, got 1 of 16"),
        ({"pretrain_steps": 0}, "at least one step, got 0"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(hm.HimatchError, match=message):
        hm.make_method("focal", **settings)
