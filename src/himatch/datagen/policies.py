"""Behaviour policies by what a user writes: ``sb3:AGENT.zip``, ``expert:NAME``, ``file.py:function``, a function."""

from __future__ import annotations

from pathlib import Path

from himatch.data.wording import listed
from himatch.datagen.behaviour import Act, BehaviourPolicy, FunctionPolicy, file_hash
from himatch.errors import HimatchError
from himatch.tasks.imports import import_code


def open_policy(
    policy: str | Act, *, deterministic: bool = False, vecnormalize: str | Path | None = None
) -> BehaviourPolicy:
    """``sb3:AGENT.zip``, ``expert:NAME``, ``module:function``, ``file.py:function``, or a function itself.

    A Stable-Baselines3 file and a Python file run code of whoever wrote them.
    """
    kind, _, rest = ("", "", "") if callable(policy) else policy.partition(":")
    if vecnormalize is not None and kind != "sb3":
        raise HimatchError("--vecnormalize belongs to a Stable-Baselines3 agent (--policy sb3:AGENT.zip)")
    if kind == "sb3" and rest:
        from himatch.datagen.stable_baselines import load_sb3_policy

        return load_sb3_policy(Path(rest), vecnormalize, deterministic=deterministic)
    if kind == "expert" and rest:
        from himatch.datagen.sampled_experts import ExpertPolicy
        from himatch.experts import load_expert

        return ExpertPolicy(load_expert(rest), deterministic)
    if deterministic:
        raise HimatchError("--deterministic is for sb3: and expert: policies; a function decides for itself")
    if callable(policy):
        return FunctionPolicy(getattr(policy, "__name__", type(policy).__name__), policy)
    return _function_policy(policy)


def _function_policy(policy: str) -> FunctionPolicy:
    place, _, name = policy.rpartition(":")
    if not place or not name:
        raise HimatchError(
            f"cannot understand the policy {policy!r}; write sb3:AGENT.zip, expert:NAME, run:RUN, module:function "
            "or file.py:function"
        )
    names = vars(import_code(place, f"--policy {policy}"))
    more = {"sha256": file_hash(Path(place))} if place.endswith(".py") else {}
    if name not in names:
        known = listed(n for n, value in names.items() if callable(value) and not n.startswith("_"))
        raise HimatchError(f"--policy {policy}: {place} has no function {name!r}; it has: {known}")
    if not callable(names[name]):
        raise HimatchError(f"--policy {policy}: {name} is not a function but of type {type(names[name]).__name__}")
    return FunctionPolicy(f"{Path(place).name}:{name}", names[name], more)
