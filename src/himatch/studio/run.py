"""A run that is offered: what the page is told about it, its targets and its rollouts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from himatch.errors import HimatchError, TargetError, collected_notes
from himatch.evaluation import MatchResult, Trial, begin_trial
from himatch.overview import Overview
from himatch.policy import Policy
from himatch.rollout.environment import simulator_for
from himatch.runs.references import referenced_features
from himatch.simulation.poses import Poses, draws_itself
from himatch.studio import messages
from himatch.studio.answers import short
from himatch.studio.bars import drawable, expression_of, shares
from himatch.studio.messages import Asked, Chosen, Wanted
from himatch.targets import EpisodeReference, Target, checked_values
from himatch.tasks.locomotion import LOCOMOTION, UNITS

MOST_EPISODES = 100  # that are offered as targets
FIRST_ROBOTS = 4  # of every seed, until another number is chosen
MOST_ROBOTS = 64  # of all seeds of a run together
KEPT = 64  # expressions whose mixtures are remembered: a target is looked at before it is rolled out
FARTHEST = 1e6  # that a target may be from zero, in units of the bins' ends


class StudioRun:
    """A policy with what the page needs to know of it; ``source`` is what a command calls it.

    Expressions may name no other files than ``demonstrations``.
    """

    def __init__(self, name: str, source: str, policy: Policy, demonstrations: Sequence[str] = ()) -> None:
        self.name, self.source, self.policy, self.demonstrations = name, source, policy, tuple(demonstrations)
        self.draws = False
        self.described = lru_cache(KEPT)(self._describe)
        """What the bars of an expression are and which mixture comes near, by expression and feature."""
        if policy.run.env_id is None:
            raise HimatchError(f"{source}: task {policy.task.name} has no environment, so there is nothing to watch")

    # -- what it is ---------------------------------------------------------------------------------------------

    @cached_property
    def overview(self) -> Overview:
        """What ``himatch show`` says."""
        with collected_notes():
            return self.policy.show(name=self.source)

    @cached_property
    def geometry(self) -> dict[str, Any] | None:
        """The robot as shapes, where MuJoCo simulates it.

        An environment that draws itself is from here on made so that it does.
        """
        run = self.policy.run
        simulator = simulator_for(run, self.policy.agent.dims, 1, None, 1)
        try:
            poses = Poses.of(simulator)
            if poses is not None:
                return poses.geometry()
            if run.env_id == run.task.env_id and draws_itself(simulator):
                run.task = replace(run.task, env_kwargs={**run.task.env_kwargs, "render_mode": "rgb_array"})
                self.draws = True
            return None
        finally:
            simulator.close()

    @property
    def view(self) -> str:
        """How it is shown: as shapes, by its environment's own pictures, or by traces of its feature."""
        if self.geometry is not None:
            return "geometry"
        return "frames" if self.draws else "traces"

    @property
    def dt(self) -> float | None:
        """Seconds that a step takes."""
        rate = self.policy.rate or self.policy.task.rate
        return None if not rate else 1.0 / rate

    @property
    def features(self) -> list[str]:
        """What is conditioned on; of a policy that is conditioned on none all that rollouts can be compared on."""
        run = self.policy.run
        known = [] if run.statistic.matched is not None else referenced_features(run.folder)
        return list(dict.fromkeys([run.feature, *known]))

    def as_json(self) -> dict[str, Any]:
        """An entry of the list of runs."""
        policy, method = self.policy, self.policy.method
        stochastic = policy.agent.policy.stochastic
        return {
            "name": self.name,
            "title": f"{method.name} of {policy.feature} on {policy.task.name}",
            "task": policy.task.name,
            "method": method.name,
            "features": [self._feature(name) for name in self.features],
            "conditionings": list(self.overview.conditionings) or ["nominal"],
            "default": {
                "feature": policy.feature,
                "conditioning": "planned" if "planned" in self.overview.conditionings else "nominal",
                "temperature": policy.temperature if stochastic else None,
                "expression": self._first_target(),
                "robots": min(FIRST_ROBOTS, self.most_robots),
                "seed": 0,
            },
            "robots": self.most_robots,
            "stochastic": stochastic,
            "seeds": list(policy.seeds),
            "horizon": policy.task.horizon,
            "dt": self.dt,
            "rehearsed": [promise.target for promise in self.overview.rehearsed],
            "view": self.view,
        }

    @property
    def most_robots(self) -> int:
        """Of every seed."""
        return max(1, min(messages.ROBOTS, MOST_ROBOTS // len(self.policy.seeds)))

    def _feature(self, name: str) -> dict[str, Any]:
        bins, feature = self.reference(name).frame.bins, self.reference(name).frame.feature
        labels = list(feature.names(bins.dimensions))
        usual = UNITS if self.policy.task.name in {task.name for task in LOCOMOTION} else {}
        units = [self.policy.units.get(label) or usual.get(label, "") for label in labels]
        return {
            "name": name,
            "dims": bins.dimensions,
            "labels": labels,
            "unit": units[0],
            "units": units,
            "bins": bins.count,
            "drawable": drawable(bins),
        }

    def _first_target(self) -> str:
        """One of two modes, where one is suggested: it shows best what a policy can do."""
        wanted = [one.target for one in self.overview.targets if not one.target.startswith("demo(")]
        return next((text for text in wanted if "+" in text), next(iter(wanted), self._demonstrated()))

    def _demonstrated(self) -> str:
        return f"demo({self.demonstrations[0]}, 0)" if self.demonstrations else ""

    def reference(self, feature: str | None = None) -> EpisodeReference:
        """The training episodes as a feature sees them, of those that are offered."""
        wanted = feature or self.policy.feature
        if wanted not in self.features:
            raise HimatchError(f"feature: {self.name} is matched on {', '.join(self.features)}, not {wanted[:80]!r}")
        return self.policy.reference(wanted)

    def chart(self, feature: str | None) -> dict[str, Any]:
        """What there is to draw on: the bins, the data's shares of them, and targets to begin with."""
        reference = self.reference(feature)
        bins = reference.frame.bins
        found: dict[str, Any] = {
            "feature": reference.frame.feature.name,
            "dims": bins.dimensions,
            "labels": list(reference.frame.feature.names(bins.dimensions)),
            "edges": bins.edges,
            "centers": bins.centers,
            "low": list(bins.low),
            "high": list(bins.high),
            "data": short(shares(bins, reference.values)) if len(reference.values) else None,
            "episodes": self._episodes(),
            "presets": self._presets(),
        }
        return found | self._feature(reference.frame.feature.name)

    def _episodes(self) -> list[dict[str, str]]:
        count = 0 if self.policy.held_out is None else len(self.policy.held_out)
        groups = self.policy.groups
        return [
            {"label": f"held-out episode {i} ({groups[i]})", "expression": f"heldout({i})"}
            for i in range(min(count, MOST_EPISODES))
        ]

    def _presets(self) -> list[dict[str, str]]:
        """What ``himatch show`` suggests, what episodes of each label usually do, and the demonstrations."""
        targets = [(one.what, one.target) for one in self.overview.targets if not one.target.startswith("demo(")]
        targets += [(one.name, one.target) for one in self.overview.labels if one.target]
        targets += [(Path(path).name, f"demo({path}, 0)") for path in self.demonstrations]
        return [{"label": label, "expression": expression} for label, expression in targets]

    # -- targets ------------------------------------------------------------------------------------------------

    def target(self, expression: str, feature: str | None = None) -> Target:
        """The target of an expression that came from outside."""
        target, reference = self.policy.run.target(expression, self.demonstrations), self.reference(feature)
        with np.errstate(over="ignore", invalid="ignore"):
            values = checked_values(target, reference.frame)
        ends = np.abs([reference.frame.bins.low, reference.frame.bins.high]).max(axis=0)
        if (np.abs(values) > FARTHEST * np.maximum(1.0, ends)).any():
            raise TargetError(f"{target.name[:80]} is farther than {FARTHEST:g} times from all that the data shows")
        return target

    def assessed(self, asked: Asked) -> dict[str, Any]:
        """A target before anything is rolled out: bars, what the data covers, its mixture, what is promised of it."""
        if (asked.expression is None) == (asked.heights is None):
            raise HimatchError("a target is an expression, or heights that were drawn: one of them")
        reference = self.reference(asked.feature)
        expression = asked.expression or expression_of(reference.frame.bins, asked.heights or [])
        with collected_notes() as notes:
            target = self.target(expression, asked.feature)
            found = self.described(expression, asked.feature) | {
                "expression": expression,
                "covered": 1.0 - reference.support(target).outside,
                "promise": self._promise(target, asked),
                "command": self.command(asked, expression),
            }
        return found | {"notes": notes}

    def _describe(self, expression: str, feature: str | None) -> dict[str, Any]:
        """Its bars, or the number that it asks for, and the episode mixture nearest to it."""
        target, reference = self.target(expression, feature), self.reference(feature)
        frame = reference.frame
        wanted = target.values(frame)
        found: dict[str, Any] = {
            "name": target.name,
            "matches": target.matches,
            "steps": len(wanted),
            "mean": wanted.mean(axis=0),
            "heights": None,
            "value": None,
            "mixture": None,
        }
        if target.matches != "distribution":
            whole = wanted.sum(axis=0, dtype=np.float64) if target.matches == "return" else wanted[-1]
            return found | {"value": whole}
        found["heights"] = short(shares(frame.bins, target.compared(frame)))
        if len(reference.lengths):
            mixture = reference.mixture(target)
            rows = np.concatenate([reference.episode(number) for number in mixture.weights])
            mass = [np.full(reference.lengths[n], share / reference.lengths[n]) for n, share in mixture.weights.items()]
            heights = shares(frame.bins, rows, np.concatenate(mass))
            found["mixture"] = {"w1": mixture.w1, "heights": short(heights)}
        return found

    def _promise(self, target: Target, chosen: Chosen) -> dict[str, Any] | None:
        acting = Policy(self.policy.run, self.policy.agent)
        acting.temperature = self.temperature(chosen)
        expected = acting.expected(target, conditioning=chosen.conditioning, episodes=chosen.robots)
        if expected is None:
            return None
        return expected.as_json() | {"w1": expected.score, "text": str(expected)}

    def temperature(self, chosen: Chosen) -> float:
        """That of the policy, unless another one is chosen."""
        if chosen.temperature is None:
            return self.policy.temperature
        if not self.policy.agent.policy.stochastic and chosen.temperature != self.policy.temperature:
            raise HimatchError(f"temperature: {self.name} is a deterministic policy and has none")
        return chosen.temperature

    def command(self, chosen: Chosen, expression: str) -> str:
        """The command that repeats what the page shows."""
        words = ["himatch", "match", self.source, "--target", expression, "--episodes", str(chosen.robots)]
        if chosen.conditioning != "nominal":
            words += ["--conditioning", chosen.conditioning]
        if chosen.seed:
            words += ["--seed", str(chosen.seed)]
        if self.temperature(chosen) != self.policy.temperature:
            words += ["--temperature", f"{chosen.temperature:g}"]
        if (feature := chosen.feature) is not None and feature != self.policy.feature:
            words += ["--feature", feature]
        return shlex.join(words)

    # -- rollouts -----------------------------------------------------------------------------------------------

    def trial(self, wanted: Wanted) -> Trial:
        """The rollouts that are wanted, ready to be played; they are those of ``policy.match``."""
        if wanted.robots > self.most_robots:
            raise HimatchError(f"robots: {self.name} has {len(self.policy.seeds)} seeds; {self.most_robots} at most")
        expression = wanted.first_steps
        feature = self.reference(wanted.feature).frame.feature.name
        target = self.target(expression, feature)
        return begin_trial(
            self.policy.run,
            self.policy.agent,
            target,
            feature=feature,
            episodes=wanted.robots,
            conditioning=wanted.conditioning,
            seed=wanted.seed,
            threads=1,
            temperature=self.temperature(wanted),
        )

    def scored(self, result: MatchResult, wanted: Wanted) -> dict[str, Any]:
        """A result with its bars and the command that repeats it."""
        bins = result.frame.bins
        of_values = result.target.matches == "distribution"
        rows = np.concatenate([result.pooled(k) for k in range(len(result.seeds))])
        return {
            **result.as_json(),
            "target": result.target.name,
            "error": result.error,
            "heights": short(shares(bins, result.values)) if of_values else None,
            "achieved": short(shares(bins, rows)),
            "returns": result.returns,
            "lengths": result.lengths,
            "command": self.command(wanted, wanted.first_steps),
        }
