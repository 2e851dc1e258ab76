"""What a Gaussian head does for matching: the same policies at several temperatures; 0 is the mean action.

    python benchmarks/temperature.py RUN... [--episodes 5]

For each run folder: mean W1 of every seed to fifteen training episodes, the five with the largest total of the feature,
the five in the middle of that order and five spread over the others, and to the held-out episodes it keeps, if any;
`nominal` conditioning. A run with a deterministic head has one row, to compare with.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import torch

import himatch as hm
from himatch.interchange.choice import training_targets
from himatch.rehearsal.temperature import TEMPERATURES
from himatch.targets import Target


def groups_of(policy: hm.Policy) -> dict[str, list[Target]]:
    shown = training_targets(policy.reference())
    groups: dict[str, list[Target]] = {
        "training: best": [*shown[:5]],
        "middle": [*shown[5:10]],
        "others": [*shown[10:]],
    }
    if policy.held_out is not None:
        groups["held-out"] = [target for _, target in policy.named_targets("heldout")]
    return groups


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--episodes", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", hm.HimatchWarning)
    print(f"torch {torch.__version__}")
    for run in arguments.runs:
        policy = hm.load(run)
        network, groups = policy.agent.policy, groups_of(policy)
        print(f"{run}: {policy.task.name}, head {network.head}, data sha256 {policy.description['data']['hash'][:16]}")
        everything = [target for targets in groups.values() for target in targets]
        for temperature in TEMPERATURES if network.stochastic else (1.0,):
            policy.temperature = temperature
            results = policy.match_all(everything, episodes=arguments.episodes, seed=1)
            found = dict(zip(map(id, everything), results, strict=True))
            for group, targets in groups.items():
                seeds = np.mean([found[id(target)].w1_per_seed for target in targets], axis=0)
                each = " ".join(f"{seed:.3f}" for seed in seeds)
                acts = f"temperature {temperature:g}" if network.stochastic else network.head
                print(f"  {acts}, {group}: W1 {seeds.mean():.3f} (seeds {each})", flush=True)


if __name__ == "__main__":
    main()
