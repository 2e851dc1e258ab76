"""``himatch models bundle``: a run cut down to a few megabytes, with what it reaches on a card."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from himatch._runtime.files import new_folder, write_json
from himatch._runtime.tensors import read_tensors, write_tensors
from himatch.datagen.recipes import made_as
from himatch.errors import HimatchError
from himatch.evaluation.evaluate import evaluate, named_targets
from himatch.evaluation.temperature import Progress, part_of
from himatch.interchange.card import command
from himatch.interchange.choice import Choice, choose_seed
from himatch.policy import Policy
from himatch.runs import folder as files
from himatch.runs.loader import load
from himatch.runs.references import thin_references

KEPT = 200


def bundle(
    run: str | Path,
    out: str | Path,
    *,
    seed: int | None = None,
    feature: str | None = None,
    kept: int = KEPT,
    episodes: int = 20,
    progress: Progress | None = None,
) -> Policy:
    """Write one seed of a run into the folder ``out`` and evaluate what was written on the run's held-out episodes.

    Of several seeds it is the one that matches training episodes best, unless it is named, and a Gaussian head gets the
    temperature at which it does. Weights become half precision, ``kept`` of the training episodes stay as the reference
    for planned conditioning, held-out episodes and the state of training do not.
    """
    policy = load(run)
    if seed is not None and seed not in policy.seeds:
        raise HimatchError(f"{run} has no seed {seed}; it has {', '.join(map(str, policy.seeds))}")
    targets = named_targets(policy, "heldout")
    data = policy.description["data"]
    description = {**policy.description, "data": {**data, "source": made_as(data["source"])}}
    target = Path(out)
    sampled = policy.agent.policy.sampled
    parts = 2 if seed is None and (len(policy.seeds) > 1 or sampled) else 1
    with new_folder(target) as folder:
        asked = None if seed is None else Choice(seed, "hand", {}, policy.temperature if sampled else None)
        choice = asked or choose_seed(policy, feature, part_of(progress, 0, parts))
        facts = {
            "command": command(description),
            "weights": "float16",
            "kept_episodes": kept,
            "seeds": list(policy.seeds),
            "chosen_by": choice.rule,
            "scores": {str(seed): score for seed, score in choice.scores.items()},
        }
        if choice.temperature is not None:
            description["temperature"] = choice.temperature
        write_json(folder / files.RUN, {**description, "seeds": [choice.seed], "bundled": facts})
        shutil.copyfile(policy.folder / files.NORMALIZERS, folder / files.NORMALIZERS)
        thin_references(policy.folder, folder, kept)
        weights = read_tensors(files.seed_folder(policy.folder, choice.seed) / files.BEST)
        halved = {name: tensor.to(torch.float16) for name, tensor in weights.items()}
        write_tensors(files.seed_folder(folder, choice.seed) / files.BEST, halved)
        part = part_of(progress, parts - 1, parts)
        found = evaluate(load(folder), targets, episodes=episodes, feature=feature, progress=part).as_json()
        found["provenance"]["run"] = target.name
        write_json(folder / files.EVALUATION, found)
    return load(target)
