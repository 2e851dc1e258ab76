"""``himatch train``: from a dataset to a run folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from himatch.cli.data import Loading

if TYPE_CHECKING:
    from himatch.data import TrajectoryDataset
    from himatch.policy import Policy

SCORED = 20  # held-out episodes, about

Number = Annotated[int | None, tyro.conf.arg(metavar="N")]
Real = Annotated[float | None, tyro.conf.arg(metavar="X")]
Text = Annotated[str | None, tyro.conf.arg(metavar="NAME")]


@dataclass
class MethodSettings:
    """What the policy is told. Each method has some of these; its own defaults apply where nothing is given."""

    feature: Text = None
    """Feature to match: reward (dt, cdt, moments) or state (goal) by default, x_velocity, obs[3], several joined with
    commas."""
    gamma: Real = None
    """Discount of the statistic (dt, cdt, moments)."""
    bins: Number = None
    """Bins of the histogram (cdt)."""
    order: Number = None
    """Highest moment (moments)."""
    m: Number = None
    """Size of the code (bdt, dt-ae, dt-cpc, dt-e2e) or embedding (meta-bc, focal)."""
    target_window: Number = None
    """Target states that a code is made from (bdt, dt-ae, dt-cpc, dt-e2e)."""
    look_ahead: Number = None
    """Steps ahead that the target window starts at most, in training (bdt, dt-ae, dt-cpc, dt-e2e)."""
    literal: Annotated[bool | None, tyro.conf.arg(metavar="True|False")] = None
    """The paper's literal reading: the code at t sees t, t + 1, ... (bdt, dt-ae, dt-cpc, dt-e2e)."""
    mode: Annotated[Literal["unsupervised", "joint", "frozen"] | None, tyro.conf.arg(metavar="MODE")] = None
    """How the encoder learns: unsupervised, joint or frozen (dt-ae, dt-cpc)."""
    coefficient: Real = None
    """Weight of the encoder's own loss in joint mode (dt-ae, dt-cpc)."""
    pretrain_steps: Number = None
    """Steps that the encoder is trained before it is frozen (dt-ae, dt-cpc; meta-bc, focal: as many as the policy)."""
    tasks: Number = None
    """Tasks that the encoder compares in a step (meta-bc, focal)."""
    context_steps: Number = None
    """Steps of a task that it sees at a time (meta-bc, focal)."""
    discount: Real = None
    """Discount of rewards (focal)."""
    averaging: Real = None
    """How far target critics move towards the critics in a step (focal)."""
    alpha: Real = None
    """Weight of the divergence from the data's behaviour, at first (focal)."""
    target_divergence: Real = None
    """How far from the data's behaviour the policy may go, in nats (focal)."""


@dataclass
class Overrides:
    """Settings that differ from the preset."""

    steps: Number = None
    """Gradient steps."""
    context: Number = None
    """Steps the policy sees (the paper's N)."""
    layers: Number = None
    """Transformer layers."""
    heads: Number = None
    """Attention heads."""
    width: Number = None
    """Width of the transformer."""
    dropout: Real = None
    """Dropout."""
    tokens: Annotated[Literal["triples", "pairs"] | None, tyro.conf.arg(metavar="triples|pairs")] = None
    """z, s, a as three tokens a step, or z added to the state token."""
    head: Annotated[Literal["tanh", "gaussian"] | None, tyro.conf.arg(metavar="tanh|gaussian")] = None
    """Deterministic actions, learned by squared error, or a Gaussian that acts by chance."""
    batch_size: Number = None
    """Windows a step."""
    learning_rate: Real = None
    """Highest learning rate."""
    schedule: Annotated[Literal["constant", "cosine"] | None, tyro.conf.arg(metavar="constant|cosine")] = None
    """What the learning rate does after the warm-up."""
    warmup: Number = None
    """Steps of linear warm-up."""
    weight_decay: Real = None
    """AdamW's weight decay."""
    clip: Real = None
    """Largest gradient norm."""


