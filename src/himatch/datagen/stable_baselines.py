"""Agents of Stable-Baselines3, with the running statistics they saw their observations through.

Both files are pickles of their author's: loading them runs whatever code they hold.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from himatch._runtime.files import reading
from himatch._runtime.threads import one_thread
from himatch.datagen.behaviour import FunctionPolicy, check_dims, file_hash
from himatch.errors import HimatchError, one_line
from himatch.simulation import Behaviour, Simulator
from himatch.tasks import Task
from himatch.tasks.spaces import action_dims, vector_width

ALGORITHMS = {
    **dict.fromkeys(("SAC", "TD3", "PPO", "A2C", "DDPG"), "stable_baselines3"),
    "TQC": "sb3_contrib",
}
NORMALIZERS = ("vecnormalize.pkl", "vec_normalize.pkl")


@dataclass(frozen=True)
class Sb3Policy:
    """A Stable-Baselines3 agent."""

    name: str
    algorithm: str
    model: Any
    normalizer: Any | None
    deterministic: bool
    files: Mapping[str, str]
    """SHA-256 of what it was read from, by file name."""

    @property
    def facts(self) -> dict[str, Any]:
        """Algorithm, files and how it acts."""
        return {
            "policy": f"sb3:{self.name}",
            "algorithm": self.algorithm,
            "normalized": self.normalizer is not None,
            "deterministic": self.deterministic,
            "sha256": dict(self.files),
        }

    def settings(self, task: Task) -> Mapping[str, Any]:
        """None: the task says what its environment is."""
        return {}

    def act(self, observations: NDArray[np.float64]) -> Any:
        """Actions in the range the agent was trained with."""
        seen = observations if self.normalizer is None else self.normalizer.normalize_obs(observations)
        return self.model.predict(seen, deterministic=self.deterministic)[0]

    @contextmanager
    def acting(self, simulator: Simulator, seed: int) -> Iterator[Behaviour]:
        """Its actions; samples are drawn from torch's generator, seeded for the while."""
        spaces = self.model.observation_space, self.model.action_space
        observation = vector_width(spaces[0], f"the observation of {self.name}")
        action = action_dims(spaces[1], f"the action of {self.name}")[0]
        check_dims(f"the agent {self.name}", observation, action, simulator)
        if self.normalizer is not None and self.normalizer.norm_obs:
            width = np.shape(self.normalizer.obs_rms.mean)[0]
            check_dims(f"the VecNormalize file of {self.name}", width, action, simulator)
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if self.model.use_sde:  # noise that depends on the state is drawn once for all
                self.model.policy.reset_noise()
            yield FunctionPolicy(f"sb3:{self.name}", self.act).behaviour(simulator)


def load_sb3_policy(path: Path, vecnormalize: str | Path | None = None, *, deterministic: bool = False) -> Sb3Policy:
    """Read an agent and its VecNormalize file, by default the one beside it."""
    if not path.is_file():
        raise HimatchError(f"{path}: there is no such file; write sb3:AGENT.zip")
    if importlib.util.find_spec("stable_baselines3") is None:
        raise HimatchError('Stable-Baselines3 agents need it installed: pip install "himatch[sb3]"')
    algorithm, model = _load_model(path)
    beside = _find_normalizer(path) if vecnormalize is None else Path(vecnormalize)
    files = {file.name: file_hash(file) for file in (path, beside) if file is not None and file.is_file()}
    normalizer = None if beside is None else _load_normalizer(beside)
    return Sb3Policy(path.name, algorithm, model, normalizer, deterministic, files)


def _load_model(path: Path) -> tuple[str, Any]:
    with reading(str(path)), zipfile.ZipFile(path) as archive:
        facts = json.loads(archive.read("data")) if "data" in archive.namelist() else None
    if not isinstance(facts, dict):
        raise HimatchError(f"{path} is no Stable-Baselines3 agent (no 'data' in the zip)")
    failures = []
    for name in _guesses(facts):
        try:
            module = importlib.import_module(ALGORITHMS[name])
        except ImportError:
            failures.append(f"{name} needs pip install {ALGORITHMS[name].replace('_', '-')}")
            continue
        try:
            with torch.random.fork_rng(devices=[]):  # weights are drawn before they are read
                return name, getattr(module, name).load(path, device="cpu", custom_objects=_stand_ins())
        except Exception as reason:  # a pickle may fail in any way
            failures.append(f"{name}: {one_line(reason)}")
    raise HimatchError(f"{path}: no algorithm of Stable-Baselines3 loads it ({failures[0]})")


def _stand_ins() -> dict[str, Any]:
    """For what only training needs, costs memory, or may not unpickle in another version of Python."""
    return {
        "seed": None,  # or loading would seed every generator of the process
        "learning_rate": 0.0,
        "lr_schedule": lambda _: 0.0,
        "clip_range": lambda _: 0.0,
        "buffer_size": 1,
        "replay_buffer_class": None,
        "replay_buffer_kwargs": {},
    }


def _guesses(facts: Mapping[str, Any]) -> list[str]:
    """Algorithms in the order of likelihood, from the settings that the zip holds as plain JSON."""
    policy = facts.get("policy_class")
    module = str(policy.get("__module__", "")) if isinstance(policy, dict) else ""
    kwargs = facts.get("policy_kwargs")
    likely = next((name for name in ALGORITHMS if f".{name.lower()}." in module), None)
    if likely == "TD3" and isinstance(kwargs, dict) and kwargs.get("n_critics") == 1:
        likely = "DDPG"
    elif likely is None:
        likely = "PPO" if "clip_range" in facts else "A2C" if "gae_lambda" in facts else "SAC"
    return [likely, *(name for name in ALGORITHMS if name != likely)]


def _find_normalizer(agent: Path) -> Path | None:
    """Beside the agent, or one folder deeper as RL Zoo has it (``Hopper-v4_1/Hopper-v4/vecnormalize.pkl``)."""
    for folder in (agent.parent, agent.parent / agent.stem):
        for name in NORMALIZERS:
            if (folder / name).is_file():
                return folder / name
    deeper = [path for name in NORMALIZERS for path in agent.parent.glob(f"*/{name}")]
    return deeper[0] if len(deeper) == 1 else None


def _load_normalizer(path: Path) -> Any:
    if not path.is_file():
        raise HimatchError(f"--vecnormalize {path}: there is no such file")
    try:
        with path.open("rb") as file:
            found = pickle.load(file)
    except Exception as reason:  # a pickle may fail in any way
        raise HimatchError(f"{path}: cannot be read, the file is damaged ({reason})") from reason
    if not isinstance(found, importlib.import_module("stable_baselines3.common.vec_env").VecNormalize):
        raise HimatchError(f"{path} holds a {type(found).__name__}, not a VecNormalize")
    return found
