"""What the lab (``fidelity.py``) tries: every trial by name.

Presets change; trials do not. So each says all that a preset of its day said, and ``fast`` and ``cpu`` alone follow the
presets of today.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from variants import LabCDT


@dataclass(frozen=True)
class Trial:
    """A training, and the ways its policies act: weights, ensemble, temperature."""

    method: str = "cdt"
    switches: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    acts: tuple[str, ...] = ("last", "last x4")
    accuracy: float | None = None
    """The weight of squared error in himatch's own Gaussian head, where it is not the one that it has."""

    def with_(self, acts: tuple[str, ...] | None = None, method: str | None = None, **changes: Any) -> Trial:
        """The same with some changed; what the lab's switches know is a switch there."""
        known = LabCDT.__dataclass_fields__ if self.method.startswith("lab-") else {}
        switches = {name: value for name, value in changes.items() if name in known}
        settings = {name: value for name, value in changes.items() if name not in known}
        return replace(
            self,
            method=method or self.method,
            switches={**self.switches, **switches},
            settings={**self.settings, **settings},
            acts=acts or self.acts,
        )


SAMPLED = ("last", "sampled 1", "sampled 0.7")
# One deterministic network with action tokens: the presets until 2026-11-18.
BEFORE = {"tokens": "pairs", "activation": "relu", "heads": 1, "head": "tanh", "schedule": "cosine"}
ONE = Trial("cdt", settings={**BEFORE, "steps": 30_000, "batch_size": 256}, acts=("best", "last", "last x4"))
LAB = Trial("lab-cdt", settings=ONE.settings)  # the same by way of the switches
LEAN = LAB.with_(actions=False, activation="gelu", heads=4, embedding=0.5, schedule="linear", steps=15_000)


