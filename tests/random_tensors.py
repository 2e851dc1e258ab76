"""Random tensors, the same for the same seed."""

from __future__ import annotations

import torch
from torch import Tensor


def some(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
