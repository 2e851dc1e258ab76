from __future__ import annotations

import pytest
import torch

from himatch.methods.bdt.network import AntiCausalAggregator
from himatch.methods.dtx.network import ContrastiveEncoder, SummedEncoder
from himatch.networks.transformer import initialize


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def test_a_code_sees_its_own_state_and_later_ones_only() -> None:
    codes = AntiCausalAggregator(1, 4, 3, window=8, width=16, layers=2, heads=1, dropout=0.0)
    initialize(codes, (0,))
    windows = torch.randn(1, 2, 8, 4)
    before = codes(windows, 5)
    assert before.shape == (1, 2, 5, 3)
    past = windows.clone()
    past[:, :, :3] = 7.0
    torch.testing.assert_close(codes(past, 5)[:, :, 3:], before[:, :, 3:])
    future = windows.clone()
    future[:, :, 7] = 7.0
    assert (codes(future, 5) - before).abs().amax((1, 3)).min() > 1e-4


def test_summed_codes_are_means_over_the_window() -> None:
    codes = SummedEncoder(2, 4, 3, window=5, hidden=(8,))
    initialize(codes, (0, 1))
    windows = torch.randn(2, 6, 9, 4)
    features = codes.encoder(windows)
    expected = torch.stack([features[:, :, t : t + 5].mean(2) for t in range(3)], dim=2)
    torch.testing.assert_close(codes(windows, 3), expected, atol=1e-5, rtol=1e-4)


def test_info_nce_is_cross_entropy_over_the_batch() -> None:
    codes = ContrastiveEncoder(2, 4, 3, window=5, hidden=(8,))
    initialize(codes, (0, 1))
    states = torch.randn(2, 6, 4)
    torch.manual_seed(1)
    found = codes.unsupervised_loss(states).detach()
    torch.manual_seed(1)
    keys = codes.key_encoder(states + 0.1 * torch.randn_like(states))
    queries = codes.bilinear(codes.encoder(states))
    for model in range(2):
        expected = torch.nn.functional.cross_entropy(queries[model] @ keys[model].T, torch.arange(6))
        assert float(found[model]) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_key_encoder_follows_slowly() -> None:
    codes = ContrastiveEncoder(1, 4, 3, window=5, hidden=(8,))
    initialize(codes, (0,))
    slow, fast = codes.key_encoder.layers[0].weight.clone(), codes.encoder.layers[0].weight
    codes.after_step()
    torch.testing.assert_close(codes.key_encoder.layers[0].weight, 0.95 * slow + 0.05 * fast)
    assert not any(parameter.requires_grad for parameter in codes.key_encoder.parameters())
