"""``himatch show``: what a trained policy can match."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from himatch.cli.flags import Import, RunFolder


@dataclass
class Show:
    """Say what a policy can match: what its data covers, targets to begin with, conditionings, columns."""

    run_folder: RunFolder
    """Folder that himatch train wrote, a model of himatch models list, or hf:USER/NAME."""
    json: bool = False
    """Print everything as JSON."""
    weights: Annotated[Literal["best", "last"], tyro.conf.arg(metavar="best|last")] = "last"
    """The last weights, or those of the lowest validation loss, which says little about rollouts."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def run(self) -> None:
        """Load and print; nothing is simulated."""
        from himatch.policy import load
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        shown = load(self.run_folder, weights=self.weights).show(name=self.run_folder)
        print(json.dumps(shown.as_json(), indent=1) if self.json else shown)
