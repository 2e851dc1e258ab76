"""The folder of an online training: what was agreed on, and of every round its rollouts, its run and its row.

::

    online.json          the run it began with, the settings, with their checksum
    rounds.json          a row for every round that is over: commands, how they were matched, steps, seconds
    round-1/rollouts/    the episodes of the round, a Minari folder; a control arm has none
    round-1/run/         the run folder after the round
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from himatch._runtime.files import check_target, sweep
from himatch._runtime.seals import read_found, write_sealed
from himatch.data import TrajectoryDataset, load_dataset
from himatch.data.minari import find_folder
from himatch.errors import DataError
from himatch.runs.folder import RunFolder
from himatch.tasks import Task

_SETTINGS, _ROWS = "online.json", "rounds.json"
_AGAIN = "begin again in another folder"


class OnlineFolder:
    """The files of one online training."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __str__(self) -> str:
        return str(self.path)

    def run(self, number: int) -> RunFolder:
        """The run after a round."""
        return RunFolder(self.path / f"round-{number}" / "run")

    def episodes(self, number: int) -> Path:
        """The rollouts of a round."""
        return self.path / f"round-{number}" / "rollouts"

    def open(self, settings: Mapping[str, Any], *, resume: bool) -> None:
        """Begin here, or go on with what was begun with the same settings; anything else is refused."""
        known = self.path / _SETTINGS
        if not known.is_file():
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                raise DataError(f"{self.path} exists already and holds no online training; choose another folder")
            check_target(known)
            write_sealed(known, settings)
            return
        if not resume:
            raise DataError(
                f"{self.path} holds an online training already; pass --resume to continue it, or choose another folder"
            )
        before = read_found(known, _AGAIN)
        if differing := [
            f"{name} {before.get(name)}, now {new}" for name, new in settings.items() if before.get(name) != new
        ]:
            raise DataError(
                f"{self.path} was begun with other settings ({'; '.join(differing)}); choose another folder"
            )
        for folder in (self.path, *self.path.glob("round-*")):
            sweep(folder)

    def rollouts(self, number: int, task: Task) -> tuple[TrajectoryDataset, dict[str, Any]]:
        """The episodes of a round, and what was written about them."""
        folder = find_folder(self.episodes(number))
        if folder is None:
            raise DataError(f"{self.episodes(number)} is missing; {_AGAIN}")
        dataset = load_dataset(self.episodes(number), task)
        if dataset.content_hash != folder.content_hash:
            raise DataError(f"{self.episodes(number)}: damaged (its checksum differs); {_AGAIN}")
        return dataset, dict(folder.written_by_himatch["rollouts"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for every round that is over."""
        path = self.path / _ROWS
        return list(read_found(path, _AGAIN)["rounds"]) if path.is_file() else []

    def add_row(self, row: Mapping[str, Any]) -> None:
        """A round is over."""
        write_sealed(self.path / _ROWS, {"rounds": [*self.rows, row]})
