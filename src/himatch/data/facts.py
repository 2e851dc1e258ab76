"""What holds for all steps of a source: how many a second, what its numbers are measured in, who named its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from himatch.errors import DataError, TaskError
from himatch.tasks import Discrete

SAME_RATE = 0.02  # part of a rate by which clocks of the same control loop differ


@dataclass(frozen=True)
class Facts:
    """``rate`` in Hz, ``units`` by column, and the ``mappings``: files that say which column of a table holds what.

    ``clock`` is a column of times, by its name, that none of them names. A ``timed`` source has a time of its own, so
    the rate of its task need not be its. ``continuous`` where somebody says that the actions are, whatever they look
    like; ``discrete`` where they are numbers of actions, ``auto`` as long as nobody knows how many there are.
    """

    rate: float | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    mappings: tuple[str, ...] = ()
    clock: str | None = None
    timed: bool = False
    continuous: bool = False
    discrete: Discrete | Literal["auto"] | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Facts:
        """What a file says; what is of another kind than it should be counts as not there."""
        rate, units, mappings, clock = (stored.get(name) for name in ("rate", "units", "mappings", "clock"))
        return cls(
            float(rate) if isinstance(rate, (int, float)) and 0 < rate < float("inf") else None,
            {str(k): str(v) for k, v in units.items()} if isinstance(units, dict) else {},
            tuple(map(str, mappings)) if isinstance(mappings, (list, tuple)) else (),
            clock if isinstance(clock, str) else None,
            stored.get("timed") is True,
            stored.get("continuous") is True,
            _discrete(stored.get("discrete")),
        )


def _discrete(stored: object) -> Discrete | None:
    try:
        return Discrete.of(stored) if isinstance(stored, dict) else None
    except (KeyError, TaskError):
        return None


def join_facts(parts: Sequence[Facts]) -> Facts:
    """Those of joined sources; a source that does not say its rate has the others'."""
    rates = [part.rate for part in parts if part.rate is not None]
    if rates and max(rates) > min(rates) * (1 + SAME_RATE):
        raise DataError(
            f"the joined sources were recorded at different rates ({min(rates):g} and {max(rates):g} Hz); resample "
            "them to one, or state it for all of them (--columns.rate)"
        )
    units: dict[str, str] = {}
    for part in parts:
        for column, unit in part.units.items():
            if units.setdefault(column, unit) != unit:
                raise DataError(
                    f"the joined sources measure {column} in different units ({units[column]} and {unit}); convert one"
                )
    mappings = dict.fromkeys(name for part in parts for name in part.mappings)
    clock = next((part.clock for part in parts if part.clock is not None), None)
    timed, continuous = any(part.timed for part in parts), any(part.continuous for part in parts)
    rate, discrete = rates[0] if rates else None, parts[0].discrete  # the same in all by now
    return Facts(rate, units, tuple(mappings), clock, timed, continuous, discrete)


def stated_rate(attributes: Mapping[str, Any]) -> float | None:
    """The control rate among the attributes of a file: in Hz, or as the seconds of a step."""
    for names, inverse in ((("rate", "control_rate", "control_freq", "fps"), False), (("dt", "control_dt"), True)):
        for name in names:
            value = attributes.get(name)
            if isinstance(value, (int, float, np.integer, np.floating)) and 0 < value < np.inf:
                return float(1 / value) if inverse else float(value)
    return None
