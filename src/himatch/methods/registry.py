"""Every method by name: the paper's, and those that a user registers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from himatch.errors import HimatchError
from himatch.methods.base import Method
from himatch.methods.bdt import BDT
from himatch.methods.dtx import DTAE, DTCPC, DTE2E
from himatch.methods.focal import FOCAL
from himatch.methods.gcsl import GCSL
from himatch.methods.gdt import BC, CDT, DT, GoalDT, MomentsDT
from himatch.methods.metabc import MetaBC
from himatch.methods.multitask import GH, HIPI, MultiTask
from himatch.methods.rcp import RCP
from himatch.methods.udrl import UDRL

BUILT_IN: dict[str, type[Method]] = {
    cls.name: cls
    for cls in (
        *(BC, DT, CDT, MomentsDT, GoalDT, GCSL, UDRL, RCP, MultiTask, HIPI, GH),
        *(BDT, DTAE, DTCPC, DTE2E, MetaBC, FOCAL),
    )
}


class Methods(dict[str, type[Method]]):
    """Methods by name. A name of himatch's own stays its own: a run folder stores the name and nothing else of a class.

    A name of yours may be registered again, since a notebook's cell runs more than once.
    """

    def __setitem__(self, name: str, method: type[Method]) -> None:
        for taken in (name, getattr(method, "name", name)):
            own = BUILT_IN.get(taken)
            if own is not None and _origin(method) != _origin(own):
                raise HimatchError(
                    f"{method.__qualname__} cannot be registered as {taken!r}, the name of himatch's own "
                    f"{own.__qualname__}; give it another `name`"
                )
        super().__setitem__(name, method)


def _origin(method: type[Method]) -> tuple[str, str]:
    """What stays the same when a module is imported again."""
    return method.__module__, method.__qualname__


METHODS = Methods(BUILT_IN)
"""Every method by name; ``METHODS["mine"] = Mine`` registers one."""


def make_method(name: str, **settings: Any) -> Method:
    """The method of that name; settings it does not have are refused by name."""
    if name not in METHODS:
        raise HimatchError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
    known = [f.name for f in fields(METHODS[name])]
    for setting in settings:
        if setting not in known:
            raise HimatchError(f"method {name} has no setting {setting!r}; it has {', '.join(known) or 'none'}")
    return METHODS[name](**settings)


def check_method(method: object) -> None:
    """Refuse what is no method, such as its name or its class."""
    if not isinstance(method, Method):
        raise HimatchError(
            f"train takes a method such as himatch.CDT(...) or himatch.make_method(NAME), got {method!r}"
        )


def method_spec(method: Method) -> dict[str, Any]:
    """Plain JSON values for a checkpoint."""
    return {"name": method.name, **{f.name: getattr(method, f.name) for f in fields(method)}}


def method_from_spec(spec: dict[str, Any]) -> Method:
    """The method that a checkpoint describes."""
    settings = dict(spec)
    name = settings.pop("name")
    return make_method(name, **(METHODS[name].current(settings) if name in METHODS else settings))
