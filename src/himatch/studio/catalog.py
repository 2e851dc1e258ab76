"""The runs that were named at start, and the bounds of what can be asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from himatch._version import __version__
from himatch.errors import HimatchError
from himatch.policy import load
from himatch.studio import messages
from himatch.studio.run import StudioRun

BUNDLED = ("halfcheetah-cdt", "hopper-cdt", "walker2d-cdt")
VIEWS = 8  # at once
FRAMES = 60  # a second


class Catalog:
    """All runs of a studio by name."""

    def __init__(self, runs: Sequence[StudioRun]) -> None:
        self.runs = {run.name: run for run in runs}

    @classmethod
    def read(cls, sources: Sequence[str], demonstrations: Sequence[str] = (), device: str = "cpu") -> Catalog:
        """Load runs, or the models that come with himatch where none is named."""
        found: list[StudioRun] = []
        for source in sources or BUNDLED:
            name = _unlike([run.name for run in found], Path(source).name or source)
            found.append(StudioRun(name, source, load(source, device=device), demonstrations))
        return cls(found)

    def __getitem__(self, name: str) -> StudioRun:
        if name not in self.runs:
            raise UnknownRunError(f"no run {name[:80]!r} here; there are {', '.join(self.runs)}")
        return self.runs[name]

    def as_json(self) -> dict[str, Any]:
        """What the page begins with."""
        limits = {
            "robots": messages.ROBOTS,
            "expression": messages.EXPRESSION,
            "speed": messages.SPEED,
            "temperature": messages.TEMPERATURE,
            "seed": messages.SEED,
            "views": VIEWS,
            "frames_per_second": FRAMES,
        }
        return {"version": __version__, "limits": limits, "runs": [run.as_json() for run in self.runs.values()]}


class UnknownRunError(HimatchError):
    """A run that was not named at start."""


def _unlike(known: Sequence[str], name: str) -> str:
    """The name, with a number where it is taken."""
    found, number = name, 2
    while found in known:
        found, number = f"{name}-{number}", number + 1
    return found
