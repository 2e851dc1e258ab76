"""What swapping the two behaviours of ``zvel`` costs, and how much of each its results have.

    python benchmarks/swapping.py [--episodes 40] [--results results/policies]

The first table is W1 between all steps of running and of flipping episodes, made as the suite's additional ones are
(seed 1000003). A policy that runs where it is to flip, and flips where it is to run, has about this W1 on targets of
one behaviour; one that does the same whatever it is shown has half of it.

The second has the share of flips in rollouts by their histograms: of which mixture of the suite's running and flipping
targets they are nearest in W1, and how far from it. Shares are the least and the most over targets, distances the mean.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import himatch as hm
from himatch.divergences import wasserstein_bins, wasserstein_samples
from himatch.reproduce import read_results
from himatch.reproduce.results import JobResult, TargetScore
from himatch.reproduce.specification import display_name
from himatch.reproduce.targets import ADDITIONAL_SEED, BEHAVIOURS
from himatch.tasks import get_task

FEATURES = ("z_velocity", "pitch_rate", "x_velocity")
SHARES = np.linspace(0.0, 1.0, 101)


def costs(episodes: int) -> None:
    known = get_task("halfcheetah").features
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "zvel-v0"
        data = hm.make_dataset("halfcheetah-run-backflip", made, episodes=episodes, seed=ADDITIONAL_SEED)
    steps = {label: np.concatenate([e.observations for e in data if e.label == label]) for label in BEHAVIOURS}
    print("| feature | W1 between running and flipping | mean, running | mean, flipping |\n|---|---|---|---|")
    for name in FEATURES:
        run, flip = (steps[label][:, known[name]] for label in BEHAVIOURS)
        print(f"| `{name}` | {wasserstein_samples(run, flip):.3f} | {run.mean():.3f} | {flip.mean():.3f} |")


def shares(result: JobResult) -> str:
    """A row of the second table."""
    run, flip = (
        np.mean([t.histograms["target"] for t in result.targets if t.name.startswith(label)], axis=0)
        for label in BEHAVIOURS
    )
    mixtures = SHARES[:, None] * flip + (1.0 - SHARES[:, None]) * run
    width = float(np.diff(result.targets[0].histograms["edges"][0])[0])
    cells = [
        _cell([t for t in result.targets if t.group == group], mixtures, width) for group in ("uni-modal", "bi-modal")
    ]
    policy = " (himatch)" if result.policy == "himatch" else ""
    return f"| {display_name(result.method)}{policy}, {result.conditioning} | {result.feature} | {' | '.join(cells)} |"


def _cell(targets: Sequence[TargetScore], mixtures: np.ndarray, width: float) -> str:
    apart = np.array([wasserstein_bins(np.array(t.histograms["rollouts"]), mixtures, width) for t in targets])
    found = SHARES[apart.argmin(axis=1)]
    return f"{found.min():.2f} to {found.max():.2f}, {apart.min(axis=1).mean():.3f} off"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--results", type=Path, default=None)
    arguments = parser.parse_args()
    costs(arguments.episodes)
    if arguments.results is not None:
        print("\n| rollouts of | feature | flips, targets of one behaviour | of both |\n|---|---|---|---|")
        for result in read_results(arguments.results):
            if result.suite == "zvel":
                print(shares(result))


if __name__ == "__main__":
    main()