@dataclass
class Train:
    """Train a policy offline: DT, Categorical DT, Bi-directional DT, DT-AE, DT-CPC, DT-E2E, BC, Meta-BC or FOCAL."""

    method: Annotated[str, tyro.conf.arg(metavar="NAME")]
    """bc, dt, cdt, moments, goal, bdt, dt-ae, dt-cpc, dt-e2e, meta-bc or focal."""
    data: Annotated[str, tyro.conf.arg(metavar="SOURCE")]
    """D4RL file, Minari folder or id, minari:ID to download one, .npz, .pkl, .csv(.gz) or .parquet, or the name of a
    dataset that himatch makes (himatch data list); join several with +."""
    out: Annotated[str, tyro.conf.arg(metavar="RUN")]
    """Run folder to write: weights, configuration, metrics, held-out episodes."""
    preset: Annotated[str, tyro.conf.arg(metavar="NAME")] = "fast"
    """paper (Table dt_hyper, 1M steps), fast (a minute of one GPU) or cpu (minutes of two cores)."""
    seed: Annotated[int, tyro.conf.arg(metavar="S")] = 0
    """First seed."""
    seeds: Annotated[int, tyro.conf.arg(metavar="K")] = 1
    """How many seeds to train, stacked in one batched model."""
    split: Annotated[str, tyro.conf.arg(metavar="paper|random|label:A,B|none")] = "paper"
    """What to hold out: the paper's ten episodes (best five, middle five), a random tenth, labels, or nothing."""
    resume: bool = False
    """Continue the run in RUN where it stopped."""
    device: Annotated[str | None, tyro.conf.arg(metavar="cuda|cpu")] = None
    """Where to train; a GPU where there is one."""
    stream: Annotated[bool | None, tyro.conf.arg(metavar="True|False")] = None
    """Send batches to the device instead of holding the data there; by default as it fits."""
    track: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME"), tyro.conf.UseAppendAction] = ()
    """Also log to tensorboard, wandb or trackio."""
    settings: MethodSettings = field(default_factory=MethodSettings)
    overrides: Overrides = field(default_factory=Overrides)
    loading: Loading = field(default_factory=Loading)

    def run(self) -> None:
        """Check the settings, then load, then train."""
        from himatch.data.sources import task_made_for
        from himatch.methods import make_method
        from himatch.training import best_weights, make_plan, train

        self.loading.register()  # methods of the user's own among it
        given = {name: value for name, value in vars(self.settings).items() if value is not None}
        method = make_method(self.method, **given)
        settings: dict[str, Any] = {
            "out": self.out,
            "preset": self.preset,
            "seed": self.seed,
            "seeds": self.seeds,
            "resume": self.resume,
            "device": self.device,
            "trackers": self.track,
            **vars(self.overrides),
        }
        # A mistake is said before any data is read, or made.
        make_plan(method, split=self.split, task=self.loading.task or task_made_for(self.data), **settings)
        if self.resume and not Path(self.out).exists():
            print(f"there is no run in {self.out} yet, so one begins", file=sys.stderr)
        data = self.loading.load(self.data)
        policy = train(method, data, split=self.split, stream=self.stream, **settings)
        matched = getattr(method, "feature", None)
        print(f"{method.name}{f' of {matched}' if matched else ''}, {len(policy.seeds)} seed(s), {self.out}")
        print(f"best weights: {best_weights(policy.folder, policy.seeds)}")
        if policy.held_out is not None:
            self._show_score(policy, policy.held_out)

    def _show_score(self, policy: Policy, held_out: TrajectoryDataset) -> None:
        """How well some held-out episodes are predicted, and whether the policy listens to what it is told of them."""
        score = policy.score(list(held_out[:: max(1, len(held_out) // SCORED)]))
        errors, ratios = (", ".join(f"{x:.3g}" for x in score[name]) for name in ("action_error", "sensitivity"))
        print(f"held-out action error: {errors} (mean square, half range = 1)")
        if policy.statistic is not None:
            print(f"told of other episodes instead: {ratios} times that (1 or less: it does not listen)")
