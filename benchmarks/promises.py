"""Do promises hold? Many targets that no episode shows, each rehearsed briefly, promised, and then played.

    python benchmarks/promises.py halfcheetah-cdt hopper-cdt walker2d-cdt --each 50 --out benchmarks/promises
    python benchmarks/promises.py halfcheetah-cdt hopper-cdt walker2d-cdt --each 50 --conditioning planned

A promise is a W1 with a 90 % interval and the time played. What counts is how often what is then played lies in the
interval, and how wide that is; how near the programs come to their targets does not, so that a short search will do.
Targets are those of the suite `unseen` (`--each` of every kind). What is done is kept, and the same command goes on.
`planned` is promised by logged episodes alone, without a simulator, and then played in one.

    python benchmarks/promises.py --results results/*/scores

says the same of what benchmarks with rehearsed conditioning have promised and found.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

import himatch as hm
from himatch._runtime.tensors import versions
from himatch.rehearsal import Expected
from himatch.reproduce.unseen import drawn

TOGETHER = 16
Promised = Literal["rehearsed", "planned"]


def measure(
    name: str, each: int, seed: int, episodes: int, seconds: float, conditioning: Promised, device: str, out: Path
) -> None:
    policy = hm.load(name, device=device)
    wanted = drawn(policy.reference().values, policy.task, each, seed)
    facts: dict[str, Any] = {
        "run": Path(name).name,
        "seed": seed,
        "each": each,
        "episodes": episodes,
        **({"seconds": seconds} if conditioning == "rehearsed" else {"conditioning": conditioning}),
        "temperature": policy.temperature,
        "data": policy.description["data"]["hash"],
        "device": device,
        "versions": versions(),
    }
    kind = "" if conditioning == "rehearsed" else f"{conditioning}-"
    path = out / f"{kind}{Path(name).name}-{seed}.json"
    known = json.loads(path.read_text()) if path.is_file() else {}
    rows = known.get("targets", []) if {key: known.get(key) for key in facts} == facts else []
    for first in range(len(rows), len(wanted), TOGETHER):
        some, began = wanted[first : first + TOGETHER], time.perf_counter()
        texts = [text for _, text in some]
        promised: Sequence[Expected | None]
        if conditioning == "rehearsed":
            promised = policy.rehearse(texts, seconds=seconds, episodes=episodes, keep=False)
        else:
            promised = [policy.expected(text, conditioning=conditioning, episodes=episodes) for text in texts]
        # Other initial states each time, for targets that share theirs are not independent of one another.
        fresh = {"episodes": episodes, "seed": 10 + first // TOGETHER}
        results = policy.match_all(texts, conditioning=conditioning, **fresh)
        for (kind, text), before, result in zip(some, promised, results, strict=True):
            assert before is not None
            achieved = {"w1": round(result.w1, 4), "played": round(result.played, 4)}
            rows.append({"kind": kind, "target": text, "promised": before.as_json(), "achieved": achieved})
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**facts, "targets": rows}, indent=1) + "\n")
        print(f"{len(rows)} of {len(wanted)} targets, {time.perf_counter() - began:.0f} s", flush=True)
    show(name, rows)


def show_results(folders: Sequence[Path]) -> None:
    """Promises of benchmarks, suite by suite: of several seeds, pooled each by itself."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*-rehearsed*.json")):
        result = json.loads(path.read_text())
        promised = result["provenance"]["rehearsal"]["targets"]
        for target, before in zip(result["targets"], promised, strict=True):
            achieved = {"w1": float(np.mean(target["exact"])), "played": float(np.mean(target["played"]))}
            row = {"kind": result["task"], "promised": before, "achieved": achieved}
            rows.setdefault(result["suite"], []).append(row)
    for suite, of_suite in rows.items():
        show(suite, of_suite)


def show(name: str, rows: list[dict[str, Any]]) -> None:
    low, high, w1 = (
        np.array([row[side][key] for row in rows])
        for side, key in (("promised", "low"), ("promised", "high"), ("achieved", "w1"))
    )
    said, played = (np.array([row[side]["played"] for row in rows]) for side in ("promised", "achieved"))
    inside = (low <= w1) & (w1 <= high)
    print(f"{name}: {inside.sum()} of {len(rows)} inside ({inside.mean():.0%}), {(w1 > high).sum()} above")
    print(f"half-width in parts of W1, median {np.median((high - low) / 2 / w1):.3f}")
    print(
        f"played {played.mean():.1%}, promised {said.mean():.1%}, off by {np.abs(said - played).mean():.1%} on average"
    )
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = np.array([row["kind"] == kind for row in rows])
        print(f"  {kind:12} {inside[own].mean():.0%} of {own.sum()}, W1 {w1[own].mean():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--results", type=Path, nargs="+")
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--seed", type=int, default=101, help="of the targets; the suite `unseen` reports on 100")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--conditioning", choices=("rehearsed", "planned"), default="rehearsed")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/promises"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.results is not None:
        show_results(given.results)
    for name in given.runs:
        measure(
            name, given.each, given.seed, given.episodes, given.seconds, given.conditioning, given.device, given.out
        )


if __name__ == "__main__":
    main()
