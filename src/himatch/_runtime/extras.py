"""Libraries that come with an extra of himatch, imported when something needs them."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType

from himatch.errors import HimatchError


def import_extra(module: str, extra: str, purpose: str, error: type[HimatchError] = HimatchError) -> ModuleType:
    """A module of an extra; where it is not installed, one line says what needs it and how to install it."""
    root = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as reason:
        if reason.name is None or reason.name.partition(".")[0] != root:
            raise  # the library is there; something that it needs itself is not
        raise error(f'{purpose} needs the extra {extra}: pip install "himatch[{extra}]"') from None


def installed(module: str) -> bool:
    """Whether a module can be imported; it is not imported for that."""
    return find_spec(module) is not None


def installed_versions(*packages: str) -> dict[str, str]:
    """The version of each package, without those that are not installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
