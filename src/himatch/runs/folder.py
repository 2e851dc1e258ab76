"""The run folder: everything that matching needs, without the dataset and without running code.

::

    run.json                 method, model, training and task as data; statistic, seeds, split, data hash, versions;
                             size and SHA-256 of the files that do not change, and its own
    normalizers.safetensors  the maps from raw numbers to what the networks see
    episodes.safetensors     training episodes as values, totals and last values of the matched feature
    fingerprint.safetensors  some training steps and the values of the features on them
    held_out/                held-out episodes, a Minari folder
    seed-0/last.safetensors  weights; best.safetensors are those of the lowest validation loss
    seed-0/metrics.jsonl     losses over time
    training.safetensors     what --resume continues from
    evaluation.json          what himatch evaluate found, with its checksum
    scores.json              action error and sensitivity of every seed on logged episodes, with its checksum
    failed.json              why a training ended before it was done; without run.json beside it there is no run

Files that training writes again and again carry their own checksum, and which run and which file of it they are.
No other room knows these names.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from torch import Tensor

from himatch._runtime.files import add_row, check_target, read_rows, sweep, write_json, write_rows, writing
from himatch._runtime.seals import (
    EVALUATE,
    REMEDY,
    RUN_FORMAT,
    SEAL,
    check_file,
    digest,
    file_facts,
    read_found,
    read_sealed,
    write_sealed,
)
from himatch._runtime.tensors import read_facts, read_tensors, write_tensors
from himatch.data import TrajectoryDataset, load_dataset, write_minari
from himatch.errors import DataError, HimatchError, one_line
from himatch.tasks import Task

Weights = Literal["best", "last"]
WEIGHTS: tuple[Weights, ...] = ("best", "last")

_RUN, _NORMALIZERS, _EPISODES = "run.json", "normalizers.safetensors", "episodes.safetensors"
_HELD_OUT, _TRAINING, _FAILED = "held_out", "training.safetensors", "failed.json"
_FINGERPRINT, _LOCK = "fingerprint.safetensors", ".training.lock"
_METRICS, _EVALUATION, _CARD = "metrics.jsonl", "evaluation.json", "README.md"
_TENSORBOARD, _LOSSES, _Z = "tensorboard", "loss.png", ".z.npy"
_SCORES = "scores.json"
_PROGRAMS, _REPERTOIRE = "programs.json", "repertoire.safetensors"

_OWN = ("format", "files", "logs", SEAL)  # what of run.json is about the folder, not about the run
_CONSTANT = (_NORMALIZERS, _EPISODES, _FINGERPRINT, f"{_HELD_OUT}/**/*")  # files that run.json lists, as patterns

PORTABLE = (
    *(_RUN, _NORMALIZERS, _EPISODES, _FINGERPRINT, "seed-*/last.safetensors", _EVALUATION, _SCORES, _CARD),
    *(_PROGRAMS, _REPERTOIRE),
)
"""What a run is on the Hub, as patterns: enough to load and match, none of it code."""


class RunFolder:
    """The files of one run, read and written by what they mean."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._identity: str | None = None

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

    @property
    def saved(self) -> bool:
        """Whether there is a training to go on with: a run, and progress of it."""
        return self.begun and (self.path / _TRAINING).is_file()

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

    def evaluated(self) -> dict[str, Any] | None:
        """The content of that file, where there is one."""
        return read_found(self.evaluation, EVALUATE) if self.evaluation.is_file() else None

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
        return {key: value for key, value in self._content().items() if key not in _OWN}

    def _content(self) -> dict[str, Any]:
        path = self.path / _RUN
        if not path.is_file():
            why = f"; training failed, as {_FAILED} says" if (self.path / _FAILED).is_file() else ""
            raise DataError(f"{self.path} is not a run folder (no {_RUN} in it{why})")
        content = read_sealed(path, RUN_FORMAT)
        if "method" not in content:
            raise DataError(f"{path}: not the description of a run")
        return content

    @property
    def logs(self) -> str | None:
        """Where the episodes lay that it was trained on, as they were named; a folder that was moved may not say."""
        return self._content().get("logs")

    def write_description(self, description: Mapping[str, Any], logs: str | None = None) -> None:
        """Write it after all files that do not change, which it lists: its presence makes a run folder.

        Where the ``logs`` lay stays in this folder; the description, which travels, has their name alone.
        """
        content = {key: value for key, value in description.items() if key not in _OWN}
        found = sorted({path for pattern in _CONSTANT for path in self.path.glob(pattern) if path.is_file()})
        with writing(self.path / _RUN):
            files = {path.relative_to(self.path).as_posix(): file_facts(path) for path in found}
        lay = {} if logs is None else {"logs": logs}
        write_sealed(self.path / _RUN, {"format": RUN_FORMAT, **content, **lay, "files": files})
        self._identity = digest(content)

    def incomplete(self, reason: object) -> DataError:
        """The error for a description that lacks something."""
        return DataError(f"{self.path / _RUN}: incomplete or from another version ({reason})")

    def _facts(self, file: str) -> dict[str, str]:
        """What a file that changes says of itself: which run it belongs to, and which file of it it is."""
        if self._identity is None:
            self._identity = digest(self.description())
        return {"run": self._identity, "file": file}

    def _check(self, name: str) -> Path:
        """A file that does not change, once it is known to be the one that run.json lists."""
        listed = self._content()["files"]
        if name not in listed:
            raise DataError(f"{self.path / _RUN} does not list {name}; the run folder is incomplete")
        check_file(self.path / name, listed[name])
        return self.path / name

    # -- tensors ------------------------------------------------------------------------------------------------

    def weights(self, seed: int, which: Weights = "last") -> dict[str, Tensor]:
        """The weights of one seed."""
        file = f"seed-{seed}/{which}.safetensors"
        if which == "best" and not (self.path / file).is_file() and (self.seed(seed) / "last.safetensors").is_file():
            raise DataError(f"{self.path} holds only the last weights, as pretrained and published policies do")
        return read_tensors(self.path / file, **self._facts(file))

    def write_weights(self, seed: int, which: Weights, weights: dict[str, Tensor], step: int | None = None) -> None:
        """Write the weights of one seed, and of which step they are; the description comes first."""
        file = f"seed-{seed}/{which}.safetensors"
        facts = self._facts(file) if step is None else {**self._facts(file), "step": str(step)}
        write_tensors(self.path / file, weights, **facts)

    def weights_step(self, seed: int, which: Weights) -> int | None:
        """Of which step these weights are, where a training wrote them."""
        path = self.seed(seed) / f"{which}.safetensors"
        step = read_facts(path).get("step") if path.is_file() else None
        return None if step is None else int(step)

    def normalizers(self) -> dict[str, Tensor]:
        """What the networks' inputs are normalised with."""
        return read_tensors(self._check(_NORMALIZERS))

    def write_normalizers(self, tensors: dict[str, Tensor]) -> None:
        """Write what the networks' inputs are normalised with."""
        write_tensors(self.path / _NORMALIZERS, tensors)

    def episodes(self) -> dict[str, Tensor]:
        """The training episodes, as far as they are kept (:mod:`himatch.runs.references`)."""
        return read_tensors(self._check(_EPISODES))

    def write_episodes(self, tensors: dict[str, Tensor]) -> None:
        """Keep training episodes."""
        write_tensors(self.path / _EPISODES, tensors)

    def fingerprint(self) -> dict[str, Tensor] | None:
        """What features were on some training steps (:mod:`himatch.runs.fingerprint`), where that is kept."""
        return read_tensors(self._check(_FINGERPRINT)) if _FINGERPRINT in self._content()["files"] else None

    def write_fingerprint(self, tensors: dict[str, Tensor]) -> None:
        """Keep what features are on some training steps."""
        write_tensors(self.path / _FINGERPRINT, tensors)

    def training_state(self) -> dict[str, Tensor] | None:
        """What a training continues from; ``None`` if none has been saved."""
        return read_tensors(self.path / _TRAINING, **self._facts(_TRAINING)) if self.saved else None

    def write_training_state(self, state: dict[str, Tensor]) -> None:
        """Save what a training continues from."""
        write_tensors(self.path / _TRAINING, state, **self._facts(_TRAINING))

    # -- episodes and metrics -----------------------------------------------------------------------------------

    def held_out(self, task: Task) -> TrajectoryDataset | None:
        """The held-out episodes, if the run keeps any."""
        listed = [name for name in self._content()["files"] if name.startswith(f"{_HELD_OUT}/")]
        for name in listed:
            self._check(name)
        return load_dataset(self.path / _HELD_OUT, task) if listed else None

    def write_held_out(self, episodes: TrajectoryDataset) -> None:
        """Keep the held-out episodes."""
        write_minari(episodes, self.path / _HELD_OUT, overwrite=True)

    def metrics(self, seed: int) -> list[dict[str, Any]]:
        """Rows of losses over time."""
        rows, path = read_rows(self.seed(seed) / _METRICS), self.seed(seed) / _METRICS
        for number, row in enumerate(rows, start=1):
            if not isinstance(row.get("step"), int) or isinstance(row["step"], bool):
                raise DataError(f"{path}: line {number} names no step; remove that line")
        return rows

    def begin_metrics(self, seeds: Iterable[int], step: int) -> None:
        """Open the metrics of every seed; rows after ``step`` are dropped (a resumed run)."""
        for seed in seeds:
            self.seed(seed).mkdir(parents=True, exist_ok=True)
            kept = [row for row in self.metrics(seed) if row["step"] <= step] if step else []
            write_rows(self.seed(seed) / _METRICS, kept)

    def scores(self) -> dict[str, Any] | None:
        """Action error and sensitivity of every seed on logged episodes, where they are known."""
        path = self.path / _SCORES
        if not path.is_file():
            return None
        return read_found(path, "remove it, policy.score(episodes) tells the same")

    def write_scores(self, scores: Mapping[str, Any]) -> None:
        """Keep them, with their checksum."""
        write_sealed(self.path / _SCORES, scores)

    # -- rehearsals ---------------------------------------------------------------------------------------------

    def programs(self) -> dict[str, Any]:
        """What was rehearsed, by target (:mod:`himatch.runs.programs`)."""
        path = self.path / _PROGRAMS
        if not path.is_file():
            return {}
        with _made_again("himatch rehearse finds programs again"):
            found: dict[str, Any] = read_found(path, "remove it, himatch rehearse finds programs again")["targets"]
            return found

    def write_programs(self, programs: Mapping[str, Any]) -> None:
        """Keep what was rehearsed, with its checksum."""
        write_sealed(self.path / _PROGRAMS, {"targets": dict(programs)})

    def repertoire(self) -> dict[str, Tensor] | None:
        """What the policy achieved under a library of conditionings, where it was rolled out under one."""
        path = self.path / _REPERTOIRE
        with _made_again("himatch rehearse makes it again"):
            return read_tensors(path, **self._facts(_REPERTOIRE)) if path.is_file() else None

    def repertoire_facts(self) -> dict[str, str]:
        """What the file says of itself besides: entries, seeds, temperature, versions."""
        return read_facts(self.path / _REPERTOIRE)

    def write_repertoire(self, tensors: dict[str, Tensor], **facts: str) -> None:
        """Keep what was achieved."""
        write_tensors(self.path / _REPERTOIRE, tensors, **self._facts(_REPERTOIRE), **facts)

    def add_metrics(self, seed: int, row: dict[str, Any]) -> None:
        """Append a row."""
        add_row(self.seed(seed) / _METRICS, row)

    # -- attempts -----------------------------------------------------------------------------------------------

    def portable(self) -> list[Path]:
        """The files that travel to the Hub; the stretch of an episode only where a feature is a function."""
        watched = self.description()["task"]["functions"]
        names = [name for name in PORTABLE if watched or name != _FINGERPRINT]
        return [path for name in names for path in self.path.glob(name)]

    def check_free(self, *, resume: bool) -> None:
        """Refuse a folder that holds a run, unless that is continued, or anything that is not ours.

        What a training leaves that failed, or was killed before it had saved anything, may be written over.
        """
        if self.saved and not resume:
            raise DataError(f"{self.path} holds a run already; pass --resume to continue it, or choose another folder")
        if self.has_weights and not self.saved:
            missing = _TRAINING if self.begun else _RUN
            raise DataError(
                f"{self.path} holds weights but no {missing}, so no training can go on there; choose another folder"
            )
        unknown = self.path.exists() and not self.begun and not (self.path / _FAILED).is_file()
        if unknown and (not self.path.is_dir() or not all(map(_left_by_training, self.path.iterdir()))):
            raise DataError(f"{self.path} exists and is not a run folder; choose another one")
        check_target(self.path / _RUN)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other training may write here meanwhile. What killed processes left half-written is removed."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / _LOCK)
        with writing(self.path):
            try:
                lock.acquire(timeout=0)
            except Timeout:  # which is an OSError too
                raise DataError(f"{self.path}: another training is writing there; choose another folder") from None
        try:
            for folder in (self.path, *self.path.glob("seed-*")):
                sweep(folder)
            yield
        finally:
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()
            with suppress(OSError):
                self.path.rmdir()  # where nothing was written

    def clear(self) -> None:
        """Remove what a training left that failed or was killed before it had saved anything."""
        (self.path / _FAILED).unlink(missing_ok=True)
        if self.saved:
            return
        (self.path / _RUN).unlink(missing_ok=True)  # first: what follows is no run
        for left in (self.path / _HELD_OUT, self.tensorboard, *self.path.glob("seed-*")):
            shutil.rmtree(left, ignore_errors=True)
        for name in (_NORMALIZERS, _EPISODES, _FINGERPRINT, _LOSSES):
            (self.path / name).unlink(missing_ok=True)

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


@contextmanager
def _made_again(how: str) -> Iterator[None]:
    """Says of a file that cannot be read that it may be removed, where its content can be found again."""
    try:
        yield
    except DataError as reason:
        if how in str(reason):
            raise
        said = str(reason).removesuffix(f"; {REMEDY}")
        raise DataError(f"{said}; remove it, {how}") from None


def _left_by_training(path: Path) -> bool:
    """Whether a training may have left this that saved nothing: it can be removed without loss."""
    if path.name.startswith("seed-") and path.is_dir():
        return all(inside.name == _METRICS or inside.name[0] == "." for inside in path.iterdir())
    known = (_NORMALIZERS, _EPISODES, _FINGERPRINT, _HELD_OUT, _TENSORBOARD, _LOSSES)
    return path.name in known or path.name[0] == "."
