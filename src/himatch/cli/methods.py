"""``himatch methods``: every method, what it stands for, and what it is conditioned on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from himatch.cli.flags import Import

TARGETS = {
    "distribution": "normal(M, S) and other distributions, episodes",
    "return": "return(R)",
    "goal": "goal(X)",
}


class Row(NamedTuple):
    """A method, for people."""

    method: str
    system: str
    conditioned_on: str
    targets: str


@dataclass
class ListMethods:
    """List the methods: the system each stands for, what its policy is conditioned on, and which targets suit it."""

    json: bool = False
    """Print everything as JSON."""
    imports: Import = ()
    """Python file (or module) that registers methods of your own."""

    def run(self) -> None:
        """Print a row for each."""
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        found = list(rows())
        if self.json:
            print(json.dumps([row._asdict() for row in found], indent=1))
            return
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for name in Row._fields:
            table.add_column(name.replace("_", " "), header_style="bold", no_wrap=name == "method")
        for row in found:
            table.add_row(*row)
        console = Console(width=None if sys.stdout.isatty() else 160, highlight=False, markup=False)
        console.print(table)
        console.print("himatch train METHOD --help shows the settings of one", soft_wrap=True)


def rows() -> Iterator[Row]:
    """Every method that is registered; of one that says nothing of itself, what its class says."""
    from himatch.cli.method_commands import summary
    from himatch.methods import METHODS

    for name, method in METHODS.items():
        targets = method.suits or ("demo(FILE, N), heldout(N)" if method.imitates else TARGETS[method.matches])
        yield Row(name, method.system or summary(method), method.conditioned_on or "see its documentation", targets)
