"""The identity of a method in the benchmark: its registered name and the settings that tell its variants apart.

Results, rows and the paper's figures are found by it. What a table calls a method is derived from it, in
:mod:`himatch.reproduce.names`, and never read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
        """``Specification.of("bdt", m=16, target_window=50)``."""
        return cls(name, tuple(settings.items()))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Specification:
        """From ``{"name": "bdt", "m": 16, ...}``, as result files and the paper's tables have it."""
        return cls.of(**content)

    def as_json(self) -> dict[str, Any]:
        """What :meth:`from_json` takes."""
        return {"name": self.name, **dict(self.settings)}

    def get(self, setting: str) -> Any:
        """A setting; ``None`` where the specification has none of that name."""
        return dict(self.settings).get(setting)

    @property
    def slug(self) -> str:
        """As a part of a file name: ``bdt-literal=False-m=16-target_window=50``."""
        return "-".join((self.name, *(f"{key}={value}" for key, value in self.settings)))
