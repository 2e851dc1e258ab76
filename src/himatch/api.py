"""``himatch.train``: from a dataset to a policy; ``himatch.evaluate``: from a policy to how well it matches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from himatch._runtime.progress import progress_bar
from himatch._runtime.settings import from_zero
from himatch.data import Split, TrajectoryDataset, load_dataset, named_split
from himatch.data.reader import may_name_columns
from himatch.errors import HimatchError, note
from himatch.evaluation import Evaluation
from himatch.evaluation.sensitivity import chosen_episodes, note_ignored, scores
from himatch.methods import Method
from himatch.policy import Policy, load
from himatch.rehearsal.temperature import select_temperature
from himatch.rollout import Conditioning
from himatch.rollout.environment import Environment
from himatch.runs.folder import Weights
from himatch.targets import TargetLike
from himatch.tasks import Task
from himatch.training import BinRange, Plan, make_plan
from himatch.training import train as run_training
from himatch.training.start import Scales


def train(
    method: Method,
    data: TrajectoryDataset | Split | str | Path,
    *,
    out: str | Path,
    task: str | Task | None = None,
    preset: str | None = None,
    seed: int = 0,
    seeds: int = 1,
    split: str | None = None,
    resume: bool = False,
    device: str | None = None,
    stream: bool | None = None,
    trackers: str | Sequence[str] = (),
    bin_range: BinRange = "usual",
    quiet: bool = False,
    start: str | Path | None = None,
    start_weights: Weights = "last",
    normalizers: Scales | None = None,
    temperature: float | None = None,
    threads: int = 0,
    **overrides: Any,
) -> Policy:
    """Train a method and return the policy, which also lies in the folder ``out``.

    Where a loss is not finite, training stops with a ``TrainingError`` that names step and seeds.

    Parameters
    ----------
    method
        ``himatch.CDT(feature="x_velocity")`` and the like.
    data
        A dataset, a split of one, or anything :func:`himatch.load_dataset` takes, with ``task`` for the last alone.
    preset, overrides
        ``paper``, ``fast`` or ``cpu``, and settings that differ from it (``steps``, ``width``, ``context``, ...). By
        default ``fast`` where a GPU trains, else ``cpu``.
    seed, seeds
        Trains seeds ``seed`` to ``seed + seeds - 1`` stacked in one batched model.
    split
        What of a dataset is held out: ``paper`` (its ten episodes), ``random`` (a tenth), ``label:A,B`` (these labels)
        or ``none``, the default here; the command line's is ``paper``. A ``Split`` as ``data`` says that itself.
    resume
        Continue the run in ``out`` where it stopped; method, settings and data must be the same.
    device
        ``cuda`` or ``cpu``; by default a GPU where there is one.
    stream
        Keep the data where it is and send batches over, instead of holding it on the device; by default as it fits.
    trackers
        Where to log too: ``tensorboard``, ``wandb``, ``trackio``.
    bin_range
        Bins span ``usual`` values, which one bad reading does not stretch, or ``all``, as in the paper. Without extreme
        values in the data both are the same.
    start
        A run whose weights, ``start_weights`` of them, are the first ones: the same method and model go on on new or
        more logs. Only the policy is trained, nothing that was pretrained. ``normalizers`` are those of that run, with
        its bins (``keep``, the default), or fitted on the new data (``refit``).
    temperature
        Of a stochastic policy. By default rollouts on training episodes select it, where the task has an environment;
        else one network acts by its mean action, as with 0. ``threads`` simulate them, 0 means all.
    """
    plan = make_plan(
        method,
        lambda: as_split(data, task, split),
        out=out,
        preset=preset,
        seed=seed,
        seeds=seeds,
        resume=resume,
        device=device,
        trackers=trackers,
        split=split,
        task=task,
        more_features=isinstance(data, (TrajectoryDataset, Split)) or may_name_columns(data),
        bin_range=bin_range,
        start=start,
        start_weights=start_weights,
        normalizers=normalizers,
        **overrides,
    )
    return train_as_planned(plan, stream=stream, quiet=quiet, temperature=temperature, threads=threads)


def train_as_planned(
    plan: Plan, *, stream: bool | None = None, quiet: bool = False, temperature: float | None = None, threads: int = 0
) -> Policy:
    """Train, and keep in the run folder how much the policy uses its conditioning, and its temperature.

    Warns of a policy that ignores its conditioning.
    """
    if temperature is not None:
        from_zero("the temperature", temperature)
        if plan.model.head == "tanh":
            raise HimatchError("a deterministic policy has no temperature; choose a stochastic head (--head gaussian)")
    policy = load(run_training(plan, stream=stream, quiet=quiet).path)
    _keep_scores(policy, plan)
    if policy.agent.policy.stochastic:
        _keep_temperature(policy, plan, temperature, threads, quiet=quiet)
    note_ignored(policy.run)
    return policy


def _keep_scores(policy: Policy, plan: Plan) -> None:
    """Score the policy on logged episodes, unless these very weights were scored before (a resumed run)."""
    steps = _trained_steps(policy)
    if (policy.run.scores or {}).get("steps") == steps:
        return
    # A random part of the training data shows best what the policy was asked to tell apart.
    sources = (("validation", plan.validation), ("held-out", policy.held_out), ("training", plan.trained_on))
    name, episodes = chosen_episodes(*sources)
    if episodes:
        scored = _on_device(policy, plan).score(episodes)
        policy.run.write_scores({**scores(name, episodes, scored), "steps": steps})


def _keep_temperature(policy: Policy, plan: Plan, given: float | None, threads: int, *, quiet: bool) -> None:
    """Select the temperature by rollouts, unless it is given, was selected for these weights, or nothing simulates."""
    known, steps = policy.run.scores or {}, _trained_steps(policy)
    found = known.get("temperature")
    if given is not None:
        found = {"value": given, "rule": "given"}
    elif policy.task.discrete is not None:
        found = {"value": policy.temperature, "rule": "the learned probabilities"}
    elif found is None or found["steps"] != steps:
        if policy.run.env_id is None and policy.temperature == 0.0:
            return  # the mean action, and nothing to try others in
        try:
            with progress_bar("temperature", 1, quiet=quiet) as bar:
                began = time.perf_counter()

                def progress(done: int, total: int) -> None:
                    bar(done, done / max(time.perf_counter() - began, 1e-9), total=total)

                acting = _on_device(policy, plan)
                found = select_temperature(
                    acting.run, acting.agent, plan.referenced, threads=threads, progress=progress
                )
        except KeyboardInterrupt:
            where = policy.folder
            raise KeyboardInterrupt(f"{where} is trained; --resume selects the temperature of its actions") from None
        except HimatchError as reason:  # no environment, or not one for this policy
            note(f"the temperature of sampled actions stays {policy.temperature:g}, nothing was simulated: {reason}")
            return
    policy.run.write_scores({**known, "temperature": {**found, "steps": steps}})
    policy.temperature = found["value"]


def _trained_steps(policy: Policy) -> list[int | None]:
    return [policy.run.folder.weights_step(seed, "last") for seed in policy.seeds]


def _on_device(policy: Policy, plan: Plan) -> Policy:
    """The policy where it was trained."""
    return load(policy.folder, device=plan.device) if plan.device.type == "cuda" else policy


def as_split(data: TrajectoryDataset | Split | str | Path, task: str | Task | None, split: str | None) -> Split:
    """The data as a split; what it says itself is not said again."""
    if isinstance(data, Split):
        if task is not None or split is not None:
            raise HimatchError("a Split says itself what is held out, and of which task; leave out split and task")
        return data
    if isinstance(data, TrajectoryDataset):
        if task is not None:
            raise HimatchError(f"a dataset has its task ({data.task.name}) already; name another in load_dataset")
        return named_split(data, split or "none")
    return named_split(load_dataset(data, task), split or "none")


def evaluate(
    policy: Policy,
    targets: str | Sequence[tuple[str, TargetLike]] = "heldout",
    *,
    episodes: int = 20,
    conditioning: Conditioning = "nominal",
    stretches: int | None = None,
    replan: int | None = None,
    feature: str | None = None,
    seed: int = 0,
    env: Environment | None = None,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """:meth:`Policy.evaluate` as a function."""
    return policy.evaluate(
        targets,
        episodes=episodes,
        conditioning=conditioning,
        stretches=stretches,
        replan=replan,
        feature=feature,
        seed=seed,
        env=env,
        threads=threads,
        progress=progress,
    )
