"""Does a trained policy use its conditioning? Held-out action error under its own statistic and the other group's.

    python benchmarks/conditioning.py DATA [--task hopper] [--method cdt] [--feature x_velocity] [--seeds 4]

Every held-out expert episode is predicted once under its own z and once under that of a held-out medium episode, and
the other way round. A policy that ignores z has a ratio of one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import himatch as hm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--task")
    parser.add_argument("--method", nargs="+", default=["cdt"], help='cdt, bdt, bdt:{"codes":"public"}, ...')
    parser.add_argument("--feature", default="x_velocity")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--tokens")
    parser.add_argument("--seeds", type=int, default=4)
    arguments = parser.parse_args()
    split = hm.paper_split(hm.load_dataset(arguments.data, arguments.task))
    for text in arguments.method:
        name, _, given = text.partition(":")
        settings = {"feature": arguments.feature} if name in ("dt", "cdt", "moments", "goal") else {}
        settings |= json.loads(given or "{}")
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            policy = hm.train(
                hm.make_method(name, **settings),
                split,
                out=Path(folder) / "run",
                preset=arguments.preset,
                seeds=arguments.seeds,
                steps=arguments.steps,
                tokens=arguments.tokens,
                quiet=True,
            )
            elapsed = time.perf_counter() - start
            rows = policy.run.folder.metrics(0)
            best = min(rows, key=lambda row: row["validation"])
            print(f"{text} {arguments.preset}: {elapsed:.0f} s for {arguments.seeds} seeds", flush=True)
            report(hm.load(policy.folder, weights="best"), split, "best", best)
            report(hm.load(policy.folder, weights="last"), split, "last", rows[-1])


def report(policy: hm.Policy, split: hm.Split, weights: str, row: dict[str, float]) -> None:
    """Errors under the episode's own statistic and under the other group's."""
    episodes = list(split.held_out)
    half = len(episodes) // 2
    own = policy.action_error(episodes)
    other = policy.action_error(episodes, [*episodes[half:], *episodes[:half]])
    ratios = ", ".join(f"{ratio:.2f}" for ratio in other / own)
    print(
        f"  {weights} weights (seed 0: step {row['step']}, training loss {row['loss']:.4f}, validation "
        f"{row['validation']:.4f}): held-out action error {np.mean(own):.4f}, with the other group's z "
        f"{np.mean(other):.4f}; ratio per seed {ratios}",
        flush=True,
    )


if __name__ == "__main__":
    main()
