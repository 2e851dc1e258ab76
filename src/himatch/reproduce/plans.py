"""Everything, in order: the paper's suites, himatch's conditionings on them, and himatch's own suites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from himatch.errors import HimatchError
from himatch.reproduce.jobs import Options
from himatch.reproduce.runner import Outcome, run_benchmark

CONDITIONINGS = ("nominal", "remaining", "planned", "rehearsed")


@dataclass(frozen=True)
class Piece:
    """Some suites with the same options; what they give is of one kind, and goes into a folder of its own."""

    name: str
    folder: str
    suites: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    """What it changes in those that the user chose."""


PLANS: Mapping[str, tuple[Piece, ...]] = {
    "paper": (
        Piece("main", "benchmark", ("data", "xvel", "reward", "synthetic", "return")),
        Piece("tasks", "benchmark", ("cheetah-vel", "zvel", "ant-xy")),
        Piece(
            "conditionings",
            "benchmark",
            ("xvel", "reward", "synthetic", "unseen", "zvel"),
            {"methods": ("cdt",), "policy": ("himatch",), "conditioning": CONDITIONINGS},
        ),
        Piece(
            "policies",
            "benchmark",
            ("xvel", "reward"),
            {"methods": ("cdt", "dt", "bc", "meta-bc"), "policy": ("himatch",)},
        ),
        Piece("shift", "benchmark", ("shift",)),
        Piece(
            "shift-conditionings",
            "benchmark",
            ("shift",),
            {"methods": ("cdt",), "policy": ("himatch",), "conditioning": CONDITIONINGS},
        ),
        Piece(
            "planned",
            "benchmark",
            ("synthetic", "shift", "zvel"),
            {"methods": ("cdt", "dt"), "policy": ("paper",), "conditioning": ("remaining", "planned")},
        ),
        Piece("imitation", "benchmark", ("imitation",), {"all_variants": True}),
        Piece("hindsight", "hindsight", ("hindsight-return", "hindsight-goal")),
        Piece("ogbench", "ogbench", ("ogbench",), {"budget": "cpu", "methods": ("gcsl",)}),
    )
}
"""What one reads first comes first. Models are shared by the pieces of a folder."""


def run_plan(
    name: str, out: str | Path, options: Options, *, only: Sequence[str] = (), workers: int = 1, quiet: bool = False
) -> Iterator[tuple[Piece, list[Outcome]]]:
    """Every piece of a plan, or ``only`` some; what is there already is not done again."""
    for piece in chosen(name, only):
        own = replace(options, **piece.options)
        yield piece, run_benchmark(piece.suites, Path(out) / piece.folder, own, workers=workers, quiet=quiet)


def chosen(name: str, only: Sequence[str]) -> list[Piece]:
    """The pieces of a plan, or those named."""
    pieces = {piece.name: piece for piece in PLANS[name]}
    for one in only:
        if one not in pieces:
            raise HimatchError(f"{name} has no piece {one!r}; its pieces are {', '.join(pieces)}")
    return [piece for piece in pieces.values() if not only or piece.name in only]
