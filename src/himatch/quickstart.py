"""From nothing to a matched distribution: make data, inspect it, train on it, ask for distributions of x-velocity."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from himatch.data import Split, load_dataset, make_dataset, paper_split
from himatch.errors import HimatchError, HimatchWarning
from himatch.inspection import inspect_dataset, plot_report, show_report
from himatch.matching import MatchResult, Policy
from himatch.policy import BC, CDT
from himatch.rollout import Conditioning
from himatch.targets import Target, demo, parse_target
from himatch.training import Interrupted, train

DATASET = "halfcheetah-medium-expert"
# Between the paces of the two agents (4 and 11), half the time each of them, and faster than either.
TARGETS = ("normal(5,1)", "0.5*normal(4,1)+0.5*normal(11,1)", "normal(14,1)")
ROLLOUTS = 5
Named = tuple[str, Target]


def run_quickstart(out: str | Path, episodes: int = 100, seed: int = 0, steps: int = 6000) -> None:
    """Run every stage; a dataset and policies that are already there are reused, interrupted ones continued."""
    if episodes < 15:
        raise HimatchError(f"the paper's split needs at least 15 episodes, got {episodes}")
    out, console = Path(out), Console()
    folder = out / f"{DATASET}-{episodes}-{seed}-v0"
    if not folder.exists():
        make_dataset(DATASET, folder, episodes=episodes, seed=seed)
    dataset = load_dataset(folder)
    report = inspect_dataset(dataset)
    show_report(report, console)
    split = paper_split(dataset)
    targets = _targets(split)
    try:
        policies = _train(split, out / f"{folder.name}-{steps}-steps", steps)
    except Interrupted:
        raise KeyboardInterrupt(f"what is done is kept in {out}; the same command goes on from there") from None
    best = _match(policies, targets, console)
    pictures = f"{plot_report(report, out / 'dataset.png')}, {best.plot(out / 'match.png')}"
    console.print(f"dataset: {folder}\npictures: {pictures}", highlight=False, soft_wrap=True)


def _targets(split: Split) -> list[Named]:
    """Two held-out episodes, one of each agent, and three distributions that nobody has shown."""
    slow = int(np.argmin(split.held_out.returns))
    episodes: list[Named] = [
        ("held-out expert episode", demo(split.held_out[0])),
        ("held-out medium episode", demo(split.held_out[slow])),
    ]
    return episodes + [(text, parse_target(text)) for text in TARGETS]


def _train(split: Split, out: Path, steps: int) -> list[Policy]:
    """A BC, which is told nothing, and a Categorical DT, which is told the distribution."""
    return [
        train(method, split, out=out / method.name, preset="cpu", steps=steps, resume=True)
        for method in (BC(), CDT("x_velocity"))
    ]


def _match(policies: list[Policy], targets: list[Named], console: Console) -> MatchResult:
    """Roll out under every target and show how far each policy stays from it; gives the match of the mixture."""
    asked: list[tuple[str, Policy, Conditioning]] = [("bc", policies[0], "open"), ("cdt", policies[1], "open")]
    asked.append(("planned", policies[1], "planned"))
    found: dict[str, list[MatchResult]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HimatchWarning)  # the table says what lies outside the data
        for name, policy, conditioning in asked:
            with console.status(f"rolling out {name}"):
                found[name] = policy.match_all(
                    [target for _, target in targets],
                    episodes=ROLLOUTS,
                    conditioning=conditioning,
                    feature="x_velocity",
                )
    table = Table(title="x_velocity: distance of the rollouts from the target (W1)", title_justify="left", box=None)
    table.add_column("target", header_style="bold", no_wrap=True)
    for name in ("outside", "mixture", *found):
        table.add_column(name, justify="right", header_style="bold", no_wrap=True)
    for row, (name, _) in enumerate(targets):
        results = [results[row] for results in found.values()]
        table.add_row(
            name, f"{results[0].outside:.0%}", f"{results[0].reference:.3f}", *(f"{r.w1:.3f}" for r in results)
        )
    console.print(table)
    console.print(
        "outside: part of the target where no training episode goes; mixture: the nearest mixture of whole training\n"
        "episodes, what time-sharing can reach; planned: the cdt told that mixture, part by part",
        soft_wrap=True,
        highlight=False,
    )
    return found["planned"][-2]
