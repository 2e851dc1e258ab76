"""The stages: make data, inspect it, train a BC and a CDT, and match x-velocities with them and a pretrained CDT."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from himatch._runtime.progress import progress_bar
from himatch.api import train
from himatch.data import Split, load_dataset, paper_split
from himatch.data.inspection import inspect_dataset, show_report
from himatch.datagen import make_dataset
from himatch.errors import HimatchError, HimatchWarning, SimulationError, note
from himatch.evaluation.result import MatchResult
from himatch.methods import BC, CDT
from himatch.policy import Policy, load
from himatch.quickstart.findings import Entry, Findings
from himatch.quickstart.page import write_page
from himatch.targets import Target, demo, parse_target
from himatch.training import configure, default_preset

DATASET, PRETRAINED = "halfcheetah-medium-expert", "halfcheetah-cdt"
# Between the paces of the two agents (4 and 11), and half the time each of them.
TARGETS = ("normal(5,1)", "0.5*normal(4,1)+0.5*normal(11,1)")
ROLLOUTS = 5
SECONDS = 7.5  # of the film
STEPS = {"bc": 3_000, "cdt": 7_000}  # on a CPU, where the preset's own would take twice the time
SEED = 1  # of the data; the pretrained CDT was trained on that of seed 0, and episodes held out here must be new to it


def run_quickstart(out: str | Path, episodes: int = 400, seed: int = SEED, steps: int | None = None) -> Path:
    """Run every stage; what is already there is reused, what was interrupted is continued. Returns the page.

    ``steps`` of ``None`` are about half of those of the preset ``cpu``, or all of ``fast`` where there is a GPU.
    """
    if episodes < 15:
        raise HimatchError(f"the paper's split needs at least 15 episodes, got {episodes}")
    preset = default_preset(None)
    configure(
        preset, CDT("x_velocity"), **({} if steps is None else {"steps": steps})
    )  # refused before anything is made
    try:
        return _stages(Path(out), episodes, seed, preset, steps)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"what is done is kept in {out}; the same command goes on from there") from None


def _stages(out: Path, episodes: int, seed: int, preset: str, steps: int | None) -> Path:
    console = Console()
    folder = out / f"{DATASET}-{episodes}-{seed}-v0"
    if not folder.exists():
        make_dataset(DATASET, folder, episodes=episodes, seed=seed)
    dataset = load_dataset(folder)
    show_report(inspect_dataset(dataset), console)
    split = paper_split(dataset)
    runs = out / f"{folder.name}-{preset}{'' if steps is None else f'-{steps}-steps'}"
    findings = _match(_train(split, runs, preset, steps), _targets(split))
    _show(findings, console)
    with console.status("drawing"):
        film = _film(findings, out / "cheetah.webp")
        page = write_page(findings, film, out / "quickstart.html")
    if isinstance(film, str):
        note(f"the cheetah is not filmed: {film}")
    trained = runs / CDT("x_velocity").name
    console.print(f"dataset: {folder}\npage: {page}", highlight=False, soft_wrap=True)
    console.print(
        f"draw a target of your own, and watch robots match it: himatch studio {PRETRAINED} {trained}",
        highlight=False,
        soft_wrap=True,
    )
    return page


def _train(split: Split, out: Path, preset: str, steps: int | None) -> dict[str, Policy]:
    """A BC, which has no conditioning, a CDT, which is conditioned on the distribution, and a pretrained one."""
    usual: Mapping[str, int] = STEPS if preset == "cpu" else {}
    # No temperature makes a BC follow a target: its mean action, without rollouts that select one.
    bc, cdt = (
        train(
            method,
            split,
            out=out / method.name,
            preset=preset,
            resume=True,
            steps=steps or usual.get(method.name),
            temperature=temperature,
        )
        for method, temperature in ((BC(), 0.0), (CDT("x_velocity"), None))
    )
    return {"BC": bc, "CDT": cdt, "pretrained CDT": load(PRETRAINED)}


def _targets(split: Split) -> dict[str, Target]:
    """Two held-out episodes, one of each agent, and two distributions that nobody has shown."""
    slow = int(np.argmin(split.held_out.returns))
    episodes: dict[str, Target] = {
        "held-out expert": demo(split.held_out[0]),
        "held-out medium": demo(split.held_out[slow]),
    }
    return episodes | {text: parse_target(text) for text in TARGETS}


def _match(policies: dict[str, Policy], targets: dict[str, Target]) -> Findings:
    """Every policy under nominal conditioning, as in the paper, and the CDTs under planned conditioning too."""
    entries = [Entry(name, policy, "nominal") for name, policy in policies.items()]
    entries += [Entry(f"{e.name}, planned", e.policy, "planned") for e in entries if e.policy.statistic.binned]
    found: dict[str, list[MatchResult]] = {}
    with warnings.catch_warnings(), progress_bar("rollouts", len(entries), unit="policies") as update:
        warnings.simplefilter("ignore", HimatchWarning)  # the table says what lies outside the data
        started = time.perf_counter()
        for done, entry in enumerate(entries, start=1):
            found[entry.name] = entry.policy.match_all(
                list(targets.values()), episodes=ROLLOUTS, conditioning=entry.conditioning, feature="x_velocity"
            )
            update(done, done / max(time.perf_counter() - started, 1e-9), entry.name)
    return Findings(tuple(entries), tuple(targets), found)


def _show(findings: Findings, console: Console) -> None:
    table = Table(title="x_velocity: distance of the rollouts from the target (W1)", title_justify="left", box=None)
    table.add_column("target", header_style="bold", no_wrap=True)
    for name in ("mixture", *findings.results):
        table.add_column(name, justify="right", header_style="bold")
    for row, name in enumerate(findings.targets):
        lines = name.replace("+", "\n+")
        table.add_row(lines, f"{findings.mixture(row):.3f}", *(f"{r[row].w1:.3f}" for r in findings.results.values()))
    means = (f"{findings.held_out_mean(name):.3f}" for name in findings.results)
    table.add_row("[bold]mean, held-out[/]", "", *means)
    table.add_row("[bold]played[/]", "", *(f"{findings.played(name):.0%}" for name in findings.results))
    console.print(table)
    console.print(
        "mixture: the episode mixture, what time-sharing whole training episodes can reach; planned: conditioned\n"
        "on that mixture part by part instead of on the target itself",
        soft_wrap=True,
        highlight=False,
    )


def _film(findings: Findings, path: Path) -> Path | str:
    """The pretrained CDT on its way through the two-mode target, or why robots cannot be drawn here."""
    try:
        return findings.results["pretrained CDT, planned"][-1].clip(path, seconds=SECONDS)
    except SimulationError as reason:
        path.unlink(missing_ok=True)  # of another time, and other results
        return str(reason)
