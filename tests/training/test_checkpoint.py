"""What a stage of training takes over from what was stored."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from himatch.training.checkpoint import Checkpoint, Clock


def test_losses_of_a_stopped_training_join_those_that_follow() -> None:
    """Weights are where training is, on a GPU; losses come from there to the host, and so must those that were stored.

    A device without numbers stands in for the GPU.
    """
    elsewhere: Any = torch.zeros(2, 3, device="meta")
    update: Any = SimpleNamespace(
        flat=SimpleNamespace(master=elsewhere),
        stage=SimpleNamespace(part="encoder"),
        restore=lambda stored: None,
        step=0,
    )
    stored = {
        "pending": torch.ones(4, 2),
        "step": torch.tensor(4),
        "best": torch.zeros(2, 3),
        "best_loss": torch.zeros(2),
        "best_step": torch.zeros(2, dtype=torch.int64),
    }
    plan: Any = SimpleNamespace(seeds=(0, 1))
    found = Checkpoint(plan, 0, update, stored, Clock())
    found.pending.append(torch.zeros(4, 2))
    assert torch.cat(found.pending).mean() == 0.5
