"""The lab: which policy does what its conditioning says? Variants, ranked by rollouts on training-side targets.

    python benchmarks/fidelity.py run --out DIR --data DATA [--set NAME] [--trials NAME...] [--seeds 16] [--minutes 5]
    python benchmarks/fidelity.py run --out DIR --data OTHER --set NAME --best 5 [--screen halfcheetah]
    python benchmarks/fidelity.py table DIR... [--against TRIAL] [--markdown]

`run` trains each trial as a stack of seeds and rolls every seed out under ten targets. They are episodes of the
training half: DATA is split as in the paper, its held-out episodes are put away, and what is left is split once more.
A trial that has its file in DIR is not run again, and several processes may share DIR; after `--minutes` none is begun.
`--best 5` runs what came out best on another set that is in DIR, of each method. `table` prints W1 as in the paper's
tables (binned, rollouts of a seed pooled), the part of the time that was played, the return, and the paired difference
to one trial, with a 95 % interval over targets and seeds.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from harness import machine
from numpy.typing import NDArray
from variants import LabCDT, ensemble

import himatch as hm
from himatch._runtime.files import new_file
from himatch._runtime.tensors import versions
from himatch.errors import one_line
from himatch.targets import Demonstration
from himatch.training import make_plan
from himatch.training import train as run_training

REHEARSAL = 7_000  # of initial states; evaluations begin at 0
RESAMPLES = 4_000


@dataclass(frozen=True)
class Trial:
    """A training, and the ways its policies act: weights, ensemble, temperature."""

    method: str = "cdt"
    switches: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    acts: tuple[str, ...] = ("last", "last x4")

    def with_(self, acts: tuple[str, ...] | None = None, method: str | None = None, **changes: Any) -> Trial:
        """The same with some changed; what the switches know is a switch."""
        known = LabCDT.__dataclass_fields__
        switches = {name: value for name, value in changes.items() if name in known}
        settings = {name: value for name, value in changes.items() if name not in known}
        return Trial(
            method or self.method, {**self.switches, **switches}, {**self.settings, **settings}, acts or self.acts
        )


SAMPLED = ("last", "sampled 1", "sampled 0.7")
OWN = Trial("cdt", acts=("best", "last", "last x4"))
LAB = Trial("lab-cdt")  # himatch's own, by way of the switches
LEAN = LAB.with_(actions=False, activation="gelu", heads=4, embedding=0.5, schedule="linear", steps=15_000)


def trials() -> dict[str, Trial]:
    """Everything that is tried, by name."""
    found = {
        "fast": OWN,
        "fast gaussian": Trial("cdt", settings={"head": "gaussian"}, acts=SAMPLED),
        # One change at a time.
        "gelu": LAB.with_(activation="gelu"),
        "4 heads": LAB.with_(heads=4),
        "half embeddings": LAB.with_(embedding=0.5),
        "no action tokens": LAB.with_(actions=False),
        "linear": LAB.with_(schedule="linear"),
        # All of them, in half the steps.
        "lean": LEAN,
        "lean 30k": LEAN.with_(steps=30_000),
        "lean 60k": LEAN.with_(steps=60_000),
        "lean batch 64": LEAN.with_(batch_size=64, steps=30_000),
        "lean batch 1024": LEAN.with_(batch_size=1024),
        "lean width 256": LEAN.with_(width=256),
        "lean 1 step": LEAN.with_(context=1),
        "lean 10 steps": LEAN.with_(context=10),
        "lean 20 steps": LEAN.with_(context=20),
        "lean dropout": LEAN.with_(dropout=0.1),
        "lean decay 0.01": LEAN.with_(weight_decay=0.01),
        "lean adaLN": LEAN.with_(modulated=True),
        "lean cumulative": LEAN.with_(cumulative=True),
        "lean no time": LEAN.with_(uses_time=False),
        "lean chunk 4": LEAN.with_(chunk=4, context=8),
        "lean rate 3e-4": LEAN.with_(learning_rate=3e-4),
        # Heads.
        "lean gaussian": LEAN.with_(head="gaussian", acts=(*SAMPLED, "sampled 1 x4")),
        "lean squashed": LEAN.with_(form="squashed", acts=(*SAMPLED, "sampled 1 x4")),
        "lean mixture": LEAN.with_(form="mixture", acts=SAMPLED),
        "lean joint": LEAN.with_(form="joint", components=5, acts=SAMPLED),
        "lean categorical": LEAN.with_(form="categorical", acts=("last", "sampled 1")),
        "lean flow": LEAN.with_(form="flow", acts=SAMPLED),
    }
    squashed = LEAN.with_(form="squashed", steps=30_000, acts=("last", "sampled 1", "sampled 0.85", "sampled 1 x4"))
    found |= {
        "gaussian 30k": squashed.with_(form="", head="gaussian"),
        "squashed 30k": squashed,
        "squashed 60k": squashed.with_(steps=60_000),
        "squashed width 256": squashed.with_(width=256),
        "squashed 1 step": squashed.with_(context=1),
        "squashed 20 steps": squashed.with_(context=20),
        "squashed no time": squashed.with_(uses_time=False),
        "squashed adaLN": squashed.with_(modulated=True),
        "squashed cumulative": squashed.with_(cumulative=True),
        "squashed dropout": squashed.with_(dropout=0.1),
        "squashed beta 0.5": squashed.with_(beta=0.5),
        "squashed decay 0.01": squashed.with_(weight_decay=0.01),
        "squashed with actions": squashed.with_(actions=True),
        "mixture 30k": squashed.with_(form="mixture", acts=("last", "sampled 1", "sampled 0.85")),
        "joint 30k": squashed.with_(form="joint", components=5, acts=("last", "sampled 1", "sampled 0.85")),
        "lean guided": LEAN.with_(
            dropped=0.2, acts=("last", "last guided 0", "last guided 1.3", "last guided 1.7", "last guided 2.5")
        ),
        "squashed guided": squashed.with_(
            dropped=0.2, acts=("sampled 1", "sampled 1 guided 1.3", "sampled 1 guided 1.7", "sampled 1 guided 2.5")
        ),
    }
    several = ("last", "sampled 1", "sampled 0.85", "sampled 0.7", "sampled 1 x4", "sampled 0.85 x4")
    cloned = squashed.with_(form="cloned", acts=several)
    found |= {
        "squashed batch 1024": squashed.with_(batch_size=1024),
        "squashed beta 1": squashed.with_(beta=1.0),
        "squashed 1 step, batch 1280": squashed.with_(context=1, batch_size=1280),
        "cloned 30k": cloned,
        "cloned 1 step, batch 1280": cloned.with_(context=1, batch_size=1280),
        "cloned 2 steps, batch 640": cloned.with_(context=2, batch_size=640),
        "cloned width 256": cloned.with_(width=256),
        "cloned 60k": cloned.with_(steps=60_000),
    }
    tiny = LEAN.with_(form="cloned", steps=12_000, acts=several)  # with --preset cpu
    found |= {
        "cpu cloned": tiny,
        "cpu added": tiny.with_(form="added", acts=("last", "sampled 1", "sampled 0.85", "sampled 0.7", "sampled 0.5")),
        "cpu gaussian": tiny.with_(
            form="", head="gaussian", acts=("last", "sampled 1", "sampled 0.85", "sampled 0.7", "sampled 0.5")
        ),
        "cpu gaussian width 128": tiny.with_(
            form="",
            head="gaussian",
            width=128,
            acts=("last", "sampled 1", "sampled 0.85", "sampled 0.7", "sampled 0.5"),
        ),
        "cpu cloned 1 step, width 128, batch 256": tiny.with_(context=1, width=128, batch_size=256),
        "cpu cloned 1 step, width 128, batch 512": tiny.with_(context=1, width=128, batch_size=512),
        "cpu cloned 1 step, width 128, 3 layers": tiny.with_(context=1, width=128, batch_size=256, layers=3),
        "cpu cloned 2 steps, width 128": tiny.with_(context=2, width=128, batch_size=128),
        "cpu lean 1 step, width 128": tiny.with_(
            form="", context=1, width=128, batch_size=256, acts=("last", "last x4")
        ),
        "cpu squashed 1 step, width 128": tiny.with_(form="squashed", context=1, width=128, batch_size=256),
        "cpu beta 1 1 step, width 128": tiny.with_(form="squashed", beta=1.0, context=1, width=128, batch_size=256),
    }
    lean = {"tokens": "states", "activation": "gelu", "heads": 4, "schedule": "linear"}
    four = Trial("cdt", settings={**lean, "head": "gaussian", "members": 4})
    found["ensemble"] = four.with_(acts=("last", "sampled 0.7", "sampled 0.85", "sampled 1"))
    found |= {  # with --preset cpu
        "cpu states 9k": Trial("cdt", settings={**lean, "steps": 9_000}, acts=("last", "last x4")),
        "cpu states 9k, relu": Trial("cdt", settings={"tokens": "states", "schedule": "linear", "steps": 9_000}),
    }
    small = Trial("cdt", settings={"tokens": "states", "head": "squashed", "schedule": "linear", "steps": 12_000})
    small = small.with_(acts=("last", "sampled 1", "sampled 0.85", "sampled 0.7", "sampled 1 x4", "sampled 0.85 x4"))
    found |= {  # with --preset cpu, at about the same time on two cores
        "cpu": OWN,
        "cpu squashed": small,
        "cpu squashed 2 steps": small.with_(context=2, steps=24_000),
        "cpu squashed 1 step": small.with_(context=1, steps=36_000),
        "cpu states": small.with_(head="tanh", acts=("last", "last x4")),
    }
    for name, trial in list(found.items()):
        if trial.method in ("lab-cdt", "cdt"):
            own = trial.with_(method=trial.method.replace("cdt", "dt"))
            found[f"dt {name}"] = Trial(own.method, own.switches, own.settings, own.acts)
    found["meta-bc ensemble"] = Trial(
        "meta-bc", settings={"head": "gaussian", "members": 4, "schedule": "linear"}, acts=found["ensemble"].acts
    )
    found["meta-bc fast"] = Trial("meta-bc", acts=("best", "last", "last x4"))
    found["meta-bc squashed"] = Trial(
        "meta-bc", settings={"head": "squashed"}, acts=("last", "sampled 1", "sampled 0.85", "sampled 0.7")
    )
    found["meta-bc gaussian"] = Trial("meta-bc", settings={"head": "gaussian"}, acts=SAMPLED)
    return found


# -- running --------------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> None:
    """Train and roll out what is missing."""
    started = time.time()
    known = trials()
    split = None
    for name in arguments.trials or (best(arguments) if arguments.best else known):
        if time.time() - started > 60 * arguments.minutes:
            break
        key = f"{arguments.set}-{name.replace(',', '').replace(' ', '-')}-{arguments.seed}"
        path = arguments.out / f"{key}.json"
        arguments.out.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(arguments.out / f".{key}.lock", timeout=0):
                if path.is_file():
                    continue
                if split is None:
                    split = inner_split(arguments.data, arguments.task)
                try:
                    found = attempt(known[name], split, (arguments.models or arguments.out / "models") / key, arguments)
                except Exception as reason:  # a trial that fails is a row that says so
                    traceback.print_exc()
                    found = {"failure": one_line(reason)}
                with new_file(path) as partial:
                    partial.write_text(json.dumps(rounded({"trial": name, "set": arguments.set, **found})) + "\n")
                means = {act: np.mean(row["w1"]).round(4) for act, row in found.get("acts", {}).items()}
                print(name, means, flush=True)
        except Timeout:  # another process has it
            continue


def best(arguments: argparse.Namespace) -> list[str]:
    """The best trials of each method on the set that was screened, however they acted."""
    rows = sorted(rows_of([arguments.out])[0], key=lambda row: row.w1.mean())
    found: dict[str, list[str]] = {}
    for row in rows:
        own = found.setdefault(row.method, [])
        if row.set == arguments.screen and row.trial not in own:
            own.append(row.trial)
    return [name for own in found.values() for name in own[: arguments.best]]


def rounded(value: Any) -> Any:
    """The same to six digits: files are read by people, too."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, (list, tuple)) else value


