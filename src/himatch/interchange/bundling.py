"""``himatch models bundle``: a run cut down to a few megabytes, with what it reaches on a card."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import torch

from himatch.errors import HimatchError
from himatch.files import new_folder, write_json
from himatch.interchange.card import command
from himatch.matching import Policy, load
from himatch.matching.evaluation import evaluate, named_targets
from himatch.matching.references import thin_references
from himatch.nn.tensors import read_tensors, write_tensors
from himatch.policy import run_folder as files

KEPT = 200


def bundle(
    run: str | Path,
    out: str | Path,
    *,
    seed: int | None = None,
    feature: str | None = None,
    kept: int = KEPT,
    episodes: int = 20,
    progress: Callable[[int, int], None] | None = None,
) -> Policy:
    """Write one seed of a run into the folder ``out`` and evaluate what was written on the run's held-out episodes.

    Weights become half precision, ``kept`` of the training episodes stay as the reference for planned conditioning,
    held-out episodes and the state of training do not.
    """
    policy = load(run)
    seed = policy.seeds[0] if seed is None else seed
    if seed not in policy.seeds:
        raise HimatchError(f"{run} has no seed {seed}; it has {', '.join(map(str, policy.seeds))}")
    targets = named_targets(policy, "heldout")
    target = Path(out)
    with new_folder(target) as folder:
        facts = {"command": command(policy.description), "weights": "float16", "kept_episodes": kept}
        write_json(folder / files.RUN, {**policy.description, "seeds": [seed], "bundled": facts})
        shutil.copyfile(policy.folder / files.NORMALIZERS, folder / files.NORMALIZERS)
        thin_references(policy.folder, folder, kept)
        weights = read_tensors(files.seed_folder(policy.folder, seed) / files.BEST)
        halved = {name: tensor.to(torch.float16) for name, tensor in weights.items()}
        write_tensors(files.seed_folder(folder, seed) / files.BEST, halved)
    bundled = load(target)
    evaluate(bundled, targets, episodes=episodes, feature=feature, progress=progress).write()
    return bundled
