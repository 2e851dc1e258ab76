"""What tests of interchange share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from local_hub import LocalHub, local_hub
from numpy.typing import NDArray
from torch import Tensor

Rows = Iterable[NDArray[np.float32]]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """A folder in place of the Hub."""
    pytest.importorskip("huggingface_hub")  # an extra; make test has it
    with local_hub(tmp_path, monkeypatch) as hub:
        yield hub


@pytest.fixture
def sample_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rows], None]:
    """Has controllers that were made already sample by these standard normal numbers, a row at every step."""

    def hand_over(rows: Rows) -> None:
        left = iter(rows)

        def normal_(tensor: Tensor, std: float, generator: torch.Generator) -> Tensor:
            return tensor.copy_(std * torch.from_numpy(next(left)))

        monkeypatch.setattr(Tensor, "normal_", normal_)

    return hand_over
