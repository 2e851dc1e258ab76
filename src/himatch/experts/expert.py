"""Trained agents: weights, kept in half precision, beside a card that says where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from himatch._runtime.files import entry, write_json
from himatch._runtime.tensors import write_tensors
from himatch.errors import HimatchError
from himatch.experts.cards import read_cards, read_weights, weights_hash
from himatch.experts.networks import Actor, NetworkDims
from himatch.tasks import Task, get_task


@dataclass(frozen=True)
class Expert:
    """One trained agent."""

    name: str
    task: Task
    weights: Mapping[str, Tensor]
    card: Mapping[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """What its environment was made with, beyond the task's own."""
        return dict(self.card.get("settings", {}))

    @property
    def weights_hash(self) -> str:
        """SHA-256 of its weights."""
        return weights_hash({name: tensor.numpy() for name, tensor in self.weights.items()})

    @cached_property
    def actor(self) -> Actor:
        """The network, a stack of one."""
        return stacked_actor([self.weights])

    @torch.no_grad()
    def act(self, observations: ArrayLike, noise: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Actions ``(n, act)`` in the task's range; sampled for standard normal ``noise (n, act)``, else the mode."""
        # Copies, because PyTorch warns of arrays that it may not write to.
        seen = torch.from_numpy(np.array(observations, dtype=np.float32)).unsqueeze(0)
        drawn = None if noise is None else torch.from_numpy(np.array(noise, dtype=np.float32)).unsqueeze(0)
        return to_range(self.actor.act(seen, drawn)[0].numpy(), self.task)


def to_range(squashed: NDArray[np.float32], task: Task) -> NDArray[np.float32]:
    """Numbers in [-1, 1] to the task's action range."""
    low, high = np.float32(task.action_low), np.float32(task.action_high)  # type: ignore[arg-type]
    return ((low + high) / 2 + (high - low) / 2 * squashed).astype(np.float32)


def stacked_actor(agents: Sequence[Mapping[str, Tensor]]) -> Actor:
    """One network for several agents of one task."""
    first = agents[0]
    last = sum(name.endswith("weight") for name in first) - 1
    hidden = tuple(first[f"layers.{i}.weight"].shape[1] for i in range(last))
    action = first[f"layers.{last}.weight"].shape[1] // 2
    dims = NetworkDims(first["layers.0.weight"].shape[0], action, hidden)
    actor = Actor((action,) * len(agents), dims)
    actor.load_state_dict({name: torch.stack([a[name].float() for a in agents]) for name in first})
    return actor.eval()


def narrowed(weights: Mapping[str, Tensor], observation: int, action: int) -> dict[str, Tensor]:
    """An agent of a padded stack, cut to its own task's dims."""
    cut = dict(weights)
    last = max(int(name.split(".")[1]) for name in weights)
    padded = weights[f"layers.{last}.bias"].shape[-1] // 2
    columns = [*range(action), *range(padded, padded + action)]
    cut["layers.0.weight"] = weights["layers.0.weight"][:observation]
    for part in ("weight", "bias"):
        cut[f"layers.{last}.{part}"] = weights[f"layers.{last}.{part}"][..., columns]
    return cut


def write_family(folder: Path, family: str, agents: Sequence[Expert]) -> None:
    """Write weights and cards of a family's agents; others that are there already stay."""
    new = {agent.name: agent for agent in agents}
    known = [name for name, card in read_cards(folder).items() if card["family"] == family] if folder.is_dir() else []
    together = [new.pop(name) if name in new else load_expert(name, folder) for name in known] + list(new.values())
    together.sort(key=lambda agent: (agent.name.endswith("-expert"), agent.name))
    tensors = {name: torch.stack([a.weights[name].half() for a in together]) for name in together[0].weights}
    cards = [
        {"name": a.name, "task": a.task.name, **{k: v for k, v in a.card.items() if k not in ("family", "place")}}
        for a in together
    ]
    write_tensors(folder / f"{family}.safetensors", tensors)
    write_json(folder / f"{family}.json", {"agents": cards})


def load_expert(name: str, folder: str | Path | None = None) -> Expert:
    """A bundled expert by name (``halfcheetah-expert``, ``cheetah-vel-0.5``), or one of a folder of your own."""
    cards = read_cards(folder)
    if name not in cards:
        known = ", ".join(sorted(cards)) or "none"
        place = "comes with himatch" if folder is None else f"is in {folder}"
        raise HimatchError(f"no expert called {name!r} {place}; known: {known}")
    task = get_task(entry(cards[name], str, f"the card of {name}", "task"))
    weights = {key: torch.from_numpy(array) for key, array in read_weights(cards[name], folder).items()}
    return Expert(name, task, weights, cards[name])
