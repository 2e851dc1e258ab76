"""What a run folder knows of its policy, gathered for ``himatch show``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from himatch.errors import HimatchError
from himatch.evaluation.sensitivity import in_words, sensitivities
from himatch.methods import Method
from himatch.models import find_model
from himatch.overview.content import QUANTILES, Column, Covered, Promise, Suggestion
from himatch.overview.overview import Overview
from himatch.overview.suggestions import Parse, labels, suggestions
from himatch.rollout.conditioners import CONDITIONINGS, objection
from himatch.runs.folder import Weights
from himatch.runs.programs import Circumstances
from himatch.runs.run import Run
from himatch.targets import EpisodeReference

HEARD = {
    "nominal": "the target's own z at every step, whatever was achieved (the paper's protocol)",
    "remaining": "what is left of the target after what was achieved: makes up for disturbances",
    "planned": "the nearest mixture of training episodes, one after another: for targets unlike any one episode",
    "rehearsed": "a program that was tried in the simulator: comes nearest to targets that no episode shows",
    "waypoints": "one way-point after the other, on the shortest way through the training episodes: for far goals",
}
OF_DEMONSTRATIONS = "the demonstration from the present step on, whatever was achieved"


def overview_of(
    run: Run, seeds: Sequence[int], weights: Weights, parse: Parse, now: Circumstances, name: str | None = None
) -> Overview:
    """What a run's policy can match; ``parse`` makes targets of expressions, ``now`` is how the policy acts."""
    reference, description, method = _reference(run), run.description, run.method
    called = name or _name(run)
    targets = [] if reference is None else suggestions(run, reference, parse)
    trained = (description.get("train") or {}).get("steps")
    steps = [run.folder.weights_step(seed, weights) or trained for seed in seeds]
    known = dict(zip(run.seeds, sensitivities(run), strict=False)) if description["widths"]["z"] else {}
    kept = [known[seed] for seed in seeds if seed in known]
    scores = run.scores or {}
    data = description["data"]
    return Overview(
        name=called,
        method=method.name,
        settings={key: value for key, value in description["method"].items() if key != "name"},
        task=run.task.name,
        environment=run.env_id,
        horizon=description["widths"]["horizon"],
        seeds=list(seeds),
        steps=steps,
        weights=weights,
        data={
            "source": run.folder.logs or data.get("source"),
            **{key: data.get(key) for key in ("episodes", "steps", "hash")},
            "kept_episodes": 0 if reference is None else len(reference.lengths),
        },
        conditioned_on=method.meaning(run.statistic) if description["widths"]["z"] else "nothing",
        acts=_acts(run),
        feature=run.feature,
        covered=[] if reference is None else covered(reference),
        labels=[] if reference is None else labels(run, reference),
        targets=targets,
        conditionings=_heard(run, method),
        rehearsed=_rehearsed(run, now),
        observations=_columns(run, "observations"),
        actions=_columns(run, "actions"),
        discrete=None if run.task.discrete is None else asdict(run.task.discrete),
        rate=run.rate,
        sensitivity=kept or None,
        sensitivity_in_words=[in_words(x) for x in kept] or None,
        scored_on=f"{scores['episodes']} {scores['on']} episodes" if kept else None,
        start=description.get("start"),
        next=_next(called, run, targets),
    )


def _acts(run: Run) -> str:
    """Deterministically or by samples."""
    if run.description["model"]["head"] == "tanh":
        return "deterministically"
    tried = ((run.scores or {}).get("temperature") or {}).get("tried")
    chosen = " (selected on training episodes)" if tried or "bundled" in run.description else ""
    usual = "mean" if run.task.discrete is None else "likeliest"
    sampled = f"by sampling at temperature {run.temperature:g}"
    how = sampled if run.temperature else f"by its {usual} action, temperature 0"
    return f"{how}{chosen}"


