"""Is everything still bit for bit as it was? Compares what himatch computes now with golden files.

    python benchmarks/golden.py [--only training matching report resume] [--results FOLDER]
    python benchmarks/golden.py --write

In ``golden``: ``training.json``, of every method the first losses of every stage, the draws, the first batches, the
weights, and what the policy does then; ``matching.json``, rollouts and actions of the bundled models; ``report.json``,
every file and table of the report on ``results``; ``resume.json``, weights of runs trained in one piece and in several.

Numbers must be equal to the last bit, which two machines, or two versions of PyTorch, need not agree on: write the
files and compare with them on one machine. Prints a line for each item and ends with 1 if any differs.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import json
import math
import platform
import re
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

import himatch as hm
from himatch.divergences import energy_distance

GOLDEN = Path(__file__).parent / "golden"
RESULTS = Path(__file__).parents[1] / "results"
Items = dict[str, Any]

# -- what is not public: all that has to follow when himatch is rebuilt inside --------------------------------------

See = Callable[[str, Mapping[str, Tensor], Tensor, Tensor], None]


def found(name: str, *modules: str) -> Any:
    """A name, from the first of these modules that has it: where it is now, and where it was."""
    for module in modules:
        with suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(f"himatch.{module}"), name)
    raise ImportError(f"no {name} in {', '.join(modules)}")


def method_names() -> set[str]:
    return set(found("METHODS", "methods", "policy"))


def model_names() -> list[str]:
    names: list[str] = found("model_names", "models")()
    return names


@contextmanager
def watching(see: See) -> Iterator[None]:
    """Calls ``see(stage, batch, minimised, reported)`` in every training step, once its losses are known.

    Found by their names: ``training_losses(batch)`` and ``part_losses(part, batch)`` of whatever module has them.
    """
    _ = hm.train  # imported with all agents
    inside = False

    def watched(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def losses(self: object, *arguments: Any) -> Any:
            nonlocal inside
            if inside:  # one asks the other
                return method(self, *arguments)
            inside = True
            try:
                result = method(self, *arguments)
            finally:
                inside = False
            stage = arguments[0] if name == "part_losses" else "policy"
            see(stage, tensors_of(arguments[-1]), *(result if isinstance(result, tuple) else (result, result)))
            return result

        return losses

    with ExitStack() as changes:
        for cls in descendants(torch.nn.Module):
            for name in ("training_losses", "part_losses"):
                if cls.__module__.startswith("himatch.") and name in vars(cls):
                    changes.enter_context(patch.object(cls, name, watched(name, vars(cls)[name])))
        yield


def tensors_of(batch: Any) -> dict[str, Tensor]:
    renamed = {"continues": "goes_on", "target_states": "targets"}
    return {renamed.get(name, name): tensor for name, tensor in batch._asdict().items() if tensor is not None}


@contextmanager
def noting_draws(draws: list[str]) -> Iterator[None]:
    """Notes what is drawn from ``np.random.default_rng([seed, chunk])``: windows, look-aheads, noise."""
    make = np.random.default_rng

    class Noted(np.random.Generator):
        seed: list[int]

        def note(self, what: str, drawn: Any) -> Any:
            draws.append(f"{self.seed} {what} {drawn.shape} {short(drawn.tobytes())}")
            return drawn

        def integers(self, *arguments: Any, **named: Any) -> Any:
            return self.note("integers", super().integers(*arguments, **named))

        def random(self, *arguments: Any, **named: Any) -> Any:
            return self.note("random", super().random(*arguments, **named))

        def standard_normal(self, *arguments: Any, **named: Any) -> Any:
            return self.note("standard_normal", super().standard_normal(*arguments, **named))

    def noted(seed: Any = None) -> np.random.Generator:
        if not isinstance(seed, list | tuple):
            return make(seed)
        rng = Noted(make(seed).bit_generator)
        rng.seed = list(seed)
        return rng

    with patch.object(np.random, "default_rng", noted):
        yield


def conditionings() -> dict[str, str]:
    """The names in the golden files, and what they are called now."""
    first = inspect.signature(hm.Policy.match).parameters["conditioning"].default
    now = ("open", "closed", "planned") if first == "open" else ("nominal", "remaining", "planned")
    return dict(zip(("open", "closed", "planned"), now, strict=True))


def usual_words(text: str) -> str:
    """A text with conditionings by neither their old nor their new names."""
    return re.sub(r"\b(closed|remaining)\b", "(closed)", re.sub(r"\b(open|nominal)\b", "(open)", text))


def graph_outputs(policy: hm.Policy) -> list[Tensor]:
    """What an exported file would compute, on fixed inputs; of a policy that samples its mean action."""
    graph, ports = (found(name, "interchange.graph") for name in ("PolicyGraph", "inputs_of"))
    one, rng = policy.only(policy.seeds[0]), np.random.default_rng(0)
    inputs = [
        torch.from_numpy(rng.normal(size=(6, *port.shape)).astype(np.float32)) if port.shape else 2 * torch.arange(6)
        for port in ports(one)
    ]
    if ports(one)[-1].name == "noise":
        inputs[-1].zero_()
    with torch.inference_mode():
        outputs = graph(one)(*inputs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def report_on(results: Path, folder: Path) -> list[Any]:
    """Writes the report on results into a folder; gives its tables."""
    read = found("read_results", "reproduce.results", "benchmark.results")
    write, failures = (found(name, "reproduce.report", "report") for name in ("write_report", "read_failures"))
    return list(write(read([results]), folder, failures([results])).tables)


def table_items(table: Any) -> Items:
    """By row: means, and a hash of all numbers of its cells."""
    rows = {
        usual_words(row.name): {
            "means": [None if cell.ours is None else cell.ours.mean for cell in row.cells],
            "cells": short(json.dumps([astuple(cell) for cell in row.cells]).encode()),
        }
        for row in table.rows
    }
    return {"rows": rows, "words": short(usual_words("\n".join([table.caption, *table.notes])).encode())}


# -- training -------------------------------------------------------------------------------------------------------

STEPS, HASHED = 20, 3  # losses, and hashed batches, of every stage
SIZE = {"preset": "cpu", "batch_size": 16, "layers": 2, "width": 16, "head": "tanh"}
SMALL = {**SIZE, "steps": STEPS, "seed": 3, "seeds": 2}
LEARNED = {"m": 2, "target_window": 4, "look_ahead": 3}
TASKS = {"m": 3, "encoder": (16, 16), "tasks": 3, "context_steps": 4}
MODES = ("unsupervised", "joint", "frozen")
CHANCE = {"tokens": "triples", "dropout": 0.1, "head": "gaussian"}
# Longer than what is drawn at once, and so quick that the last weights need not be the best; the last losses are kept.
LONG = {"steps": 265, "learning_rate": 0.02, "schedule": "constant"}


class Variant(NamedTuple):
    """A method and how it is trained."""

    method: Any
    settings: dict[str, Any] = {}  # noqa: RUF012
    labelled: bool = True  # or are the data's labels, which are no numbers, left out?


VARIANTS = {
    **{name: Variant(hm.make_method(name)) for name in ("bc", "dt", "cdt", "moments", "goal")},
    **{name: Variant(hm.make_method(name, **LEARNED)) for name in ("bdt", "dt-e2e")},
    "bdt pseudocode": Variant(hm.BDT(m=2, codes="pseudocode")),
    "bdt public": Variant(hm.BDT(m=2, codes="public")),
    **{f"dt-ae {mode}": Variant(hm.DTAE(mode=mode, pretrain_steps=STEPS, **LEARNED)) for mode in MODES},
    **{f"dt-cpc {mode}": Variant(hm.DTCPC(mode=mode, pretrain_steps=STEPS, **LEARNED)) for mode in MODES},
    "meta-bc": Variant(hm.MetaBC(**TASKS)),
    "focal": Variant(hm.FOCAL(**TASKS)),
    "gcsl": Variant(hm.GCSL("x_velocity", "geometric", 0.9)),
    "udrl": Variant(hm.UDRL()),
    "udrl streamed": Variant(hm.UDRL(), {"stream": True}),
    "goal relabelled": Variant(hm.GoalDT(relabel="uniform", steps_left=True)),
    "rcp": Variant(hm.RCP(given="advantage", value_steps=STEPS)),
    "multi-task": Variant(hm.MultiTask("x_velocity"), labelled=False),
    "hipi": Variant(hm.HIPI("x_velocity")),
    "gh": Variant(hm.GH("x_velocity,reward")),
    "gh streamed": Variant(hm.GH("x_velocity,reward"), {"stream": True}),
    "cdt of two features": Variant(hm.CDT("x_velocity,z_velocity", bins=5)),
    "cdt by chance": Variant(hm.CDT(), CHANCE),
    "bdt by chance": Variant(hm.BDT(**LEARNED), CHANCE),
    "meta-bc by chance": Variant(hm.MetaBC(**TASKS), {"dropout": 0.1, "head": "gaussian"}),
    "cdt streamed": Variant(hm.CDT(), {"stream": True}),
    "bdt streamed": Variant(hm.BDT(**LEARNED), {"stream": True}),
    "focal streamed": Variant(hm.FOCAL(**TASKS), {"stream": True}),
    "dt long": Variant(hm.DT(), {**LONG, "split": "paper"}),
}


def random_dataset() -> hm.TrajectoryDataset:
    """Hopper-shaped noise: 320 short episodes at four levels, some shorter than the context, some with labels."""
    rng, episodes = np.random.default_rng(7), []
    for i in range(320):
        steps, level = 3 if i % 5 == 2 else 6 + 7 * i % 25, i % 4
        observations, actions = rng.normal(level, 1, (steps, 11)), rng.uniform(-1, 1, (steps, 3))
        rewards, final = rng.normal(level, 1, steps), rng.normal(level, 1, 11)
        label = f"level {level}" if i % 3 else None
        episodes.append(hm.Trajectory(observations, actions, rewards, final if i % 5 else None, i % 2 == 0, label))
    return hm.load_dataset(episodes, "hopper")


def training(folder: Path) -> Items:
    assert {variant.method.name for variant in VARIANTS.values()} == method_names()
    labelled, items = random_dataset(), {}
    items["data"] = labelled.content_hash
    for name, variant in VARIANTS.items():
        data = labelled
        if not variant.labelled:
            data = hm.load_dataset([replace(episode, label=None) for episode in labelled], labelled.task)
        run = folder / name.replace(" ", "-")
        for what, value in trained(variant, data, run).items():
            items[f"{name}: {what}"] = value
        for what, value in acted(hm.load(run), [data[i] for i in (1, 4, 3, 9)]).items():
            items[f"{name}: {what}"] = value
        if name.endswith(" streamed"):
            plain = name.removesuffix(" streamed")
            items[f"{name}: as {plain}"] = all(
                items[f"{name}: {what}"] == items[f"{plain}: {what}"] for what in ("losses", "batches", "weights")
            )
    return items


def trained(variant: Variant, data: hm.TrajectoryDataset, run: Path) -> Items:
    losses: dict[str, list[list[float]]] = {}
    batches: dict[str, list[dict[str, str]]] = {}
    draws: list[str] = []

    def see(stage: str, batch: Mapping[str, Tensor], minimised: Tensor, reported: Tensor) -> None:
        known = losses.setdefault(stage, [])
        known.append([*minimised.tolist(), *(() if reported is minimised else reported.tolist())])
        if len(known) <= HASHED:
            hashes = {name: digest({name: tensor})[:16] for name, tensor in batch.items()}
            batches.setdefault(stage, []).append(hashes)

    with watching(see), noting_draws(draws):
        hm.train(variant.method, data, out=run, device="cpu", quiet=True, **{**SMALL, **variant.settings})
    kept = {stage: rows[-STEPS:] for stage, rows in losses.items()}
    stored = {name: digest(load_file(run / f"{name}.safetensors")) for name in ("normalizers", "episodes")}
    return {
        "losses": kept,
        "draws": draws,
        "batches": batches,
        "weights": weights(run),
        "metrics": metrics(run),
        "stored": stored,
    }


def weights(run: Path) -> dict[str, str]:
    """A hash of every file of weights."""
    return {str(path.relative_to(run)): digest(load_file(path)) for path in sorted(run.glob("seed-*/*.safetensors"))}


def metrics(run: Path) -> dict[str, list[dict[str, float]]]:
    """Every row, without times."""
    timed = ("seconds", "steps_per_second")
    return {
        path.parent.name: [
            {name: value for name, value in json.loads(line).items() if name not in timed}
            for line in path.read_text().splitlines()
        ]
        for path in sorted(run.glob("seed-*/metrics.jsonl"))
    }


# -- matching -------------------------------------------------------------------------------------------------------

TARGETS = {"halfcheetah": "normal(6,1)", "hopper": "normal(2.2,0.4)", "walker2d": "normal(3,0.5)"}


def matching(folder: Path) -> Items:
    items: Items = {}
    shown: dict[str, hm.TrajectoryDataset] = {}
    for name in model_names():
        policy = hm.load(name)
        task = policy.task.name
        if task not in shown:
            shown[task] = hm.make_dataset(f"{task}-medium-expert", folder / task, episodes=2, threads=1, quiet=True)
            items[f"{task}: episodes of its experts"] = shown[task].content_hash
        demonstrations = [episode[:250] for episode in shown[task]]
        expression = demonstrations[1] if isinstance(policy.statistic, hm.LearnedStatistic) else TARGETS[task]
        for what, value in acted(policy, demonstrations, expression).items():
            items[f"{name}: {what}"] = value
    return items


def binned_energy(result: hm.MatchResult) -> list[float]:
    """The energy distance on the bins of z."""
    bins = result.frame.bins
    goal, mass = bins.joint(result.values)
    found = (bins.joint(result.pooled(k)) for k in range(len(result.seeds)))
    return [energy_distance(points, goal, weights, mass) for points, weights in found]


def acted(policy: hm.Policy, episodes: list[hm.Trajectory], second: hm.Trajectory | str | None = None) -> Items:
    """What a policy does: in rollouts under two targets, in a loop on logged episodes, and by itself."""
    first, second, seen = episodes[0], episodes[1] if second is None else second, episodes[-1]
    items: Items = {}
    for name, conditioning in conditionings().items():
        try:
            controller = policy.controller(first, conditioning=conditioning)
            results = policy.match_all([first, second], episodes=2, conditioning=conditioning, threads=1)
        except hm.HimatchError:
            items[f"match, {name}"] = "refused"
            continue
        items[f"match, {name}"] = [
            {
                "w1": result.binned_per_seed.tolist(),
                "energy": binned_energy(result),
                "error": (
                    result.binned_per_seed if result.target.matches == "distribution" else result.error_per_seed
                ).tolist(),
                "returns": result.returns.tolist(),
                "lengths": result.lengths.tolist(),
                "reference": None if result.mixture is None else result.mixture.binned,
                "outside": result.outside,
                "beyond": result.beyond,
            }
            for result in results
        ]
        controller.reset()
        actions = []
        for step in range(20):
            if step == 12:
                controller.retarget(second)
            at = step % len(seen)
            actions.append(controller.act(seen.observations[at], seen.rewards[at - 1]).tolist())
        items[f"controller, {name}"] = actions
    items["actions"] = digest({"actions": torch.from_numpy(policy.actions(first))})
    items["score"] = {name: values.tolist() for name, values in policy.score(episodes).items()}
    items["graph"] = [output.tolist() for output in graph_outputs(policy)]
    return items


# -- the report -----------------------------------------------------------------------------------------------------

LINES = 20  # hashed together, so that a difference has a place


def report(folder: Path, results: Path) -> Items:
    items: Items = {f"table {table.label}": table_items(table) for table in report_on(results, folder)}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = str(path.relative_to(folder))
        items[name] = short(path.read_bytes()) if path.suffix == ".png" else text_item(name, path.read_text())
    return items


def text_item(name: str, text: str) -> Items:
    """Where a text says what; pictures inside it are left out."""
    text = re.sub(r"<svg.*?</svg>|data:image/[\w+/=;,]+", "(picture)", usual_words(text), flags=re.DOTALL)
    # What stands in the order of names, those of conditionings among them, is put into one of its own.
    job = re.compile(r'<details class="job">.*?</details>\n', re.DOTALL)
    text = job.sub("", text) + "".join(sorted(job.findall(text)))
    lines = sorted(text.splitlines()) if name == "targets.csv" else text.splitlines()
    text = "\n".join(lines)
    blocks = {i + 1: "\n".join(lines[i : i + LINES]) for i in range(0, len(lines), LINES)}
    return {
        f"{LINES} lines from": {line: short(block.encode())[:6] for line, block in blocks.items()},
        "lines": len(lines),
        "characters": len(text),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


# -- resuming -------------------------------------------------------------------------------------------------------


class Interrupting(NamedTuple):
    """A training, and after how many more steps it is stopped each time."""

    method: Any
    settings: dict[str, Any]
    after: tuple[int, ...]


INTERRUPTED = {
    "cdt": Interrupting(hm.CDT(), {"steps": 40, "dropout": 0.1}, (17,)),
    "cdt streamed": Interrupting(hm.CDT(), {"steps": 40, "dropout": 0.1, "stream": True}, (17,)),
    "bdt": Interrupting(hm.BDT(**LEARNED), {"steps": 40, **CHANCE}, (17, 9)),
    "dt-cpc frozen": Interrupting(hm.DTCPC(mode="frozen", pretrain_steps=20, **LEARNED), {"steps": 40}, (17, 20)),
    "focal": Interrupting(hm.FOCAL(pretrain_steps=20, **TASKS), {"steps": 40}, (17, 20, 20)),
    "dt long": Interrupting(hm.DT(), {**LONG, "dropout": 0.1}, (258,)),
}


def resume(folder: Path) -> Items:
    data, items = random_dataset(), {}
    for name, (method, settings, stops) in INTERRUPTED.items():
        whole, parts = folder / name / "whole", folder / name / "parts"
        how = {**SMALL, **settings, "device": "cpu", "quiet": True}
        hm.train(method, data, out=whole, **how)
        for number, stop in enumerate(stops):
            with interrupted(stop):
                hm.train(method, data, out=parts, resume=number > 0, **how)
        hm.train(method, data, out=parts, resume=True, **how)
        items[f"{name}: in one piece"], items[f"{name}: resumed"] = weights(whole), weights(parts)
        items[f"{name}: resumed as in one piece"] = weights(parts) == weights(whole)
    return items


@contextmanager
def interrupted(after: int) -> Iterator[None]:
    """A signal stops what is trained inside after some steps."""
    done = 0

    def see(*_: object) -> None:
        nonlocal done
        done += 1
        if done == after:
            signal.raise_signal(signal.SIGTERM)

    with watching(see), suppress(KeyboardInterrupt):
        yield
        raise RuntimeError(f"the training went on after step {after} to step {done}")


# -- writing and comparing ------------------------------------------------------------------------------------------

SECTIONS: dict[str, Callable[..., Items]] = {
    "training": training,
    "matching": matching,
    "report": report,
    "resume": resume,
}


def short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def digest(named: Mapping[str, Tensor]) -> str:
    """The hash of tensors: names, types, shapes and bytes."""
    sha = hashlib.sha256()
    for name in sorted(named):
        tensor = named[name].detach().cpu().contiguous()
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        sha.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def descendants(cls: type) -> Iterator[type]:
    for child in cls.__subclasses__():
        yield child
        yield from descendants(child)


def facts() -> dict[str, str]:
    """What decides the last bits of a number."""
    packages = ("torch", "numpy", "scipy", "pot", "mujoco", "gymnasium", "matplotlib")
    machine = f"{platform.system()} {platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"
    return {"python": platform.python_version(), "machine": machine, **{name: version(name) for name in packages}}


def write(path: Path, items: Items) -> None:
    """An item a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in {"made with": facts(), **items}.items()]
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def differences(before: Any, now: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place where two JSON values differ; nothing stands where one has no such place."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from differences(before.get(key, "nothing"), now.get(key, "nothing"), f"{place}[{key!r}]")
    elif isinstance(before, list) and isinstance(now, list):
        for i in range(max(len(before), len(now))):
            pair = (values[i] if i < len(values) else "nothing" for values in (before, now))
            yield from differences(*pair, f"{place}[{i}]")
    elif before != now and not (is_number(before) and is_number(now) and math.isnan(before) and math.isnan(now)):
        yield place, before, now


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def compare(section: str, before: Items, now: Items) -> int:
    """Prints a line for every item; gives how many differ."""
    if before.pop("made with") != facts():
        print(f"{section}: the golden file comes from other versions or another machine; last bits may differ")
    count = 0
    for name in {**before, **now}:
        places = list(differences(before.get(name, "nothing"), now.get(name, "nothing")))
        if not places:
            print(f"same     {section}, {name}")
            continue
        count += 1
        place, was, is_now = places[0]
        words = f"{place} was {was!r}, is {is_now!r}; {len(places)} place(s)"
        numbers = [abs(a - b) for _, a, b in places if is_number(a) and is_number(b)]
        print(f"DIFFERS  {section}, {name}: {words}" + (f", at most by {max(numbers):.3g}" if numbers else ""))
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the golden files")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--results", type=Path, default=RESULTS, help="what the report is on")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", hm.HimatchWarning)
    count = 0
    for section in arguments.only:
        begun, path = time.perf_counter(), GOLDEN / f"{section}.json"
        with tempfile.TemporaryDirectory() as folder:
            given = (Path(folder), arguments.results) if section == "report" else (Path(folder),)
            items = json.loads(json.dumps(SECTIONS[section](*given)))
        if arguments.write:
            write(path, items)
        else:
            count += compare(section, json.loads(path.read_text()), items)
        print(f"{section}: {len(items)} items, {time.perf_counter() - begun:.0f} s", flush=True)
    if count:
        raise SystemExit(f"{count} items differ")


if __name__ == "__main__":
    main()
