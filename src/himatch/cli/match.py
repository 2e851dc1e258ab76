"""``himatch match`` and ``himatch evaluate``: what a trained policy makes of targets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from himatch.cli.flags import Import, Name, PathName, RunFolder, Threads, optional

if TYPE_CHECKING:
    from himatch.data import TrajectoryDataset
    from himatch.evaluation import MatchResult
    from himatch.policy import Policy
    from himatch.rehearsal import Expected
    from himatch.targets import TargetLike

Conditioning = Annotated[
    Literal["nominal", "remaining", "planned", "rehearsed", "waypoints"],
    tyro.conf.arg(metavar="nominal|remaining|planned|rehearsed|waypoints"),
]


@dataclass
class RolloutOptions:
    """How to roll out."""

    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 20
    """Rollouts of every target and seed."""
    conditioning: Conditioning = "nominal"
    """The target's own z_t, what remains of the target, its episode mixture part by part, a program that is tried
    in the simulator first, or way-points to a goal."""
    stretches: Annotated[int | None, optional(metavar="N")] = None
    """Plan with stretches of N steps of training episodes instead of whole ones (--conditioning planned)."""
    replan: Annotated[int | None, optional(metavar="N")] = None
    """Plan again every N steps from what is left of the target (--conditioning planned)."""
    within: Annotated[Literal["episode", "pool"], tyro.conf.arg(metavar="episode|pool")] = "episode"
    """Whether every rollout follows a plan for the whole target, or rollouts share it out among them (--conditioning
    planned or rehearsed)."""
    rehearsal: Annotated[str | None, optional(metavar="30s")] = None
    """How long to search for a rehearsed program, 30s or 2m; by default until it no longer pays."""
    feature: Name = None
    """What is compared, by default what the policy was trained to match."""
    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """Of the initial states."""
    env: Annotated[str | None, optional(metavar="ID")] = None
    """Another Gymnasium environment than the data's."""
    temperature: Annotated[float | None, optional(metavar="X")] = None
    """Of sampled actions, for a stochastic policy: 0 is the mean action; by default what the run says."""
    weights: Annotated[Literal["best", "last"], tyro.conf.arg(metavar="best|last")] = "last"
    """The last weights, or those of the lowest validation loss, which says little about rollouts."""
    device: Annotated[str, tyro.conf.arg(metavar="cuda|cpu")] = "cpu"
    """Where the policy runs."""
    threads: Threads = 0
    """Threads that simulate; 0 means all."""
    imports: Import = ()
    """Python file (or module) that registers tasks of your own."""

    def load(self, run: str) -> Policy:
        """The policy of a run folder."""
        from himatch.errors import HimatchError
        from himatch.policy import load
        from himatch.tasks import import_tasks

        import_tasks(*self.imports)
        policy = load(run, weights=self.weights, device=self.device)
        if self.temperature is not None:
            if not policy.agent.policy.stochastic:
                raise HimatchError(f"{run} is a deterministic policy; --temperature is for stochastic ones")
            if not self.temperature >= 0:
                raise HimatchError(f"the temperature must be 0 or more, got {self.temperature:g}")
            policy.temperature = self.temperature
        return policy

    def rehearse(self, policy: Policy, targets: Sequence[TargetLike]) -> list[Expected]:
        """Find programs for targets, where they are to be rehearsed, and what to expect of them."""
        from himatch._runtime.progress import bars
        from himatch.errors import HimatchError

        if self.conditioning != "rehearsed":
            if self.rehearsal is not None:
                raise HimatchError("--rehearsal is for --conditioning rehearsed")
            return []
        limit = None if self.rehearsal is None else seconds(self.rehearsal)
        with bars() as begin:
            return policy.rehearse(
                targets,
                seconds=limit,
                episodes=self.episodes,
                within=self.within,
                env=self.env,
                threads=self.threads,
                bar=begin,
            )


