"""Meta-BC and FOCAL on cheetah-vel: speed, what the encoder has understood, and whether FOCAL is really trained.

    python benchmarks/baselines.py --out results/baselines [--device cuda] [--budget fast] [--steps 20000]
                                   [--episodes 1860] [--seeds 4] [--parts speed quality ablations]

``speed``: gradient steps a second of one model and of four stacked ones, beside the same four in turn. ``quality``:
trains both baselines and BC without context, with the velocities 0.5, 1.5 and 2.5 and a tenth of the other episodes
kept out; prints how well the first principal component of kept-out episodes' embeddings orders them by velocity, and
the returns of rollouts at training velocities, each from one kept-out demonstration, in the environment of that
velocity; draws how FOCAL's values went. ``ablations``: the same returns without what himatch does of its own accord.
Everything that is printed lies in ``results.json`` too.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from harness import machine, rate
from matplotlib.figure import Figure
from scipy.stats import spearmanr

import himatch as hm
from himatch._runtime.files import write_json
from himatch._runtime.tensors import versions
from himatch.datagen.cache import cached_dataset
from himatch.methods.batch import Batch
from himatch.methods.focal.method import FOCALAgent
from himatch.methods.metabc.method import TaskAgent
from himatch.networks import squashed
from himatch.reproduce.budgets import BUDGETS
from himatch.reproduce.suites import HELD_OUT_VELOCITIES
from himatch.rollout import Player, make_conditioner, roll_out
from himatch.runs.folder import RunFolder
from himatch.simulation import EVALUATION_SEED
from himatch.targets import Demonstration
from himatch.training import make_plan
from himatch.training.sampler import make_sampler
from himatch.training.update import Update

BASELINES = ("meta-bc", "focal")


def split_of(data: hm.TrajectoryDataset) -> hm.Split:
    """Keeps the paper's velocities out, and one episode in ten of the others."""
    order = np.random.default_rng(0).permutation(len(data))
    unseen = np.array([label in HELD_OUT_VELOCITIES for label in data.labels])
    seen = order[~unseen[order]]
    kept_out = np.sort(np.concatenate([np.flatnonzero(unseen), seen[: len(seen) // 10]]))
    train = np.setdiff1d(np.arange(len(data)), kept_out)
    groups = tuple(str(data.labels[i]) for i in kept_out)
    return hm.Split(data[train], data[kept_out], groups, train, kept_out)


# -- speed ----------------------------------------------------------------------------------------------------------


def updates(name: str, split: hm.Split, stack: int, preset: str, device: torch.device) -> Iterator[tuple[str, Update]]:
    """The encoder's training, once, and the policy's."""
    method = hm.make_method(name)
    plan = make_plan(method, lambda: split, out=Path("unused"), preset=preset, seeds=stack, device=device.type)
    agent = method.build(plan.model, plan.dims, plan.seeds).to(device)
    sampler = make_sampler(plan.trained_on, None, plan.spec, plan.normalizers(None), device, stream=False)
    *first, last = plan.stages
    if name == "meta-bc":
        encoder = Update(agent, sampler, first[0], plan.config, device)
        yield "encoder", encoder
        encoder.flat.release()
    for stage in first:
        assert stage.part is not None
        agent.freeze(stage.part)
    sampler.embed_episodes(agent)
    yield name, Update(agent, sampler, last, plan.config, device)


def measure_speed(split: hm.Split, preset: str, device: torch.device, seconds: float, stack: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in BASELINES:
        for models in (1, stack):
            begun = time.perf_counter()
            for what, update in updates(name, split, models, preset, device):
                next(update.run(1))
                ready, begun = time.perf_counter() - begun, time.perf_counter()
                speed = rate(update, seconds)
                found[f"{what} x{models}"] = {"steps_per_second": speed, "first_step_after": ready, "how": update.how}
                print(
                    f"{what} x{models}: {speed:,.0f} steps/s, {speed * models:,.0f} model-steps/s "
                    f"({update.how}, first step after {ready:.0f} s)",
                    flush=True,
                )
    for what in ("encoder", *BASELINES):
        one, many = (found[f"{what} x{models}"]["steps_per_second"] for models in (1, stack))
        found[f"{what}: stacked against in turn"] = stack * many / one
        print(f"{what}: {stack} stacked seeds train {stack * many / one:.2f} times as fast as in turn")
    return found


# -- quality --------------------------------------------------------------------------------------------------------


def ordering(policy: hm.Policy, episodes: hm.TrajectoryDataset) -> list[float]:
    """Spearman correlation of the first principal component of embeddings with the velocity, one a seed."""
    velocities = np.array([float(str(label)) for label in episodes.labels])
    codes = policy.embed(list(episodes)).cpu().double().numpy()
    found = []
    for own in codes:
        _, _, directions = np.linalg.svd(own - own.mean(axis=0), full_matrices=False)
        found.append(abs(float(spearmanr(own @ directions[0], velocities).statistic)))
    return found


def returns(policy: hm.Policy, demonstrations: list[hm.Trajectory], episodes: int) -> np.ndarray:
    """Mean return of every seed's rollouts, ``(K, n)``: each under one demonstration, in its velocity's environment."""
    stack, count = len(policy.seeds), len(demonstrations)
    targets = [Demonstration(demo, f"velocity {demo.label}") for demo in demonstrations]
    target_of = np.tile(np.repeat(np.arange(count), episodes), (stack, 1))
    settings = [{"velocity": float(str(demonstrations[i].label))} for i in target_of.ravel()]
    simulator = hm.make_simulator("cheetah-vel", target_of.size, settings=settings)
    conditioner = make_conditioner("nominal", policy.run, policy.agent, targets, target_of)
    player = Player(policy.agent, policy.normalizers, conditioner, target_of.shape[1])
    lengths = np.array([len(demo) for demo in demonstrations])[target_of]
    starts = EVALUATION_SEED + np.tile(np.arange(episodes), count)
    try:
        played = roll_out(player, simulator, lengths, np.tile(starts, (stack, 1)))
    finally:
        simulator.close()
    return played.rewards.sum(axis=2, dtype=np.float64).reshape(stack, count, episodes).mean(axis=2)


def draw_values(rows: dict[int, list[dict[str, float]]], unit: float, rewards: np.ndarray, path: Path) -> None:
    """Values of kept-out actions over training, in rewards a step, beside the rewards that there are."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axis = figure.subplots()
    for i, (seed, points) in enumerate(rows.items()):
        steps = [point["step"] for point in points]
        axis.plot(steps, [unit * point["value"] for point in points], color=f"C{i}", label=f"seed {seed}: mean, range")
        low, high = ([unit * point[key] for point in points] for key in ("lowest_value", "highest_value"))
        axis.fill_between(steps, low, high, color=f"C{i}", alpha=0.12, lw=0)
    axis.axhline(rewards.max(), color="grey", lw=1, ls="--", label="highest reward of the data")
    axis.axhline(rewards.mean(), color="grey", lw=1, ls=":", label="mean reward of the data")
    axis.set(xlabel="steps", ylabel="value, as reward a step", title="FOCAL's values on validation steps, cheetah-vel")
    axis.set_ylim(bottom=min(axis.get_ylim()[0], 3 * rewards.mean()))
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(path, dpi=130)


def measure_quality(
    split: hm.Split, preset: str, steps: int | None, seeds: int, device: str, out: Path, episodes: int
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    velocities = sorted(set(split.groups) - set(HELD_OUT_VELOCITIES), key=float)
    demonstrations = [split.group(velocity)[0] for velocity in velocities]
    data = {v: split.train.returns[np.array(split.train.labels) == v].mean() for v in velocities}
    found["velocities"], found["data"] = velocities, {"returns": list(data.values())}
    print(f"data: mean return at {len(velocities)} training velocities {np.mean(list(data.values())):.1f}", flush=True)
    for name in ("bc", *BASELINES):
        start = time.perf_counter()
        hm.train(
            hm.make_method(name),
            split,
            out=out / name,
            preset=preset,
            seeds=seeds,
            device=device,
            quiet=True,
            steps=steps,
        )
        seconds = time.perf_counter() - start
        policy = hm.load(out / name, device=device)
        reached = returns(policy, demonstrations, episodes)
        means = ", ".join(f"{mean:.1f}" for mean in reached.mean(axis=1))
        print(
            f"{name}: return at training velocities {reached.mean():.1f} (per seed {means}); {seconds:.0f} s",
            flush=True,
        )
        found[name] = {"returns": reached.mean(axis=0).tolist(), "return_per_seed": reached.mean(axis=1).tolist()}
        found[name]["seconds"] = seconds
        if name in BASELINES:
            unseen = split.held_out[np.isin(split.groups, HELD_OUT_VELOCITIES)]
            orders = {"kept out": ordering(policy, split.held_out), "unseen velocities": ordering(policy, unseen)}
            found[name]["spearman"] = orders
            for what, values in orders.items():
                print(f"{name}: Spearman, {what}: {', '.join(f'{value:.3f}' for value in values)}", flush=True)
    measure_values(found, split, seeds, out)
    return found


def measure_values(found: dict[str, Any], split: hm.Split, seeds: int, out: Path) -> None:
    """FOCAL's values over training, in rewards a step, as numbers and as a picture."""
    folder = RunFolder(out / "focal")
    rows = {seed: folder.metrics(seed) for seed in range(seeds)}
    assert split.train.rewards is not None
    rewards = split.train.rewards.astype(np.float64)
    unit, least, most = float(rewards.std()), float(rewards.min()), float(rewards.max())
    draw_values(rows, unit, rewards, out / "focal_values.png")
    lowest, highest = (
        pick(unit * row[key] for points in rows.values() for row in points)
        for pick, key in ((min, "lowest_value"), (max, "highest_value"))
    )
    found["focal"] |= {
        "values": rows,
        "value_unit": unit,
        "value_range": [lowest, highest],
        "reward_range": [least, most],
    }
    last = rows[0][-1]
    print(
        f"focal: values of validation steps between {lowest:.3f} and {highest:.3f} over all of training, rewards of "
        f"the data between {least:.3f} and {most:.3f}; at the end divergence {last['divergence']:.3f}, "
        f"alpha {last['alpha']:.3f}"
    )


# -- ablations ------------------------------------------------------------------------------------------------------


def plain_likelihood(agent: FOCALAgent, part: str, batch: Batch) -> torch.Tensor:
    """FOCAL's clone as BRAC has it: every action's likelihood counts the same."""
    if part == "encoder":
        return TaskAgent.part_losses(agent, part, batch)
    assert batch.z is not None
    mean, log_std = agent.behaviour.gaussian(agent.behaviour.outputs_for(batch.states[:, :, 0], batch.z[:, :, 0]))
    return -squashed.log_likelihood(mean, log_std, batch.actions[:, :, 0]).sum(-1).mean(1)


def measure_ablations(
    split: hm.Split, preset: str, steps: int | None, seeds: int, device: str, out: Path, episodes: int
) -> dict[str, Any]:
    velocities = sorted(set(split.groups) - set(HELD_OUT_VELOCITIES), key=float)
    demonstrations = [split.group(velocity)[0] for velocity in velocities]
    found: dict[str, Any] = {}

    def measure(name: str, method: hm.methods.Method, *changed: Any) -> None:
        with ExitStack() as changes:
            for change in changed:
                changes.enter_context(change)
            folder = out / name.replace(" ", "-")
            hm.train(method, split, out=folder, preset=preset, seeds=seeds, device=device, quiet=True, steps=steps)
        policy = hm.load(folder, device=device)
        if isinstance(policy.agent, FOCALAgent):
            policy.agent.policy.load_state_dict(policy.agent.behaviour.state_dict())
        reached, orders = returns(policy, demonstrations, episodes).mean(axis=1), ordering(policy, split.held_out)
        found[name] = {"return_per_seed": reached.tolist(), "spearman": orders}
        print(f"{name}: return {reached.mean():.1f}, Spearman {np.mean(orders):.3f}", flush=True)

    measure("meta-bc", hm.MetaBC())
    measure("meta-bc contexts of 64 steps", hm.MetaBC(context_steps=64))
    measure("meta-bc embeddings as learned", hm.MetaBC(), patch.object(TaskAgent, "finish", lambda *_: None))
    measure("clone of focal", hm.FOCAL())
    measure("clone of focal by plain likelihood", hm.FOCAL(), patch.object(FOCALAgent, "part_losses", plain_likelihood))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for runs, results.json and the picture")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--budget", choices=list(BUDGETS), default="fast")
    parser.add_argument("--steps", type=int, help="of encoder and policy each; by default the budget's")
    parser.add_argument("--episodes", type=int, help="of the dataset; by default the budget's")
    parser.add_argument("--seeds", type=int, help="of the quality runs; by default the budget's")
    parser.add_argument("--rollouts", type=int, default=5, help="for each velocity and seed")
    parser.add_argument("--seconds", type=float, default=4.0, help="each speed is measured")
    parser.add_argument("--parts", nargs="+", choices=("speed", "quality", "ablations"), default=["speed", "quality"])
    arguments = parser.parse_args()
    budget, device, begun = BUDGETS[arguments.budget], torch.device(arguments.device), time.perf_counter()
    arguments.out.mkdir(parents=True, exist_ok=True)
    count = arguments.episodes or budget.velocity_episodes
    data = hm.load_dataset(cached_dataset("cheetah-vel", arguments.out / "data", episodes=count, quiet=True))
    split = split_of(data)
    facts = {
        "machine": machine(device),
        "date": datetime.date.today().isoformat(),
        "versions": versions(),
        "data": {"episodes": len(data), "steps": data.steps, "hash": data.content_hash, "train": len(split.train)},
        "budget": arguments.budget,
        "steps": arguments.steps or budget.steps,
        "seeds": list(range(arguments.seeds or budget.seeds)),
    }
    print(json.dumps(facts), flush=True)
    print(f"data ready after {time.perf_counter() - begun:.0f} s", flush=True)
    found: dict[str, Any] = {"facts": facts}
    if "speed" in arguments.parts:
        found["speed"] = measure_speed(split, budget.preset, device, arguments.seconds, 4)
        write_json(arguments.out / "results.json", found)
    for part, measure in (("quality", measure_quality), ("ablations", measure_ablations)):
        if part in arguments.parts:
            steps, seeds = arguments.steps or budget.steps, arguments.seeds or budget.seeds
            where = arguments.out / part
            found[part] = measure(split, budget.preset, steps, seeds, arguments.device, where, arguments.rollouts)
            write_json(arguments.out / "results.json", found)
    found["seconds"] = time.perf_counter() - begun
    write_json(arguments.out / "results.json", found)
    print(f"all after {found['seconds']:.0f} s; {arguments.out / 'results.json'}")


if __name__ == "__main__":
    main()
