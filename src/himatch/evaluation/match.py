"""From targets to rollouts to results."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from himatch._runtime.settings import whole
from himatch.errors import HimatchError, SimulationError, TargetError, note, one_line
from himatch.evaluation.result import MatchResult
from himatch.rollout import Conditioning, Feed, Player, make_feed, roll_out
from himatch.simulation import EVALUATION_SEED, Simulator, make_simulator
from himatch.simulation.gymnasium_envs import MakeEnv
from himatch.simulation.replay import Replay
from himatch.statistics.information import InformationStatistic
from himatch.targets import Context, EpisodeReference, Mixture, Target, checked_values
from himatch.tasks import Task
from himatch.viz.encoder import check_writable

if TYPE_CHECKING:
    from himatch.policy import Policy

Environment = str | Callable[[], "gymnasium.Env[Any, Any]"] | gymnasium.Env[Any, Any]
AT_ONCE = 2048  # rollouts played together; more are played in turn
MOST = 100_000  # rollouts of one target
NOTED = 0.05  # part of the rollouts beyond all bins, or of a target beyond all data, that is worth a word
SHORT = 0.1  # part of a target's steps; rollouts that are shorter are worth one too


def match_targets(
    policy: Policy,
    targets: Sequence[Target],
    *,
    episodes: int,
    conditioning: Conditioning,
    features: Sequence[str],
    seed: int = 0,
    env: Environment | None = None,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[list[MatchResult]]:
    """Roll out every seed of a policy under every target and compare: for each feature the result of every target.

    The same rollouts are compared on all features; ``progress`` gets steps done and to do.
    """
    episodes, seed = whole("episodes", episodes), whole("seed", seed)
    if episodes < 1:
        raise HimatchError(f"at least one episode has to be rolled out, got {episodes}")
    if not targets:
        raise TargetError("there is no target to match")
    if seed < 0:
        raise HimatchError(f"the seed of the initial states must be 0 or more, got {seed}")
    stack = len(policy.seeds)
    if stack * episodes > MOST:
        raise HimatchError(f"{episodes} episodes of {stack} seed(s) are too many; ask for {MOST // stack} at most")
    each = max(1, AT_ONCE // (stack * episodes))
    frame = policy.reference(features[0]).context
    for target in targets:
        check_told(policy, target)
    _note_too_long(targets, np.array([len(checked_values(target, frame)) for target in targets]), policy.task)
    results: list[list[MatchResult]] = [[] for _ in features]
    total, reached = -(-len(targets) // each) * frame.horizon, 0
    for first in range(0, len(targets), each):
        part = targets[first : first + each]
        done = (first // each) * frame.horizon

        def tell(steps: int, done: int = done) -> None:
            nonlocal reached
            reached = done + steps
            if progress is not None:
                progress(reached, total)

        for found, more in zip(
            results, _match(policy, part, episodes, conditioning, features, seed, env, threads, tell), strict=True
        ):
            found += more
    if progress is not None:
        progress(reached, reached)  # robots that fall leave less to do
    _note_beyond(results[0])
    _note_short(results[0])
    return results


def _match(
    policy: Policy,
    targets: Sequence[Target],
    episodes: int,
    conditioning: Conditioning,
    features: Sequence[str],
    seed: int,
    env: Environment | None,
    threads: int,
    tell: Callable[[int], None],
) -> list[list[MatchResult]]:
    stack, references = len(policy.seeds), [policy.reference(feature) for feature in features]
    scored, told = references[0].context, conditioning_frame(policy)
    numbers = np.tile(np.repeat(np.arange(len(targets)), episodes), (stack, 1))
    feed = policy_feed(policy, targets, told, numbers, conditioning)
    mixtures = [_mixtures(targets, reference) for reference in references]
    lengths = np.array([len(target.values(scored)) for target in targets])[numbers]
    # All targets and seeds start from the same states, so that they differ in nothing else.
    replay = replay_for(policy, env, seed)
    starts = replay.seed + np.tile(np.arange(episodes), len(targets))
    player = Player(policy.agent, policy.normalizers, feed, numbers.shape[1], replay.seed, policy.temperature)
    simulator = simulator_for(policy, numbers.size, env, threads)
    steps = 0

    def count(_: int) -> None:
        nonlocal steps
        steps += 1
        tell(steps)

    matched = policy.statistic.feature if isinstance(policy.statistic, InformationStatistic) else None
    try:
        rollouts = roll_out(player, simulator, lengths, np.tile(starts, (stack, 1)), matched, count)
    finally:
        simulator.close()
    results: list[list[MatchResult]] = [[] for _ in features]
    for number, target in enumerate(targets):
        chosen = range(number * episodes, (number + 1) * episodes)
        played = [[rollouts.trajectory(k, b) for b in chosen] for k in range(stack)]
        place = slice(number * episodes, (number + 1) * episodes)
        returns = np.array([[trajectory.total_reward for trajectory in row] for row in played])
        for found, reference, nearest in zip(results, references, mixtures, strict=True):
            phi, mixture = reference.context.feature, nearest[number]
            found.append(
                MatchResult(
                    target,
                    reference.context,
                    conditioning,
                    policy.seeds,
                    tuple(tuple(phi(trajectory) for trajectory in seed_rollouts) for seed_rollouts in played),
                    returns,
                    rollouts.lengths[:, place],
                    rollouts.terminated[:, place],
                    played[0][0],
                    None if mixture is None else mixture.w1,
                    reference.support(target).outside,
                    replay,
                )
            )
    return results


def _mixtures(targets: Sequence[Target], reference: EpisodeReference) -> list[Mixture | None]:
    """How near each target a mixture of training episodes comes; a word about those that none comes near."""
    found = [reference.mixture(target) if target.matches == "distribution" else None for target in targets]
    for target, mixture in zip(targets, found, strict=True):
        note_outside(target, mixture, reference)
    return found


def policy_feed(
    policy: Policy, targets: Sequence[Target], frame: Context | None, numbers: np.ndarray, conditioning: Conditioning
) -> Feed:
    """What the policy is told in rollouts ``(K, B)`` of target numbers."""
    return make_feed(
        conditioning,
        policy.statistic,
        policy.method,
        policy.context,
        targets,
        frame,
        numbers,
        policy.device,
        policy.reference() if conditioning == "planned" and frame is not None else None,
        policy.embed,
    )


def check_told(policy: Policy, target: Target) -> None:
    """Refuse what this policy cannot be told: an episode of another task, values that are none."""
    shown, width = target.demonstration(), policy.agent.widths.observation
    if shown is not None and shown.observations.shape[1] != width:
        raise TargetError(
            f"{target.name} shows observations of {shown.observations.shape[1]} numbers, this policy of task "
            f"{policy.task.name} sees {width}; is it an episode of the right task?"
        )
    frame = conditioning_frame(policy)
    if frame is not None:
        checked_values(target, frame)


def conditioning_frame(policy: Policy) -> Context | None:
    """Feature and bins of what the policy is told; ``None`` for policies that are told none or learn their own."""
    return policy.reference().context if isinstance(policy.statistic, InformationStatistic) else None


def simulator_for(policy: Policy, count: int, env: Environment | None, threads: int) -> Simulator:
    """Simulations of the environment the data came from, unless another one is named."""
    task, make_env = _environment(policy, env)
    simulator = make_simulator(task, count, threads=threads, make_env=make_env)
    try:
        _check_widths(policy, simulator)
    except HimatchError:
        simulator.close()
        raise
    return simulator


def replay_for(policy: Policy, env: Environment | None, seed: int) -> Replay:
    """How the first rollout of every target is played again."""
    task, make_env = _environment(policy, env)
    return Replay(task, EVALUATION_SEED + seed * 1_000_000, make_env)


def check_video(path: Path, policy: Policy, env: Environment | None = None) -> None:
    """Refuse what could not be filmed or written, before anybody waits for rollouts."""
    check_writable(path)
    replay_for(policy, env, 0).check()


def _environment(policy: Policy, env: Environment | None) -> tuple[Task, MakeEnv | None]:
    """The task with the environment that is meant, or a function that makes that."""
    task = policy.task
    if isinstance(env, gymnasium.Env):
        return task, _copier(env)
    if callable(env):
        return task, env
    if env is not None and not isinstance(env, str):
        raise HimatchError(
            f"an environment is an id of Gymnasium, a function that makes one, or a gymnasium.Env (no vector of them), "
            f"not {type(env).__name__}"
        )
    env_id = env or policy.description["data"].get("env_id") or task.env_id
    if env_id is None:
        raise HimatchError(
            f"task {task.name} has no environment to roll out in; name one (--env ID), hand over an environment, "
            "or use policy.controller in a loop of your own"
        )
    # Other versions of an environment need not know the settings of the task's own.
    return task if env_id == task.env_id else replace(task, env_id=env_id, env_kwargs={}), None


def _check_widths(policy: Policy, simulator: Simulator) -> None:
    widths, observation = policy.agent.widths, simulator.observations.shape[1]
    longer = policy.task.prefix_only and observation > widths.observation
    if (observation != widths.observation and not longer) or simulator.action_width != widths.action:
        raise HimatchError(
            f"the environment has {observation} observations and {simulator.action_width} actions, this policy of task "
            f"{policy.task.name} {widths.observation} and {widths.action}; is it the right environment?"
        )


def _copier(env: gymnasium.Env[Any, Any]) -> Callable[[], gymnasium.Env[Any, Any]]:
    spec = env.spec
    if spec is not None:
        note(
            f"rollouts play new copies of {spec.id}, made from its registration; what was changed in the one handed "
            "over is not in them: hand over a function that makes and changes it"
        )
        return lambda: _remade(spec)
    return lambda: copy.deepcopy(env)


def _remade(spec: gymnasium.envs.registration.EnvSpec) -> gymnasium.Env[Any, Any]:
    try:
        return gymnasium.make(spec)
    except Exception as reason:  # of wrappers and environments of the user's own
        raise SimulationError(
            f"no copy of {spec.id} can be made from its registration ({one_line(reason)}); hand over a function that "
            "makes it: env=lambda: ..."
        ) from reason


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


def _note_beyond(results: Sequence[MatchResult]) -> None:
    """Say so where rollouts went where no training episode did, since W1 cannot tell how far."""
    far = [r for r in results if r.target.matches == "distribution" and r.beyond > NOTED]
    if far:
        worst = max(far, key=lambda result: result.beyond)
        others = f" (and more than {NOTED:.0%} of those for {len(far) - 1} other targets)" if len(far) > 1 else ""
        note(
            f"{worst.beyond:.0%} of the rollouts' steps for {worst.target.name}{others} lie beyond the bins, which end "
            "where the training data does; W1 counts them in the last bin, so they may be further off than it says "
            "(himatch.divergences compares result.pooled(0) with result.values as they are)"
        )


def _note_short(results: Sequence[MatchResult]) -> None:
    """Say so where rollouts ended at once: values that agree are no match if there are hardly any."""
    asked = [r for r in results if r.target.matches == "distribution"]
    short = [r for r in asked if r.lengths.mean() < SHORT * len(r.target.values(r.frame))]
    if short:
        worst = min(short, key=lambda result: float(result.lengths.mean()))
        name = worst.target.name + (f" (and {len(short) - 1} more)" if len(short) > 1 else "")
        note(
            f"the rollouts for {name} ended after {worst.lengths.mean():.3g} steps on average, less than {SHORT:.0%} "
            "of what was asked for; distances compare values, not how long they last"
        )


def note_outside(target: Target, mixture: Mixture | None, reference: EpisodeReference) -> None:
    """Say so where a target lies outside what the data covers, and what would come nearest."""
    support = reference.support(target)
    if support.outside < NOTED or target.demonstration() is not None:
        return
    if not len(reference.lengths):
        note(f"whether {target.name} can be reached is not known: no training episodes")
        return
    if target.matches == "distribution":
        what = f"{support.outside:.0%} of {target.name} lies where no training episode goes"
        bins = reference.context.bins
        ranges = ", ".join(f"{low:.3g} to {high:.3g}" for low, high in zip(bins.low, bins.high, strict=True))
        remedy = f"they have {reference.context.feature.name} from {ranges}"
        if mixture is not None:
            away = "what lies beyond all bins in the last"
            remedy += f", and the nearest mixture of them is {mixture.w1:.3g} away (W1, {away})"
    else:
        what = f"{target.name} lies beyond every training episode"
        reached = reference.totals if target.matches == "return" else reference.finals
        numbers = ", ".join(f"{x:.4g}" for x in reached[reference.nearest(target).episode])
        remedy = f"the nearest achievable is {target.matches}({numbers})"
    note(f"{what}; {remedy}")
