"""Programs that were rehearsed: what each seed plays under which target, and what it then achieved.

They are kept by the target's own values, so that the same target finds its program whatever it is called.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from himatch.errors import TargetError
from himatch.runs.folder import RunFolder
from himatch.targets import Frame, Target

Rehearsal = dict[str, Any]
"""``programs`` by seed, and what is known of them: target, temperature, expectation, how long was searched.

Where episodes share a target out (``within`` is ``pool``), a seed has a list of programs, each with its part.
"""


@dataclass(frozen=True)
class Circumstances:
    """What a rehearsal is of: a policy that acts otherwise, or elsewhere, does other things."""

    temperature: float
    environment: str
    seeds: dict[str, str]
    """Checksums of every seed's weights."""

    def fit(self, rehearsal: Rehearsal) -> bool:
        """Whether a rehearsal says something of this policy."""
        same = (rehearsal["temperature"], rehearsal["environment"]) == (self.temperature, self.environment)
        return same and all(rehearsal["seeds"].get(seed) == digest for seed, digest in self.seeds.items())


class Programs:
    """The programs of a run: those in its folder, and those found since, which :meth:`write` adds to it."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._found: dict[str, Rehearsal] | None = None

    @property
    def found(self) -> dict[str, Rehearsal]:
        """All of them by the key of their target."""
        if self._found is None:
            self._found = dict(self._folder.programs())
        return self._found

    def get(self, target: Target, frame: Frame, now: Circumstances, within: str = "episode") -> Rehearsal | None:
        """What was rehearsed for a target in these circumstances, if it was."""
        key = target_key(target, frame)
        known = (one for one in self.found.values() if one["key"] == key and now.fit(one))
        return next((one for one in known if one.get("within", "episode") == within), None)

    def rehearsal(self, target: Target, frame: Frame, now: Circumstances, within: str = "episode") -> Rehearsal:
        """The same; a target that was not rehearsed is refused."""
        rehearsed = self.get(target, frame, now, within)
        if rehearsed is None:
            key = target_key(target, frame)
            other = any(one["key"] == key for one in self.found.values() if one.get("within", "episode") == within)
            how = " with these weights, at this temperature and in this environment" if other else ""
            said, flag = ("", "") if within == "episode" else (f' within="{within}"', f" --within {within}")
            raise TargetError(
                f"{target.name} was not rehearsed{said}{how}; policy.rehearse([target]{said and ',' + said}) or "
                f"himatch rehearse RUN --target EXPR{flag} finds a program for it"
            )
        return rehearsed

    def keep(self, target: Target, frame: Frame, now: Circumstances, rehearsal: Rehearsal) -> None:
        """Keep what was rehearsed for a target, in place of what was before in the same circumstances."""
        key = target_key(target, frame)
        within = "" if rehearsal.get("within", "episode") == "episode" else f" {rehearsal['within']}"
        place = hashlib.sha256(f"{key} {now.temperature:g} {now.environment}{within}".encode()).hexdigest()[:16]
        self.found[place] = {"key": key, **asdict(now), **rehearsal}

    def write(self) -> None:
        """Write all of them into the run folder."""
        self._folder.write_programs(self.found)


def target_key(target: Target, frame: Frame) -> str:
    """What tells targets apart: their values, step by step, what of a rollout is compared with them, their bounds."""
    digest = hashlib.sha256(" & ".join([f"{target.matches} {frame.feature.name}", *map(str, target.bounds)]).encode())
    for values in (target.values(frame), target.compared(frame)):
        digest.update(np.ascontiguousarray(values, dtype=np.float32).tobytes())
    return digest.hexdigest()[:16]
