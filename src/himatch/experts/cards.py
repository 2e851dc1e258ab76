"""Cards of trained agents and the numbers beside them, read without PyTorch.

A family (``halfcheetah``, ``cheetah-vel``) is ``FAMILY.safetensors``, its agents stacked along the first axis, and
``FAMILY.json``, their cards in the same order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from himatch._runtime.files import entry, read_json
from himatch.errors import DataError, one_line

BUNDLED = Path(__file__).parent / "weights"

Card = dict[str, Any]


def read_cards(folder: str | Path | None = None) -> dict[str, Card]:
    """The cards of the bundled experts (or of those in a folder) by name, each with its family and place in it."""
    cards: dict[str, Card] = {}
    for path in sorted(Path(folder or BUNDLED).glob("*.json")):
        content, where = read_json(path), str(path)
        common = {key: value for key, value in content.items() if key != "agents"}
        for place, card in enumerate(entry(content, list, where, "agents")):
            name = entry(content, str, where, "agents", place, "name")
            cards[name] = {**common, **card, "family": path.stem, "place": place}
    return cards


def read_weights(card: Card, folder: str | Path | None = None) -> dict[str, NDArray[np.floating[Any]]]:
    """One agent's weights by name, as stored."""
    path = Path(folder or BUNDLED) / f"{card['family']}.safetensors"
    if not path.is_file():
        raise DataError(f"{path} is missing beside its card")
    try:
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in sorted(file.keys())}
            if all(part.get_shape() and part.get_shape()[0] > card["place"] for part in slices.values()):
                return {name: part[card["place"]] for name, part in slices.items()}
    except (SafetensorError, OSError) as reason:
        raise DataError(f"{path}: damaged or cut short ({one_line(reason)})") from None
    raise DataError(f"{path} holds fewer agents than its card; the two files do not belong together")


def weights_hash(weights: Mapping[str, NDArray[np.floating[Any]]]) -> str:
    """SHA-256 of an agent's weights."""
    digest = hashlib.sha256()
    for name, array in sorted(weights.items()):
        digest.update(f"{name} {array.shape} torch.{array.dtype}\n".encode())  # as datasets that are kept have it
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
