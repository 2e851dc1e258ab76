"""What noise does for matching, and which episodes tell temperatures apart.

    python benchmarks/temperature.py RUN... [--episodes 5] [--temperatures 0 0.5 0.7 0.85 1] [--held-out]

For each run folder or pretrained policy: mean charged W1 of its seeds to fifteen training episodes spread evenly over
the order of their totals, which select the temperature, to the five best and the five in the middle of that order, as
the paper's split would take, and where asked for to the held-out ones; `nominal` conditioning. Below each, the
difference to the temperature before, with its standard error. A deterministic policy has one row, to compare with.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence

import torch

import himatch as hm
from himatch.data.split import ranked_groups
from himatch.interchange.choice import training_targets
from himatch.rehearsal.temperature import TEMPERATURES, training_scores
from himatch.targets import Samples, Target


def groups_of(policy: hm.Policy, *, held_out: bool) -> dict[str, Sequence[Target]]:
    reference = policy.reference()
    ranked = ranked_groups(reference.totals.sum(axis=1), 5)
    groups: dict[str, Sequence[Target]] = {
        "spread evenly": training_targets(reference),
        "best and middle": [
            Samples(reference.episode(int(episode)), f"training episode {episode}", int(reference.lengths[episode]))
            for name in ("best", "middle")
            for episode in ranked[name]
        ],
    }
    if held_out:
        groups["held-out"] = [target for _, target in policy.named_targets("heldout")]
    return groups


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--temperatures", type=float, nargs="+", default=list(TEMPERATURES))
    parser.add_argument("--held-out", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", hm.HimatchWarning)
    print(f"torch {torch.__version__}")
    for run in arguments.runs:
        policy = hm.load(run)
        network = policy.agent.policy
        print(f"{run}: {policy.task.name}, head {network.head}, data sha256 {policy.description['data']['hash'][:16]}")
        for group, targets in groups_of(policy, held_out=arguments.held_out).items():
            tried = arguments.temperatures if network.stochastic else [0.0]
            scores = training_scores(policy.run, policy.agent, targets, tried, arguments.episodes)
            for before, temperature in zip([None, *tried], tried, strict=False):
                line = f"  {group}, temperature {temperature:g}: W1 {scores[temperature].mean():.3f}"
                if before is not None:
                    less = scores[temperature] - scores[before]
                    line += f", {less.mean():+.4f} (standard error {less.std() / math.sqrt(less.size):.4f})"
                print(line, flush=True)


if __name__ == "__main__":
    main()
