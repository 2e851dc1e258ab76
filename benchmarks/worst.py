"""What goes wrong: the rollouts of a policy that are furthest from their targets, and pictures of when it begins.

    python benchmarks/worst.py RUN [--episodes 20] [--worst 10] [--temperature X] [--film DIR]

Targets are fifteen training episodes: the five best, five from the middle and five others. A rollout is compared by
itself, not pooled. *From step* is the first at which its feature, as a mean over 25 steps, leaves the range of its
target's, after the start; a rollout that *recovers* is back in it for its last 100 steps.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import himatch as hm
from himatch.divergences import wasserstein_samples
from himatch.interchange.choice import training_targets
from himatch.rollout import make_conditioner
from himatch.rollout.loop import Rollouts, roll_out
from himatch.rollout.player import Player
from himatch.simulation import make_simulator
from himatch.simulation.replay import Replay

FIRST_SEED = 5_000_000  # of initial states, away from those of data and evaluations
START, SPAN, END = 50, 25, 100  # steps: of the start, of a running mean, of the end
AROUND = (-20, -10, 0, 10, 20, 40, 80)  # steps that are pictured
SIZE = (280, 200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--episodes", type=int, default=20, help="rollouts for each target")
    parser.add_argument("--worst", type=int, default=10)
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--film", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", hm.HimatchWarning)
    policy = hm.load(arguments.run)
    policy = policy.only(policy.seeds[0])
    if arguments.temperature is not None:
        policy.temperature = arguments.temperature
    reference = policy.reference()
    phi, targets = reference.frame.feature, training_targets(reference)
    wanted = [np.asarray(target.values(reference.frame))[:, 0] for target in targets]
    target_of = np.repeat(np.arange(len(targets)), arguments.episodes)
    seeds = FIRST_SEED + np.arange(len(target_of))
    rollouts = play(policy, targets, target_of, np.array([len(wanted[i]) for i in target_of]), seeds)
    achieved = [phi(rollouts.trajectory(0, i))[:, 0] for i in range(len(target_of))]
    distance = np.array([wasserstein_samples(a, wanted[i]) for a, i in zip(achieved, target_of, strict=True)])
    median = float(np.median(distance))
    print(f"{arguments.run}, temperature {policy.temperature:g}: {len(distance)} rollouts of {len(targets)} targets")
    print(
        f"W1 of single rollouts: mean {distance.mean():.3f}, median {median:.3f}, "
        f"above four medians {np.mean(distance > 4 * median):.1%}"
    )
    for place, i in enumerate(np.argsort(-distance)[: arguments.worst]):
        own, target = achieved[i], wanted[target_of[i]]
        trouble = troubled(own, target)
        ended = "fell" if rollouts.terminated[0, i] else "ended" if len(own) < len(target) else "played on"
        how = (
            "within the target's range"
            if not trouble.any()
            else f"from step {START + int(trouble.argmax())}, {after(trouble)}"
        )
        print(
            f"{place + 1:3d}. W1 {distance[i]:.2f}, target {target_of[i]} of mean {target.mean():.2f}, "
            f"achieved {own.mean():.2f}: {how}, {ended} at {len(own)} of {len(target)}"
        )
        if arguments.film is not None:
            first = START + int(trouble.argmax()) if trouble.any() else len(own) // 2
            film(policy, rollouts, int(i), int(seeds[i]), first, arguments.film / f"worst-{place + 1}.png")


def play(
    policy: hm.Policy,
    targets: list[hm.targets.Samples],
    target_of: NDArray[np.int64],
    lengths: NDArray[np.int64],
    seeds: NDArray[np.int64],
) -> Rollouts:
    """Every rollout, with all of its observations."""
    conditioner = make_conditioner("nominal", policy.run, policy.agent, targets, target_of[None])
    player = Player(policy.agent, policy.normalizers, conditioner, len(target_of), 0, policy.temperature)
    simulator = make_simulator(policy.task, len(target_of))
    return roll_out(player, simulator, lengths[None], seeds[None], policy.statistic.matched)


def troubled(own: NDArray[np.float32], target: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Where the running mean lies outside of the target's, after the start."""
    running, theirs = (np.convolve(x, np.ones(SPAN) / SPAN, "valid")[START:] for x in (own, target))
    if not len(running) or not len(theirs):
        return np.zeros(0, bool)
    margin = 0.1 * np.ptp(theirs)
    return (running < theirs.min() - margin) | (running > theirs.max() + margin)


def after(trouble: NDArray[np.bool_]) -> str:
    """What came of it."""
    return f"for {trouble.sum()} steps, " + ("does not recover" if trouble[-END:].any() else "recovers")


def film(policy: hm.Policy, rollouts: Rollouts, rollout: int, seed: int, first: int, path: Path) -> None:
    """Pictures of a rollout around a step, side by side."""
    episode = rollouts.trajectory(0, rollout)
    steps = sorted({min(max(first + shift, 0), len(episode) - 1) for shift in AROUND})
    path.parent.mkdir(parents=True, exist_ok=True)
    with Replay(policy.task, seed).open(SIZE) as playback:
        images = list(playback.play(episode, steps))
    figure, axes = plt.subplots(1, len(images), figsize=(2.2 * len(images), 1.8), squeeze=False)
    for axis, (step, image) in zip(axes[0], images, strict=True):
        axis.imshow(image)
        axis.set_title(f"step {step}", fontsize=8)
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)


if __name__ == "__main__":
    main()
