"""``himatch quickstart``: the main job from nothing to a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro


@dataclass
class Quickstart:
    """Generate a small HalfCheetah dataset, look at it, and see which targets it can support."""

    out: Annotated[str, tyro.conf.arg(metavar="DIR")] = "quickstart"
    """Folder for the dataset and the picture."""
    episodes: int = 40
    """Episodes to generate."""
    seed: int = 0
    """Seed of the gaits and of the environment."""

    def run(self) -> None:
        """Run it."""
        from himatch.quickstart import run_quickstart

        run_quickstart(self.out, self.episodes, self.seed)