def trials() -> dict[str, Trial]:
    """Everything that is tried, by name."""
    found = {
        "fast": Trial("cdt", acts=("selected",)),
        "one network": ONE,
        "one network, gaussian": ONE.with_(head="gaussian", acts=SAMPLED),
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
    # One stochastic network, one change at a time, at the same number of windows or about the same time.
    stochastic = LEAN.with_(head="gaussian", acts=("last", "sampled 0.7", "sampled 0.85", "sampled 0.85 x4"))
    heads = ("last", "sampled 0.7", "sampled 0.85")  # a mean of mixtures or flows is none
    found |= {
        "gaussian 15k": stochastic,
        "gaussian 15k, adaLN": stochastic.with_(modulated=True),
        "gaussian 15k, cumulative": stochastic.with_(cumulative=True),
        "gaussian 15k, chunk 4": stochastic.with_(chunk=4, context=8, batch_size=160),
        "gaussian 15k, 6k of batch 1024": stochastic.with_(batch_size=1024, steps=6_000),
        "gaussian 15k, 20k of batch 64": stochastic.with_(batch_size=64, steps=20_000),
        "gaussian 15k, with actions": stochastic.with_(actions=True),
        "gaussian 15k, no time": stochastic.with_(uses_time=False),
        "gaussian 15k, 10 steps": stochastic.with_(context=10, batch_size=128),
        "gaussian 15k, width 256": stochastic.with_(width=256),
        "gaussian 15k, relu": stochastic.with_(activation="relu"),
        "gaussian 15k, 1 head": stochastic.with_(heads=1),
        "gaussian 15k, cosine": stochastic.with_(schedule="cosine"),
        "gaussian 15k, full embeddings": stochastic.with_(embedding=1.0),
        "gaussian 15k, decay 0.01": stochastic.with_(weight_decay=0.01),
        "gaussian 15k, rate 3e-4": stochastic.with_(learning_rate=3e-4),
        "mixture 15k": stochastic.with_(form="mixture", acts=heads),
        "joint 15k": stochastic.with_(form="joint", components=5, acts=heads),
        "categorical 15k": stochastic.with_(form="categorical", acts=("last", "sampled 1")),
        "flow 15k": stochastic.with_(form="flow", acts=("last", "sampled 0.7", "sampled 0.85", "sampled 1")),
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
    tiny = LEAN.with_(form="cloned", steps=12_000, batch_size=128, acts=several)  # with --preset cpu
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
    small = ONE.with_(tokens="states", schedule="linear", batch_size=128, steps=9_000, acts=("last", "last x4"))
    gaussian = small.with_(head="squashed", steps=12_000, acts=several)
    found |= {  # with --preset cpu, at about the same time on two cores
        "cpu": Trial("cdt", acts=("last", "sampled 0.5", "sampled 0.7", "selected")),
        "cpu before": ONE.with_(steps=6_000, batch_size=128),
        "cpu states": small.with_(steps=12_000),
        "cpu states 9k": small.with_(activation="gelu", heads=4),
        "cpu states 9k, relu": small,
        "cpu states 14k, relu, batch 64": small.with_(steps=14_000, batch_size=64),
        "cpu likelihood": LAB.with_(  # what squared error is compared with, otherwise as the preset was then
            actions=False,
            schedule="linear",
            head="gaussian",
            steps=16_000,
            warmup=400,
            batch_size=64,
            acts=("last", "sampled 0.5", "sampled 0.7"),
        ),
        "cpu states 14k, likelihood, batch 64": LAB.with_(
            actions=False,
            schedule="linear",
            head="gaussian",
            steps=14_000,
            warmup=350,
            batch_size=64,
            acts=("last", "selected"),
        ),
        "cpu squashed": gaussian,
        "cpu squashed 2 steps": gaussian.with_(context=2, steps=24_000),
        "cpu squashed 1 step": gaussian.with_(context=1, steps=36_000),
    }
    short = Trial("cdt", settings={"steps": 7_000}, acts=("last", "selected"))
    found |= {  # with --preset cpu: choices of the authors' code
        "cpu 7k": short,
        "cpu 7k, counts": replace(short, switches={"z": "counts"}),
        "cpu 7k, episodes evenly": short.with_(sampling="episodes"),
        "cpu 7k, time embeddings of size 1": short.with_(time_std=1.0),
    }
    for name, trial in list(found.items()):
        if trial.method in ("lab-cdt", "cdt") and "z" not in trial.switches:
            found[f"dt {name}"] = trial.with_(method=trial.method.replace("cdt", "dt"))
    # One network a policy and four as one, of the same training: what do three more networks buy?
    temperatures = ("last", "sampled 0.7", "sampled 0.85", "sampled 1", "selected")
    both = (*temperatures, *(f"{act} x4" for act in temperatures))
    few = ("last", "sampled 0.7", "sampled 0.85", "selected", "sampled 0.7 x4", "sampled 0.85 x4")
    alone = LEAN.with_(embedding=1.0, head="gaussian", acts=few)
    found |= {
        "likelihood, alone and together": alone.with_(acts=both),
        "likelihood, alone": alone,
        "dt likelihood, alone": alone.with_(method="lab-dt"),
    }
    # Squared error beside the likelihood, and gradients that are not clipped, of himatch's own network.
    own = Trial(
        "cdt",
        settings={
            "tokens": "states",
            "activation": "gelu",
            "heads": 4,
            "head": "gaussian",
            "schedule": "linear",
            "steps": 15_000,
            "warmup": 500,
            "batch_size": 256,
        },
        acts=temperatures[:-1],
    )
    found |= {
        "likelihood": replace(own, accuracy=0.0),
        "likelihood, clip 10": replace(own.with_(clip=10.0), accuracy=0.0),
        "accurate": replace(own, accuracy=50.0),
        "accurate, clip 10": replace(own.with_(clip=10.0), accuracy=50.0),
        "accurate, 30k": replace(own.with_(steps=30_000), accuracy=50.0),
        "accurate 200": replace(own, accuracy=200.0),
    }
    several = ("last", "sampled 1", "sampled 0.85", "sampled 0.7")
    single = Trial("meta-bc", settings={"head": "tanh", "schedule": "cosine"}, acts=("best", "last"))
    found |= {
        "meta-bc fast": Trial("meta-bc", acts=("selected",)),
        "meta-bc one network": single,
        "meta-bc squashed": single.with_(head="squashed", acts=several),
        "meta-bc gaussian": single.with_(head="gaussian", acts=several),
    }
    return {name: warmed(name, trial) for name, trial in found.items()}


def warmed(name: str, trial: Trial) -> Trial:
    """With the warm-up that the presets had when trials were made: the same part of fewer steps, no more of many."""
    if "steps" not in trial.settings or "warmup" in trial.settings:
        return trial
    warmup, usual = (200, 6_000) if "cpu" in name else (500, 30_000)
    return trial.with_(warmup=min(warmup, round(warmup * trial.settings["steps"] / usual)))
