"""``himatch quickstart``: the main job from nothing to a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro


@dataclass
class Quickstart:
    """Make a small HalfCheetah dataset, look at it, train a BC and a CDT on it, and have both match distributions."""

    out: Annotated[str, tyro.conf.arg(metavar="DIR")] = "quickstart"
    """Folder for the dataset, the pictures and the run folders."""
    episodes: int = 100
    """Episodes to make, half of them by a medium agent, half by an expert."""
    seed: int = 0
    """Seed of initial states and actions."""
    steps: int = 6000
    """Gradient steps of each policy."""

    def run(self) -> None:
        """Run it."""
        from himatch.quickstart import run_quickstart

        run_quickstart(self.out, self.episodes, self.seed, self.steps)
