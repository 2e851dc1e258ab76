"""Does online training bring rollouts nearer to targets that no episode shows? Two arms, which differ in nothing else.

    python benchmarks/online.py runs/cdt-0 runs/cdt-1 --data data/cheetah-v0 --out runs/arms --rounds 3 --targets 0 1
    python benchmarks/online.py --show benchmarks/online/hopper-*.json

Both arms go on from the same weights for as many steps at the same rates: one with rollouts of its own, one on the
logged episodes alone (`himatch online --control`). Commands and initial states have the seed of the run. Targets are
those of the suite `unseen`, drawn over the values of the logged episodes; the seeds 0 to 9 are for development. W1 is
charged with the spread of the logged episodes in all arms. What is printed is the mean over targets and runs, and the
difference of the arms: paired by run and target, with an interval over both, resampled 2,000 times; of a single run
with its standard error over targets, which says nothing of other trainings. What is done is kept, and the same command
goes on.
"""

from __future__ import annotations

import argparse
import datetime
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import himatch as hm
from himatch._runtime.files import write_json
from himatch._runtime.shapes import Array64
from himatch._runtime.source import source_tree
from himatch._runtime.tensors import versions
from himatch.divergences import paired_difference
from himatch.policy import Policy
from himatch.reproduce.unseen import drawn
from himatch.rounds.folder import OnlineFolder

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


def show(runs: Sequence[dict[str, Any]]) -> None:
    """Means over targets and runs, and what the rollouts brought."""
    rows = runs[0]["arms"]["before"]
    targets = [row["target"] for row in rows]
    if any([row["target"] for row in run["arms"][arm]] != targets for run in runs for arm in ARMS):
        raise SystemExit("these runs were judged on different targets")
    tables = {key: {arm: table(runs, arm, key) for arm in ARMS} for key in ("w1", "charged", "played")}
    print("| arm | W1 | charged W1 | played |\n|---|---|---|---|")
    for arm in ARMS:
        w1, charged, played = (tables[key][arm].mean() for key in ("w1", "charged", "played"))
        print(f"| {arm} | {w1:.3f} | {charged:.3f} | {played:.0%} |")
    for key in ("w1", "charged"):
        found = tables[key]
        print(f"online - control, {key}: {_difference(found['online'] - found['control'])}")
        for number, run in enumerate(runs):
            print(f"  {run['run']}: {_means({arm: found[arm][:, number] for arm in ARMS})}")
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = np.array([row["kind"] == kind for row in rows])
        print(f"  {kind}, charged: {_means({arm: tables['charged'][arm][own] for arm in ARMS})}")


def _means(found: dict[str, Array64]) -> str:
    return ", ".join(f"{arm} {values.mean():.3f}" for arm, values in found.items())


def table(runs: Sequence[dict[str, Any]], arm: str, key: str) -> Array64:
    """A row for every target, a column for every run."""
    return np.array([[np.mean(row[key]) for row in run["arms"][arm]] for run in runs]).T


def _difference(found: Array64) -> str:
    targets, runs = found.shape
    nearer = f"{(found.mean(axis=1) < 0).sum()} of {targets} targets are nearer"
    if runs == 1:
        return f"{found.mean():+.3f} ± {found.std(ddof=1) / np.sqrt(targets):.3f} over targets of one run; {nearer}"
    paired = paired_difference([found], [np.zeros_like(found)])
    return f"{paired.mean:+.3f} [{paired.low:+.3f}, {paired.high:+.3f}] over {runs} runs; {nearer}"


def measured(run: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Both arms of one run, trained and judged; nothing is done again."""
    first = hm.load(run)
    out, how = asked.out / first.folder.resolve().name, _settings(asked)
    done = out / "online.json"
    if done.is_file():
        return dict(json.loads(done.read_text()))
    policies = {"before": first}
    for arm in ARMS[1:]:
        more = {"control": arm == "control", "resume": True, "seed": first.seeds[0]}
        policies[arm] = hm.online(run, data=asked.data, out=out / arm, **how, **more)
    found = {
        "run": first.folder.resolve().name,
        "method": first.description["method"],
        "model": first.description["model"],
        "train": first.description["train"],
        "data": first.description["data"],
        "seeds": list(first.seeds),
        "how": how,
        "targets": {"each": asked.each, "seeds": asked.targets, "episodes": asked.episodes},
        "temperature": first.temperature,
        "rounds": OnlineFolder(out / "online").rows,
        "arms": {arm: judged(p, first, asked.each, asked.targets, asked.episodes) for arm, p in policies.items()},
        "source": source_tree(),
        "versions": versions(),
        "date": datetime.date.today().isoformat(),
    }
    write_json(done, found)
    return found


def _settings(asked: argparse.Namespace) -> dict[str, Any]:
    return {
        "rounds": asked.rounds,
        "episodes": asked.rollouts,
        "steps": asked.steps,
        "beyond": asked.beyond,
        "learning_rate": asked.learning_rate,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--show", nargs="+", type=Path, default=[], help="files of what was measured before")
    parser.add_argument("--data")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rollouts", type=int, default=20, help="of a round")
    parser.add_argument("--steps", type=int, default=1000, help="of a round")
    parser.add_argument("--beyond", type=float, default=0.1)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--each", type=int, default=2, help="targets of every kind and seed")
    parser.add_argument("--targets", type=int, nargs="+", default=[0, 1], help="their seeds")
    parser.add_argument("--episodes", type=int, default=5, help="to judge, of every target")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", hm.HimatchWarning)
    if bool(asked.show) == bool(asked.runs) or (asked.runs and not (asked.data and asked.out)):
        parser.error("give runs with --data and --out, or --show FILES")
    show([json.loads(path.read_text()) for path in asked.show] or [measured(run, asked) for run in asked.runs])


if __name__ == "__main__":
    main()
