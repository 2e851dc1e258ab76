"""A stack computes for each model what that model computes alone."""

from __future__ import annotations

import pytest
import torch

from himatch.networks.stacked import MLP, Embedding, LayerNorm, Linear, dropout
from himatch.networks.transformer import ModelConfig, SequencePolicy, initialize


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def alone(module: torch.nn.Module, model: int) -> dict[str, torch.Tensor]:
    return {name: tensor[model : model + 1] for name, tensor in module.state_dict().items()}


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (lambda k: Linear(k, 5, 7), torch.randn(3, 4, 2, 5)),
        (lambda k: LayerNorm(k, 5), torch.randn(3, 4, 2, 5)),
        (lambda k: Embedding(k, 9, 4, 0.1), torch.randint(9, (3, 6, 2))),
        (lambda k: MLP(k, (5, 8, 3)), torch.randn(3, 4, 5)),
    ],
    ids=["linear", "norm", "embedding", "mlp"],
)
def test_layers(make: object, inputs: torch.Tensor) -> None:
    stacked = make(3)  # type: ignore[operator]
    for parameter in stacked.parameters():
        torch.nn.init.normal_(parameter)
    outputs = stacked(inputs)
    for model in range(3):
        single = make(1)  # type: ignore[operator]
        single.load_state_dict(alone(stacked, model))
        torch.testing.assert_close(single(inputs[model : model + 1])[0], outputs[model], atol=1e-6, rtol=1e-5)


def test_linear_is_pytorchs() -> None:
    ours, theirs = Linear(1, 5, 7), torch.nn.Linear(5, 7)
    with torch.no_grad():
        ours.weight.copy_(theirs.weight.T[None])
        ours.bias.copy_(theirs.bias[None])
    x = torch.randn(1, 6, 5)
    torch.testing.assert_close(ours(x)[0], theirs(x[0]))


@pytest.mark.parametrize("tokens", ["triples", "pairs", "states"])
@pytest.mark.parametrize("z_width", [0, 4])
def test_policies(tokens: str, z_width: int) -> None:
    config = ModelConfig(context=3, layers=2, heads=2, width=16, dropout=0.0, tokens=tokens)  # type: ignore[arg-type]
    seeds = (5, 0, 3)
    stacked = SequencePolicy(config, 6, 2, z_width, 30, len(seeds))
    initialize(stacked, seeds)
    z = torch.randn(3, 8, 3, z_width) if z_width else None
    states, actions, times = torch.randn(3, 8, 3, 6), torch.randn(3, 8, 3, 2), torch.randint(30, (3, 8, 3))
    outputs = stacked(z, states, actions, times)
    for model, seed in enumerate(seeds):
        single = SequencePolicy(config, 6, 2, z_width, 30, 1)
        initialize(single, (seed,))
        part = slice(model, model + 1)
        alone = single(None if z is None else z[part], states[part], actions[part], times[part])
        torch.testing.assert_close(alone[0], outputs[model], atol=1e-5, rtol=1e-4)


def test_what_stands_later_does_not_matter() -> None:
    """Causality, and the reason there are no padding masks."""
    config = ModelConfig(context=6, layers=2, width=16, dropout=0.0)
    policy = SequencePolicy(config, 4, 2, 3, 30)
    initialize(policy, (0,))
    inputs = [torch.randn(1, 2, 6, 3), torch.randn(1, 2, 6, 4), torch.randn(1, 2, 6, 2)]
    times = torch.arange(6).expand(1, 2, 6)
    before = policy(*inputs, times)
    for tensor in inputs:
        tensor[:, :, 4:] = 99.0
    inputs[2][:, :, 3] = -7.0  # the action at step 3 comes after the one predicted there
    after = policy(*inputs, times)
    torch.testing.assert_close(after[:, :, :4], before[:, :, :4])
    assert not torch.allclose(after[:, :, 4:], before[:, :, 4:])


def test_dropout_drops_the_right_part_and_keeps_the_mean() -> None:
    x = torch.ones(400, 777)
    dropped = dropout(x, 0.1, True)
    assert float((dropped == 0).float().mean()) == pytest.approx(0.1, abs=0.003)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.004)
    assert dropout(x, 0.1, False) is x
    assert not torch.equal(dropout(x, 0.1, True), dropped)


@pytest.mark.parametrize(
    "change", [{"context": 0}, {"width": 10, "heads": 3}, {"dropout": 1.0}, {"tokens": "four"}, {"head": "x"}]
)
def test_impossible_models_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change)).split("_")[0]):
        ModelConfig(**change)  # type: ignore[arg-type]
