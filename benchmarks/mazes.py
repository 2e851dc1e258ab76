"""Development goals reached in OGBench's PointMazes, by a flat policy and with way-points, on regenerated data.

python benchmarks/mazes.py medium-stitch --seeds 4

Starts and goals are states of the training data, drawn from a seed, and far apart on the graph of way-points. What is
chosen is chosen on these; OGBench's five test goals are the suite ``ogbench`` of ``himatch benchmark``. A rollout
has 1000 steps, and is a success where the environment terminates: within OGBench's tolerance.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import himatch as hm
from himatch.datagen.cache import cached_dataset
from himatch.evaluation.goals import Cases, goals_reached
from himatch.policy import Policy
from himatch.rollout import Conditioning
from himatch.rollout.waypoints import Way, landmarks_of

STEPS, FLAT = 1000, 200  # of a rollout; in which the flat policy is asked to be there: an episode of stitch
ROWS: tuple[tuple[str, Conditioning, int | None], ...] = (
    ("way-points", "waypoints", None),
    (f"flat, within {FLAT}", "nominal", FLAT),
    (f"flat, within {STEPS}", "nominal", None),
)


def development(policy: Policy, count: int, far: float, seed: int) -> Cases:
    """States of the training data, so many steps apart at least."""
    rng, values = np.random.default_rng(seed), policy.run.reference().values
    landmarks, cases = landmarks_of(policy.run.reference()), Cases([], [], [])
    for _ in range(100 * count):
        start, goal = values[rng.integers(len(values), size=2)]
        left = Way.to(goal, landmarks).left[landmarks.nearest(start[None])[0]]
        if far <= left < np.inf and len(cases.goals) < count:
            cases.goals.append(tuple(goal.tolist()))
            cases.settings.append({"start": tuple(start.tolist()), "goal": cases.goals[-1]})
            cases.groups.append("development")
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="medium-stitch, giant-navigate, ...")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--method", default="gcsl", help="gcsl or goal")
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--steps", type=int, help="of training, by default the preset's")
    parser.add_argument("--episodes", type=int, help="of the data, by default as many as OGBench has")
    parser.add_argument("--cache", help="where data is kept")
    parser.add_argument("--run", help="run folder: evaluated if it is there, else trained into")
    parser.add_argument("--goals", type=int, default=50, help="how many")
    parser.add_argument("--far", type=float, default=80.0, help="least steps to a development goal")
    parser.add_argument("--seed", type=int, default=0, help="of the development goals")
    parser.add_argument("--out", type=Path, help="JSON file")
    options = parser.parse_args()
    run = Path(options.run or f"runs/ogbench-{options.name}")
    if not run.exists():
        source = cached_dataset(f"ogbench-pointmaze-{options.name}", options.cache, episodes=options.episodes)
        settings = {} if options.steps is None else {"steps": options.steps}
        hm.train(
            hm.make_method(options.method, feature="xy"),
            hm.load_dataset(source),
            out=run,
            preset=options.preset,
            seeds=options.seeds,
            **settings,
        )
    policy = hm.load(run)
    cases = development(policy, options.goals, options.far, options.seed)
    print(f"{options.name}, regenerated data, {len(policy.seeds)} seeds, temperature {policy.temperature:g}")
    print(f"{len(cases.goals)} development goals, {options.far:g} steps away or more")
    found: dict[str, Any] = {}
    for title, conditioning, within in ROWS:
        reached, steps = goals_reached(
            policy.run,
            policy.agent,
            cases.goals,
            cases.settings,
            conditioning=conditioning,
            steps=STEPS,
            within=within,
            temperature=policy.temperature,
        )
        found[title] = {"seeds": reached.mean(axis=1).tolist(), "steps": steps.mean(axis=1).tolist()}
        seeds = ", ".join(f"{100 * rate:.0f}" for rate in reached.mean(axis=1))
        print(f"{title:18} {100 * reached.mean():5.1f} % (seeds {seeds}), {steps.mean():.0f} steps", flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
