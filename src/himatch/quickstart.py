"""From nothing to a trained policy: generate data, inspect it, weigh some targets against it, train on it."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from himatch.data import Split, TrajectoryDataset, load_dataset, paper_split, write_minari
from himatch.data.episodes import pack_trajectories
from himatch.errors import HimatchError
from himatch.features import resolve_feature
from himatch.inspection import inspect_dataset, plot_report, show_report
from himatch.policy import BC, CDT
from himatch.targets import EpisodeReference, Target, demo, parse_target
from himatch.tasks import Task, get_task
from himatch.training import train
from himatch.types import Trajectory

TARGETS = ("normal(0.5,0.5)", "0.5*normal(-1,0.5)+0.5*normal(1.5,0.5)", "normal(8,1)")


def run_quickstart(out: str | Path, episodes: int = 40, seed: int = 0, steps: int = 1500) -> None:
    """Run every stage; a dataset and policies that are already there are reused, interrupted ones continued."""
    if episodes < 15:
        raise HimatchError(f"the paper's split needs at least 15 episodes, got {episodes}")
    out, console, task = Path(out), Console(), get_task("halfcheetah")
    folder = out / f"halfcheetah-gaits-{episodes}-{seed}-v0"
    if not folder.exists():
        trajectories = _generate(task, episodes, seed, console)
        generated = TrajectoryDataset(
            pack_trajectories(trajectories, task), task, source="himatch quickstart", env_id=task.env_id
        )
        write_minari(generated, folder, description="Sinusoidal gaits of random frequency and amplitude.")
    dataset = load_dataset(folder)
    report = inspect_dataset(dataset)
    show_report(report, console)
    split = paper_split(dataset)
    _show_targets(split, console)
    _train(split, out / f"{folder.name}-{steps}-steps", steps, console)
    console.print(
        f"dataset: {folder}\npicture: {plot_report(report, out / 'dataset.png')}", highlight=False, soft_wrap=True
    )


def _generate(task: Task, episodes: int, seed: int, console: Console) -> list[Trajectory]:
    """Open-loop gaits: each episode drives the joints with sines of its own frequency, amplitude and phases."""
    assert task.env_id is not None
    env = gymnasium.make(task.env_id, **task.env_kwargs)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        work = progress.add_task("generating episodes", total=episodes)
        trajectories = []
        for episode in range(episodes):
            trajectories.append(
                _gait(env, task.horizon, np.random.default_rng([seed, episode]), seed * 10_000 + episode)
            )
            progress.advance(work)
    env.close()
    return trajectories


def _gait(
    env: gymnasium.Env[np.ndarray, np.ndarray], steps: int, rng: np.random.Generator, reset_seed: int
) -> Trajectory:
    frequency, amplitude = rng.uniform(0.1, 0.9), rng.uniform(0.1, 1.0)
    phases = rng.uniform(0, 2 * np.pi, size=6)
    observation, _ = env.reset(seed=reset_seed)
    observations, actions, rewards = [], [], []
    for t in range(steps):
        action = amplitude * np.sin(frequency * t + phases) + rng.normal(0, 0.05, size=6)
        action = np.clip(action, -1, 1).astype(np.float32)
        observations.append(observation)
        actions.append(action)
        observation, reward, _, _, _ = env.step(action)
        rewards.append(reward)
    return Trajectory(np.array(observations), np.array(actions), np.array(rewards), observation)


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
