"""What swapping the two behaviours of ``zvel`` costs: W1 between all steps of its running and its flipping episodes.

    python benchmarks/swapping.py [--episodes 40]

The episodes are made as the suite's additional ones are (seed 1000003). A policy that always runs where it is to flip,
and flips where it is to run, has this W1; one that ignores which of the two it is shown has half of it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import himatch as hm
from himatch.divergences import wasserstein_samples
from himatch.reproduce.measurements import ADDITIONAL_SEED
from himatch.reproduce.targets import BEHAVIOURS
from himatch.tasks import get_task

FEATURES = ("z_velocity", "pitch_rate", "x_velocity")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=40)
    episodes, known = parser.parse_args().episodes, get_task("halfcheetah").features
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "zvel-v0"
        data = hm.make_dataset("halfcheetah-run-backflip", made, episodes=episodes, seed=ADDITIONAL_SEED)
    steps = {label: np.concatenate([e.observations for e in data if e.label == label]) for label in BEHAVIOURS}
    print("| feature | W1 between running and flipping | mean, running | mean, flipping |\n|---|---|---|---|")
    for name in FEATURES:
        run, flip = (steps[label][:, known[name]] for label in BEHAVIOURS)
        print(f"| `{name}` | {wasserstein_samples(run, flip):.3f} | {run.mean():.3f} | {flip.mean():.3f} |")


if __name__ == "__main__":
    main()
