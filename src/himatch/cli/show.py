"""``himatch show``: what a trained policy can match."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from himatch.cli.flags import Import, RunFolder

Promised = Literal["rehearsed", "planned"]
if TYPE_CHECKING:
    from himatch.rehearsal import Expected

HOW: tuple[Promised, ...] = ("rehearsed", "planned")


@dataclass
class Show:
    """Say what a policy can match: what its data covers, targets to begin with, conditionings, columns."""

    run_folder: RunFolder
    """Folder that himatch train wrote, a model of himatch models list, or hf:USER/NAME."""
    target: Annotated[tuple[str, ...], tyro.conf.arg(metavar="EXPR...")] = ()
    """Say in place of all that what to expect of these: of rehearsed programs, and by logged episodes of plans."""
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
        policy = load(self.run_folder, weights=self.weights)
        if self.target:
            found = {text: {how: policy.expected(text, conditioning=how) for how in HOW} for text in self.target}
            content = {text: {how: one and one.as_json() for how, one in own.items()} for text, own in found.items()}
            print(json.dumps(content, indent=1) if self.json else "\n".join(promises(found)))
            return
        shown = policy.show(name=self.run_folder)
        print(json.dumps(shown.as_json(), indent=1) if self.json else shown)


def promises(found: Mapping[str, Mapping[Promised, Expected | None]]) -> Iterator[str]:
    """A line for every target and conditioning."""
    for text, own in found.items():
        yield text
        for conditioning, expected in own.items():
            nothing = "not rehearsed yet (himatch rehearse)" if conditioning == "rehearsed" else "nothing is promised"
            yield f"  {conditioning:<9}  {nothing if expected is None else f'expected {expected}'}"
