"""What two departures from the public code do: small time embeddings, and histograms of unit length as z.

    python benchmarks/ablations.py DATA [--steps 3000]

CDT on x_velocity, `cpu` preset, seed 0. Everything is measured on the validation slice of the training episodes; "swap"
is how much the action error rises when the best of them are conditioned on the worst ones' z and the other way round.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

import torch

import himatch as hm
from himatch.methods.gdt.method import Scaling
from himatch.networks.stacked import Embedding
from himatch.training.plan import VALIDATION_EPISODES


@dataclass(frozen=True)
class Unscaled(hm.CDT):
    """CDT conditioned on the histogram as it is."""

    scaling: ClassVar[Scaling] = "none"


@torch.no_grad()
def unit_time(self: Embedding, model: int, generator: torch.Generator) -> None:
    """Start the time embedding as the public code does."""
    self.weight[model].normal_(0.0, 1.0, generator=generator)


def measure(name: str, method: hm.CDT, split: hm.Split, steps: int) -> None:
    count = min(VALIDATION_EPISODES, len(split.train) // 20)
    drawn = hm.random_split(split.train, count / len(split.train), seed=0).held_out
    validation = sorted(drawn, key=lambda t: t.total_reward)
    with tempfile.TemporaryDirectory() as folder:
        policy = hm.train(method, split, out=Path(folder) / "run", preset="cpu", head="tanh", steps=steps, quiet=True)
        best = min(row["validation"] for row in policy.run.folder.metrics(0))
        rise = policy.action_error(validation, validation[::-1]) / policy.action_error(validation) - 1
    print(f"{name}: validation error {best:.4f}, swap {rise[0]:+.0%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--task")
    parser.add_argument("--steps", type=int, default=3000)
    arguments = parser.parse_args()
    split = hm.paper_split(hm.load_dataset(arguments.data, arguments.task))
    print(f"{len(split.train)} training episodes, sha256 {split.train.content_hash[:16]}, torch {torch.__version__}")
    measure("himatch", hm.CDT("x_velocity"), split, arguments.steps)
    measure("z unscaled", Unscaled("x_velocity"), split, arguments.steps)
    with patch.object(Embedding, "initialize", unit_time):
        measure("z unscaled, time embedding of unit size", Unscaled("x_velocity"), split, arguments.steps)


if __name__ == "__main__":
    main()
