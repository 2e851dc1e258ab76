"""Parsing, errors and exit codes; what the commands do lives in their own files."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol, cast

import tyro

from himatch._runtime.progress import interrupt, on_signals
from himatch._version import __version__
from himatch.cli.benchmark import Benchmark
from himatch.cli.data import ConvertData, InspectData
from himatch.cli.experts import Experts
from himatch.cli.flags import CONFIG
from himatch.cli.interchange import ExportRun, ImportWeights, PushRun
from himatch.cli.make import CollectData, ListData, MakeData
from himatch.cli.match import Evaluate, Match
from himatch.cli.methods import ListMethods
from himatch.cli.models import Models
from himatch.cli.online import Online
from himatch.cli.quickstart import Quickstart
from himatch.cli.rehearse import Rehearse
from himatch.cli.report import Report
from himatch.cli.reproduce import Reproduce
from himatch.cli.show import Show
from himatch.cli.studio import Studio
from himatch.errors import HimatchError, HimatchWarning

DESCRIPTION = (
    "Hindsight information matching: one policy, trained offline, that matches a return, a goal, "
    "a distribution or a demonstration. 'himatch --version' prints the version."
)


class Command(Protocol):
    """A parsed command."""

    def run(self) -> None:
        """Do it."""


@dataclass
class Data:
    """Look at, convert, make and collect logged episodes."""

    command: (
        Annotated[InspectData, tyro.conf.subcommand("inspect")]
        | Annotated[ConvertData, tyro.conf.subcommand("convert")]
        | Annotated[MakeData, tyro.conf.subcommand("make")]
        | Annotated[ListData, tyro.conf.subcommand("list")]
        | Annotated[CollectData, tyro.conf.subcommand("collect")]
    )

    def run(self) -> None:
        """Run the command below this one."""
        self.command.run()


@dataclass
class Train:
    """Train a policy offline; every method is a command: bc, dt, cdt, bdt, meta-bc, focal, ..."""


Program = (
    Annotated[Data, tyro.conf.subcommand("data")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Match, tyro.conf.subcommand("match")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Studio, tyro.conf.subcommand("studio")]
    | Annotated[Rehearse, tyro.conf.subcommand("rehearse")]
    | Annotated[Online, tyro.conf.subcommand("online")]
    | Annotated[Benchmark, tyro.conf.subcommand("benchmark")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[ListMethods, tyro.conf.subcommand("methods")]
    | Annotated[Experts, tyro.conf.subcommand("experts")]
    | Annotated[Models, tyro.conf.subcommand("models")]
    | Annotated[ExportRun, tyro.conf.subcommand("export")]
    | Annotated[PushRun, tyro.conf.subcommand("push")]
    | Annotated[ImportWeights, tyro.conf.subcommand("import")]
    | Annotated[Quickstart, tyro.conf.subcommand("quickstart")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit: 0 done, 2 bad input, 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if arguments in (["--version"], ["-V"]):
            print(f"himatch {__version__}", flush=True)
            sys.exit(0)
        code = run(arguments)
        sys.stdout.flush()
        sys.exit(code)
    except KeyboardInterrupt:  # before the command had begun
        print("himatch: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # somebody read enough of it (himatch ... | head)
        _silence()
        sys.exit(0)
    except OSError as reason:  # of standard output (himatch ... > FILE); what commands write is caught where it is
        if reason.errno != errno.ENOSPC:
            raise
        _silence()
        print("himatch: the disk is full; the output cannot be written", file=sys.stderr)
        sys.exit(2)


def _silence() -> None:
    """Nothing more goes to standard output, not even what Python has in hand when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parse(arguments: Sequence[str]) -> Command:
    """The command that the arguments name."""
    if arguments[:1] == ["train"]:  # its commands are the methods, which take PyTorch along
        from himatch.cli.method_commands import parse_train

        return parse_train(arguments[1:])
    words = arguments or ["--help"]
    return cast(Command, tyro.cli(Program, prog="himatch", description=DESCRIPTION, args=words, config=CONFIG))


def run(arguments: Sequence[str]) -> int:
    """Parse and run a command; bad input becomes one line and exit code 2, repairs become notes on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries say to programmers
        warnings.simplefilter("always", HimatchWarning)
        warnings.showwarning = _show_warning
        try:
            # As Ctrl-C, so that what is half-written is removed; work that can be resumed has its own way.
            with on_signals(interrupt, signal.SIGTERM):
                parse(arguments).run()
        except HimatchError as error:
            print(f"himatch: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt as reason:
            print(f"himatch: {str(reason) or 'interrupted'}", file=sys.stderr)
            return 130
    return 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"himatch: note: {message}", file=sys.stderr)
