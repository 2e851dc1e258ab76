"""Reward-conditioned policies: the tilted distribution of targets, and what RCP-A subtracts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import himatch as hm
from himatch.methods.batch import Batch, Dims
from himatch.methods.rcp.method import VALUE, RCPAgent
from himatch.methods.rcp.network import AdvantagePolicy
from himatch.networks.transformer import ModelConfig

TINY: dict[str, Any] = {"preset": "cpu", "width": 16, "layers": 1, "batch_size": 8, "quiet": True}


def agent_of(**settings: Any) -> RCPAgent:
    model = ModelConfig(context=1, width=8, layers=1, dropout=0.0)
    agent = hm.RCP(**settings).build(model, Dims(3, 2, 1, 10), (0, 1))
    assert isinstance(agent, RCPAgent)
    return agent


def batch_of(size: int = 6) -> Batch:
    g = torch.Generator().manual_seed(0)
    states, actions, z = (torch.randn(2, size, 1, width, generator=g) for width in (3, 2, 1))
    return Batch(states, actions.tanh(), torch.zeros(2, size, 1, dtype=torch.int64), z)


@pytest.mark.parametrize("beta", [0.3, 1.0, 1e6])
def test_steps_are_weighted_by_their_tilted_share(beta: float) -> None:
    agent, batch = agent_of(beta=beta), batch_of()
    assert batch.z is not None
    z = batch.z[:, :, 0, 0].numpy().astype(np.float64)
    expected = np.exp(z / beta) / np.exp(z / beta).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(agent.weights(batch), expected, rtol=1e-4)
    cost = agent.policy.loss(agent(batch), batch.actions)[:, :, 0].detach().numpy()
    np.testing.assert_allclose(agent.losses(batch).detach(), (cost * expected).sum(axis=1), rtol=1e-4)


def test_advantages_are_what_is_above_the_usual_return() -> None:
    agent, batch = agent_of(given="advantage"), batch_of()
    assert isinstance(agent.policy, AdvantagePolicy)
    assert batch.z is not None
    usual = agent.policy.usual
    with torch.no_grad():
        usual.log_std.fill_(np.log(2.0))
        advantage = (batch.z - usual.mlp(batch.states)) / 2.0
        expected = agent.policy.outputs_for(batch.states, advantage)
        torch.testing.assert_close(agent(batch), expected)
        torch.testing.assert_close(agent.weights(batch), advantage[:, :, 0, 0].softmax(1))
        more = batch._replace(z=usual.mlp(batch.states))  # what is usual everywhere is no advantage anywhere
        torch.testing.assert_close(agent(more), agent.policy.outputs_for(batch.states, torch.zeros_like(batch.z)))


def test_the_usual_return_is_learned_first_and_then_frozen(hopper: hm.TrajectoryDataset, tmp_path: Path) -> None:
    method = hm.RCP(given="advantage", value_steps=300)
    for out, steps in (("short", 2), ("long", 20)):
        hm.train(method, hopper, out=tmp_path / out, **TINY, steps=steps, learning_rate=1e-2)
    short, long = (load_file(tmp_path / out / "seed-0" / "last.safetensors") for out in ("short", "long"))
    for key, tensor in short.items():
        assert torch.equal(tensor, long[key]) == key.startswith(f"{VALUE}."), key
    policy = hm.load(tmp_path / "long")
    assert isinstance(policy.agent.policy, AdvantagePolicy)
    usual, normalize = policy.agent.policy.usual, policy.normalizers
    z = torch.cat([torch.from_numpy(policy.statistic.of_values(e.rewards[:, None])) for e in hopper])  # type: ignore[index]
    states = torch.tensor(hopper.observations)
    with torch.no_grad():
        left = usual.advantage(normalize.z(z)[None, :, None], normalize.states(states)[None, :, None])
    assert float(left.std()) == pytest.approx(1.0, abs=0.15)  # in units of their own spread
    assert float(usual.log_std.detach().exp()) < 0.9  # and less than that of all returns


def test_the_length_of_its_training_scales_with_the_policys() -> None:
    assert hm.RCP(given="advantage", value_steps=100).scaled(50, 200).value_steps == 25
    assert hm.RCP().scaled(50, 200) == hm.RCP()
    assert hm.RCP().stages(9, 8) == ()
