"""From nothing to a trained policy: make data, inspect it, weigh some targets against it, train on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from himatch.data import Split, load_dataset, make_dataset, paper_split
from himatch.errors import HimatchError
from himatch.features import resolve_feature
from himatch.inspection import inspect_dataset, plot_report, show_report
from himatch.policy import BC, CDT
from himatch.targets import EpisodeReference, Target, demo, parse_target
from himatch.training import Interrupted, train

DATASET = "halfcheetah-medium-expert"
# Between the paces of the two agents (4 and 11), half the time each of them, and faster than either.
TARGETS = ("normal(5,1)", "0.5*normal(4,1)+0.5*normal(11,1)", "normal(14,1)")


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
    _show_targets(split, console)
    try:
        _train(split, out / f"{folder.name}-{steps}-steps", steps, console)
    except Interrupted:
        raise KeyboardInterrupt(f"what is done is kept in {out}; the same command goes on from there") from None
    console.print(
        f"dataset: {folder}\npicture: {plot_report(report, out / 'dataset.png')}", highlight=False, soft_wrap=True
    )


def _show_targets(split: Split, console: Console) -> None:
    train, held_out = split
    feature = resolve_feature("x_velocity", train.task)
    reference = EpisodeReference.of(train, feature, horizon=train.task.horizon)
    targets: list[tuple[str, Target]] = [("held-out episode", demo(held_out[0]))]
    targets += [(text, parse_target(text)) for text in TARGETS]
    table = Table(title="x_velocity targets: how near the training episodes come (W1)", title_justify="left", box=None)
    table.add_column("target", header_style="bold", no_wrap=True)
    for name in ("outside data", "one episode", "mixture"):
        table.add_column(name, justify="right", header_style="bold", no_wrap=True)
    for name, target in targets:
        support, nearest, mixture = reference.support(target), reference.nearest(target), reference.mixture(target)
        table.add_row(name, f"{support.outside:.0%}", f"{nearest.distance:.3f}", f"{mixture.w1:.3f}")
    console.print(table)


def _train(split: Split, out: Path, steps: int, console: Console) -> None:
    """A Categorical DT and a BC, and how well each predicts episodes that it has not seen."""
    table = Table(title="held-out episodes: mean squared action error", title_justify="left", box=None)
    table.add_column("policy", header_style="bold")
    table.add_column("error", justify="right", header_style="bold")
    guess = split.held_out.actions - split.train.actions.mean(axis=0)
    table.add_row("always the mean action", f"{np.square(guess).mean():.4f}")
    for method in (BC(), CDT("x_velocity")):
        policy = train(method, split, out=out / method.name, preset="cpu", steps=steps, resume=True)
        table.add_row(method.name, f"{policy.action_error(list(split.held_out)).mean():.4f}")
    console.print(table)
