"""What the site has beyond the Markdown files: the order of the pages, and the reference made from docstrings.

Both are added while a page is read, so that the files themselves stay plain Markdown, readable anywhere.
"""

from __future__ import annotations

import importlib
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef

import himatch
from himatch.runs.of_run import OfRun

ORDER = {
    "Start": ("concepts",),
    "Tutorials": (
        "tutorials/dirty-logs",
        "tutorials/own-dataset",
        "tutorials/own-environment",
        "tutorials/discrete-actions",
        "tutorials/studio",
        "tutorials/drawing-a-target",
        "tutorials/one-shot-imitation",
        "tutorials/new-aggregator",
        "tutorials/new-method",
    ),
    "Guide": ("data", "training", "matching", "studio", "models", "interchange", "report", "experts"),
    "Reference": ("commands", "api", "datasets", "performance", "fidelity", "reliability", "results", "deviations"),
}
"""Captions and pages of the side bar; a page that is in neither fails the build."""

ROOMS = {
    "tasks": "Tasks",
    "types": "Trajectories",
    "data": "Datasets",
    "statistics.features": "Features",
    "statistics.aggregators": "Aggregators",
    "statistics.information": "Information statistics",
    "statistics.bins": "Bins",
    "targets": "Targets",
    "methods": "Methods",
    "api": "Training and evaluation",
    "policy": "Policies",
    "evaluation": "Matching",
    "divergences": "Divergences",
    "simulation": "Simulation",
    "experts": "Experts",
    "rounds": "Online training",
    "datagen": "Making datasets",
    "interchange": "Interchange",
    "reproduce.report": "Reports",
    "errors": "Errors",
}
"""Sections of the reference, along the flow of data."""

WHOLE = ("statistics.features", "statistics.aggregators", "targets", "divergences", "reproduce.report")
"""Rooms whose own public names are shown too: what somebody who extends himatch meets."""

CONTRACT = (
    "base.Method",
    "base.Agent",
    "base.Conditioner",
    "base.Stage",
    "batch.BatchSpec",
    "batch.Batch",
    "batch.Dims",
)
"""What a method of one's own is made of, in the room of methods."""


def contents() -> str:
    """The side bar as toctrees."""
    parts = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```"])
        for caption, pages in ORDER.items()
    ]
    return "\n\n" + "\n\n".join(parts) + "\n"


def reference() -> str:
    """Directives for every public name of himatch, room by room."""
    public: dict[str, list[str]] = {room: [] for room in ROOMS}
    for name in himatch.__all__:
        if name != "__version__":
            public[room_of(getattr(himatch, name).__module__)].append(f"himatch.{name}")
    parts = []
    for room, title in ROOMS.items():
        names = public[room]
        if room in WHOLE:
            module = importlib.import_module(f"himatch.{room}")
            names = names + [f"himatch.{room}.{name}" for name in module.__all__ if name not in himatch.__all__]
        if room == "methods":
            names = names + [f"himatch.methods.{name}" for name in CONTRACT]
        parts += [f"## {title}", *(_directive(name) for name in names)]
    return "\n\n" + "\n\n".join(parts) + "\n"


def room_of(module: str) -> str:
    """The room that a module lies in, as the sections name it."""
    inside = module.removeprefix("himatch.")
    return max((room for room in ROOMS if f"{inside}.".startswith(f"{room}.")), key=len)


def _directive(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    if isinstance(thing, type):
        body = [f".. autoclass:: {name}", "   :members:"]
        if issubclass(thing, OfRun):  # what it says of its run stands in a class of its own
            body.append("   :inherited-members:")
    elif callable(thing):
        body = [f".. autofunction:: {name}"]
    else:
        body = [f".. autodata:: {name}", "   :no-value:"]
    return "\n".join(["```{eval-rst}", *body, "```"])


def add(app: Sphinx, name: str, source: list[str]) -> None:
    """Add to the pages that have more on the site than in their file."""
    if name == "index":
        source[0] += contents()
    if name == "api":
        source[0] += reference()


def readable(app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str, result: str) -> Any:
    """Defaults made by a function, as something that can be parsed: else the whole signature is shown as raw text."""
    return (signature.replace("<factory>", "..."), result) if signature else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen to pages being read, and show aliases of types by their names in unions too."""
    app.connect("source-read", add)
    app.connect("autodoc-process-signature", readable)
    TypeAliasForwardRef.__repr__ = lambda self: self.name  # type: ignore[method-assign]
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
