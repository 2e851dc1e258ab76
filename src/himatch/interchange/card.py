"""The model card of a run: what it is, how it was made, how well it does, how to use it."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from typing import Any

import numpy as np

from himatch.datagen.recipes import made_as
from himatch.evaluation.evaluation import middle
from himatch.evaluation.wording import share
from himatch.methods import METHODS, Method
from himatch.models import seed_choice
from himatch.policy import Policy
from himatch.runs.hub import HubName
from himatch.training import PRESETS, configure

CITATION = """@inproceedings{furuta2022generalized,
  title     = {Generalized Decision Transformer for Offline Hindsight Information Matching},
  author    = {Furuta, Hiroki and Matsuo, Yutaka and Gu, Shixiang Shane},
  booktitle = {International Conference on Learning Representations (ICLR)},
  year      = {2022}
}"""


def model_card(policy: Policy, name: HubName) -> str:
    """The whole page, in Markdown with the Hub's header."""
    method, task, description = policy.method.name, policy.task.name, policy.description
    title = name.repository.partition("/")[2]
    header = ["himatch", "reinforcement-learning", "offline-rl", "decision-transformer", task]
    parts = [
        "---\nlibrary_name: himatch\npipeline_tag: reinforcement-learning\ntags:\n"
        + "".join(f"- {tag}\n" for tag in dict.fromkeys(header))
        + "---",
        f"# {title}",
        f"A `{method}` for the task `{task}`, {len(policy.seeds)} seed(s), trained offline with "
        "[hindsight information matching](https://openreview.net/forum?id=CAjxVodl_v) and stored by "
        f"himatch {description['versions']['himatch']}. At run time it is conditioned on {_conditioning(policy)}.",
        f"## Use\n\n{_use(policy, name)}",
        f"## How it was made\n\n{_table(_facts(policy))}\n\n```\n{command(description)}\n```",
    ]
    evaluation = _evaluation(policy)
    if evaluation is not None:
        parts.append(f"## Evaluation\n\n{evaluation}")
    parts.append(f"## Citation\n\n```bibtex\n{CITATION}\n```")
    return "\n\n".join(parts) + "\n"


def _conditioning(policy: Policy) -> str:
    meaning = policy.method.meaning(policy.statistic)
    return meaning if policy.statistic.matched is None else f"the {meaning}"


def _use(policy: Policy, name: HubName) -> str:
    target = _example(policy)
    functions = policy.description["task"].get("functions")
    first = f"# register the task {policy.task.name!r} first: {', '.join(functions)}\n" if functions else ""
    return (
        f'```\npip install "himatch[hub]"\nhimatch match {name} --target "{target}"\n```\n\n```python\n'
        f'import himatch\n\n{first}policy = himatch.load("{name}")\nresult = policy.match("{target}")\n```\n\n'
        "Nothing in this repository is code; loading runs none."
    )


def _example(policy: Policy) -> str:
    """A target in the midst of what the training episodes show."""
    if policy.method.imitates:
        return "demo(episodes.hdf5, 0)"
    reference = policy.reference()
    bins, kind = reference.frame.bins, policy.method.matches
    if kind != "distribution" and len(reference.lengths):
        reached = np.median(reference.totals if kind == "return" else reference.finals, axis=0)
        return f"{kind}({', '.join(f'{x:.3g}' for x in reached)})"
    if kind == "return":
        return f"return({(policy.task.reference_returns or (0.0, 1000.0))[1]:.0f})"
    middles = (np.array(bins.low) + bins.high) / 2
    parts = [f"normal({x:.3g},{4 * width:.2g})" for x, width in zip(middles, bins.widths, strict=True)]
    return parts[0] if len(parts) == 1 else f"joint({', '.join(parts)})"


