"""Does online training bring rollouts nearer to targets that no episode shows? Two arms, which differ in nothing else.

    python benchmarks/online.py runs/cdt --data data/cheetah-v0 --out runs/arms --rounds 3 --seeds 0 1

Both arms go on from the same weights for as many steps at the same rates: one with rollouts of its own, one on the
logged episodes alone (`himatch online --control`). Targets are those of the suite `unseen` with its seeds for
development, 0 to 9, drawn over the values of the logged episodes; W1 is charged with their spread in all arms. What is
printed is the mean over targets, and the difference of the arms with its standard error over targets: it says how sure
the difference of these two trainings is on other targets, and nothing of other trainings. What is done is kept, and the
same command goes on.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import himatch as hm
from himatch._runtime.tensors import versions
from himatch.policy import Policy
from himatch.reproduce.unseen import drawn
from himatch.rounds.folder import OnlineFolder

DEVELOPMENT = range(10)  # the seed of reported targets is another one
ARMS = ("before", "control", "online")


def judged(policy: Policy, first: Policy, each: int, seeds: list[int], episodes: int) -> list[dict[str, Any]]:
    """A row for every target: W1 and charged W1 of every seed of the policy, and the time played."""
    rows = []
    for seed in seeds:
        wanted = drawn(first.reference().values, first.task, each, seed)
        for (kind, text), result in zip(
            wanted, policy.match_all([text for _, text in wanted], episodes=episodes), strict=True
        ):
            known = replace(result, spread=first.reference().spread)
            rows.append(
                {
                    "seed": seed,
                    "kind": kind,
                    "target": text,
                    "w1": known.w1_per_seed.tolist(),
                    "charged": known.charged_per_seed.tolist(),
                    "played": known.played,
                }
            )
    return rows


def show(found: dict[str, Any]) -> None:
    """Means over targets, and what the rollouts brought."""
    means = {arm: np.array([np.mean(row["charged"]) for row in found["arms"][arm]]) for arm in ARMS}
    plain = {arm: np.mean([np.mean(row["w1"]) for row in found["arms"][arm]]) for arm in ARMS}
    played = {arm: np.mean([row["played"] for row in found["arms"][arm]]) for arm in ARMS}
    print("| arm | W1 | charged W1 | played |\n|---|---|---|---|")
    for arm in ARMS:
        print(f"| {arm} | {plain[arm]:.3f} | {means[arm].mean():.3f} | {played[arm]:.0%} |")
    difference = means["online"] - means["control"]
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    print(f"online - control, charged: {difference.mean():+.3f} ± {error:.3f} over {len(difference)} targets")
    for kind in dict.fromkeys(row["kind"] for row in found["arms"]["before"]):
        own = np.array([row["kind"] == kind for row in found["arms"]["before"]])
        print(f"  {kind}: {', '.join(f'{arm} {means[arm][own].mean():.3f}' for arm in ARMS)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rollouts", type=int, default=20, help="of a round")
    parser.add_argument("--steps", type=int, default=1000, help="of a round")
    parser.add_argument("--beyond", type=float, default=0.1)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--each", type=int, default=2, help="targets of every kind and seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], help="of targets; 0 to 9")
    parser.add_argument("--episodes", type=int, default=5, help="to judge, of every target")
    asked = parser.parse_args()
    if not set(asked.seeds) <= set(DEVELOPMENT):
        parser.error("targets for development have the seeds 0 to 9")
    warnings.simplefilter("ignore", hm.HimatchWarning)
    first, began = hm.load(asked.run), time.perf_counter()
    how: dict[str, Any] = {
        "rounds": asked.rounds,
        "episodes": asked.rollouts,
        "steps": asked.steps,
        "beyond": asked.beyond,
        "learning_rate": asked.learning_rate,
    }
    policies = {"before": first}
    for arm in ARMS[1:]:
        more = {"control": arm == "control", "resume": True}
        policies[arm] = hm.online(asked.run, data=asked.data, out=asked.out / arm, **how, **more)
    found = {
        "run": first.folder.resolve().name,
        "method": first.description["method"],
        "model": first.description["model"],
        "train": first.description["train"],
        "data": first.description["data"],
        "seeds": list(first.seeds),
        "how": how,
        "targets": {"each": asked.each, "seeds": asked.seeds, "episodes": asked.episodes},
        "temperature": first.temperature,
        "rounds": OnlineFolder(asked.out / "online").rows,
        "arms": {arm: judged(p, first, asked.each, asked.seeds, asked.episodes) for arm, p in policies.items()},
        "versions": versions(),
    }
    (asked.out / "online.json").write_text(json.dumps(found, indent=1) + "\n")
    show(found)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
