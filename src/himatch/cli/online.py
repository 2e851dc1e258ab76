"""``himatch online``: go on training a run on rollouts of its own."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from himatch.cli.flags import SOURCES, Device, Import, RunFolder, Threads, optional

LOGGED = f"The logged episodes that RUN was trained on, by default what it names: {SOURCES}"


@dataclass
class Online:
    """Go on training a run on its own rollouts, under commands slightly beyond what has been achieved."""

    run_folder: RunFolder
    """Folder that himatch train wrote, a model of himatch models list, or hf:USER/NAME."""
    out: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """Folder to write: the rollouts and the run of every round, rounds.json."""
    rounds: Annotated[int, tyro.conf.arg(metavar="R")] = 3
    """Rounds of rollouts and training."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 20
    """Rollouts in a round."""
    steps: Annotated[int, tyro.conf.arg(metavar="S")] = 1000
    """Training steps in a round."""
    source: Annotated[str | None, optional(name="data", metavar="SOURCE", help=LOGGED)] = None
    env: Annotated[str | None, optional(metavar="ID")] = None
    """Another Gymnasium environment than the data's."""
    control: bool = False
    """No rollouts: the same steps on the logged episodes alone, to compare with."""
    beyond: Annotated[float, tyro.conf.arg(metavar="X")] = 0.1
    """How far commands lie beyond what was achieved, as a part of its spread."""
    keep: Annotated[int | None, optional(metavar="N")] = None
    """Train on the newest N rollouts; by default as many as there are logged episodes."""
    conditioning: Annotated[
        Literal["nominal", "remaining", "planned"], tyro.conf.arg(metavar="nominal|remaining|planned")
    ] = "nominal"
    """How rollouts are conditioned on their commands (himatch match --help)."""
    temperature: Annotated[float | None, optional(metavar="X")] = None
    """Of the sampled actions of rollouts, for a stochastic policy; by default what the run says."""
    learning_rate: Annotated[float | None, optional(metavar="X")] = None
    """Highest learning rate of a round; by default the run's."""
    weights: Annotated[Literal["best", "last"], tyro.conf.arg(metavar="best|last")] = "last"
    """Which weights of RUN to begin with."""
    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """Of commands, initial states and sampled actions."""
    resume: bool = False
    """Go on in DIR where it stopped."""
    device: Device = None
    """Where to train; a GPU where there is one."""
    threads: Threads = 0
    """Threads that simulate; 0 means all."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def run(self) -> None:
        """Load, play the rounds and print them."""
        from rich.console import Console
        from rich.table import Table

        from himatch.rounds import online
        from himatch.rounds.folder import OnlineFolder
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        policy = online(
            self.run_folder,
            out=self.out,
            rounds=self.rounds,
            episodes=self.episodes,
            steps=self.steps,
            data=self.source,
            env=self.env,
            control=self.control,
            beyond=self.beyond,
            keep=self.keep,
            conditioning=self.conditioning,
            temperature=self.temperature,
            learning_rate=self.learning_rate,
            weights=self.weights,
            seed=self.seed,
            resume=self.resume,
            device=self.device,
            threads=self.threads,
        )
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for name in (
            "round",
            "rollouts",
            "error",
            "charged",
            "played",
            "trained on",
            "steps",
            "seconds",
        ):
            table.add_column(name, header_style="bold", justify="right", no_wrap=True)
        for row in OnlineFolder(self.out).rows:
            scores = ["" if row[name] is None else f"{row[name]:.4g}" for name in ("error", "charged", "played")]
            data, seconds = row["trained_on"], row["seconds"]
            known = f"{data['logged']}+{data['rollouts']}"
            taken = f"{seconds['rollouts']:.0f}+{seconds['training']:.0f}"
            table.add_row(str(row["round"]), str(row["episodes"]), *scores, known, f"{row['steps']:,}", taken)
        Console(highlight=False).print(table)
        print("error, charged and played are of the rollouts, under the commands of their round")
        print(f"the policy after the last round: himatch show {shlex.quote(str(policy.folder))}")
