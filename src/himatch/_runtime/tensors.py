"""Tensors in safetensors files: written whole or not at all, read without running code."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from himatch._runtime.extras import installed_versions
from himatch._runtime.files import new_file
from himatch._version import __version__
from himatch.errors import DataError, one_line


def write_tensors(path: Path, tensors: dict[str, Tensor], **facts: str) -> None:
    """Write tensors, whole or not at all."""
    content = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with new_file(path) as partial:
        try:
            save_file(content, partial, facts)
        except SafetensorError as reason:  # a full disk is no OSError here
            raise DataError(f"{path}: cannot be written ({one_line(reason)})") from None
        partial.chmod(0o644)  # safetensors writes for the owner alone


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors; a missing, cut or foreign file is refused by name."""
    if not path.is_file():
        raise DataError(
            f"{path} is missing; the run folder is incomplete (himatch train ... --resume goes on with a run)"
        )
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as reason:
        raise DataError(f"{path}: damaged or cut short ({one_line(reason)}); train again") from None


def read_facts(path: Path) -> dict[str, str]:
    """What was written beside the tensors."""
    try:
        with safe_open(path, "pt") as stored:
            return stored.metadata() or {}
    except (SafetensorError, OSError, ValueError) as reason:
        raise DataError(f"{path}: damaged or cut short ({one_line(reason)}); train again") from None


def versions() -> dict[str, str]:
    """What this was made with; of the simulators, those that are installed."""
    return {
        "himatch": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        **installed_versions("mujoco", "gymnasium"),
    }
