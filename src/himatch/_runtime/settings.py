"""Settings are plain numbers: NumPy's become Python's, and what is no such number is refused by its name.

A sweep over an array hands over NumPy's, which no run folder can hold as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np

from himatch.errors import HimatchError

LONGEST = 60  # characters of a refused value


def whole(name: str, value: Any) -> int:
    """A whole number, also one that is written as a float (1e3)."""
    if _is_number(value) and value == value // 1:
        return int(value)
    raise HimatchError(f"{name} must be a whole number, got {shown(value)}")


def from_zero(name: str, value: Any) -> float:
    """A finite number that is not negative."""
    try:
        number = np.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0.0 <= number < np.inf:
        raise HimatchError(f"{name} must be a number from 0 up, got {shown(value)}")
    return number


def shown(value: Any) -> str:
    """A value in a message, whatever it is, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def make_plain(settings: Any) -> None:
    """Bring the fields of a frozen dataclass to the numbers they are declared as; for its ``__post_init__``."""
    for field in fields(settings):
        declared = field.type.__name__ if isinstance(field.type, type) else str(field.type)
        if declared in _PLAIN:
            value = _PLAIN[declared](field.name, getattr(settings, field.name))
            object.__setattr__(settings, field.name, value)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


def _number(name: str, value: Any) -> float:
    if _is_number(value):
        return float(value)
    raise HimatchError(f"{name} must be a number, got {shown(value)}")


def _switch(name: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise HimatchError(f"{name} must be True or False, got {shown(value)}")


def _several(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(whole(name, one) for one in value)
    raise HimatchError(f"{name} must be a list of whole numbers, got {shown(value)}")


_PLAIN: dict[str, Callable[[str, Any], Any]] = {
    "int": whole,
    "int | None": lambda name, value: None if value is None else whole(name, value),
    "float": _number,
    "bool": _switch,
    "tuple[int, ...]": _several,
}
