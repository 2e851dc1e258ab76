"""``himatch rehearse``: find out in a simulator what a policy does, before it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import tyro

from himatch.cli.flags import RunFolder
from himatch.cli.match import RolloutOptions, seconds


@dataclass
class Rehearse:
    """Roll a policy out under a library of conditionings, and find programs for targets; both are kept in RUN."""

    run_folder: RunFolder
    """Folder that himatch train wrote, a model of himatch models list, or hf:USER/NAME."""
    target: Annotated[tuple[str, ...], tyro.conf.arg(metavar="EXPR...")] = ()
    """Targets to find programs for; without any, only the library is rolled out."""
    again: bool = False
    """Search for targets that are known, too, from their programs on."""
    rollouts: RolloutOptions = field(default_factory=lambda: RolloutOptions(conditioning="rehearsed"))

    def run(self) -> None:
        """Load, rehearse and print."""
        from rich.console import Console
        from rich.markup import escape

        from himatch._runtime.progress import bars
        from himatch.errors import HimatchError
        from himatch.rehearsal import Arena
        from himatch.runs.finder import is_users

        if self.rollouts.conditioning != "rehearsed":
            raise HimatchError(f"what is rehearsed is rehearsed conditioning, not {self.rollouts.conditioning}")
        if self.rollouts.feature is not None or self.rollouts.seed:
            raise HimatchError(
                "a rehearsal is on the policy's own feature and initial states; leave out --feature, --seed"
            )
        if self.rollouts.stretches is not None or self.rollouts.replan is not None:
            raise HimatchError("--stretches and --replan are for planned conditioning, which nothing rehearses")
        limit = None if self.rollouts.rehearsal is None else seconds(self.rollouts.rehearsal)
        policy = self.rollouts.load(self.run_folder)
        targets, console = [policy.target(text) for text in self.target], Console(highlight=False)
        options = self.rollouts
        with bars() as begin:
            expected = policy.rehearse(
                targets,
                seconds=limit,
                episodes=options.episodes,
                within=options.within,
                again=self.again,
                env=options.env,
                threads=options.threads,
                bar=begin,
            )
        repertoire = policy.repertoire
        assert repertoire is not None
        console.print(f"{len(repertoire)} conditionings rolled out, played {repertoire.played:.0%}")
        frame, now = policy.reference().frame, Arena(policy.run, policy.agent, policy.temperature, options.env).now
        for target, promised in zip(targets, expected, strict=True):
            what = "W1" if target.matches == "distribution" else "error"
            console.print(f"{escape(target.name)}: expected {what} {promised}", soft_wrap=True)
            for seed, found in policy.run.programs.rehearsal(target, frame, now, options.within)["programs"].items():
                text = shares_in_words(found) if options.within == "pool" else program_in_words(found)
                console.print(f"  seed {seed}: {escape(text)}", soft_wrap=True)
        if not is_users(policy.folder):
            console.print(f"{self.run_folder} does not lie in a folder of yours; nothing was kept")


def program_in_words(parts: Sequence[tuple[str, int]]) -> str:
    """What is played one after another."""
    return ", ".join(f"{entry} for {steps}" for entry, steps in parts)


def shares_in_words(shares: Sequence[tuple[float, Sequence[tuple[str, int]]]]) -> str:
    """What part of the rollouts plays what."""
    return "; ".join(f"{part:.0%} {program_in_words(parts)}" for part, parts in shares)
