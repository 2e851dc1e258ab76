"""``himatch benchmark``: the experiments of the paper, and himatch's own."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

import tyro

from himatch.cli.flags import Device, Import, PathName, Threads, optional

Many = tyro.conf.arg(metavar="NAME...")


@dataclass
class Benchmark:
    """Run experiments of the paper: make the data, train the models, roll out, write results; resumable."""

    suites: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SUITE")]
    """xvel, reward, synthetic, shift, return, cheetah-vel, zvel, ant-xy, imitation, data, and unseen, hindsight-return,
    hindsight-goal and ogbench, which the paper does not have; or all."""
    out: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """Folder for models and results; what is there already is not done again."""
    budget: Annotated[Literal["smoke", "cpu", "fast", "paper"], tyro.conf.arg(metavar="smoke|cpu|fast|paper")] = "fast"
    """How much data, training and evaluation."""
    seeds: Annotated[int | None, optional(metavar="K")] = None
    """Seeds of every model instead of the budget's."""
    episodes: Annotated[int | None, optional(metavar="N")] = None
    """Rollouts of every target and seed instead of the budget's."""
    steps: Annotated[int | None, optional(metavar="N")] = None
    """Training steps instead of the budget's; pretraining that has steps of its own changes in proportion."""
    tasks: Annotated[tuple[str, ...], Many] = ()
    """Only these tasks."""
    methods: Annotated[tuple[str, ...], Many] = ()
    """Only these methods: cdt, dt, bc, bdt, ...; those that are in none of the paper's tables are added to each."""
    features: Annotated[tuple[str, ...], Many] = ()
    """Only these features of suites that have several: x_velocity, reward, ..."""
    imports: Import = ()
    """Python file (or module) that registers methods of your own."""
    conditioning: Annotated[tuple[str, ...], Many] = ()
    """nominal, remaining, planned, rehearsed or waypoints, or several; each applies to the methods it is for. By
    default nominal, and in ogbench waypoints, too."""
    rehearsal: Annotated[str | None, optional(metavar="30s")] = None
    """How long to search for the rehearsed programs of all targets of a model, 30s or 2m; by default until it no longer
    pays."""
    target_seed: Annotated[int, tyro.conf.arg(metavar="S")] = 100
    """Of the targets that unseen draws; results are reported on 100, and 0 to 9 are for development."""
    recorded_at: Annotated[Literal["t", "t+1"], tyro.conf.arg(metavar="t|t+1")] = "t"
    """The state at which features of rollouts are read: s_t, as those of targets, or s_t+1 as in the authors' code."""
    policy: Annotated[tuple[str, ...], Many] = ()
    """paper (one deterministic network), himatch (what the budget's preset has), or both, for the methods that can; by
    default the paper's, for cdt both, and in ogbench himatch's."""
    all_variants: bool = False
    """Also the rows that only a larger budget includes (smaller codes, longer windows)."""
    data: PathName = None
    """D4RL file, Minari folder, or a folder of several, in place of what himatch makes (but zvel's targets)."""
    cache: Annotated[str | None, optional(metavar="DIR")] = None
    """Where made datasets are kept."""
    executor: Annotated[Literal["local", "ray"], tyro.conf.arg(metavar="local|ray")] = "local"
    """This machine, or a Ray cluster that shares DIR."""
    workers: Annotated[int, tyro.conf.arg(metavar="K")] = 1
    """Processes on this machine."""
    address: Annotated[str | None, optional(metavar="ADDRESS")] = None
    """Of a running Ray cluster; one is started here if left out."""
    device: Device = None
    """Where to train and roll out; a GPU where there is one."""
    threads: Threads = 0
    """Threads that simulate; 0 means all."""

    def run(self) -> None:
        """Plan, run, and show what was found."""
        from rich.console import Console

        from himatch._runtime.devices import find_device
        from himatch.cli.match import seconds
        from himatch.errors import HimatchError
        from himatch.reproduce import Options, run_benchmark
        from himatch.reproduce.runner import show_outcomes

        if self.executor == "local":  # the machines of a cluster have devices of their own
            find_device(self.device)
        chosen = {field.name: getattr(self, field.name) for field in fields(Options)}
        chosen["rehearsal"] = None if self.rehearsal is None else seconds(self.rehearsal)
        options = Options(**chosen)
        try:
            outcomes = run_benchmark(
                self.suites, self.out, options, executor=self.executor, workers=self.workers, address=self.address
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"what is done is kept in {self.out}; the same command goes on from there"
            ) from None
        show_outcomes(outcomes, Console())
        if any(outcome.failure for outcome in outcomes):
            raise HimatchError(f"some jobs failed, see {self.out}/failures; the same command tries them again")
        print(f"himatch report {self.out} draws tables and figures")