def _facts(policy: Policy) -> dict[str, str]:
    description = policy.description
    data = description["data"]
    environment = data.get("env_id") or policy.task.env_id
    facts = {
        "method": ", ".join(f"{k} {v}" for k, v in description["method"].items()),
        "model": ", ".join(f"{k} {v}" for k, v in description["model"].items()),
        "data": f"{data['source']}, {data['episodes']} episodes, {data['steps']} steps"
        if data["source"]
        else "unknown",
        "sha256 of the data": str(data.get("hash") or "unknown"),
        "environment": str(environment or "none"),
        "seeds": ", ".join(map(str, policy.seeds)),
        "versions": ", ".join(f"{k} {v}" for k, v in description["versions"].items()),
    }
    chosen = seed_choice(description)
    if chosen is not None:
        facts["seeds"] = chosen
    for what, value in (description.get("imported") or {}).items():
        facts[f"imported: {what}"] = str(value)
    return facts


def command(description: dict[str, Any]) -> str:
    """The command that makes such a run, with what differs from the nearest preset."""
    data = description["data"]
    if description.get("imported"):
        source = description["imported"]["source"]
        return f"himatch import {source} --task {description['task']['name']} --out RUN"
    settings = description["model"] | description["train"]
    method = dict(description["method"])
    default = METHODS[method.pop("name")]()
    differing = {name: _differing(settings, name, default) for name in PRESETS}
    preset = min(differing, key=lambda name: len(differing[name]))
    chosen = {k: value for k, value in method.items() if json.dumps(value) != json.dumps(getattr(default, k))}
    seeds = description["seeds"]
    options = {
        **chosen,
        "data": made_as(data.get("source") or "SOURCE"),
        "task": description["task"]["name"],
        "preset": preset,
        **differing[preset],
        "seed": seeds[0],
        "seeds": len(seeds),
        "split": description["split"].get("name") or "SPLIT",
        "out": "RUN",
    }
    words = [word for key, value in options.items() for word in _flag(key.replace("_", "-"), value)]
    return shlex.join(["himatch", "train", default.name, *words])


def _flag(name: str, value: Any) -> list[str]:
    """A setting as the command line takes it."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", *map(str, value if isinstance(value, list | tuple) else [value])]


def _differing(settings: dict[str, Any], preset: str, method: Method) -> dict[str, Any]:
    """The settings that a preset does not have; its warm-up is the one that it has with so many steps."""
    model, train = configure(preset, method, steps=settings["steps"])
    usual = asdict(model) | asdict(train) | {"steps": configure(preset, method)[1].steps}
    return {key: value for key, value in settings.items() if usual.get(key) != value}


def _evaluation(policy: Policy) -> str | None:
    """The groups of ``evaluation.json``, if there is one of this run."""
    content = policy.run.folder.evaluated()
    if content is None:
        return None
    try:
        targets = content["targets"]
        rows = [
            f"| {group} | {s['mean']:.3f} ± {s['std']:.3f} | {middle(s)} | {_lasted(targets, group)} |"
            for group, s in content["summary"].items()
        ]
        with_interval = any(s["low"] is not None for s in content["summary"].values())
        how = (
            f"Feature `{content['feature']}`, {content['conditioning']} conditioning, {len(targets)} targets, "
            f"{targets[0]['episodes']} rollouts of each and every seed, in "
            f"{content['provenance']['env_id'] or 'an environment that was handed over'}. The error is W1 for "
            "distributions, else how far a rollout's return or final value is off, on average. Charged counts "
            "every step that was not played at the feature's spread."
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None  # somebody else's file of that name
    head = "interquartile mean" + (" (95% interval)" if with_interval else "")
    return "\n".join([how, "", f"| targets | error | {head} | played | charged |", "|---|---|---|---|---|", *rows])


def _lasted(targets: list[dict[str, Any]], group: str) -> str:
    """``91% | 0.354``: how much of the time was played, and the error with the rest charged, where the file says."""
    chosen = [target for target in targets if group in ("total", target.get("group"))]
    played: list[Any] = [target.get("played") for target in chosen]
    charged: list[Any] = [target.get("charged", target.get("w1_charged")) for target in chosen]
    if not chosen or None in played or None in charged:
        return "- | -"
    return f"{share(sum(played) / len(played))} | {sum(charged) / len(charged):.3f}"


def _table(facts: dict[str, str]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {what} | {value} |" for what, value in facts.items())])
