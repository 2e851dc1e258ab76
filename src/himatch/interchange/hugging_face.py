"""``himatch import``: a Decision Transformer of Hugging Face's ``transformers`` as a ``dt`` run.

What its files do not say (means and deviations of the states, the scale of returns) has to be given.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from himatch._runtime.files import new_folder
from himatch._runtime.tensors import versions
from himatch.data import TrajectoryDataset
from himatch.errors import DataError, HimatchError
from himatch.interchange.checkpoint import CONFIG, PICKLED, WEIGHTS, HuggingFaceCheckpoint
from himatch.methods import DT, method_spec
from himatch.methods.batch import Dims
from himatch.methods.normalizers import Normalizers
from himatch.policy import Policy, load
from himatch.runs.folder import RunFolder
from himatch.runs.hub import HubName, fetch, is_hub_name
from himatch.runs.references import write_references
from himatch.runs.task_spec import task_spec
from himatch.statistics.aggregators import DiscountedSum
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.statistics.information import InformationStatistic
from himatch.targets import EpisodeReference, Frame
from himatch.tasks import Task, get_task


@dataclass(frozen=True)
class ImportSettings:
    """What the checkpoint's file does not say: normalisation, and where the policy belongs."""

    task: Task
    state_mean: Sequence[float]
    state_std: Sequence[float]
    return_scale: float = 1000.0
    context: int | None = None
    env_id: str | None = None

    def __post_init__(self) -> None:
        if not self.return_scale > 0:
            raise HimatchError(f"the scale of returns must be positive, got {self.return_scale:g}")
        if len(self.state_mean) != len(self.state_std):
            raise HimatchError(
                f"{len(self.state_mean)} means but {len(self.state_std)} deviations of the states; give one of each"
            )
        if not all(std > 0 for std in self.state_std):
            raise HimatchError("the deviations of the states must be positive")


def import_hugging_face(
    source: str | Path,
    out: str | Path,
    *,
    task: str | Task | None = None,
    data: TrajectoryDataset | None = None,
    state_mean: Sequence[float] | None = None,
    state_std: Sequence[float] | None = None,
    return_scale: float = 1000.0,
    context: int | None = None,
    env_id: str | None = None,
) -> Policy:
    """Write a run folder from a ``DecisionTransformerModel`` checkpoint and load it.

    Parameters
    ----------
    source
        Folder with ``config.json`` and ``model.safetensors`` (or ``pytorch_model.bin``, of which tensors alone are
        read), or ``hf:USER/NAME``.
    data
        The episodes it was trained on. They give the normalisation, unless that is given, and what targets are compared
        with; without them a run matches returns but knows nothing of what is achievable.
    state_mean, state_std
        What states were normalised with, as the model card says.
    return_scale
        What returns were divided by.
    context
        Steps the policy sees; by default what the checkpoint says, else 20.
    env_id
        Where it was trained; by default what the data says, else the task's environment.
    """
    known = _task(task, data)
    if known.discrete is not None:
        raise HimatchError(
            f"the actions of task {known.name} are {known.discrete}, and Hugging Face's Decision Transformer has "
            "continuous ones: there are no such weights to import"
        )
    if (state_mean is None) != (state_std is None):
        raise HimatchError("give both means and deviations of the states, or neither")
    if state_mean is None or state_std is None:
        if data is None:
            raise HimatchError(
                "the checkpoint does not say how states were normalised: give --state-mean and --state-std from its "
                "model card, or the episodes it was trained on (--data SOURCE)"
            )
        fitted = Normalizers.fit(data)
        state_mean, state_std = fitted.state_mean.tolist(), fitted.state_std.tolist()
    settings = ImportSettings(
        known,
        state_mean,
        state_std,
        return_scale,
        context,
        env_id or (data.env_id if data is not None else None),
    )
    folder = fetch(HubName.parse(str(source)), (CONFIG, WEIGHTS, PICKLED)) if is_hub_name(source) else Path(source)
    checkpoint = HuggingFaceCheckpoint.read(folder, str(source) if is_hub_name(source) else folder.resolve().name)
    with new_folder(Path(out)) as partial:
        _write_run(RunFolder(partial), checkpoint, settings, data)
    return load(out)


