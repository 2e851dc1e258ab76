"""Targets that no episode shows, under every conditioning, and whether what was promised of `rehearsed` holds.

    python benchmarks/rehearsed.py halfcheetah-cdt hopper-cdt walker2d-cdt --targets 8 --seed 0 --out benchmarks/unseen

Targets are drawn from the seed over the range of the data: narrow and wide Gaussians, two and three modes, uniforms. A
target is rehearsed on initial states of its own; all conditionings are scored on others. `expected` counts the results
that lie in the interval that was promised before.
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
from himatch.rollout import CONDITIONINGS

KINDS = ("narrow", "wide", "two modes", "three modes", "uniform")


def drawn(policy: hm.Policy, count: int, seed: int) -> list[tuple[str, str]]:
    """Kind and expression of so many targets."""
    rng, values = np.random.default_rng(seed), policy.reference().values[:, 0]
    low, high = np.quantile(values, (0.02, 0.98))
    width = float(high - low)

    def normal(deviation: float) -> str:
        return f"normal({rng.uniform(low, high):.3g},{deviation * width:.3g})"

    found = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        if kind == "uniform":
            ends = np.sort(rng.uniform(low, high, 2))
            middle, half = ends.mean(), max(0.15 * width, float(np.ptp(ends)) / 2)
            found.append((kind, f"uniform({middle - half:.3g},{middle + half:.3g})"))
        elif kind in ("narrow", "wide"):
            found.append((kind, normal(0.04 if kind == "narrow" else 0.12)))
        else:
            modes = 2 if kind == "two modes" else 3
            shares = np.round(rng.dirichlet(np.full(modes, 4.0)), 2)
            shares[-1] = round(1.0 - float(shares[:-1].sum()), 2)
            found.append((kind, "+".join(f"{share:.2g}*{normal(0.05)}" for share in shares)))
    return found


def measure(name: str, targets: int, seed: int, episodes: int, seconds: float | None, device: str) -> dict[str, object]:
    policy = hm.load(name, device=device)
    wanted = drawn(policy, targets, seed)
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
    print(f"{name}: {targets} targets of seed {seed}, {episodes} rollouts, rehearsed in {rehearsed:.0f} s")
    print(f"{'':12} {'W1':>7} {'played':>7} {'charged':>8}")
    for conditioning in CONDITIONINGS:
        cells = [row[conditioning] for row in rows]
        means = {key: np.mean([cell[key] for cell in cells]) for key in ("w1", "played", "charged")}  # type: ignore[index]
        print(f"{conditioning:12} {means['w1']:7.3f} {means['played']:7.0%} {means['charged']:8.3f}")
    print(f"{'mixture':12} {np.mean([row['mixture'] for row in rows]):7.3f}")  # type: ignore[misc]
    print(f"expected: {sum(bool(row['inside']) for row in rows)} of {targets} inside", flush=True)
    data = policy.description["data"]["hash"]
    facts = {"run": name, "seed": seed, "episodes": episodes, "temperature": policy.temperature, "data": data}
    return {**facts, "seconds": round(rehearsed, 1), "device": device, "versions": versions(), "targets": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--targets", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.runs:
        found = measure(name, given.targets, given.seed, given.episodes, given.seconds, given.device)
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
            path = given.out / f"{Path(name).name}-{given.seed}.json"
            path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
