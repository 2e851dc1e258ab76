"""The run folder: everything that matching needs, without the dataset and without running code.

::

    run.json                 method, model, training and task as data; statistic, seeds, split, data hash, versions
    normalizers.safetensors  the maps from raw numbers to what the networks see
    episodes.safetensors     training episodes as bin indices, totals and final values of the matched feature
    held_out/                held-out episodes, a Minari folder
    seed-0/last.safetensors  weights; best.safetensors are those that validation selected
    seed-0/metrics.jsonl     losses over time
    training.safetensors     what --resume continues from
    evaluation.json          what himatch evaluate found
    scores.json              action error and sensitivity of every seed on logged episodes
    failed.json              why a training ended before it was done; without run.json beside it there is no run

No other room knows these names.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from himatch._runtime.files import add_row, check_target, read_json, read_rows, write_json, write_rows
from himatch._runtime.tensors import read_facts, read_tensors, write_tensors
from himatch.data import TrajectoryDataset, load_dataset, write_minari
from himatch.errors import DataError, HimatchError, one_line
from himatch.tasks import Task

Weights = Literal["best", "last"]
WEIGHTS: tuple[Weights, ...] = ("best", "last")

_RUN, _NORMALIZERS, _EPISODES = "run.json", "normalizers.safetensors", "episodes.safetensors"
_HELD_OUT, _TRAINING, _FAILED = "held_out", "training.safetensors", "failed.json"
_METRICS, _EVALUATION, _CARD = "metrics.jsonl", "evaluation.json", "README.md"
_TENSORBOARD, _LOSSES, _Z = "tensorboard", "loss.png", ".z.npy"
_SCORES = "scores.json"

PORTABLE = (_RUN, _NORMALIZERS, _EPISODES, "seed-*/best.safetensors", _EVALUATION, _SCORES, _CARD)
"""What a run is on the Hub, as patterns: enough to load and match, none of it code."""


class RunFolder:
    """The files of one run, read and written by what they mean."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __str__(self) -> str:
        return str(self.path)

    # -- what there is ------------------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether there is a run; its description is written last."""
        return (self.path / _RUN).is_file()

    @property
    def has_weights(self) -> bool:
        """Whether training, or whoever made the run otherwise, has saved anything."""
        return (self.path / _TRAINING).is_file() or any(self.path.glob("seed-*/*.safetensors"))

    def seed(self, seed: int) -> Path:
        """Where one seed's weights and metrics lie."""
        return self.path / f"seed-{seed}"

    @property
    def card(self) -> Path:
        """The model card."""
        return self.path / _CARD

    @property
    def evaluation(self) -> Path:
        """What ``himatch evaluate`` found."""
        return self.path / _EVALUATION

    def evaluation_of(self, *different: str) -> Path:
        """The same for an evaluation that differs from the plain one; none writes over another."""
        text = "-".join([Path(_EVALUATION).stem, *different])
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in text)
        return self.path / f"{name}{Path(_EVALUATION).suffix}"

    @property
    def tensorboard(self) -> Path:
        """TensorBoard's own files."""
        return self.path / _TENSORBOARD

    @property
    def loss_picture(self) -> Path:
        """Losses over time, drawn."""
        return self.path / _LOSSES

    @property
    def z_file(self) -> Path:
        """Relabelled z while training goes on, for data that does not fit into memory."""
        return self.path / _Z

    # -- description --------------------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """The description of the run."""
        path = self.path / _RUN
        if not path.is_file():
            why = f"; training failed, as {_FAILED} says" if (self.path / _FAILED).is_file() else ""
            raise DataError(f"{self.path} is not a run folder (no {_RUN} in it{why})")
        try:
            content = json.loads(path.read_text())
        except ValueError as reason:
            raise DataError(f"{path}: damaged ({reason}); train again") from None
        if not isinstance(content, dict) or "method" not in content:
            raise DataError(f"{path}: not the description of a run")
        return content

    def write_description(self, description: Mapping[str, Any]) -> None:
        """Write it last of all: its presence makes a run folder."""
        write_json(self.path / _RUN, dict(description))

    def incomplete(self, reason: object) -> DataError:
        """The error for a description that lacks something."""
        return DataError(f"{self.path / _RUN}: incomplete or from another version ({reason})")

    # -- tensors ------------------------------------------------------------------------------------------------

    def weights(self, seed: int, which: Weights = "best") -> dict[str, Tensor]:
        """The weights of one seed."""
        return read_tensors(self.seed(seed) / f"{which}.safetensors")

    def write_weights(self, seed: int, which: Weights, weights: dict[str, Tensor], step: int | None = None) -> None:
        """Write the weights of one seed, and of which step they are."""
        facts = {} if step is None else {"step": str(step)}
        write_tensors(self.seed(seed) / f"{which}.safetensors", weights, **facts)

    def weights_step(self, seed: int, which: Weights) -> int | None:
        """Of which step these weights are, where a training wrote them."""
        path = self.seed(seed) / f"{which}.safetensors"
        step = read_facts(path).get("step") if path.is_file() else None
        return None if step is None else int(step)

    def normalizers(self) -> dict[str, Tensor]:
        """What the networks' inputs are normalised with."""
        return read_tensors(self.path / _NORMALIZERS)

    def write_normalizers(self, tensors: dict[str, Tensor]) -> None:
        """Write what the networks' inputs are normalised with."""
        write_tensors(self.path / _NORMALIZERS, tensors)

    def episodes(self) -> dict[str, Tensor]:
        """The training episodes, as far as they are kept (:mod:`himatch.runs.references`)."""
        return read_tensors(self.path / _EPISODES)

    def write_episodes(self, tensors: dict[str, Tensor]) -> None:
        """Keep training episodes."""
        write_tensors(self.path / _EPISODES, tensors)

    def training_state(self) -> dict[str, Tensor] | None:
        """What a training continues from; ``None`` if none has been saved."""
        path = self.path / _TRAINING
        return read_tensors(path) if path.is_file() else None

    def write_training_state(self, state: dict[str, Tensor]) -> None:
        """Save what a training continues from."""
        write_tensors(self.path / _TRAINING, state)

    # -- episodes and metrics -----------------------------------------------------------------------------------

    def held_out(self, task: Task) -> TrajectoryDataset | None:
        """The held-out episodes, if the run keeps any."""
        folder = self.path / _HELD_OUT
        return load_dataset(folder, task) if folder.is_dir() else None

    def write_held_out(self, episodes: TrajectoryDataset) -> None:
        """Keep the held-out episodes."""
        write_minari(episodes, self.path / _HELD_OUT, overwrite=True)

    def metrics(self, seed: int) -> list[dict[str, Any]]:
        """Rows of losses over time."""
        return read_rows(self.seed(seed) / _METRICS)

    def begin_metrics(self, seeds: Iterable[int], step: int) -> None:
        """Open the metrics of every seed; rows after ``step`` are dropped (a resumed run)."""
        for seed in seeds:
            self.seed(seed).mkdir(parents=True, exist_ok=True)
            kept = [row for row in self.metrics(seed) if row["step"] <= step] if step else []
            write_rows(self.seed(seed) / _METRICS, kept)

    def scores(self) -> dict[str, Any] | None:
        """Action error and sensitivity of every seed on logged episodes, where they are known."""
        path = self.path / _SCORES
        return read_json(path) if path.is_file() else None

    def write_scores(self, scores: Mapping[str, Any]) -> None:
        """Keep them."""
        write_json(self.path / _SCORES, dict(scores))

    def add_metrics(self, seed: int, row: dict[str, Any]) -> None:
        """Append a row."""
        add_row(self.seed(seed) / _METRICS, row)

    # -- attempts -----------------------------------------------------------------------------------------------

    def check_free(self, *, resume: bool) -> None:
        """Refuse a folder that holds a run, unless that is continued, or anything that is not ours."""
        if (self.path / _RUN).exists():
            if not resume:
                raise DataError(
                    f"{self.path} holds a run already; pass --resume to continue it, or choose another folder"
                )
            return
        # What a run leaves that failed, or was killed before it had begun, may be written over, anything else may not.
        ours = {_EPISODES, _HELD_OUT, _NORMALIZERS}
        if self.path.exists() and not (self.path / _FAILED).is_file():
            foreign = not self.path.is_dir() or any(
                p.name not in ours and p.name[0] != "." for p in self.path.iterdir()
            )
            if foreign:
                raise DataError(f"{self.path} exists and is not a run folder; choose another one")
        check_target(self.path / _RUN)

    def clear(self) -> None:
        """Remove what an attempt left that failed; a run that it was to go on with stays."""
        (self.path / _FAILED).unlink(missing_ok=True)
        if not (self.path / _RUN).exists():
            for left in (self.path / _HELD_OUT, self.tensorboard, *self.path.glob("seed-*")):
                shutil.rmtree(left, ignore_errors=True)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """A training here. If it fails the folder says why, and without any weights it is no run: another may begin."""
        try:
            yield
        except BaseException as reason:
            if (self.path / _RUN).exists():
                if not self.has_weights:
                    (self.path / _RUN).unlink()
                if isinstance(reason, Exception):  # one that was interrupted did not fail
                    said = str(reason) if isinstance(reason, HimatchError) else one_line(reason)
                    write_json(self.path / _FAILED, {"reason": said})
            raise
