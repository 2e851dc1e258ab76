"""Which pretrained policies there are and what their cards say, read without PyTorch.

A model is a run folder cut down to what matching needs (``himatch models bundle``): weights of one seed in half
precision, some of the training episodes, and ``evaluation.json``, which was found with these very files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from himatch._runtime.files import entry
from himatch._runtime.seals import EVALUATE, RUN_FORMAT, read_found, read_sealed

BUNDLED = Path(__file__).parent / "bundled"


@dataclass(frozen=True)
class ModelCard:
    """What is known about a model. ``w1`` and ``mixture`` by group of held-out targets, and in ``total``."""

    name: str
    method: str
    task: str
    feature: str
    temperature: float | None
    """Of sampled actions; ``None`` for a deterministic policy."""
    w1: dict[str, float]
    mixture: dict[str, float]
    played: float
    """The part of the targets' steps that rollouts lasted."""
    charged: float
    """W1 with the rest of the time charged, over all targets."""
    targets: int
    episodes: int
    data: str
    data_episodes: int
    data_hash: str
    command: str
    size: int
    choice: str | None
    """Which seed of how many this is, and how it was chosen; ``None`` where there was but one."""

    @property
    def acts(self) -> str:
        """Its temperature in a table."""
        return "" if self.temperature is None else f"{self.temperature:g}"


def model_names(folder: Path = BUNDLED) -> list[str]:
    """The models in a folder of models, those that come with himatch by default."""
    return sorted(path.parent.name for path in folder.glob("[!.]*/run.json"))


def find_model(name: str | Path) -> Path | None:
    """The run folder of a bundled model."""
    return BUNDLED / str(name) if str(name) in model_names() else None


def read_cards(folder: str | Path | None = None) -> list[ModelCard]:
    """The cards of all models in a folder."""
    return [read_card(Path(folder or BUNDLED) / name) for name in model_names(Path(folder or BUNDLED))]


def read_card(folder: Path) -> ModelCard:
    """One model's card."""
    where = str(folder)
    run, found = read_sealed(folder / "run.json", RUN_FORMAT), read_found(folder / "evaluation.json", EVALUATE)
    targets = entry(found, list, where, "targets")
    mixtures: dict[str, list[float]] = {group: [] for group in entry(found, dict, where, "summary")}
    for i in range(len(targets)):
        group = entry(found, str, where, "targets", i, "group")
        for name in mixtures:
            if name in (group, "total"):
                mixtures[name].append(entry(found, float, where, "targets", i, "mixture"))
    return ModelCard(
        name=folder.name,
        method=entry(run, str, where, "method", "name"),
        task=entry(run, str, where, "task", "name"),
        feature=entry(found, str, where, "feature"),
        temperature=entry(run, float, where, "temperature") if "temperature" in run else None,
        w1={group: entry(found, float, where, "summary", group, "mean") for group in mixtures},
        mixture={group: sum(values) / len(values) if values else math.nan for group, values in mixtures.items()},
        played=sum(entry(found, float, where, "targets", i, "played") for i in range(len(targets))) / len(targets),
        charged=sum(entry(found, float, where, "targets", i, "w1_charged") for i in range(len(targets))) / len(targets),
        targets=len(targets),
        episodes=entry(found, int, where, "targets", 0, "episodes"),
        data=entry(run, str, where, "data", "source"),
        data_episodes=entry(run, int, where, "data", "episodes"),
        data_hash=entry(run, str, where, "data", "hash"),
        command=entry(run, str, where, "bundled", "command"),
        size=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        choice=seed_choice(run),
    )


def seed_choice(run: dict[str, Any]) -> str | None:
    """What a description says about the choice of its seed among several, every seed's score included."""
    facts = run.get("bundled") or {}
    seeds = facts.get("seeds", ())
    if len(seeds) < 2:
        return None
    scores = ", ".join(f"{seed}: {score:.4g}" for seed, score in facts["scores"].items())
    chosen = f"seed {run['seeds'][0]} out of {len(seeds)}, chosen by {facts['chosen_by']}"
    return f"{chosen} ({scores})" if scores else chosen


def markdown(cards: list[ModelCard]) -> str:
    """The cards as a table, and the command that trained each."""
    groups = list(dict.fromkeys(group for card in cards for group in card.w1))
    columns = " | ".join(f"W1, {group}" for group in groups)
    lines = [
        f"| model | method | scored on | temperature | {columns} | played | charged | mixture | data (sha256) | MB |",
        "|---" * (len(groups) + 9) + "|",
    ]
    for card in cards:
        scores = " | ".join(f"{card.w1[group]:.3f}" if group in card.w1 else "" for group in groups)
        lines.append(
            f"| `{card.name}` | {card.method} | {card.feature} | {card.acts} | {scores} | {card.played:.0%} | "
            f"{card.charged:.3f} | {card.mixture['total']:.3f} | "
            f"{card.data}, {card.data_episodes:,} episodes ({card.data_hash[:12]}) | {card.size / 1e6:.1f} |"
        )
    commands = "\n".join(card.command.replace("--out RUN", f"--out runs/{card.name}") for card in cards)
    note = "<!-- parsed only: minutes of GPU -->"
    chosen = [f"- `{card.name}`: {card.choice}" for card in cards if card.choice]
    lines += ["", *chosen] if chosen else []
    return "\n".join(lines) + f"\n\n{note}\n```bash\n{commands}\n```"