def seconds(text: str) -> float:
    """``30s``, ``2m`` or plain seconds."""
    from himatch.errors import HimatchError

    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(s|m|min)?", text.strip())
    if found is None or float(found[1]) <= 0:
        raise HimatchError(f"a time is written 30s or 2m and more than 0, got {text!r}")
    return float(found[1]) * (60.0 if found[2] in ("m", "min") else 1.0)


@dataclass
class Match:
    """Roll a policy out under one target and compare what happened with it."""

    run_folder: RunFolder
    """Folder that himatch train wrote, a model of himatch models list, or hf:USER/NAME."""
    target: Annotated[str, tyro.conf.arg(metavar="EXPR")]
    """normal(5,1), 0.5*normal(3,1)+0.5*normal(9,1), return(5000), goal(2, within=80), task(1.5), demo(FILE,3),
    heldout(0), ...; also normal(4,1) for 500 then normal(9,1), and x_velocity ~ normal(3,1) & height > 1.1."""
    plot: PathName = None
    """Draw target and rollouts into this .png, .pdf or .svg."""
    video: PathName = None
    """Film the first rollout into this .mp4 (needs the extra video), .gif or .webp."""
    save: PathName = None
    """Write all rollouts into this folder, a dataset labelled with the target."""
    overwrite: bool = False
    """Replace the folder of --save if it exists."""
    rollouts: RolloutOptions = field(default_factory=RolloutOptions)

    def run(self) -> None:
        """Load, roll out, print and draw."""
        from rich.console import Console
        from rich.markup import escape

        from himatch._runtime.files import check_picture, check_target
        from himatch._runtime.progress import bar

        if self.plot is not None:
            check_picture(Path(self.plot))
        check_saved(self.save, overwrite=self.overwrite)
        policy = self.rollouts.load(self.run_folder)
        if self.video is not None:
            from himatch.evaluation.match import check_video

            check_target(Path(self.video))
            check_video(Path(self.video), policy.run, self.rollouts.env)
        target, console = policy.target(self.target), Console(highlight=False)
        for expected in self.rollouts.rehearse(policy, [target]):
            what = "W1" if target.matches == "distribution" else "error"
            of = "" if self.rollouts.feature in (None, policy.feature) else f" of {policy.feature}"
            number = "" if expected.episodes == self.rollouts.episodes else f", of {expected.episodes} rollouts"
            console.print(f"expected {what}{of} {expected}{number}", soft_wrap=True)
        with bar("rollouts") as progress:
            result = policy.match_all(
                [target],
                episodes=self.rollouts.episodes,
                conditioning=self.rollouts.conditioning,
                stretches=self.rollouts.stretches,
                replan=self.rollouts.replan,
                within=self.rollouts.within,
                feature=self.rollouts.feature,
                seed=self.rollouts.seed,
                env=self.rollouts.env,
                threads=self.rollouts.threads,
                progress=progress,
                keep_rollouts=self.save is not None,
            )[0]
        console.print(
            f"[bold]{policy.method.name}[/] on {policy.task.name}, {result.frame.feature.name}: {escape(self.target)}"
        )
        if result.target.matches == "distribution":
            for line in distribution_lines(result):
                console.print(line)
        else:
            for line in whole_lines(result):
                console.print(line)
            what = {"return": "total", "goal": "last"}[result.target.matches]
            for d, name in enumerate(result.frame.feature.names(len(result.wanted))):
                reached = result.reached[..., d]
                console.print(
                    f"{what} {name} {reached.mean():.4g} ± {reached.std():.3g}, target {result.wanted[d]:.4g}"
                )
        for bound in result.bounds:
            console.print(str(bound), markup=False)
        lengths = result.lengths
        console.print(
            f"sum of rewards {result.returns.mean():.1f} ± {result.returns.std():.1f}   length {lengths.mean():.0f}   "
            f"{result.returns.size} rollouts of {len(policy.seeds)} seed(s), {result.conditioning}"
        )
        if self.save is not None:
            report_saved(result.save(self.save, overwrite=self.overwrite), self.save)
        if self.plot is not None:
            console.print(f"picture written to {result.plot(self.plot)}", soft_wrap=True)
        if self.video is not None:
            with bar("video", unit="frames") as progress:
                path = result.video(self.video, progress=progress)
            console.print(f"video of the first rollout written to {path}", soft_wrap=True)


