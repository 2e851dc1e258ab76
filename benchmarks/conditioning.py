"""Does a trained policy listen? Held-out action error under its own statistic and under the other group's.

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
    parser.add_argument("--method", nargs="+", default=["cdt"], help='cdt, bdt, bdt:{"literal":true}, ...')
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
            episodes = list(split.held_out)
            half = len(episodes) // 2
            own = policy.action_error(episodes)
            other = policy.action_error(episodes, [*episodes[half:], *episodes[:half]])
            last = json.loads((policy.folder / "seed-0" / "metrics.jsonl").read_text().splitlines()[-1])
        ratios = ", ".join(f"{ratio:.2f}" for ratio in other / own)
        print(
            f"{text} {arguments.preset}: training loss {last['loss']:.4f}, validation {last['validation']:.4f}; held-out "
            f"action error {np.mean(own):.4f}, with the other group's z {np.mean(other):.4f}; ratio per seed {ratios} "
            f"({elapsed:.0f} s for {arguments.seeds} seeds)",
            flush=True,
        )


if __name__ == "__main__":
    main()
