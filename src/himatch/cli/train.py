"""``himatch train METHOD``: from a dataset to a run folder."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from himatch.cli.data import DataOptions
from himatch.cli.flags import SOURCES, Device, optional

if TYPE_CHECKING:
    from himatch.data import Split
    from himatch.methods import Method
    from himatch.policy import Policy


@dataclass
class RunOptions:
    """Seeds, the device and the log."""

    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """First seed."""
    seeds: Annotated[int, tyro.conf.arg(metavar="K")] = 1
    """How many seeds to train, stacked in one batched model."""
    resume: bool = False
    """Continue the run in RUN where it stopped."""
    start: Annotated[str | None, optional(metavar="RUN")] = None
    """Go on from the weights of this run, of the same method and model, on other or more data."""
    start_weights: Annotated[Literal["best", "last"], tyro.conf.arg(metavar="best|last")] = "last"
    """Which of its weights."""
    normalizers: Annotated[
        Literal["keep", "refit"] | None, optional(metavar="keep|refit", help_behavior_hint="(default: keep)")
    ] = None
    """With --start: keep that run's normalizers and bins, or fit them on the new data."""
    temperature: Annotated[float | None, optional(metavar="X")] = None
    """Of a stochastic policy's sampled actions; by default rollouts on training episodes select it."""
    device: Device = None
    """Where to train; a GPU where there is one."""
    stream: Annotated[bool | None, optional()] = None
    """Send batches to the device instead of holding the data there; by default as it fits."""
    track: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME"), tyro.conf.UseAppendAction] = ()
    """Also log to tensorboard, wandb or trackio."""


@dataclass(kw_only=True)
class TrainRun:
    """Train a policy offline with a method; each has a command of its own, made in ``method_commands``."""

    source: Annotated[str, tyro.conf.arg(name="data", metavar="SOURCE", help=SOURCES)]
    out: Annotated[str, tyro.conf.arg(metavar="RUN")]
    """Run folder to write: weights, configuration, metrics, held-out episodes."""
    preset: Annotated[
        str | None, optional(metavar="paper|fast|cpu", help_behavior_hint="(default: fast with a GPU, cpu without)")
    ] = None
    """Model and training: the paper's (1M steps), a minute of one GPU, or minutes of two CPU cores."""
    split: Annotated[str, tyro.conf.arg(metavar="paper|random|label:A,B|none")] = "paper"
    """Episodes to hold out: the paper's ten (best five, middle five), a random tenth, labels, or none."""
    method: Any
    model: Any
    training: Any
    data: DataOptions = field(default_factory=DataOptions)
    settings: Annotated[RunOptions, tyro.conf.arg(name="run")] = field(default_factory=RunOptions)

    def make_method(self) -> Method:
        """The method, with its settings checked."""
        from himatch.methods import make_method

        return make_method(self.method.name, **vars(self.method))

    @property
    def overrides(self) -> dict[str, Any]:
        """Settings in place of the preset's; None leaves one as it is."""
        return {**vars(self.model), **vars(self.training)}

    def run(self) -> None:
        """Check the settings, then load, then train."""
        from himatch.api import train_as_planned
        from himatch.data.reader import may_name_columns
        from himatch.data.sources import task_made_for
        from himatch.training import best_weights, default_preset, make_plan

        method = self.make_method()
        options: dict[str, Any] = {
            "out": self.out,
            "preset": self.preset or default_preset(self.settings.device),
            "seed": self.settings.seed,
            "seeds": self.settings.seeds,
            "resume": self.settings.resume,
            "device": self.settings.device,
            "trackers": self.settings.track,
            "start": self.settings.start,
            "start_weights": self.settings.start_weights,
            "normalizers": self.settings.normalizers,
            **self.overrides,
        }
        task, named = self.data.task or task_made_for(self.source), may_name_columns(self.source)
        plan = make_plan(
            method,
            lambda: self._read(options["preset"]),
            split=self.split,
            task=task,
            more_features=named,
            **options,
        )
        policy = train_as_planned(plan, stream=self.settings.stream, temperature=self.settings.temperature)
        matched = getattr(method, "feature", None)
        print(f"{method.name}{f' of {matched}' if matched else ''}, {len(policy.seeds)} seed(s), {self.out}")
        print(f"weights that --weights best loads: {best_weights(policy.run.folder, policy.seeds)}")
        show_scores(policy)
        show_temperature(policy)
        print(f"what it can match: himatch show {shlex.quote(self.out)}")

    def _read(self, preset: str) -> Split:
        """The data, once the settings are known to be right."""
        from himatch.data import named_split

        if self.settings.resume and not Path(self.out).exists():
            print(f"there is no run in {self.out} yet, so one begins", file=sys.stderr)
        data = self.data.load(self.source)
        if self.preset is None and preset == "cpu":
            why = "no GPU" if self.settings.device is None else "no GPU in use"
            print(f"himatch: {why}: preset cpu, smaller and shorter than fast and paper (--preset)", file=sys.stderr)
        return named_split(data, self.split)


def show_scores(policy: Policy) -> None:
    """How well logged episodes are predicted, and how much of that is due to the conditioning."""
    from himatch.evaluation.sensitivity import in_words, sensitivities

    if not (scores := policy.run.scores):
        return
    errors = ", ".join(f"{x:.3g}" for x in scores["action_error"])
    unit = "mean square, half range = 1" if policy.task.discrete is None else "1 is all wrong"
    print(f"action error on {scores['episodes']} {scores['on']} episodes: {errors} ({unit})")
    if policy.agent.dims.z:
        ratios = ", ".join(f"{x:.3g} ({in_words(x)})" for x in sensitivities(policy.run))
        print(f"conditioned on other episodes: {ratios} times that; below 1.05 it ignores its conditioning")


def show_temperature(policy: Policy) -> None:
    """What a stochastic policy samples with, and why."""
    if not policy.agent.policy.stochastic:
        return
    selected = (policy.run.scores or {}).get("temperature")
    if selected is None:
        selected = {"value": policy.temperature, "rule": "nothing was simulated to select another"}
    tried = ", ".join(f"{score:.3g} at {temperature}" for temperature, score in selected.get("tried", {}).items())
    print(f"temperature of sampled actions: {selected['value']:g} ({selected['rule']}{tried and f': {tried}'})")
