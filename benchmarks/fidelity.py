"""The lab: which policy does what its conditioning says? Variants, ranked by rollouts on training-side targets.

    python benchmarks/fidelity.py run --out DIR --data DATA [--set NAME] [--trials NAME...] [--seeds 16] [--minutes 5]
    python benchmarks/fidelity.py run --out DIR --data OTHER --set NAME --best 5 [--screen halfcheetah]
    python benchmarks/fidelity.py table DIR... [--against TRIAL] [--markdown]
    python benchmarks/fidelity.py compare DIR --sets A B C --ours "TRIAL, ACT" --theirs "TRIAL, ACT"
    python benchmarks/fidelity.py agents --data DATA [--task TASK]

`run` trains each trial as a stack of seeds and rolls every seed out under ten targets. They are episodes of the
training half: DATA is split as in the paper, its held-out episodes are put away, and what is left is split once more.
A trial that has its file in DIR is not run again, and several processes may share DIR; after `--minutes` none is begun.
`--best 5` runs what came out best on another set that is in DIR, of each method. `table` prints W1 as in the paper's
tables (binned, rollouts of a seed pooled), the part of the time that was played, the return, and the paired difference
to one trial, with a 95 % interval over targets and seeds. `compare` prints that of averages over several sets. `agents`
prints what the agents themselves have: W1 of the 20 training episodes whose returns are nearest to a target's.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from harness import machine
from numpy.typing import NDArray
from trials import Trial, trials
from variants import ensemble

import himatch as hm
from himatch._runtime.files import new_file
from himatch._runtime.tensors import versions
from himatch.divergences import paired_difference
from himatch.errors import one_line
from himatch.evaluation.distances import binned_w1
from himatch.networks import heads
from himatch.rehearsal.temperature import select_temperature
from himatch.statistics.bins import Bins
from himatch.statistics.features import resolve_feature
from himatch.targets import Demonstration
from himatch.training import make_plan
from himatch.training import train as run_training

REHEARSAL = 7_000  # of initial states; evaluations begin at 0
LIKE = 20  # episodes about as good as a target


# -- running --------------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> None:
    """Train and roll out what is missing."""
    started = time.time()
    known = trials()
    split = None
    for name in arguments.trials or (best(arguments) if arguments.best else known):
        if time.time() - started > 60 * arguments.minutes:
            break
        key = f"{arguments.set}-{name}-{arguments.seed}".replace(",", "").replace(" ", "-")
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
    if trial.accuracy is not None:
        heads.ACCURACY = trial.accuracy
    if arguments.steps is not None:
        settings |= {"steps": arguments.steps, "warmup": None}
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
        selected = None
        if act.startswith("selected"):
            selected = select_temperature(policy, plan.referenced, threads=arguments.threads)
            policy.temperature = selected["value"]
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
            **({} if selected is None else {"temperature": selected}),
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
    """The policies of a run, acting as ``best``, ``last x4`` (four seeds as one) or ``sampled 0.7 guided 1.5`` says.

    ``selected`` samples at the temperature that training episodes select.
    """
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


def table(arguments: argparse.Namespace) -> None:
    """Print every row, best first."""
    rows, failed = rows_of(arguments.folders)
    for name in dict.fromkeys(row.set for row in rows):
        own = sorted((row for row in rows if row.set == name), key=lambda row: row.w1.mean())
        against = next((row for row in own if row.name == arguments.against), None)
        lines = [("trial", "W1", "worst seed", "charged", "played", "return", f"less {arguments.against}", "seconds")]
        for row in own:
            versus = ""
            if against is not None and row is not against:
                less = paired_difference([row.w1], [against.w1])
                known = "" if less.low is None else f" ({less.low:+.3f} to {less.high:+.3f})"
                versus = f"{less.mean:+.3f}{known}"
            numbers = (row.w1.mean(), row.w1.mean(0).max(), row.charged.mean())
            played = f"{row.played.mean():.0%}"
            texts = (*(f"{x:.3f}" for x in numbers), played, f"{row.returns.mean():.0f}", versus, f"{row.seconds:.0f}")
            lines.append((row.name, *texts))
        tried = Counter(method for method, _ in {(row.method, row.trial) for row in own})
        counts = ", ".join(f"{method} {count}" for method, count in sorted(tried.items()))
        print(f"\n{name}: {len(own)} rows; trials: {counts}\n")
        show(lines, arguments.markdown)
    for line in failed:
        print(f"failed: {line}")


def compare(arguments: argparse.Namespace) -> None:
    """Print the difference of two rows' averages over sets; a row may have another name on each set."""
    rows, _ = rows_of(arguments.folders)
    sides = []
    for names in (arguments.ours, arguments.theirs):
        each = names * len(arguments.sets) if len(names) == 1 else names
        sides.append(
            [
                row
                for set, name in zip(arguments.sets, each, strict=True)
                for row in rows
                if row.set == set and row.name == name
            ]
        )
        if len(sides[-1]) != len(arguments.sets):
            raise SystemExit(f"{', '.join(names)}: not once in each of {', '.join(arguments.sets)}")
    for what in ("w1", "charged"):
        scores = [[getattr(row, what) for row in side] for side in sides]
        means = [", ".join(f"{score.mean():.3f}" for score in side) for side in scores]
        less = paired_difference(*scores, arguments.sets)
        print(f"{what}: {means[0]} less {means[1]} on average {less.mean:+.3f} ({less.low:+.3f} to {less.high:+.3f})")


def agents(arguments: argparse.Namespace) -> None:
    """Print how far episodes are from targets that the same agent played, and that went about as well."""
    split = inner_split(arguments.data, arguments.task)
    feature = resolve_feature("x_velocity", split.train.task)
    values = [feature(episode) for episode in split.train]
    bins, returns = Bins.fit(values), split.train.returns
    found: dict[str, list[tuple[float, float]]] = {}
    for target, group in zip(split.held_out, split.groups, strict=True):
        near = np.argsort(np.abs(returns - target.total_reward), kind="stable")[:LIKE]
        played = [values[episode] for episode in near]
        wanted = feature(target)
        each = np.median([binned_w1(rows, wanted, bins) for rows in played])
        found.setdefault(group, []).append((binned_w1(np.concatenate(played), wanted, bins), float(each)))
    for group, scores in found.items():
        together, alone = np.mean(scores, axis=0)
        print(f"{group}: W1 {together:.3f} of {LIKE} episodes together, {alone:.3f} of one (median)")


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
    printing.add_argument("--against", default="one network, last")
    printing.add_argument("--markdown", action="store_true")
    comparing = commands.add_parser("compare")
    comparing.add_argument("folders", nargs="+", type=Path)
    comparing.add_argument("--sets", nargs="+", required=True)
    comparing.add_argument("--ours", nargs="+", required=True, metavar="ROW", help="for all sets, or one for each")
    comparing.add_argument("--theirs", nargs="+", required=True, metavar="ROW")
    themselves = commands.add_parser("agents")
    themselves.add_argument("--data", required=True)
    themselves.add_argument("--task")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", hm.HimatchWarning)
    {"run": run, "table": table, "compare": compare, "agents": agents}[arguments.command](arguments)


if __name__ == "__main__":
    main()
