"""``himatch experts``: train SAC agents, pick the best of a run, and show those that come with himatch."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import tyro

from himatch.cli.flags import Device, Import, Threads, optional

if TYPE_CHECKING:
    from himatch.experts import AgentSpec


@dataclass
class SACOptions:
    """Settings of SAC, the same for every agent of the stack."""

    hidden: Annotated[tuple[int, ...], tyro.conf.arg(metavar="UNITS...")] = (256, 256)
    """Units of the hidden layers."""
    copies: Annotated[int, tyro.conf.arg(metavar="E")] = 16
    """Simulations of each agent, stepped together."""
    updates: Annotated[int, tyro.conf.arg(metavar="G")] = 8
    """Updates after each step of all copies."""
    batch_size: Annotated[int, tyro.conf.arg(metavar="B")] = 256
    """Transitions in an update."""
    learning_rate: Annotated[float, tyro.conf.arg(metavar="RATE")] = 3e-4
    """Of actor, critics and temperature."""
    discount: Annotated[float, tyro.conf.arg(metavar="GAMMA")] = 0.99
    """Of future rewards."""
    entropy: Annotated[float, tyro.conf.arg(metavar="X")] = 1.0
    """Target entropy, in negative numbers of action coordinates."""
    memory: Annotated[int, tyro.conf.arg(metavar="N")] = 1_000_000
    """Transitions in the replay buffer of each agent."""
    first: Annotated[int, tyro.conf.arg(metavar="N")] = 5_000
    """Transitions of random actions before learning."""


@dataclass
class TrainExperts:
    """Train SAC agents for one or several tasks at once, stacked in one batched model."""

    tasks: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """Task, or TASK:setting=value for one setting of its environment; plain cheetah-vel means all 31 velocities."""
    out: Annotated[str, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    steps: Annotated[int, tyro.conf.arg(metavar="N")] = 1_000_000
    """Environment steps of each agent."""
    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """First seed."""
    seeds: Annotated[int, tyro.conf.arg(metavar="K")] = 1
    """How many agents of each task, each with a seed of its own."""
    looks: Annotated[int, tyro.conf.arg(metavar="N")] = 100
    """Snapshots and rows of metrics in the whole run."""
    minutes: Annotated[float | None, optional(metavar="M")] = None
    """Stop after so many minutes, everything saved."""
    resume: bool = False
    """Continue the run in RUN where it stopped."""
    start: Annotated[str | None, optional(metavar="RUN")] = None
    """Begin with the agents of this other run, at the step it had reached: those of the same task, seed and settings,
    or of other settings where it has one alone."""
    device: Device = None
    """Where to train; a GPU where there is one."""
    threads: Threads = 0
    """Threads that simulate; 0 means all."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""
    sac: SACOptions = field(default_factory=SACOptions)

    def run(self) -> None:
        """Parse the tasks, then train."""
        from himatch.errors import HimatchError
        from himatch.experts import SACConfig, train_experts
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        if self.seeds < 1:
            raise HimatchError(f"--seeds must be at least 1, got {self.seeds}")
        agents = [
            agent for text in self.tasks for agent in parse_agents(text, range(self.seed, self.seed + self.seeds))
        ]
        folder = train_experts(
            agents,
            self.out,
            steps=self.steps,
            config=SACConfig(**vars(self.sac)),
            seed=self.seed,
            snapshots=self.looks,
            resume=self.resume,
            start=self.start,
            minutes=self.minutes,
            device=self.device,
            threads=self.threads,
        )
        print(f"{len(agents)} agent(s) in {folder}; himatch experts pick {folder} --out DIR keeps the best")


def parse_agents(text: str, seeds: range) -> list[AgentSpec]:
    """``hopper``, ``cheetah-vel`` (31 agents) or ``cheetah-vel:velocity=0.5``."""
    from himatch.errors import HimatchError
    from himatch.experts import VELOCITIES, AgentSpec
    from himatch.tasks import get_task

    name, _, given = text.partition(":")
    get_task(name)
    variants: list[tuple[tuple[str, float], ...]] = [()]
    if given:
        try:
            pairs = [pair.split("=") for pair in given.split(",")]
            variants = [tuple((key, float(value)) for key, value in pairs)]
        except ValueError:
            raise HimatchError(f"{text!r}: settings are written TASK:name=number,name=number") from None
    elif name == "cheetah-vel":
        variants = [(("velocity", velocity),) for velocity in VELOCITIES]
    return [AgentSpec(name, seed, settings) for settings in variants for seed in seeds]


@dataclass
class SelectExperts:
    """Evaluate the best snapshots of a run over 20 episodes and keep each task's expert (and a medium one)."""

    run_folder: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder that himatch experts train wrote."""
    out: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """Where to write weights and cards."""
    command: Annotated[str, tyro.conf.arg(metavar="TEXT")] = ""
    """The command that trained the run, for the card."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME...")] = ()
    """Write these experts only; others that are in DIR stay as they are in any case."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def run(self) -> None:
        """Pick, write and show."""
        from himatch.experts import select_experts
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        select_experts(self.run_folder, self.out, command=self.command, only=self.only)
        _show(self.out)


@dataclass
class EvaluateExperts:
    """Roll out 20 episodes of every expert of a folder and write its card anew."""

    folder: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Folder that himatch experts pick wrote."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def run(self) -> None:
        """Evaluate, write and show."""
        from himatch.experts.selection import reevaluate
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        reevaluate(self.folder)
        _show(self.folder)


@dataclass
class ListExperts:
    """Show the experts that come with himatch, or those in a folder of your own."""

    folder: Annotated[str | None, tyro.conf.Positional, optional(metavar="DIR")] = None
    """Folder that himatch experts pick wrote."""
    all: bool = False
    """A row for each agent; by default those that differ in a setting (31 velocities) share one."""
    markdown: bool = False
    """Print the table as Markdown, with what each bundled agent aims at."""

    def run(self) -> None:
        """Print the cards as a table."""
        _show(self.folder, fold=not self.all, as_markdown=self.markdown)


def _show(folder: str | None, *, fold: bool = True, as_markdown: bool = False) -> None:
    from himatch.errors import DataError
    from himatch.experts.cards import BUNDLED, read_cards
    from himatch.experts.catalog import folded_names, markdown, rows

    cards = read_cards(folder)
    if not cards:
        raise DataError(f"{folder or 'this installation'} has no experts; himatch experts pick writes some")
    shown = rows(cards, fold=fold, where=f"the cards in {folder or BUNDLED}")
    if as_markdown:
        print(markdown(shown, cards))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left")
    table.title = "experts: mean return over 20 episodes, actions sampled or the most likely ones"
    table.add_column("name", header_style="bold", no_wrap=True)
    for name in ("sampled", "most likely", "length", "steps", "check"):
        table.add_column(name, header_style="bold", justify="right", no_wrap=True)
    for row in shown:
        table.add_row(row.name, row.sampled, row.mode, row.length, row.steps, row.check)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    console.print(table)
    if fold:
        for names in folded_names(cards):
            console.print(f"{names}: --all shows each", highlight=False)


@dataclass
class Experts:
    """Train, pick, evaluate and list the agents that make datasets."""

    command: (
        Annotated[TrainExperts, tyro.conf.subcommand("train")]
        | Annotated[SelectExperts, tyro.conf.subcommand("pick")]
        | Annotated[EvaluateExperts, tyro.conf.subcommand("evaluate")]
        | Annotated[ListExperts, tyro.conf.subcommand("list")]
    )

    def run(self) -> None:
        """Run the command below this one."""
        self.command.run()
