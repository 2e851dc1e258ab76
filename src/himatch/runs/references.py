"""The training episodes as a run folder keeps them, for each feature that rollouts may be scored on."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from himatch.errors import HimatchError
from himatch.runs.folder import RunFolder
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.targets import EpisodeReference, Frame
from himatch.tasks import Task


def write_references(folder: RunFolder, references: Iterable[EpisodeReference]) -> None:
    """Write values, lengths, totals and last values of every feature."""
    tensors: dict[str, Tensor] = {}
    for reference in references:
        bins, name = reference.frame.bins, reference.frame.feature.name
        tensors |= {
            f"{name}/values": torch.from_numpy(reference.values),
            f"{name}/lengths": torch.from_numpy(reference.lengths),
            f"{name}/totals": torch.from_numpy(reference.totals),
            f"{name}/finals": torch.from_numpy(reference.finals),
            f"{name}/range": torch.tensor([bins.low, bins.high], dtype=torch.float64),
            f"{name}/shape": torch.tensor([bins.count, reference.frame.horizon]),
        }
    folder.write_episodes(tensors)


def read_reference(folder: RunFolder, name: str, task: Task) -> EpisodeReference:
    """What a run folder holds about one feature."""
    feature = resolve_feature(name, task)
    tensors = folder.episodes()
    if f"{name}/values" not in tensors:
        known = ", ".join(_features(tensors))
        raise HimatchError(
            f"{folder} holds nothing about the feature {name!r} (only {known}); with the training data at hand, "
            f"policy.add_reference(himatch.EpisodeReference.of(data, {name!r})) mends that"
        )
    part = {key.rpartition("/")[2]: value for key, value in tensors.items() if key.rpartition("/")[0] == name}
    low, high = part["range"].tolist()
    count, horizon = part["shape"].tolist()
    frame = Frame(feature, Bins(tuple(low), tuple(high), count), horizon)
    values = part["values"].float().numpy()
    return EpisodeReference(frame, values, part["lengths"].numpy(), part["totals"].numpy(), part["finals"].numpy())


def referenced_features(folder: RunFolder) -> list[str]:
    """Names of the features that a run folder knows the training episodes of."""
    return _features(folder.episodes())


def _features(tensors: Iterable[str]) -> list[str]:
    return sorted({key.rpartition("/")[0] for key in tensors})


def thin_references(folder: RunFolder, out: RunFolder, kept: int) -> None:
    """Write ``kept`` of a run's episodes, evenly spaced, into another folder; all of them if there are no more.

    Their values go in half precision, as the weights of a bundle do.
    """
    tensors = folder.episodes()
    thinned = dict(tensors)
    for key in tensors:
        name, _, what = key.rpartition("/")
        lengths = tensors[f"{name}/lengths"]
        chosen = torch.linspace(0, len(lengths) - 1, min(kept, len(lengths))).round().long()
        if what == "values":
            owner = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
            thinned[key] = tensors[key][torch.isin(owner, chosen)].half()
        elif what in ("lengths", "totals", "finals"):
            thinned[key] = tensors[key][chosen]
    out.write_episodes(thinned)
