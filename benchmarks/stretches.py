"""`planned` over whole episodes and over logged stretches, planned once and again on the way.

    python benchmarks/stretches.py halfcheetah-cdt hopper-cdt walker2d-cdt --out benchmarks/unseen

The targets are those of benchmarks/rehearsed.py, development seed 1: no episode shows them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rehearsed import drawn

import himatch as hm
from himatch._runtime.tensors import versions

PLANS: tuple[dict[str, int], ...] = (
    {},
    {"stretches": 50},
    {"stretches": 100},
    {"stretches": 200},
    {"replan": 50},
    {"stretches": 50, "replan": 50},
    {"stretches": 100, "replan": 50},
    {"stretches": 200, "replan": 50},
)


def measure(name: str, targets: int, seed: int, episodes: int) -> dict[str, Any]:
    policy = hm.load(name)
    wanted = drawn(policy, targets, seed)
    rows: list[dict[str, Any]] = []
    for plans in PLANS:
        began = time.perf_counter()
        found = policy.match_all([text for _, text in wanted], episodes=episodes, conditioning="planned", **plans)
        spent = time.perf_counter() - began
        results = [
            {"kind": kind, "target": text, "w1": result.w1, "played": result.played, "charged": result.charged}
            for (kind, text), result in zip(wanted, found, strict=True)
        ]
        means = {key: round(float(np.mean([one[key] for one in results])), 4) for key in ("w1", "played", "charged")}
        rows.append({**plans, "conditioning": found[0].conditioning, **means, "seconds": round(spent, 1)})
        rows[-1]["targets"] = [
            {key: round(value, 4) if isinstance(value, float) else value for key, value in one.items()}
            for one in results
        ]
        print(f"{name} {found[0].conditioning:45} {means} {spent:.0f} s", flush=True)
    data = policy.description["data"]["hash"]
    return {"run": name, "seed": seed, "episodes": episodes, "data": data, "versions": versions(), "plans": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.runs:
        found = measure(name, given.targets, given.seed, given.episodes)
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
            path = given.out / f"stretches-{Path(name).name}-{given.seed}.json"
            path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
