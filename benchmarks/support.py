"""What clipping z to the training support does: the same policies, conditioned on z as it is and on z clipped.

    python benchmarks/support.py RUN... [--episodes 5]

For each CDT run folder: mean W1 over eight targets that no training episode has (Gaussians over the range of the data
and beyond its upper end, and mixtures of two), `nominal` conditioning, and over the held-out episodes it keeps, if any.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

import himatch as hm
from himatch.targets import Target


def unseen(policy: hm.Policy) -> list[Target]:
    """Gaussians of a sixteenth of the range, and mixtures of them."""
    bins = policy.reference().frame.bins
    low, width = bins.low[0], bins.high[0] - bins.low[0]
    single = [f"normal({low + part * width:.4g},{width / 16:.4g})" for part in (0.35, 0.5, 0.65, 0.8, 0.95, 1.05)]
    return [hm.parse_target(text) for text in (*single, *(f"0.5*{single[0]}+0.5*{single[i]}" for i in (3, 5)))]


def measure(name: str, policy: hm.Policy, targets: Sequence[Target], episodes: int) -> None:
    results = policy.match_all(targets, episodes=episodes)
    each = " ".join(f"{result.w1:.2f}" for result in results)
    length = np.mean([result.lengths.mean() for result in results])
    print(f"  {name}: W1 {np.mean([r.w1 for r in results]):.3f} ({each}), {length:.0f} steps a rollout", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--episodes", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", hm.HimatchWarning)  # that the targets lie outside the data is the point
    print(f"torch {torch.__version__}")
    for run in arguments.runs:
        policy = hm.load(run)
        data = policy.description["data"]
        print(f"{run}: {policy.task.name}, seeds {policy.seeds}, data sha256 {data['hash'][:16]}")
        known = policy.normalizers
        groups = {"unseen targets": unseen(policy)}
        if policy.held_out is not None:
            groups["held-out episodes"] = [target for _, target in policy.named_targets("heldout")]
        for group, targets in groups.items():
            for name, used in (("z as it is", replace(known, support=None)), ("z clipped", known)):
                policy.run.normalizers = used
                measure(f"{group}, {name}", policy, targets, arguments.episodes)


if __name__ == "__main__":
    main()
