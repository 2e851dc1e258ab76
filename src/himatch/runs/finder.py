"""Where a run lies: a folder, a bundled model, or a copy from the Hub."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from himatch._runtime.settings import shown
from himatch.errors import DataError
from himatch.models import BUNDLED, find_model, model_names
from himatch.runs.folder import PORTABLE, RunFolder
from himatch.runs.hub import HubName, fetch, is_hub_name


def find_run(run: str | Path) -> Path:
    """The folder of a run: the one named, a bundled model, or a copy of ``hf:USER/NAME[@REVISION]`` in the Hub's cache.

    Only what can be read without running code is fetched.
    """
    if not isinstance(run, (str, PathLike)):
        raise DataError(f"a run is named by its folder, a model or hf:USER/NAME, not by {shown(run)}")
    if not is_hub_name(run):
        folder = Path(run) if Path(run).exists() else find_model(run)
        if folder is None:
            known = ", ".join(model_names())
            raise DataError(f"{run} is not a run folder, nor a model that comes with himatch (those are {known})")
        return folder
    name = HubName.parse(str(run))
    folder = fetch(name, PORTABLE)
    if not RunFolder(folder).begun:
        raise DataError(f"{name} is not a run of himatch (no run.json in it)")
    return folder


def is_users(folder: Path) -> bool:
    """Whether a run lies in a folder of the user's own: not among himatch's models, nor in the Hub's cache."""
    return folder.parent.name != "snapshots" and not folder.resolve().is_relative_to(BUNDLED.resolve())
