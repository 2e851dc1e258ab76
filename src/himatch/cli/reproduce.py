"""``himatch reproduce``: all experiments in one command, with a report after each piece."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from himatch.cli.flags import Device, Threads, optional


@dataclass
class Reproduce:
    """Run everything: the paper's suites with all rows, himatch's conditionings, and its own suites; resumable."""

    what: Annotated[Literal["paper"], tyro.conf.Positional, tyro.conf.arg(metavar="paper")]
    """The experiments of the paper, and what himatch sets beside them."""
    out: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """Folder for models, results and the report, which is written again after each piece."""
    budget: Annotated[Literal["smoke", "cpu", "fast", "paper"], tyro.conf.arg(metavar="smoke|cpu|fast|paper")] = "fast"
    """How much data, training and evaluation. OGBench has cpu throughout."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME...")] = ()
    """Only these pieces: main, tasks, conditionings, policies, shift, shift-conditionings, planned, imitation,
    hindsight, ogbench."""
    cache: Annotated[str | None, optional(metavar="DIR")] = None
    """Where made datasets are kept."""
    workers: Annotated[int, tyro.conf.arg(metavar="K")] = 1
    """Processes on this machine."""
    device: Device = None
    """Where to train and roll out; a GPU where there is one."""
    threads: Threads = 0
    """Threads that simulate; 0 means all."""

    def run(self) -> None:
        """Piece after piece."""
        from rich.console import Console

        from himatch._runtime.devices import find_device
        from himatch.errors import HimatchError
        from himatch.reproduce import Options
        from himatch.reproduce.plans import run_plan
        from himatch.reproduce.report import report_on
        from himatch.reproduce.results import SCORES
        from himatch.reproduce.runner import show_outcomes

        find_device(self.device)
        options = Options(self.budget, cache=self.cache, device=self.device, threads=self.threads)
        console, failed = Console(), False
        try:
            for piece, outcomes in run_plan(self.what, self.out, options, only=self.only, workers=self.workers):
                console.print(f"{piece.name}: ", end="")
                show_outcomes(outcomes, console)
                failed = failed or any(outcome.failure for outcome in outcomes)
                if any(Path(self.out).rglob(f"{SCORES}/*.json")):
                    print(report_on((self.out,), Path(self.out) / "report").page)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"what is done is kept in {self.out}; the same command goes on from there"
            ) from None
        if failed:
            raise HimatchError(f"some jobs failed, see {self.out}/*/failures; the same command tries them again")
