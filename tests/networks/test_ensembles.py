"""An ensemble against its members, each built as a policy of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from himatch.methods.metabc.network import TaskPolicy
from himatch.networks.heads import Head, PolicyNetwork
from himatch.networks.transformer import ModelConfig, SequencePolicy, initialize

STACK, MEMBERS, BATCH, STEPS, OBS, ACT, Z = 2, 3, 5, 4, 6, 2, 3
HEADS: tuple[Head, ...] = ("tanh", "gaussian", "squashed")


def sequence(head: Head, members: int, stack: int) -> SequencePolicy:
    form: Any = {"tokens": "states", "heads": 2} if head == "gaussian" else {}
    config = ModelConfig(STEPS, layers=2, width=16, dropout=0.0, head=head, members=members, **form)
    return SequencePolicy(config, OBS, ACT, Z, 20, stack)


def single_steps(head: Head, members: int, stack: int) -> TaskPolicy:
    return TaskPolicy(stack, OBS, ACT, Z, (16, 16), 0.0, head, members)


KINDS = {"sequence": sequence, "single steps": single_steps}


def given() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    shape = STACK, BATCH, STEPS
    return torch.randn(*shape, Z), torch.randn(*shape, OBS), torch.rand(*shape, ACT) - 0.5, torch.randint(20, shape)


def alone(policy: nn.Module, made: PolicyNetwork, model: int, member: int) -> PolicyNetwork:
    """One member's weights in a policy of its own."""
    made.load_state_dict({name: tensor[model : model + 1, member] for name, tensor in policy.state_dict().items()})
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", HEADS)
def test_an_ensemble_is_its_members(kind: str, head: Head) -> None:
    policy = KINDS[kind](head, MEMBERS, STACK)
    initialize(policy, (4, 7))
    z, states, actions, times = given()
    outputs = policy(z, states, actions, times)
    noise = torch.randn(BATCH, STEPS, ACT)
    for model in range(STACK):
        part = slice(model, model + 1)
        members = [alone(policy, KINDS[kind](head, 1, 1), model, member) for member in range(MEMBERS)]
        found = [member(z[part], states[part], actions[part], times[part]) for member in members]
        costs = [member.loss(one, actions[part]) for member, one in zip(members, found, strict=True)]
        torch.testing.assert_close(policy.loss(outputs, actions)[part], torch.stack(costs).mean(0))
        if head == "tanh":
            expected = torch.stack([torch.tanh(one[0]) for one in found]).mean(0)
            torch.testing.assert_close(policy.action(outputs[model]), expected)
            continue
        parameters = [member.gaussian(one[0]) for member, one in zip(members, found, strict=True)]
        mean, log_std = (torch.stack(x).mean(0) for x in zip(*parameters, strict=True))
        drawn = mean + log_std.exp() * noise
        expected = torch.tanh(drawn) if head == "squashed" else drawn.clamp(-1.0, 1.0)
        torch.testing.assert_close(policy.action(outputs[model], noise), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_each_member_is_drawn_and_learns_by_itself(kind: str) -> None:
    policy = KINDS[kind]("tanh", MEMBERS, STACK)
    initialize(policy, (4, 7))
    z, states, actions, times = given()
    gradients = torch.autograd.grad(
        policy.loss(policy(z, states, actions, times), actions)[1].mean(), policy.parameters()
    )
    member = alone(policy, KINDS[kind]("tanh", 1, 1), 1, 2)
    part = slice(1, 2)
    cost = member.loss(member(z[part], states[part], actions[part], times[part]), actions[part]).mean()
    for (name, weight), ours, own in zip(
        policy.named_parameters(), gradients, torch.autograd.grad(cost, member.parameters()), strict=True
    ):
        torch.testing.assert_close(ours[1, 2] * MEMBERS, own[0])
        assert not ours[0].any()
        if "norm" not in name and "bias" not in name:
            assert not torch.equal(weight[1, 0], weight[1, 1])
