"""``himatch models``: pretrained policies."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from himatch.cli.flags import Import, Name, RunFolder, optional


@dataclass
class ListModels:
    """Show the policies that come with himatch, or those in a folder of your own, and how well they match."""

    folder: Annotated[str | None, tyro.conf.Positional, optional(metavar="DIR")] = None
    """Folder of folders that himatch models bundle wrote."""
    markdown: bool = False
    """Print the table as Markdown, with the commands that trained them."""

    def run(self) -> None:
        """Print the cards as a table."""
        from himatch.errors import DataError
        from himatch.models import markdown, read_cards

        cards = read_cards(self.folder)
        if not cards:
            raise DataError(f"{self.folder or 'this installation'} has no models; himatch models bundle writes some")
        if self.markdown:
            print(markdown(cards))
            return
        from rich.console import Console
        from rich.table import Table

        groups = list(dict.fromkeys(group for card in cards for group in card.w1))
        first = cards[0]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left")
        table.title = f"W1 to {first.targets} held-out episodes, {first.episodes} rollouts each"
        for name in ("model", "task", "method", "feature"):
            table.add_column(name, header_style="bold", no_wrap=True)
        for name in ("temperature", *groups, "played", "charged", "mixture", "MB"):
            table.add_column(name, header_style="bold", justify="right", no_wrap=True)
        for card in cards:
            numbers = [card.acts, *(f"{card.w1[group]:.3f}" if group in card.w1 else "" for group in groups)]
            numbers += [
                f"{card.played:.0%}",
                f"{card.charged:.3f}",
                f"{card.mixture['total']:.3f}",
                f"{card.size / 1e6:.1f}",
            ]
            table.add_row(card.name, card.task, card.method, card.feature, *numbers)
        console = Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False)
        console.print(table)
        for card in cards:
            if card.choice:
                console.print(f"{card.name}: {card.choice}", soft_wrap=True)
        name = first.name if self.folder is None else str(Path(self.folder) / first.name)
        usage = f'himatch match {shlex.quote(name)} --target "..." or himatch.load("{name}") uses one'
        console.print(usage, soft_wrap=True)


@dataclass
class BundleModel:
    """Cut a run down to what matching needs, and evaluate that on the run's held-out episodes."""

    run_folder: RunFolder
    """Folder that himatch train wrote."""
    out: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """Folder to write."""
    seed: Annotated[int | None, optional(metavar="S")] = None
    """Which seed; by default the one that matches some training episodes best."""
    feature: Name = None
    """What is scored; by default what the run was trained to match."""
    kept: Annotated[int, tyro.conf.arg(metavar="N")] = 200
    """Training episodes to keep, for the episode mixture of planned conditioning."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 20
    """Rollouts for each held-out episode."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def run(self) -> None:
        """Cut, write, evaluate."""
        from himatch._runtime.progress import bar
        from himatch.interchange.bundle import bundle
        from himatch.models import read_card
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        with bar("rollouts") as progress:
            policy = bundle(
                self.run_folder,
                self.out,
                seed=self.seed,
                feature=self.feature,
                kept=self.kept,
                episodes=self.episodes,
                progress=progress,
            )
        card = read_card(policy.folder)
        print(
            f"{card.name}, {card.size / 1e6:.1f} MB: W1 {card.w1['total']:.3f}, {card.played:.0%} played, to "
            f"{card.targets} held-out episodes"
        )
        if card.choice:
            print(card.choice)


@dataclass
class Models:
    """List pretrained policies, or make one of a run."""

    command: (
        Annotated[ListModels, tyro.conf.subcommand("list")] | Annotated[BundleModel, tyro.conf.subcommand("bundle")]
    )

    def run(self) -> None:
        """Run the command below this one."""
        self.command.run()
