"""``himatch train METHOD``: one command for each method, made of its dataclass and of both configurations.

The flags are the fields, so that a method has those it uses and no others; a method of one's own has its fields' too.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import field, fields, make_dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, NoReturn, get_type_hints

import tyro

from himatch.cli.data import DataOptions
from himatch.cli.flags import CONFIG, optional
from himatch.cli.train import RunOptions, TrainRun
from himatch.errors import HimatchError
from himatch.methods import METHODS, Method, make_method
from himatch.networks.transformer import ModelConfig
from himatch.tasks import import_tasks
from himatch.training import PRESETS, TrainConfig, configure

SHARED = {"data", "out", "preset", "split", *(f.name for kind in (DataOptions, RunOptions) for f in fields(kind))}


def parse_train(arguments: Sequence[str]) -> TrainRun:
    """What follows ``himatch train``: a method, then its flags. Files of ``--import`` run first: they add methods."""
    imported, words = take_imports(arguments)
    import_tasks(*imported)
    if words and words[0] in ("-h", "--help"):
        show_methods()
    if not words or words[0].startswith("-"):
        raise HimatchError(
            f"the method comes right after train, its flags after that: himatch train {'|'.join(METHODS)}"
        )
    name, *flags = words
    if name not in METHODS:
        make_method(name)  # refuses it
    check_flags(name, flags)
    command: TrainRun = tyro.cli(method_command(name), prog=f"himatch train {name}", args=flags, config=CONFIG)
    return command


def show_methods() -> NoReturn:
    """Print one line for each method and exit."""
    commands: list[Any] = [
        Annotated[method_command(name), tyro.conf.subcommand(name, description=summary(method))]
        for name, method in METHODS.items()
    ]
    description = "Train a policy offline. 'himatch train METHOD --help' shows the flags of a method."
    tyro.cli(reduce(or_, commands), prog="himatch train", description=description, args=["--help"], config=CONFIG)
    raise AssertionError("help exits")


def take_imports(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The values of ``--import``, wherever it stands, and all other arguments."""
    imported: list[str] = []
    others: list[str] = []
    words = iter(arguments)
    for word in words:
        flag, _, value = word.partition("=")
        if flag == "--import" and (value := value or next(words, "")):
            imported.append(value)
        else:
            others.append(word)
    return imported, others


def check_flags(name: str, flags: Sequence[str]) -> None:
    """Refuse a flag that only other methods have, by their names; all other mistakes are for the parser."""
    for word in flags:
        given = word.partition("=")[0].removeprefix("--").replace("-", "_")
        having = [other for other in METHODS if given in own_flags(other)]
        if word.startswith("--") and having and given not in own_flags(name) | SHARED:
            flag, others = given.replace("_", "-"), ", ".join(having)
            raise HimatchError(f"{name} has no flag --{flag}, which is for {others}; see himatch train {name} --help")


def own_flags(name: str) -> set[str]:
    """Fields of the method, and of the model's configuration as far as the method uses it."""
    method = METHODS[name]
    return {f.name for f in fields(method)} | {f.name for f in fields(ModelConfig)} - set(method.unused)


def method_command(name: str) -> type[TrainRun]:
    """The command of a method."""
    method = METHODS[name]
    for f in fields(method):
        if f.name in SHARED | {f.name for config in (ModelConfig, TrainConfig) for f in fields(config)}:
            raise HimatchError(
                f"method {name} has a field {f.name!r}, which is a flag of every himatch train; give it another name"
            )
    hints = get_type_hints(method)
    unset = [(f.name, Annotated[hints[f.name], optional()]) for f in fields(method) if f.default is None]
    sections = [
        ("method", _unchecked(method, unset, "")),
        ("model", _overrides(ModelConfig, method, "Size and form of the policy, where they differ from the preset.")),
        ("training", _overrides(TrainConfig, method, "Optimisation, where it differs from the preset.")),
    ]
    made: type[TrainRun] = make_dataclass(
        f"Train{method.__name__}", sections, bases=(TrainRun,), kw_only=True, namespace={"__doc__": summary(method)}
    )
    return made


def summary(kind: type) -> str:
    """The first paragraph of a class's docstring."""
    written = inspect.cleandoc(kind.__doc__ or "")
    if written.startswith(f"{kind.__name__}("):  # what dataclasses write where nobody wrote anything
        return ""
    return " ".join(written.split("\n\n")[0].split())


def _unchecked(kind: type, unset: list[tuple[str, Any]], doc: str) -> type:
    """A dataclass, with some fields None by default, that takes any values: the method checks them when it is made."""
    namespace = {"__doc__": doc, "__post_init__": lambda self: None}
    none: Any = None
    changed = [(name, hint, field(default=none)) for name, hint in unset]
    return make_dataclass(f"{kind.__name__}Flags", changed, bases=(kind,), frozen=True, namespace=namespace)


def _overrides(config: type, method: type[Method], doc: str) -> type:
    """The fields of a configuration, None by default: the preset's values, which their help texts show."""
    presets = {name: _settings(name, method) for name in PRESETS}
    hints = get_type_hints(config)
    flags: list[tuple[str, Any]] = []
    for f in fields(config):
        values = {name: preset[f.name] for name, preset in presets.items()}
        several = len(set(values.values())) > 1
        shown = ", ".join(f"{name} {value}" for name, value in values.items()) if several else values["fast"]
        flag: Any = Annotated[hints[f.name] | None, tyro.conf.arg(help_behavior_hint=f"(default: {shown})")]
        if f.name in method.unused:
            flag = Annotated[None, tyro.conf.Fixed, tyro.conf.Suppress]
        flags.append((f.name, flag))
    return _unchecked(config, flags, doc)


def _settings(preset: str, method: type[Method]) -> dict[str, Any]:
    """Model and training of a preset."""
    model, train = configure(preset, method)
    return vars(model) | vars(train)
