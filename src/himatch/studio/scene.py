"""What a view shows: a trial in progress, as poses and numbers."""

from __future__ import annotations

import io
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.errors import HimatchError, collected_notes
from himatch.evaluation import MatchResult
from himatch.simulation.poses import Poses, picture_of
from himatch.studio.answers import short
from himatch.studio.bars import shares
from himatch.studio.messages import Start
from himatch.studio.run import StudioRun
from himatch.types import Trajectory

QUALITY = 85  # of an environment's own pictures
UNKNOWN = 0.05  # seconds of a step where nothing says how long it takes
SCORING = 0.1  # part of the time that scores may take; those of several features are slow


class Scene:
    """The robots of one view: ``step`` until ``over``, with ``frame`` and ``state`` at any time; then ``close``."""

    def __init__(self, run: StudioRun, start: Start) -> None:
        self.run, self.start, self.expression = run, start, start.expression
        with collected_notes() as self.notes:
            self.trial = run.trial(start)
        self._poses = Poses.of(self.trial.simulator)
        self._reference = self.trial.references[0]
        self._latest: MatchResult | None = None
        self._next_score = 0.0
        self.changes: list[dict[str, Any]] = []

    @property
    def over(self) -> bool:
        """Whether no robot goes on."""
        return self.trial.over

    @property
    def dt(self) -> float:
        """Seconds of a step."""
        return self.run.dt or UNKNOWN

    @property
    def made(self) -> int:
        """Steps so far."""
        return self.trial.ongoing.steps

    @property
    def steps(self) -> int:
        """How long the target lasts."""
        return self.trial.ongoing.longest

    def step(self) -> None:
        """One step of every robot."""
        self.trial.step()

    def retarget(self, expression: str) -> dict[str, Any]:
        """Another target from the next step on; the answer to whoever asked for it."""
        with collected_notes() as notes:
            self.trial.retarget(self.run.target(expression, self.start.feature))
        self.expression = expression
        self.changes.append({"step": self.trial.since, "expression": expression})
        self._latest, self._next_score = None, 0.0
        return {
            "type": "target",
            "expression": expression,
            "heights": self._heights(),
            "since": self.trial.since,
            "steps": self.steps,
            "notes": notes,
        }

    def close(self) -> None:
        """Free the simulation."""
        self.trial.close()

    # -- what is sent -------------------------------------------------------------------------------------------

    def ready(self) -> dict[str, Any]:
        """What is about to be shown."""
        start, trial = self.start, self.trial
        with collected_notes():  # which are those of the trial
            described = self.run.described(start.first_steps, start.feature)
        return {
            "type": "ready",
            "run": self.run.name,
            "view": self.run.view,
            "robots": trial.simulator.count,
            "robots_per_seed": start.robots,
            "seeds": list(trial.agent.seeds),
            "bodies": 0 if self._poses is None else self._poses.bodies,
            "dt": self.dt,
            "steps": self.steps,
            "feature": self._reference.frame.feature.name,
            "expression": self.expression,
            "conditioning": start.conditioning,
            "temperature": self.run.temperature(start),
            "seed": start.seed,
            "command": self.run.command(start, start.first_steps),
            "notes": self.notes,
            **described,
        }

    def frame(self) -> bytes:
        """Where every robot is, as little-endian numbers of single precision."""
        active = self.trial.simulator.active
        head = np.array([self.made, len(active)], "<f4").tobytes()
        if self.run.view == "frames":
            return head + self._picture()
        rows = self._traces() if self._poses is None else self._poses().reshape(len(active), -1)
        return head + np.concatenate([active[:, None], rows], axis=1).astype("<f4").tobytes()

    def _picture(self) -> bytes:
        """What the first robot's environment draws."""
        from PIL import Image

        file = io.BytesIO()
        drawn = picture_of(self.trial.simulator, self.run.policy.task.name)
        Image.fromarray(drawn).save(file, "JPEG", quality=QUALITY)
        return file.getvalue()

    def state(self) -> dict[str, Any]:
        """What was achieved so far."""
        found = self._scored()
        matched = found is not None and found.target.matches == "distribution"
        bins = self._reference.frame.bins
        return {
            "type": "state",
            "step": self.made,
            "steps": self.steps,
            "since": self.trial.since,
            "time": self.made * self.dt,
            "w1": found.w1 if found is not None and matched else None,
            "w1_charged": found.charged if found is not None and matched else None,
            "missed": found.error if found is not None else None,
            "played": found.played if found is not None else 0.0,
            "achieved": None if found is None else short(shares(bins, _pooled(found))),
            "returns": self.trial.ongoing.so_far.rewards.sum(axis=2).ravel(),
            "conditioning": self._conditioning(),
            "values": np.where(self.trial.simulator.active[:, None], self._traces(), np.nan),
            "robots_active": int(self.trial.simulator.active.sum()),
        }

    def end(self) -> dict[str, Any]:
        """The result: that of ``policy.match``, where the target was not changed."""
        with collected_notes():
            (result,) = self.trial.results()[0]
            scored = self.run.scored(result, self.start)
        if self.changes:
            part = self._part(result)
            scored |= {"changes": self.changes, "w1_since": None if part is None else part.w1, "command": None}
        return {"type": "end", "result": scored}

    # -- how it goes --------------------------------------------------------------------------------------------

    def _scored(self) -> MatchResult | None:
        """The result since the target was given, anew as often as there is time for it."""
        now = time.perf_counter()
        if not self.made or (now < self._next_score and not self.over):
            return self._latest
        (result,) = self.trial.results(final=False)[0]
        self._latest = self._part(result)
        if self._latest is not None:
            _ = self._latest.error
        spent = time.perf_counter() - now
        self._next_score = now + spent / SCORING
        return self._latest

    def _part(self, result: MatchResult) -> MatchResult | None:
        """The result of what was played since the target was given; ``None`` where nothing was."""
        since = self.trial.since
        if not since:
            return result
        features = tuple(tuple(phi[since:] for phi in row) for row in result.features)
        if not all(any(len(phi) for phi in row) for row in features):
            return None
        lengths = np.maximum(result.lengths - since, 0)
        return replace(result, target=self.trial.present, features=features, lengths=lengths)

    def _heights(self) -> Any:
        """The bars of the target that holds now."""
        frame, target = self._reference.frame, self.trial.present
        return short(shares(frame.bins, target.compared(frame))) if target.matches == "distribution" else None

    def _conditioning(self) -> Any:
        """The histogram that the first robot is conditioned on now; a row for each of several features."""
        z, statistic = self.trial.player.latest_z, self.run.policy.statistic
        if z is None or not statistic.binned or not self.made:
            return None
        bins = self.run.policy.reference().frame.bins
        rows = z[0, 0].float().cpu().numpy()
        if rows.size != bins.dimensions * bins.count:
            return None
        return short(rows if bins.dimensions == 1 else rows.reshape(bins.dimensions, bins.count))

    def _traces(self) -> NDArray[np.float32]:
        """The feature of every robot at its latest step."""
        played, made = self.trial.ongoing.so_far, self.made
        dimensions = self._reference.frame.bins.dimensions
        count = self.trial.simulator.count
        if not made:
            return np.full((count, dimensions), np.nan, np.float32)
        latest = (array[:, :, made - 1] for array in (played.observations, played.actions, played.rewards))
        observations, actions, rewards = latest
        steps = Trajectory(observations.reshape(count, -1), actions.reshape(count, -1), rewards.reshape(count))
        try:
            return self._reference.frame.feature(steps).astype(np.float32)
        except HimatchError:  # a function of more than one step
            return np.full((count, dimensions), np.nan, np.float32)


def _pooled(result: MatchResult) -> NDArray[np.float32]:
    return np.concatenate([result.pooled(k) for k in range(len(result.seeds))])
