"""Bundled experts on initial states that had no part in choosing them, against their cards, as Markdown.

python benchmarks/experts.py [--episodes 100] [--experts hopper-expert ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from himatch.experts import Expert, load_expert, read_cards
from himatch.experts.selection import backward_turns, flips_back, roll_out, velocity_error
from himatch.simulation import EVALUATION_SEED
from himatch.types import Trajectory

FIRST = EVALUATION_SEED + 100_000  # himatch experts pick takes the seeds below


def note(expert: Expert, played: Sequence[Trajectory]) -> str:
    """What the agent is checked for beyond its return, episode by episode."""
    if "velocity" in expert.settings:
        off = [velocity_error([episode], expert.settings["velocity"]) for episode in played]
        return f"velocity off by {np.mean(off):.3f} on average, {max(off):.3f} at worst"
    if expert.name == "backflip":
        turns = np.array([backward_turns(episode) for episode in played])
        columns = [expert.task.features[name] for name in ("x_velocity", "pitch_rate")]
        along, turning = (np.array([episode.observations[:, column] for episode in played]) for column in columns)
        return (
            f"{sum(map(flips_back, played))} of {len(played)} flip back, {turns.mean():.1f} turns backwards on average "
            f"({turns.min():.1f} at least, {(turns < 3.0).sum()} below three), "
            f"pitch rate {turning.mean():.2f}, above 0 in {(turning > 0.0).mean():.0%} of all steps, "
            f"x-velocity {along.mean():.2f}, mean of an episode at most {along.mean(axis=1).max():.2f}"
        )
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--experts", nargs="*", default=None)
    options = parser.parse_args()
    cards = read_cards()
    print("| agent | card | fresh episodes | standard error | std | length | |\n|---|---|---|---|---|---|---|")
    for name in options.experts or cards:
        expert = load_expert(name)
        weights, settings = [expert.weights], [expert.settings]
        played = roll_out(weights, settings, expert.task, stochastic=True, seed=FIRST, episodes=options.episodes)[0]
        returns = np.array([episode.total_reward for episode in played])
        error, length = returns.std() / np.sqrt(len(returns)), np.mean([len(episode) for episode in played])
        print(
            f"| `{name}` | {cards[name]['stochastic']['mean']:,.0f} | {returns.mean():,.0f} | {error:,.1f} | "
            f"{returns.std():,.0f} | {length:.0f} | {note(expert, played)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
