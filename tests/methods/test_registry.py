"""Methods by name: which names can be registered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from himatch.errors import HimatchError
from himatch.methods import CDT, DT, METHODS


@dataclass(frozen=True)
class Copied(CDT):
    """A copy whose name nobody changed."""


@dataclass(frozen=True)
class Named(CDT):
    """A method of one's own."""

    name: ClassVar[str] = "named"


@pytest.fixture(autouse=True)
def _methods() -> Iterator[None]:
    before = dict(METHODS)
    yield
    METHODS.clear()
    METHODS.update(before)


@pytest.mark.parametrize("name", ["cdt", "copied"])  # the name that it is stored under in a run folder is CDT's
def test_a_name_of_himatchs_own_is_refused(name: str) -> None:
    with pytest.raises(
        HimatchError, match=r"^Copied cannot be registered as 'cdt', .* own CDT; give it another `name`$"
    ):
        METHODS[name] = Copied
    assert METHODS["cdt"] is CDT
    assert "copied" not in METHODS


def test_one_of_himatchs_own_does_not_take_the_name_of_another() -> None:
    with pytest.raises(HimatchError, match="CDT cannot be registered as 'dt'"):
        METHODS["dt"] = CDT
    assert METHODS["dt"] is DT


def test_the_same_method_twice_is_fine() -> None:
    METHODS["cdt"] = CDT
    METHODS[Named.name] = Named
    METHODS[Named.name] = Named
    assert METHODS["named"] is Named
