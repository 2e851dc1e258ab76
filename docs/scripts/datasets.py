"""Write docs/datasets.md: every dataset that himatch makes, played anew and measured.

python docs/scripts/datasets.py [--episodes 100] [--seed 0]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
from datetime import date
from importlib.metadata import version
from pathlib import Path

import himatch as hm
from himatch.data.inspection.report import DatasetReport
from himatch.datagen.recipes import RECIPES, Recipe, recipe_cards
from himatch.experts.cards import read_weights, weights_hash

PAGE = Path(__file__).parent.parent / "datasets.md"

HEAD = """# Dataset cards

What `himatch data make NAME` produces, measured on {episodes} episodes of each, seed {seed}. Actions are sampled from
the policies of the [bundled agents](experts.md); `--episodes` says how many there are, the second column how many by
default. Written by `python docs/scripts/datasets.py --episodes {episodes} --seed {seed}`: himatch {himatch},
mujoco {mujoco}, gymnasium {gymnasium}, torch {torch}, {cores} CPU cores, {today}.

Hashes are SHA-256 of everything the episodes hold (first 16 digits). One seed gives one hash on one machine; another
CPU or another version of MuJoCo or PyTorch may differ in the last bits: then the hash does, while the tables hardly do.

OGBench's mazes, in which an oracle plays and no agent, are [described with the data](data.md#ogbenchs-mazes).
"""


def agents_line(recipe: Recipe) -> str:
    """Who plays, with the hash of their weights: what a test compares with the agents that come with himatch."""
    cards = recipe_cards(recipe)
    hashes = [weights_hash(read_weights(card)) for card in cards]
    if len(cards) > 3:
        together = hashlib.sha256("".join(hashes).encode()).hexdigest()
        names = f"{len(cards)} agents, `{cards[0]['name']}` to `{cards[-1]['name']}`"
        return f"Played by {names} (weights together `{together[:16]}`)."
    parts = [
        f"`{card['name']}`" + (f", labelled `{part.label}`" if part.label else "") + f" (weights `{digest[:16]}`)"
        for card, part, digest in zip(cards, recipe.parts, hashes, strict=True)
    ]
    return f"Played by {' and then '.join(parts)}."


def number(value: float) -> str:
    """Three digits or so."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def overview(reports: dict[str, DatasetReport]) -> str:
    """One row a dataset."""
    lines = [
        "| dataset | default | steps | length | fell | return | D4RL score | sha256 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, report in reports.items():
        returns, normal = report.returns or {}, report.normalized_returns
        cells = [
            f"[`{name}`](#{name})",
            f"{RECIPES[name].episodes:,}",
            f"{report.steps:,}",
            f"{report.lengths['mean']:.0f}",
            f"{report.terminated / report.episodes:.0%}",
            f"{number(returns['mean'])} ({number(returns['min'])} to {number(returns['max'])})",
            "" if normal is None else f"{normal['mean']:.0f}",
            f"`{report.content_hash[:16]}`",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def card(recipe: Recipe, report: DatasetReport) -> str:
    """One dataset: who plays, and the range of every feature."""
    lines = [
        f"## {recipe.name}",
        "",
        agents_line(recipe),
        f"Task `{recipe.task}`, environment `{report.env_id}`, {report.observation_width} numbers observed and "
        f"{report.action_width} acted a step.",
        "",
        "| feature | min | 1 % | mean | 99 % | max | std | std of episode means |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for f in report.features:
        values = (f.minimum, f.low, f.mean, f.high, f.maximum, f.std, f.spread)
        lines.append(f"| `{f.name}` | {' | '.join(number(value) for value in values)} |")
    return "\n".join(lines)


def main() -> None:
    """Play, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    reports = {}
    for name in RECIPES:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / f"{name}-v0"
            data = hm.make_dataset(name, folder, episodes=options.episodes, seed=options.seed)
            reports[name] = hm.inspect_dataset(data)
    facts = {name: version(name) for name in ("himatch", "mujoco", "gymnasium", "torch")}
    head = HEAD.format(
        episodes=options.episodes, seed=options.seed, cores=os.cpu_count(), today=date.today().isoformat(), **facts
    )
    cards = [card(recipe, reports[name]) for name, recipe in RECIPES.items()]
    PAGE.write_text("\n".join([head, overview(reports), "", "\n\n".join(cards), ""]))
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
