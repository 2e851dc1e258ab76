"""Matching: rollouts under targets, and how they compare with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch._runtime.settings import whole
from himatch.errors import HimatchError, TargetError, note
from himatch.evaluation.recorded import RecordedAt
from himatch.evaluation.result import MatchResult
from himatch.evaluation.sensitivity import note_ignored_in_match
from himatch.evaluation.trial import Trial, play
from himatch.methods import Agent
from himatch.rollout import Conditioning
from himatch.rollout.checks import check_target, note_deadline
from himatch.rollout.environment import Environment, replay_for
from himatch.rollout.plans import EPISODES, Plans
from himatch.runs.run import Run
from himatch.statistics.features import resolve_feature
from himatch.targets import Target, checked_values
from himatch.tasks import Task
from himatch.viz.encoder import check_writable

AT_ONCE = 2048  # rollouts played together; more are played in turn
MOST = 100_000  # rollouts of one target
SHORT = 0.1  # part of a target's steps; rollouts that are shorter are worth a warning


def match_targets(
    run: Run,
    agent: Agent,
    targets: Sequence[Target],
    *,
    features: Sequence[str],
    episodes: int,
    conditioning: Conditioning = "nominal",
    plans: Plans = EPISODES,
    seed: int = 0,
    env: Environment | None = None,
    threads: int = 0,
    temperature: float = 0.0,
    recorded_at: RecordedAt = "t",
    progress: Callable[[int, int], None] | None = None,
    keep: Mapping[str, Any] | None = None,
    starts: Sequence[int] | None = None,
    mixtures: bool = True,
) -> list[list[MatchResult]]:
    """Roll out every seed of an agent under every target and compare: for each feature the result of every target.

    The same rollouts are compared on all features, which are read at the state of each step or at the next; those of
    targets always at the step's own. ``progress`` gets steps done and to do. With ``keep``
    results hold the rollouts as episodes, and what it says of who acted. ``starts`` are seeds of initial states in
    place of those that ``seed`` stands for, one for each episode of each target. Without ``mixtures`` results do not
    say what the nearest mixture of training episodes is, which of joint features takes seconds a target.
    """
    episodes, seed = _checked(run, agent, targets, features[0], episodes, seed)
    frame, stack = run.reference(features[0]).frame, len(agent.seeds)
    each = max(1, AT_ONCE // (stack * episodes))
    results: list[list[MatchResult]] = [[] for _ in features]
    total, reached = -(-len(targets) // each) * frame.horizon, 0
    for first in range(0, len(targets), each):
        part = targets[first : first + each]
        done = (first // each) * frame.horizon

        def report(steps: int, done: int = done) -> None:
            nonlocal reached
            reached = done + steps
            if progress is not None:
                progress(reached, total)

        replay = replay_for(run, env, seed)
        # All targets and seeds start from the same states, so that they differ in nothing else.
        begin = np.tile(replay.seed + np.arange(episodes), len(part))
        if starts is not None:
            begin = np.array(starts[first * episodes : (first + len(part)) * episodes], dtype=np.int64)
            replay = replace(replay, seed=int(begin[0]))
        trial = Trial(
            run,
            agent,
            part,
            features,
            begin.reshape(len(part), episodes),
            replay,
            conditioning=conditioning,
            plans=plans,
            env=env,
            threads=threads,
            temperature=temperature,
            mixtures=mixtures,
        )
        try:
            play(trial, report)
        finally:
            trial.close()
        found = trial.results(recorded_at, keep)
        for row, more in zip(results, found, strict=True):
            row += more
    if progress is not None:
        progress(reached, reached)  # robots that fall leave less to do
    _note_short(results[0])
    return results


def begin_trial(
    run: Run,
    agent: Agent,
    target: Target,
    *,
    feature: str,
    episodes: int,
    conditioning: Conditioning = "nominal",
    seed: int = 0,
    threads: int = 0,
    temperature: float = 0.0,
) -> Trial:
    """The rollouts of :func:`match_targets` for one target and feature, for whoever plays them step by step."""
    episodes, seed = _checked(run, agent, [target], feature, episodes, seed)
    replay = replay_for(run, None, seed)
    return Trial(
        run,
        agent,
        [target],
        [feature],
        replay.seed + np.arange(episodes)[None],
        replay,
        conditioning=conditioning,
        threads=threads,
        temperature=temperature,
    )


def _checked(
    run: Run, agent: Agent, targets: Sequence[Target], feature: str, episodes: int, seed: int
) -> tuple[int, int]:
    """Episodes and seed as whole numbers; what cannot be rolled out is refused before anybody waits."""
    episodes, seed = whole("episodes", episodes), whole("seed", seed)
    if episodes < 1:
        raise HimatchError(f"at least one episode has to be rolled out, got {episodes}")
    if not targets:
        raise TargetError("there is no target to match")
    if seed < 0:
        raise HimatchError(f"the seed of the initial states must be 0 or more, got {seed}")
    stack = len(agent.seeds)
    if stack * episodes > MOST:
        raise HimatchError(f"{episodes} episodes of {stack} seed(s) are too many; ask for {MOST // stack} at most")
    frame = run.reference(feature).frame
    note_ignored_in_match(run)
    for target in targets:
        check_target(run, agent.dims, target)
        note_deadline(run, target)
        for bound in target.bounds:
            resolve_feature(bound.feature, run.task)
    _note_too_long(targets, np.array([len(checked_values(target, frame)) for target in targets]), run.task)
    return episodes, seed


def check_video(path: Path, run: Run, env: Environment | None = None) -> None:
    """Refuse what could not be filmed or written, before anybody waits for rollouts."""
    check_writable(path)
    replay_for(run, env, 0).check()


def _note_too_long(targets: Sequence[Target], lengths: NDArray[np.int64], task: Task) -> None:
    """Say so where a target goes on after its rollouts, which are then compared with what they had no time for."""
    longest = int(lengths.argmax())
    if lengths[longest] > task.horizon:
        others = int((lengths > task.horizon).sum()) - 1
        name = targets[longest].name + (f" (and {others} more)" if others else "")
        note(
            f"{name} lasts {lengths[longest]} steps, but rollouts end with the horizon of {task.name}, {task.horizon}, "
            f"and are compared with all of it; give an episode's first steps (episode[:{task.horizon}]) or register "
            "the task with a longer horizon"
        )


def _note_short(results: Sequence[MatchResult]) -> None:
    """Say so where rollouts ended at once: values that agree are no match if there are hardly any."""
    matched = [r for r in results if r.target.matches != "return"]  # a return is earned until the end, however soon
    short = [r for r in matched if r.lengths.mean() < SHORT * len(r.target.values(r.frame))]
    if short:
        worst = min(short, key=lambda result: float(result.lengths.mean()))
        name = worst.target.name + (f" (and {len(short) - 1} more)" if len(short) > 1 else "")
        note(
            f"the rollouts for {name} ended after {worst.lengths.mean():.3g} steps on average, less than {SHORT:.0%} "
            "of the target; the score compares what was played, the charged one counts the rest too"
        )
