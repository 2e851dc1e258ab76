"""``himatch quickstart``: the main job from nothing to a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from himatch.cli.flags import optional


@dataclass
class Quickstart:
    """Make HalfCheetah data, train a BC and a CDT on it, and match distributions with them and a pretrained CDT."""

    out: Annotated[str, tyro.conf.arg(metavar="DIR")] = "quickstart"
    """Folder for the dataset, the run folders and the page."""
    episodes: int = 400
    """Episodes to make, half of them by a medium agent, half by an expert."""
    seed: int = 1
    """Seed of initial states and actions; the pretrained CDT was trained on episodes of seed 0."""
    steps: Annotated[int | None, optional(metavar="N")] = None
    """Gradient steps of each policy; by default those of the preset (cpu, or fast on a GPU)."""

    def run(self) -> None:
        """Run it."""
        from himatch.quickstart import run_quickstart

        run_quickstart(self.out, self.episodes, self.seed, self.steps)
