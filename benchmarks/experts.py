"""Bundled experts on initial states that had no part in choosing them, against their cards, as Markdown.

python benchmarks/experts.py [--episodes 100] [--experts hopper-expert ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from himatch.experts import load_expert, read_cards
from himatch.experts.picking import EVALUATION_SEED, SETTLING, full_turns
from himatch.simulation import make_simulator, record
from himatch.types import Trajectory

FIRST = EVALUATION_SEED + 100_000  # himatch experts pick takes the seeds below


def play(name: str, episodes: int) -> list[Trajectory]:
    """Episodes with sampled actions."""
    expert, rng = load_expert(name), np.random.default_rng(FIRST)
    simulator = make_simulator(expert.task, episodes, settings=expert.settings)
    shape = episodes, simulator.action_width
    return record(
        simulator,
        lambda seen, *_: expert.act(seen, rng.standard_normal(shape, np.float32)),
        range(FIRST, FIRST + episodes),
    )


def note(name: str, played: Sequence[Trajectory]) -> str:
    """What the agent is checked for beyond its return, episode by episode."""
    if name.startswith("cheetah-vel"):
        velocity = float(name.rpartition("-")[2])
        off = [abs(float(e.observations[SETTLING:, 8].mean()) - velocity) for e in played]
        return f"velocity off by {np.mean(off):.3f} on average, {max(off):.3f} at worst"
    if name == "backflip":
        turns = [full_turns(e) for e in played]
        return f"3 turns in {sum(t >= 3 for t in turns)} of {len(turns)}, at least {min(turns):.1f}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--experts", nargs="*", default=None)
    options = parser.parse_args()
    cards = read_cards()
    print("| agent | card | fresh episodes | standard error | std | length | |\n|---|---|---|---|---|---|---|")
    for name in options.experts or cards:
        played = play(name, options.episodes)
        returns = np.array([episode.total_reward for episode in played])
        error, length = returns.std() / np.sqrt(len(returns)), np.mean([len(episode) for episode in played])
        print(
            f"| `{name}` | {cards[name]['stochastic']['mean']:,.0f} | {returns.mean():,.0f} | {error:,.1f} | "
            f"{returns.std():,.0f} | {length:.0f} | {note(name, played)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