@dataclass
class Evaluate:
    """Roll a policy out under many targets; writes evaluation.json and prints the table."""

    run_folder: RunFolder
    """Folder that himatch train wrote, a model of himatch models list, or hf:USER/NAME."""
    targets: Annotated[str, tyro.conf.arg(metavar="heldout|shift|synthetic|FILE")] = "heldout"
    """The run's held-out episodes, those moved by -3 to 3 bins, Gaussians, or a file with one expression a line."""
    out: PathName = None
    """Where to write the results: by default RUN/evaluation.json, with what differs from the usual in its name."""
    save: PathName = None
    """Write all rollouts into this folder, a dataset labelled with the targets."""
    overwrite: bool = False
    """Replace the folder of --save if it exists."""
    rollouts: RolloutOptions = field(default_factory=RolloutOptions)

    def run(self) -> None:
        """Load, roll out, write and print."""
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        from himatch._runtime.progress import bar
        from himatch.evaluation.evaluation import middle
        from himatch.evaluation.wording import MOST, share, time

        check_writable(self.run_folder, self.out)
        check_saved(self.save, overwrite=self.overwrite)
        policy = self.rollouts.load(self.run_folder)
        targets = policy.named_targets(self.targets)
        self.rollouts.rehearse(policy, [target for _, target in targets])
        with bar("rollouts") as progress:
            found = policy.evaluate(
                targets,
                episodes=self.rollouts.episodes,
                conditioning=self.rollouts.conditioning,
                stretches=self.rollouts.stretches,
                replan=self.rollouts.replan,
                within=self.rollouts.within,
                feature=self.rollouts.feature,
                seed=self.rollouts.seed,
                env=self.rollouts.env,
                threads=self.rollouts.threads,
                progress=progress,
                keep_rollouts=self.save is not None,
            )
        path = found.write(policy.run.folder.evaluation_of(*self._unusual()) if self.out is None else Path(self.out))
        content = found.as_json()
        table = Table(box=None, title=f"{policy.method.name}, {content['feature']}", title_justify="left")
        for name in ("target", "group"):
            table.add_column(name, header_style="bold", overflow="fold")
        distances = all(result.target.matches == "distribution" for result in found.results)
        each = next((r.names for r in found.results if r.joint), [])[:MOST]
        for name in ("W1" if distances else "error", *each, "played", "charged", "mixture", "return"):
            table.add_column(name, header_style="bold", justify="right", no_wrap=True)
        for row, result in zip(content["targets"], found.results, strict=True):
            mixture = "" if row["mixture"] is None else f"{row['mixture']:.3f}"
            alone = [f"{w1:.3f}" if result.joint else "" for w1 in result.marginal[: len(each)]]
            numbers = (f"{row['error']:.3f}", *alone, share(row["played"]), f"{row['charged']:.3f}", mixture)
            table.add_row(
                escape(row["name"]),
                escape(row["group"]),
                *numbers,
                f"{row['return_mean']:.0f}",
            )
        console = Console(highlight=False)
        console.print(table)
        if unit := next((r.joint_unit for r in found.results if r.joint), ""):
            console.print(
                f"{unit}; the columns {', '.join(each)} are each feature's own W1, in its units", markup=False
            )
        for result in found.results:
            for bound in result.bounds:
                console.print(f"{result.target.name}: {bound}", markup=False, soft_wrap=True)
        for name, s in content["summary"].items():
            if name != "total" or len(content["summary"]) > 2:
                score = f"{found.measure} {s['mean']:.3f} ± {s['std']:.3f}, interquartile mean {middle(s)}"
                console.print(
                    f"{name}: {score}, {time(s['played'], s['charged'], short=False)}", markup=False, soft_wrap=True
                )
        console.print(f"written to {path}", soft_wrap=True)
        if self.save is not None:
            report_saved(found.save(self.save, overwrite=self.overwrite), self.save)

    def _unusual(self) -> list[str]:
        """What differs from the plain evaluation, which is what cards and the Hub show."""
        usual = RolloutOptions()
        different = [Path(self.targets).stem] if self.targets != "heldout" else []
        how = ("conditioning", "stretches", "replan", "within")
        for name in (*how, "feature", "weights", "env", "temperature", "episodes", "seed"):
            if (chosen := getattr(self.rollouts, name)) != getattr(usual, name):
                text = f"{chosen:g}" if isinstance(chosen, float) else str(chosen)
                different.append(chosen if isinstance(chosen, str) else f"{name}-{text}")
        return different


