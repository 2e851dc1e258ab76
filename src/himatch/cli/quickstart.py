"""``himatch quickstart``: the main job from nothing to a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro


@dataclass
class Quickstart:
    """Generate a small HalfCheetah dataset, look at it, weigh targets against it, and train a CDT and a BC on it."""

    out: Annotated[str, tyro.conf.arg(metavar="DIR")] = "quickstart"
    """Folder for the dataset, the picture and the run folders."""
    episodes: int = 40
    """Episodes to generate."""
    seed: int = 0
    """Seed of the gaits and of the environment."""
    steps: int = 1500
    """Gradient steps of each policy."""

    def run(self) -> None:
        """Run it."""
        from himatch.quickstart import run_quickstart

        run_quickstart(self.out, self.episodes, self.seed, self.steps)
