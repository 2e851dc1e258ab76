"""What to expect of rollouts before they are played: their score and the part of the time that they last."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Basis = Literal["rehearsal", "logs"]
"""Whether the policy was rolled out, or logged episodes stand for it."""


@dataclass(frozen=True)
class Expected:
    """The score and the part of the time that are expected of so many rollouts of every seed, on average over seeds.

    ``score`` is W1 of a distribution, the mean error of a return or goal; from ``low`` to ``high`` it lies in nine
    cases of ten. ``basis`` says whether that is of this policy, which was rolled out, or of logged episodes: then it
    holds as far as the policy does what episodes did under the same z, as others do, and nobody tried this one.
    """

    score: float
    low: float
    high: float
    played: float
    episodes: int
    checked: int
    """Episodes of every seed that this comes from."""
    nearest: str | None = None
    """The target of the same form that is nearest to what is achieved, where that is much nearer."""
    nearest_score: float | None = None
    basis: Basis = "rehearsal"
    held: float | None = None
    """The share of the time played in which the target's bounds held, where it has some."""

    def as_json(self) -> dict[str, Any]:
        """As files have it."""
        found = asdict(self)
        return {name: float(f"{x:.6g}") if isinstance(x, float) else x for name, x in found.items()}

    def __str__(self) -> str:
        text = f"{self.score:.3g} ({self.low:.3g} to {self.high:.3g}), played {self.played:.0%}"
        if self.held is not None:
            text += f", bounds held {self.held:.0%} of it"
        if self.nearest is not None and self.nearest_score is not None:
            text += f"; nearest of its form that can be promised: {self.nearest} ({self.nearest_score:.3g})"
        return text if self.basis == "rehearsal" else f"{text}; by logged episodes, not tried"
