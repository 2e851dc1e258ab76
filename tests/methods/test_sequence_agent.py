"""Sequence agents: what of a batch trains which part."""

from __future__ import annotations

import pytest
import torch

from himatch.methods import make_method
from himatch.methods.batch import Batch, Dims
from himatch.networks.transformer import ModelConfig


def test_encoders_see_all_places_of_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last states of an episode are in no window's first place."""
    context, seeds = 4, (0, 1)
    agent = make_method("dt-ae").build(ModelConfig(context=context, width=8), Dims(1, 2, 16, 50), seeds)
    states = torch.arange(context, dtype=torch.float32).view(1, 1, context, 1).expand(len(seeds), 9, -1, -1)
    batch = Batch(states, torch.zeros(len(seeds), 9, context, 2), torch.zeros(len(seeds), 9, context).long())
    seen = []
    monkeypatch.setattr(agent.codes, "unsupervised_loss", lambda found: seen.append(found) or torch.zeros(len(seeds)))
    agent.part_losses("codes", batch)
    assert seen[0].shape == (2, 9, 1)
    assert seen[0][1, :, 0].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0]
