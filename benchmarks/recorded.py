"""Does it matter at which state the feature of a step is recorded? Both ways, side by side.

    python benchmarks/recorded.py MODEL... [--episodes 20]

Targets are features at s_t. himatch records rollouts at s_t, too; the authors' code at s_{t+1}. For each pretrained
policy or run folder: mean binned W1 to fifteen of its training episodes, recorded in either way. Of the last step both
have the value at s_t.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import torch

import himatch as hm
from himatch.evaluation.distances import binned_w1
from himatch.interchange.choice import training_targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--episodes", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", hm.HimatchWarning)
    print(f"torch {torch.__version__}")
    for model in arguments.models:
        policy = hm.load(model)
        targets = training_targets(policy.reference())
        scores = []
        for result in policy.match_all(targets, episodes=arguments.episodes):
            for rollouts in result.features:
                later = [np.concatenate([phi[1:], phi[-1:]]) for phi in rollouts]
                pooled = [np.concatenate(rows) for rows in (rollouts, later)]
                scores.append([binned_w1(rows, result.values, result.frame.bins) for rows in pooled])
        at, after = np.mean(scores, axis=0)
        print(f"{model}, {policy.feature}: W1 {at:.4f} at s_t, {after:.4f} at s_t+1", flush=True)


if __name__ == "__main__":
    main()