def check_writable(run: str, out: str | None) -> None:
    """What belongs to a run is written into its folder, but not into a cache or into himatch itself."""
    from himatch._runtime.files import check_target
    from himatch.errors import HimatchError
    from himatch.models import find_model
    from himatch.runs.hub import is_hub_name

    if out is not None:
        check_target(Path(out))
    elif not Path(run).exists() and (is_hub_name(run) or find_model(run) is not None):
        raise HimatchError(f"{run} does not lie in a folder of yours; say where to write (--out FILE)")


def check_saved(save: str | None, *, overwrite: bool) -> None:
    """Refuse a folder for rollouts before they are played."""
    from himatch.data.writer import check_out
    from himatch.errors import HimatchError

    if save is not None:
        check_out(Path(save), overwrite)
    elif overwrite:
        raise HimatchError("--overwrite is for the folder that --save names")


def report_saved(dataset: TrajectoryDataset, out: str) -> None:
    """How much was written."""
    print(f"{len(dataset)} episodes, {dataset.steps} steps, sha256 {dataset.content_hash[:16]} written to {out}")


def distribution_lines(result: MatchResult) -> Iterator[str]:
    """How rollouts match a distribution, in words: the distance, how much of the time was played, both together."""
    from himatch.evaluation.wording import JOINT, share

    mixture = "" if result.mixture is None else f"   episode mixture {result.mixture.w1:.3f}"
    unit = f", {JOINT}" if result.joint else ""
    yield f"W1 {result.w1:.3f}{unit}   energy {result.energy:.3f}{mixture}"
    if len(result.stretches) > 1:
        yield f"W1 in order {result.in_order:.3f}: of each target in its own steps"
    if result.joint:
        names = result.frame.feature.names(len(result.spread))
        parts = zip(names, result.marginal, result.spread, strict=True)
        yield "of each: " + ", ".join(f"{name} {w1:.3g} (spread {spread:.3g})" for name, w1, spread in parts)
    binned = f"{result.binned:.3f}" if result.binnable else "-"
    apart = " (in feature units)" if result.joint and result.binnable else ""
    yield f"played {share(result.played)}   charged W1 {result.charged:.3f}   on the paper's bins {binned}{apart}"
    if not result.binnable:
        yield (
            f"-: nearly all usual training values of {result.frame.feature.name} lie in one bin of z, which tells no "
            "targets apart"
        )


def whole_lines(result: MatchResult) -> Iterator[str]:
    """How far rollouts are from a return or goal, and what is to be made of those that ended early."""
    from himatch.evaluation.wording import share

    if result.played >= 1:
        yield f"{result.scored}, played 100%"
        return
    yield f"{result.scored}, played {share(result.played)}, charged {result.charged:.4g}"
    early = f"{share(result.ended_early)} of the rollouts ended early"
    if result.target.matches == "return":
        yield f"{early}: their totals are what they had earned by then, and nothing more is charged"
    else:
        yield f"{early}, and what they would have ended at is not known: time that was not played is charged the spread"
