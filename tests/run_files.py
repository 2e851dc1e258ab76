"""Run folders changed by hand, with checksums that fit: what lies behind the checks of the files is tested on these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from himatch.runs.folder import RunFolder


def describe_anew(run: Path, **changes: Any) -> RunFolder:
    """Change entries of the description; the weights there are become those of the run that results."""
    folder = RunFolder(run)
    folder.write_description(folder.description() | changes)
    for path in run.glob("seed-*/*.safetensors"):
        folder.write_weights(int(path.parent.name.removeprefix("seed-")), path.stem, load_file(path))  # type: ignore[arg-type]
    return folder


def normalize_anew(run: Path, tensors: dict[str, Tensor]) -> None:
    """Other normalizers, listed as the run's own."""
    folder = RunFolder(run)
    described = folder.description()
    folder.write_normalizers(tensors)
    folder.write_description(described)
