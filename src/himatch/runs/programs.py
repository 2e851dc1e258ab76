"""Programs that were rehearsed: what each seed plays under which target, and what it then achieved.

They are kept by the target's own values, so that the same target finds its program whatever it is called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from himatch.errors import TargetError
from himatch.runs.folder import RunFolder
from himatch.targets import Frame, Target

Rehearsal = dict[str, Any]
"""``programs`` by seed, and what is known of them: target, temperature, expectation, how long was searched."""


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

    def get(self, target: Target, frame: Frame) -> Rehearsal | None:
        """What was rehearsed for a target, if it was."""
        return self.found.get(target_key(target, frame))

    def rehearsal(self, target: Target, frame: Frame) -> Rehearsal:
        """The same; a target that was not rehearsed is refused."""
        rehearsed = self.get(target, frame)
        if rehearsed is None:
            raise TargetError(
                f"{target.name} was not rehearsed; policy.rehearse([target]) or himatch rehearse RUN --target EXPR "
                "finds a program for it, in the environment of the run"
            )
        return rehearsed

    def of(self, target: Target, frame: Frame, seeds: Mapping[str, str]) -> list[Any]:
        """What each of these seeds plays under a target, as it is written; each has a checksum of its weights."""
        rehearsed = self.rehearsal(target, frame)
        if any(rehearsed["seeds"].get(seed) != digest for seed, digest in seeds.items()):
            raise TargetError(
                f"{target.name} was rehearsed with other weights than these; rehearse it again: "
                "policy.rehearse([target]) or himatch rehearse RUN --target EXPR"
            )
        return [rehearsed["programs"][seed] for seed in seeds]

    def keep(self, target: Target, frame: Frame, rehearsal: Rehearsal) -> None:
        """Keep what was rehearsed for a target, in place of what was before."""
        self.found[target_key(target, frame)] = rehearsal

    def write(self) -> None:
        """Write all of them into the run folder."""
        self._folder.write_programs(self.found)


def target_key(target: Target, frame: Frame) -> str:
    """What tells targets apart: their values, step by step, and what of a rollout is compared with them."""
    digest = hashlib.sha256(f"{target.matches} {frame.feature.name}".encode())
    for values in (target.values(frame), target.compared(frame)):
        digest.update(np.ascontiguousarray(values, dtype=np.float32).tobytes())
    return digest.hexdigest()[:16]
