"""The policy against Hugging Face's Decision Transformer, weights copied over."""

from __future__ import annotations

import pytest
import torch

from himatch.networks.transformer import ModelConfig, SequencePolicy, initialize

transformers = pytest.importorskip("transformers")  # a development dependency; make test has it


def test_outputs_equal_hugging_faces() -> None:
    torch.manual_seed(0)
    config = transformers.DecisionTransformerConfig(
        state_dim=11, act_dim=3, hidden_size=64, max_ep_len=100, n_layer=3, n_head=2, n_positions=256,
        activation_function="relu", bos_token_id=0, eos_token_id=0, vocab_size=1,
    )  # fmt: skip
    theirs = transformers.DecisionTransformerModel(config).eval()
    ours = SequencePolicy(ModelConfig(context=20, layers=3, heads=2, width=64, dropout=0.1), 11, 3, 1, 100).eval()
    initialize(ours, (0,))
    with torch.no_grad():
        theirs.encoder.wpe.weight.zero_()  # the only position signal of the paper is the time step
        _copy(theirs, ours)
    states, actions, returns = torch.randn(4, 20, 11), torch.rand(4, 20, 3) * 2 - 1, torch.randn(4, 20, 1)
    times = torch.randint(0, 80, (4, 1)) + torch.arange(20)
    with torch.no_grad():
        expected = theirs(
            states=states,
            actions=actions,
            rewards=returns,
            returns_to_go=returns,
            timesteps=times,
            attention_mask=torch.ones(4, 20),
        ).action_preds
        found = ours.action(ours(returns[None], states[None], actions[None], times[None]))[0]
    assert float((found - expected).abs().max()) < 1e-5
    assert float(expected.std()) > 1e-2  # the comparison is of something


def _copy(theirs: torch.nn.Module, ours: SequencePolicy) -> None:
    def linear(target: torch.nn.Module, source: torch.nn.Module, transposed: bool) -> None:
        weight = source.weight.T if transposed else source.weight
        target.weight.copy_(weight[None])
        target.bias.copy_(source.bias[None])

    def norm(target: torch.nn.Module, source: torch.nn.Module) -> None:
        target.weight.copy_(source.weight[None])
        target.bias.copy_(source.bias[None])

    ours.embed_time.weight.copy_(theirs.embed_timestep.weight[None])
    linear(ours.embed_z, theirs.embed_return, True)
    linear(ours.embed_state, theirs.embed_state, True)
    linear(ours.embed_action, theirs.embed_action, True)
    norm(ours.embed_norm, theirs.embed_ln)
    linear(ours.predict, theirs.predict_action[0], True)
    norm(ours.transformer.norm, theirs.encoder.ln_f)
    for mine, block in zip(ours.transformer.blocks, theirs.encoder.h, strict=True):
        norm(mine.attention_norm, block.ln_1)
        norm(mine.mlp_norm, block.ln_2)
        linear(mine.qkv, block.attn.c_attn, False)
        linear(mine.attention_out, block.attn.c_proj, False)
        linear(mine.mlp_in, block.mlp.c_fc, False)
        linear(mine.mlp_out, block.mlp.c_proj, False)