def inner_split(data: str, task: str | None) -> hm.Split:
    """The paper's split of what the paper's split trains on: its held-out episodes are never seen here."""
    return hm.paper_split(hm.paper_split(hm.load_dataset(data, task)).train)


def attempt(trial: Trial, split: hm.Split, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """One trial: its training, its rollouts, what they cost."""
    switches = {"feature": "x_velocity"} if trial.method != "meta-bc" else {}
    method = hm.make_method(trial.method, **switches, **trial.switches)
    settings = dict(trial.settings)
    if arguments.steps is not None:
        settings["steps"] = arguments.steps
    started = time.perf_counter()
    plan = make_plan(
        method,
        lambda: split,
        out=folder,
        preset=arguments.preset,
        seed=arguments.seed,
        seeds=arguments.seeds,
        resume=(folder / "run.json").is_file(),
        bin_range="all",
        **settings,
    )
    run_training(plan, quiet=True)
    trained = time.perf_counter() - started
    sides = zip(split.held_out, split.groups, strict=True)
    targets = [Demonstration.held_out(episode, group, i) for i, (episode, group) in enumerate(sides)][
        : arguments.targets
    ]
    acts: dict[str, Any] = {}
    for act in trial.acts:
        if act.endswith("x4") and arguments.seeds < 4:
            continue
        started = time.perf_counter()
        policy = acting(folder, act)
        results = policy.match_all(
            targets[: arguments.targets],
            episodes=arguments.episodes,
            feature="x_velocity",
            seed=REHEARSAL,
            threads=arguments.threads,
        )
        acts[act] = {
            "w1": [result.binned_per_seed.tolist() for result in results],
            "exact": [result.w1_per_seed.tolist() for result in results],
            "charged": [result.charged_per_seed.tolist() for result in results],
            "played": [result.played_per_seed.tolist() for result in results],
            "returns": [np.mean(result.returns, axis=1).tolist() for result in results],
            "seconds": time.perf_counter() - started,
        }
    log = plan.folder.metrics(arguments.seed)
    return {
        "acts": acts,
        "groups": list(split.groups),
        "training": {
            "seconds": trained,
            "loop_seconds": log[-1]["seconds"],
            "steps_per_second": log[-1]["steps_per_second"],
            "seeds": arguments.seeds,
            "first_seed": arguments.seed,
            "settings": {**asdict(plan.config), **asdict(plan.model)},
            "method": {"name": method.name, **asdict(method)},
        },
        "episodes": arguments.episodes,
        "data": split.train.content_hash,
        "machine": machine(plan.device),
        "versions": versions(),
    }


def acting(folder: Path, act: str) -> hm.Policy:
    """The policies of a run, acting as ``best``, ``last x4`` (four seeds as one) or ``sampled 0.7 guided 1.5`` says."""
    words = act.split()
    numbers = {word: float(words[i + 1]) for i, word in enumerate(words) if word in ("sampled", "guided")}
    device = "cuda" if torch.cuda.is_available() else "cpu"
    policy = hm.load(folder, weights="best" if words[0] == "best" else "last", device=device)
    policy.temperature = numbers.get("sampled", 0.0)
    if "guided" in numbers:
        policy.agent.policy.guidance = numbers["guided"]
    return ensemble(policy, int(words[-1][1:])) if words[-1].startswith("x") else policy


# -- the table ------------------------------------------------------------------------------------------------------

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A trial on one set, acting in one way; ``w1`` and the others are (targets, seeds)."""

    set: str
    trial: str
    act: str
    method: str
    w1: Scores
    charged: Scores
    played: Scores
    returns: Scores
    seconds: float

    @property
    def name(self) -> str:
        """As the table has it."""
        return f"{self.trial}, {self.act}"


def rows_of(folders: Iterable[Path]) -> tuple[list[Row], list[str]]:
    """What the files say, and which trials failed."""
    rows, failed = [], []
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            found = json.loads(path.read_text())
            if "failure" in found:
                failed.append(f"{found['set']}, {found['trial']}: {found['failure']}")
                continue
            for act, score in found["acts"].items():
                columns = [np.array(score[name]) for name in ("w1", "charged", "played", "returns")]
                method = found["training"]["method"]["name"].removeprefix("lab-")
                rows.append(Row(found["set"], found["trial"], act, method, *columns, found["training"]["loop_seconds"]))
    return rows, failed


def difference(ours: Scores, theirs: Scores, rng: np.random.Generator) -> tuple[float, float, float]:
    """Mean difference with its 95 % interval: targets are resampled together, the seeds of each by themselves."""
    drawn = []
    for _ in range(RESAMPLES):
        targets = rng.integers(len(ours), size=len(ours))
        sides = [x[targets][:, rng.integers(x.shape[1], size=x.shape[1])].mean() for x in (ours, theirs)]
        drawn.append(sides[0] - sides[1])
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(ours.mean() - theirs.mean()), float(low), float(high)


def table(arguments: argparse.Namespace) -> None:
    """Print every row, best first."""
    rows, failed = rows_of(arguments.folders)
    for name in dict.fromkeys(row.set for row in rows):
        own = sorted((row for row in rows if row.set == name), key=lambda row: row.w1.mean())
        against = next((row for row in own if row.name == arguments.against), None)
        lines = [("trial", "W1", "worst seed", "charged", "played", "return", f"less {arguments.against}", "seconds")]
        rng = np.random.default_rng(0)
        for row in own:
            versus = ""
            if against is not None and row is not against:
                mean, low, high = difference(row.w1, against.w1, rng)
                versus = f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
            numbers = (row.w1.mean(), row.w1.mean(0).max(), row.charged.mean())
            played = f"{row.played.mean():.0%}"
            texts = (*(f"{x:.3f}" for x in numbers), played, f"{row.returns.mean():.0f}", versus, f"{row.seconds:.0f}")
            lines.append((row.name, *texts))
        print(f"\n{name}: {len(own)} rows\n")
        show(lines, arguments.markdown)
    for line in failed:
        print(f"failed: {line}")


def show(lines: Sequence[Sequence[str]], markdown: bool) -> None:
    if markdown:
        head, *rest = lines
        rule = ["---", *["--:" for _ in head[1:]]]
        print("\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rest)))
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--models", type=Path, help="where run folders go, DIR/models by default")
    running.add_argument("--data", required=True)
    running.add_argument("--task")
    running.add_argument("--set", default="halfcheetah", help="what the data is called in the table")
    running.add_argument("--trials", nargs="*", choices=list(trials()), metavar="TRIAL")
    running.add_argument("--best", type=int, help="in place of --trials: so many of each method, by the set --screen")
    running.add_argument("--screen", default="halfcheetah")
    running.add_argument("--minutes", type=float, default=float("inf"), help="after which no trial is begun")
    running.add_argument("--seed", type=int, default=0, help="the first of the stacked seeds")
    running.add_argument("--seeds", type=int, default=16)
    running.add_argument("--episodes", type=int, default=5, help="rollouts of each seed for each target")
    running.add_argument("--targets", type=int, help="the first so many; all by default")
    running.add_argument("--preset", default="fast", choices=["fast", "cpu"], help="what a trial changes")
    running.add_argument("--steps", type=int)
    running.add_argument("--threads", type=int, default=0)
    printing = commands.add_parser("table")
    printing.add_argument("folders", nargs="+", type=Path)
    printing.add_argument("--against", default="fast, best")
    printing.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", hm.HimatchWarning)
    run(arguments) if arguments.command == "run" else table(arguments)


if __name__ == "__main__":
    main()
