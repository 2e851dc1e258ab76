"""Whether a policy uses its conditioning: the factor by which its action error rises under another episode's z."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from himatch.data import TrajectoryDataset
from himatch.errors import note
from himatch.runs.run import Run
from himatch.types import Trajectory

IGNORES, WEAK = 1.05, 1.5  # below these factors a policy ignores its conditioning, or uses it little
SCORED, SCORED_STEPS = 20, 4_000  # episodes, and steps of theirs, that a trained policy is scored on at most
FEWEST = 5  # episodes that are not alike by chance
FEW_STEPS = 1_000  # gradient steps after which a policy may not have come to its conditioning yet


def in_words(sensitivity: float) -> str:
    """``ignores``, ``weak`` or ``strong``; ``not known`` of a single episode."""
    if not np.isfinite(sensitivity):
        return "not known"
    return "ignores" if sensitivity < IGNORES else "weak" if sensitivity < WEAK else "strong"


def chosen_episodes(*sources: tuple[str, TrajectoryDataset | None]) -> tuple[str, list[Trajectory]]:
    """Some episodes of the first source that has enough, spread over it, and what they are called.

    Of a handful all may be alike, so that any policy would seem to ignore its conditioning; the last is taken anyhow.
    """
    for place, (name, episodes) in enumerate(sources):
        if episodes is None or len(episodes) < (2 if place == len(sources) - 1 else FEWEST):
            continue
        affordable = int(SCORED_STEPS // max(float(episodes.lengths.mean()), 1.0))
        count = min(len(episodes), SCORED, max(affordable, 4))
        chosen = np.linspace(0, len(episodes) - 1, count).round().astype(np.int64)
        return name, [episodes[int(number)] for number in chosen]
    return "none", []


def scores(name: str, episodes: Sequence[Trajectory], score: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    """What a run folder keeps of a score."""
    plain = {key: [float(x) if np.isfinite(x) else None for x in values] for key, values in score.items()}
    return {"on": name, "episodes": len(episodes), **plain}


def sensitivities(run: Run) -> list[float]:
    """That of every seed where the run says; empty where it does not."""
    kept = (run.scores or {}).get("sensitivity", [])
    return [np.nan if x is None else float(x) for x in kept]


def ignored(run: Run) -> dict[int, float]:
    """Seeds that ignore their conditioning, with their sensitivities; ``bc`` has none to ignore."""
    if not run.description["widths"]["z"]:
        return {}
    found = sensitivities(run)
    return {seed: x for seed, x in zip(run.seeds, found, strict=False) if in_words(x) == "ignores"}


def note_ignored(run: Run) -> None:
    """Warn loudly of a policy that ignores its conditioning, with what is likely the cause and what to do."""
    if not (found := ignored(run)):
        return
    causes = likely_causes(run)
    note(
        f"THIS POLICY IGNORES ITS CONDITIONING: {_of_seeds(found)} (1 is none at all), so all targets lead to much the "
        f"same behaviour. {' '.join(f'({number}) {cause}' for number, cause in enumerate(causes, 1))}"
    )


def note_ignored_in_match(run: Run) -> None:
    """Remind whoever matches with such a policy."""
    if found := ignored(run):
        note(
            f"{run.folder} ignores its conditioning ({_of_seeds(found)}): what it does says nothing of the target; "
            f"himatch show {run.folder} says more"
        )


def likely_causes(run: Run) -> list[str]:
    """Why a policy may ignore its conditioning, likely ones first, each with what to do."""
    causes, steps = [], int((run.description.get("train") or {}).get("steps", 0))
    for column in run.description["data"].get("extremes", []):
        name, count, farthest, low, high = (column[key] for key in ("name", "count", "farthest", "low", "high"))
        causes.append(
            f"{name} has {count:,} extreme value{'s' * (count > 1)}, such as {farthest:.6g}, the others lie between "
            f"{low:.4g} and {high:.4g}; mend them, or leave their episodes out (--drop-extremes)."
        )
    bins = run.statistic.bins
    if bins is not None:
        used = int(run.reference().occupied.min())
        said = f"The training data occupies {used} of {bins.count} bins of {run.feature}"
        if used <= bins.count // 4:
            causes.append(f"{said}: a constant feature, or outliers that stretch the bins; mend or cut the outliers.")
    if steps < FEW_STEPS:
        causes.append(f"It was trained for {steps:,} steps; train longer (--steps).")
    causes.append(f"Episodes may be all alike in {run.feature}; add episodes that differ, or match another feature.")
    if steps >= FEW_STEPS:
        causes.append("The observations may tell the action without z; a shorter --context leaves z more to say.")
    return causes


def _of_seeds(found: Mapping[int, float]) -> str:
    return "sensitivity " + ", ".join(f"{x:.3g} of seed {seed}" for seed, x in found.items())
