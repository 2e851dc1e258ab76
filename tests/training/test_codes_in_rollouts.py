"""BDT and DT-X with every choice of codes: trained, rolled out, and conditioned on what they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import himatch as hm

TINY: dict[str, Any] = {"context": 4, "layers": 1, "width": 32, "batch_size": 64, "steps": 200, "preset": "cpu"}
CHOICES: list[dict[str, Any]] = [
    {"codes": "look-ahead", "target_window": 4, "look_ahead": 5},
    {"codes": "pseudocode"},
    {"codes": "public"},
    {"codes": "public", "public_mask": True, "public_start": True},
]


def leaning(way: float, rng: np.random.Generator, steps: int = 30) -> hm.Trajectory:
    """An episode that acts one way or the other, as its states say."""
    states = rng.normal(0, 0.3, (steps, 11))
    states[:, 3:] += way
    return hm.Trajectory(states, np.full((steps, 3), 0.7 * way), np.zeros(steps))


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: f"{choice['codes']}{len(choice)}")
@pytest.mark.parametrize("name", ["bdt", "dt-e2e"])
def test_rollouts_depend_on_the_demonstration(name: str, choice: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = hm.load_dataset([leaning(way, rng) for way in (-1.0, 1.0) for _ in range(8)], "hopper")
    method = hm.make_method(name, m=2, **choice)
    policy = hm.train(method, data, out=tmp_path, seed=0, seeds=2, split="none", quiet=True, head="tanh", **TINY)
    actions = [policy.match(data[i], episodes=2, feature="x_velocity").example.actions.mean() for i in (0, 15)]
    assert actions[1] - actions[0] > 0.1
