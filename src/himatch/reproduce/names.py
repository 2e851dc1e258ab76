"""What tables call a method: the only place where a specification becomes a name. Nothing reads a name back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from himatch.reproduce.specification import Specification
from himatch.reproduce.suite import TableLayout

DATASET = "dataset"  # what results of the suite "data" are called: they have no method
_LABELS = {
    **{"cdt": "Categorical DT", "dt": "DT", "bc": "BC (no-context)", "meta-bc": "Meta-BC", "focal": "FOCAL"},
    **{"bdt": "BDT", "dt-ae": "DT-AE", "dt-cpc": "DT-CPC", "dt-e2e": "DT-E2E"},
}
_ORDER = ("mode", "m", "target_window", "literal")
_PAPERS_ORDER = ("m", "target_window", "mode", "literal")


def display_name(method: Specification | None) -> str:
    """A method with everything that tells it apart: ``BDT (m=16, N=50)``, ``DT-AE (unsupervised, m=16)``."""
    return DATASET if method is None else _written(method, _ORDER)


def table_name(method: Specification, layout: TableLayout) -> str:
    """The name of a method's row. Rows of the paper have the paper's: ``DT-AE (m=4, joint)``.

    It leaves out the mode of encoders that are trained alone, and a size of codes that all rows share.
    """
    if method not in layout.paper.rows:
        return display_name(method)
    order = _PAPERS_ORDER if layout.code_size is None else _PAPERS_ORDER[1:]
    return _written(method, [key for key in order if method.get(key) != "unsupervised"])


def qualified(name: str, conditioning: str, budget: str | None, steps: int | None, sampled: bool) -> str:
    """A name with what differs from the usual: ``Categorical DT, planned, fast, 300,000 steps``."""
    parts = (
        None if conditioning == "nominal" else conditioning,
        budget,
        None if steps is None else f"{steps:,} steps",
        "by chance" if sampled else None,
    )
    return ", ".join(filter(None, (name, *parts)))


def _written(method: Specification, keys: Sequence[str]) -> str:
    options = ", ".join(filter(None, (_option(key, method.get(key)) for key in keys)))
    label = _LABELS.get(method.name, method.name)
    return f"{label} ({options})" if options else label


def _option(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return key
    return str(value) if key == "mode" else f"{'N' if key == 'target_window' else key}={value}"