def covered(reference: EpisodeReference) -> list[Covered]:
    """Range, quantiles and histogram of every dimension of the feature."""
    bins, found = reference.frame.bins, []
    if not len(reference.values):
        return []
    shares = bins.histogram(reference.values)
    for d, name in enumerate(reference.frame.feature.names(bins.dimensions)):
        values = reference.values[:, d]
        quantiles = np.quantile(values, np.array(QUANTILES) / 100)
        found.append(
            Covered(
                name,
                float(values.min()),
                float(values.max()),
                {str(q): float(x) for q, x in zip(QUANTILES, quantiles, strict=True)},
                shares[d].tolist(),
                (bins.low[d], bins.high[d]),
            )
        )
    return found


def _reference(run: Run) -> EpisodeReference | None:
    """The training episodes; ``None`` where the run keeps nothing of them."""
    try:
        return run.reference()
    except HimatchError:
        return None


def _name(run: Run) -> str:
    """A model that comes with himatch goes by its name, a run by its folder."""
    path = run.folder.path
    return path.name if find_model(path.name) == path else str(path)


def _heard(run: Run, method: Method) -> dict[str, str]:
    """The conditionings that have an effect, in words."""
    if not run.description["widths"]["z"]:
        return {}
    heard: dict[str, str] = {
        name: HEARD[name] for name in CONDITIONINGS if objection(name, run.statistic, method) is None
    }
    if run.env_id is None and not run.programs.found:
        heard.pop("rehearsed", None)  # there is nothing to rehearse in
    return dict.fromkeys(heard, OF_DEMONSTRATIONS) if method.imitates else heard


def _rehearsed(run: Run, now: Circumstances) -> list[Promise]:
    """What is kept of rehearsals of this policy as it acts now."""
    records = (one for one in run.programs.found.values() if now.fit(one))
    names = ("score", "low", "high", "played")
    return [Promise(one["target"], *(float(one["expected"][name]) for name in names)) for one in records]


def _columns(run: Run, what: str) -> list[Column]:
    """Names, units and ranges; of observations the range in training, of actions the task's."""
    data, normal = run.description["data"], run.normalizers
    if what == "observations":
        low, high = (getattr(normal, f"state_{end}", None) for end in ("low", "high"))
        width, short = len(normal.state_mean), "obs"
    elif run.task.discrete is not None:
        low = high = None
        width, short = run.task.discrete.count, "act"
    else:
        low, high = normal.action_middle - normal.action_half, normal.action_middle + normal.action_half
        width, short = len(normal.action_middle), "act"
    names = (data.get("columns") or {}).get(what) or [f"{short}[{i}]" for i in range(width)]
    if what == "observations" and names[0] == "obs[0]":
        own = {place: name for name, place in run.task.features.items() if isinstance(place, int)}
        names = [f"{name} {own[i]}" if i in own else name for i, name in enumerate(names)]
    units = _units(data.get("units"), what, names)
    lows, highs = ([None] * width if ends is None else ends.tolist() for ends in (low, high))
    return [Column(*column) for column in zip(names, lows, highs, units, strict=True)]


def _units(units: Any, what: str, names: Sequence[str]) -> list[str | None]:
    """By column, from units by name or lists of them."""
    found = units.get(what, units) if isinstance(units, Mapping) else None
    if isinstance(found, Mapping):
        return [found.get(name) for name in names]
    if isinstance(found, Sequence) and not isinstance(found, str) and len(found) == len(names):
        return [unit or None for unit in found]
    return [None] * len(names)


def _next(name: str, run: Run, targets: Sequence[Suggestion]) -> str:
    """A command to type: a match in simulation where there is an environment, else a controller."""
    wanted = next((t.target for t in targets if not t.target.startswith("demo(")), None)
    wanted = wanted or (targets[0].target if targets else "...")
    if run.env_id is None:
        return f'python -c \'import himatch; himatch.load("{name}").controller("{wanted}")\''
    return f'himatch match {shlex.quote(name)} --target "{wanted}" --plot match.png'