def _task(task: str | Task | None, data: TrajectoryDataset | None) -> Task:
    if isinstance(task, Task):
        return task
    if task is not None:
        return get_task(task)
    if data is None:
        raise HimatchError("say which task the weights belong to (--task NAME)")
    return data.task


def _write_run(
    folder: RunFolder, checkpoint: HuggingFaceCheckpoint, settings: ImportSettings, data: TrajectoryDataset | None
) -> None:
    task, dims, model = settings.task, checkpoint.dims, checkpoint.model(settings.context)
    _check_dims(checkpoint.name, dims, settings)
    method = DT()
    statistic = InformationStatistic(resolve_feature("reward", task), DiscountedSum(1.0, settings.return_scale))
    agent, weights = method.build(model, dims, (0,)), checkpoint.weights()
    try:
        agent.load_state_dict({name: tensor.unsqueeze(0) for name, tensor in weights.items()})
    except RuntimeError as reason:
        detail = str(reason).strip().splitlines()[-1].strip()
        raise DataError(f"{checkpoint.name}: the weights do not fit {CONFIG} ({detail})") from None
    # Actions go in and out as they are: tanh ends at -1 and 1, whatever the task's range.
    ones = torch.ones(dims.action)
    mean, std = (torch.tensor(values, dtype=torch.float32) for values in (settings.state_mean, settings.state_std))
    seen = None if data is None else Normalizers.fit(data)  # whose range is known even where the moments are given
    low, high = (None, None) if seen is None else (seen.state_low, seen.state_high)
    folder.write_normalizers(Normalizers(mean, std, 0 * ones, ones, state_low=low, state_high=high).tensors())
    write_references(folder, [_reference(statistic, settings, data)])
    description = {
        "method": method_spec(method),
        "model": asdict(model),
        "train": {},
        "widths": asdict(dims),
        "seeds": [0],
        "task": task_spec(task),
        "statistic": statistic.spec(),
        "data": {
            "source": None if data is None else data.name,
            "env_id": settings.env_id,
            "hash": "" if data is None else data.content_hash,
            "episodes": None if data is None else len(data),
            "steps": None if data is None else data.steps,
        },
        "split": {"name": "none", "groups": [], "train": [], "held_out": []},
        "versions": versions(),
        "imported": {"source": checkpoint.name, "sha256 of the weights": checkpoint.digest},
    }
    folder.write_description(json.loads(json.dumps(description)))
    folder.write_weights(0, "last", weights)
    folder.write_weights(0, "best", weights)


def _check_dims(name: str, dims: Dims, settings: ImportSettings) -> None:
    task = settings.task
    for what, has, wants in (
        ("observations", dims.observation, task.observation_width),
        ("actions", dims.action, task.action_width),
    ):
        if wants is not None and has != wants:
            raise DataError(f"{name} has {has} {what}, the task {task.name} has {wants}; is it the right task?")
    if len(settings.state_mean) != dims.observation:
        raise DataError(f"{name} sees {dims.observation} numbers, but {len(settings.state_mean)} means were given")


def _reference(
    statistic: InformationStatistic, settings: ImportSettings, data: TrajectoryDataset | None
) -> EpisodeReference:
    """The training episodes as targets see them; where nobody has them, bins as wide as D4RL's scores suggest."""
    task = settings.task
    if data is not None:
        return EpisodeReference.of(data, statistic.feature, None, max(task.horizon, int(data.lengths.max())))
    reach = 2 * max(map(abs, task.reference_returns or (task.horizon,))) / task.horizon
    return EpisodeReference.empty(Frame(statistic.feature, Bins((-reach,), (reach,)), task.horizon))
