"""The identity of a method in the benchmark, and what tables call it.

Results, rows and the paper's figures are found by a specification: the method's registered name and the settings that
tell its variants apart. The name in a table is written from it, here and nowhere else, and never read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DATASET = "dataset"  # what results of the suite "data" are called: they have no method
_LABELS = {
    **{"cdt": "Categorical DT", "dt": "DT", "bc": "BC (no-context)", "meta-bc": "Meta-BC", "focal": "FOCAL"},
    **{"bdt": "BDT", "dt-ae": "DT-AE", "dt-cpc": "DT-CPC", "dt-e2e": "DT-E2E"},
    **{"hipi": "HIPI-BC", "gh": "Generalized hindsight, BC", "multi-task": "Multi-task BC"},
    **{"goal": "Goal DT", "gcsl": "GCSL", "udrl": "UDRL", "rcp": "RCP"},
}
_POLICIES = {
    **{"paper": "paper's policy", "himatch": "himatch"},
    # What results are called that do not name their policy, by their head.
    **{"gaussian": "one Gaussian network", "squashed": "one squashed Gaussian network"},
}
_FORMS = {
    **{"mode": "{}", "m": "m={}", "target_window": "N={}", "codes": "{}"},
    **{"public_mask": "its mask", "public_start": "its first step"},
    **{"given": "given the {}", "relabel": "{} relabelling", "steps_left": "steps left"},
    **{"feature": "sum of {}", "z": "z {}", "scale": "scale {:g}", "time_std": "time std {:g}", "sampling": "by {}"},
}
"""How names show what tells a row apart, in this order."""


@dataclass(frozen=True)
class Specification:
    """A method and the settings that a suite gives it; what it leaves to the method's defaults is not in it.

    The feature that a method is trained for is not in it either: a result names its feature itself.
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        pairs = ((key, tuple(value) if isinstance(value, list) else value) for key, value in self.settings)
        object.__setattr__(self, "settings", tuple(sorted(pairs)))

    @classmethod
    def of(cls, name: str, **settings: Any) -> Specification:
        """``Specification.of("bdt", m=16, target_window=50)``; takes what :meth:`as_json` gives, too."""
        return cls(name, tuple(settings.items()))

    def as_json(self) -> dict[str, Any]:
        """``{"name": "bdt", "m": 16, "target_window": 50}``, as files have it."""
        return {"name": self.name, **dict(self.settings)}

    def get(self, setting: str) -> Any:
        """A setting; ``None`` where the specification has none of that name."""
        return dict(self.settings).get(setting)


def display_name(method: Specification | None) -> str:
    """A method with everything that tells it apart: ``BDT (m=16, N=50)``, ``DT-AE (unsupervised, m=16)``."""
    return DATASET if method is None else _written(method, tuple(_FORMS))


def paper_name(method: Specification, *, with_size: bool) -> str:
    """The paper's name of one of its rows: ``DT-AE (m=4, joint)``.

    It leaves out the mode of encoders that are trained alone, and a size of codes that all rows of a table share.
    """
    mode = () if method.get("mode") == "unsupervised" else ("mode",)
    return _written(method, (*(("m",) if with_size else ()), "target_window", *mode))


def qualified(name: str, policy: str | None, conditioning: str, budget: str | None, steps: int | None) -> str:
    """A name with what tells it from others: ``Categorical DT (himatch), planned, fast``."""
    parts = (
        None if conditioning == "nominal" else conditioning,
        budget,
        None if steps is None else f"{steps:,} steps",
    )
    return ", ".join(filter(None, (name if policy is None else f"{name} ({_POLICIES[policy]})", *parts)))


def _written(method: Specification, keys: Sequence[str]) -> str:
    given = [(key, method.get(key)) for key in keys]
    options = ", ".join(_FORMS[key].format(value) for key, value in given if value is not None)
    label = _LABELS.get(method.name, method.name)
    return f"{label} ({options})" if options else label
