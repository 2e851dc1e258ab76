"""What is computed another way where it is compiled for a GPU: attention over few positions, padded products."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from himatch.networks import stacked, transformer
from himatch.networks.stacked import Linear, draw
from himatch.networks.transformer import SHORT, ModelConfig, SequencePolicy, initialize, short_attention


@given(length=st.integers(1, SHORT), heads=st.sampled_from([1, 4]), seed=st.integers(0, 99))
def test_short_attention_is_pytorchs(length: int, heads: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    ours = [torch.randn(3, heads, length, 8, generator=generator, requires_grad=True) for _ in range(3)]
    theirs = [x.detach().clone().requires_grad_() for x in ours]
    weight = torch.randn(3, heads, length, 8, generator=generator)
    attended, expected = short_attention(*ours), scaled_dot_product_attention(*theirs, is_causal=True)
    torch.testing.assert_close(attended, expected)
    (attended * weight).sum().backward()
    (expected * weight).sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("width", [1, 17, 24, 31])
def test_padded_products_are_the_same(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Linear(2, width, 5)
    draw(layer, [torch.Generator().manual_seed(seed) for seed in (0, 1)])
    x = torch.randn(2, 7, width)
    plain = layer(x)
    expected = torch.autograd.grad(plain.square().sum(), layer.weight)[0]
    monkeypatch.setattr(stacked, "fused", lambda given: True)
    padded = layer(x)
    torch.testing.assert_close(padded, plain)
    torch.testing.assert_close(torch.autograd.grad(padded.square().sum(), layer.weight)[0], expected)


def test_a_policy_computes_the_same_when_it_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = SequencePolicy(ModelConfig(context=5, heads=4, width=16, dropout=0.0, tokens="states"), 3, 2, 4, 20, 2)
    initialize(policy, (0, 1))
    given = (torch.randn(2, 6, 5, 4), torch.randn(2, 6, 5, 3), torch.randn(2, 6, 5, 2), torch.arange(5).expand(2, 6, 5))
    plain = policy(*given)
    called: list[int] = []

    def counted(*parts: torch.Tensor) -> torch.Tensor:
        called.append(1)
        return short_attention(*parts)

    monkeypatch.setattr(transformer, "fused", lambda given: True)
    monkeypatch.setattr(transformer, "short_attention", counted)
    torch.testing.assert_close(policy(*given), plain)
    assert len(called) == 3
