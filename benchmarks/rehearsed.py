"""Targets that no episode shows, under every conditioning, and whether what was promised of `rehearsed` holds.

    python benchmarks/rehearsed.py halfcheetah-cdt hopper-cdt walker2d-cdt --each 2 --seed 0 --out benchmarks/unseen

Targets are those that the suite `unseen` draws from the seed over the range of the training data. A target is rehearsed
on initial states of its own; all conditionings are scored on others. `expected` counts the results that lie in the
interval that was promised before.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import himatch as hm
from himatch._runtime.tensors import versions
from himatch.reproduce.unseen import drawn

CONDITIONINGS = ("nominal", "remaining", "planned", "rehearsed")


def measure(name: str, each: int, seed: int, episodes: int, seconds: float | None, device: str) -> dict[str, object]:
    policy = hm.load(name, device=device)
    wanted = drawn(policy.reference().values, policy.task, each, seed)
    expressions = [text for _, text in wanted]
    began = time.perf_counter()
    expected = policy.rehearse(expressions, seconds=seconds, episodes=episodes, keep=False)
    rehearsed = time.perf_counter() - began
    rows: list[dict[str, object]] = [{"kind": kind, "target": text} for kind, text in wanted]
    for conditioning in CONDITIONINGS:
        found = policy.match_all(expressions, episodes=episodes, conditioning=conditioning)
        for row, result, promised in zip(rows, found, expected, strict=True):
            row["mixture"] = round(result.mixture.binned, 4) if result.mixture else None
            row[conditioning] = {
                "w1": round(result.w1, 4),
                "w1_binned": round(result.binned, 4),
                "played": round(result.played, 4),
                "charged": round(result.charged, 4),
            }
            if conditioning == "rehearsed":
                row["expected"] = promised.as_json()
                row["inside"] = bool(promised.low <= result.w1 <= promised.high)
    print(f"{name}: {len(rows)} targets of seed {seed}, {episodes} rollouts, rehearsed in {rehearsed:.0f} s")
    print(f"{'':12} {'W1':>7} {'played':>7} {'charged':>8}")
    for conditioning in CONDITIONINGS:
        cells = [row[conditioning] for row in rows]
        means = {key: np.mean([cell[key] for cell in cells]) for key in ("w1", "played", "charged")}  # type: ignore[index]
        print(f"{conditioning:12} {means['w1']:7.3f} {means['played']:7.0%} {means['charged']:8.3f}")
    print(f"{'mixture':12} {np.mean([row['mixture'] for row in rows]):7.3f}")  # type: ignore[misc]
    print(f"expected: {sum(bool(row['inside']) for row in rows)} of {len(rows)} inside", flush=True)
    data = policy.description["data"]["hash"]
    facts = {"run": name, "seed": seed, "episodes": episodes, "temperature": policy.temperature, "data": data}
    return {**facts, "seconds": round(rehearsed, 1), "device": device, "versions": versions(), "targets": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--each", type=int, default=2, help="targets of every kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.runs:
        found = measure(name, given.each, given.seed, given.episodes, given.seconds, given.device)
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
            path = given.out / f"{Path(name).name}-{given.seed}.json"
            path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
