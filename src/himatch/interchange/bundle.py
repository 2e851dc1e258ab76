"""``himatch models bundle``: a run cut down to a few megabytes, with what it reaches on a card."""

from __future__ import annotations

from pathlib import Path

import torch

from himatch._runtime.files import new_folder
from himatch._runtime.seals import write_sealed
from himatch.datagen.recipes import made_as
from himatch.errors import HimatchError
from himatch.interchange.card import command
from himatch.interchange.choice import Choice, choose_seed
from himatch.policy import Policy, load
from himatch.rehearsal.temperature import Progress, part_of
from himatch.rollout import objection
from himatch.runs.folder import RunFolder
from himatch.runs.references import thin_references
from himatch.targets import EpisodeReference
from himatch.targets.reference import usual_of_labels

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

    Of several seeds it is the one that matches training episodes best, unless it is named. Weights become half
    precision, ``kept`` of the training episodes stay as the reference for planned conditioning, held-out episodes and
    the state of training do not. A policy that can be rehearsed brings its repertoire along.
    """
    policy = load(run)
    if seed is not None and seed not in policy.seeds:
        raise HimatchError(f"{run} has no seed {seed}; it has {', '.join(map(str, policy.seeds))}")
    targets = policy.named_targets("heldout")
    data = policy.description["data"]
    description = {**policy.description, "data": {**data, "source": made_as(data["source"])}}
    target = Path(out)
    parts = 2 if seed is None and len(policy.seeds) > 1 else 1
    with new_folder(target) as partial:
        folder, source = RunFolder(partial), policy.run.folder
        named = None if seed is None else Choice(seed, "hand", {})
        choice = named or choose_seed(policy, feature, part_of(progress, 0, parts))
        facts = {
            "command": command(description),
            "weights": "float16",
            "kept_episodes": kept,
            "seeds": list(policy.seeds),
            "chosen_by": choice.rule,
            "scores": {str(seed): score for seed, score in choice.scores.items()},
        }
        if policy.agent.policy.stochastic:
            description["temperature"] = policy.temperature
        folder.write_normalizers(source.normalizers())
        thin_references(source, folder, kept)
        if description["task"]["functions"] and (fingerprint := source.fingerprint()) is not None:
            folder.write_fingerprint(fingerprint)
        if policy.held_out is not None and policy.statistic.matched is not None:
            frame = policy.reference().frame  # held-out episodes stay behind, what they usually do does not
            held_out = EpisodeReference.of(policy.held_out, frame.feature, frame.bins, frame.horizon)
            description["split"] = {**description["split"], "usual": usual_of_labels(held_out, policy.groups)}
        folder.write_description({**description, "seeds": [choice.seed], "bundled": facts})
        if scores := source.scores():
            place = policy.seeds.index(choice.seed)
            of_seed = {key: [x[place]] for key, x in scores.items() if isinstance(x, list)}
            folder.write_scores({**scores, **of_seed})
        weights = source.weights(choice.seed)
        halved = {name: tensor.to(torch.float16) for name, tensor in weights.items()}
        folder.write_weights(choice.seed, "last", halved)
        part = part_of(progress, parts - 1, parts)
        found = load(partial).evaluate(targets, episodes=episodes, feature=feature, progress=part).as_json()
        found["provenance"]["run"] = target.name
        write_sealed(folder.evaluation, found)
        if objection("rehearsed", policy.statistic, policy.method) is None:
            load(partial).rehearse(keep=True)
    return load(target)
