"""Where a source lies: a path, a Minari id, or the name of a dataset that a provider makes.

A provider is a module that makes datasets by name on first use and keeps them. himatch has one (``himatch.datagen``);
installed packages announce others through the entry point group ``himatch.datasets``. Providers are imported when a
source is neither a path nor a Minari id, so reading logs needs neither a simulator nor an agent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache as once
from glob import glob
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, cast

from himatch.data.minari import datasets_root, download
from himatch.errors import DataError, note, one_line, suggestion

BUILT_IN = "himatch.datagen.cache"
ENTRY_POINT_GROUP = "himatch.datasets"


class DatasetProvider(Protocol):
    """What a module of named datasets must have."""

    def dataset_names(self) -> Collection[str]:
        """The names it knows."""
        ...

    def dataset_task(self, name: str) -> str:
        """The task of a dataset, known before it is made."""
        ...

    def dataset_folder(self, name: str, cache: str | Path | None) -> Path:
        """The file or folder of a dataset in ``cache``, or in the provider's own place; made now if it is not there."""
        ...


def split_sources(source: str | Path) -> list[str | Path]:
    """The sources that ``+`` joins, patterns (``logs/*.csv``) as the files that match; what exists is taken whole."""
    if not str(source).strip():
        raise DataError("the source is empty; name a file, a folder, a Minari id or a dataset")
    if _exists(Path(source)):
        return [source]
    parts: list[str | Path] = [source] if isinstance(source, Path) else [part.strip() for part in source.split("+")]
    if not all(map(str, parts)):
        raise DataError(f"{source!r}: there is nothing beside one of the + signs")
    return [path for part in parts for path in _matching(part)]


def _matching(part: str | Path) -> list[str | Path]:
    """The paths that a pattern matches, sorted; what is no pattern stays as it is."""
    if not set("*?[") & set(str(part)) or _local(str(part)) is not None:
        return [part]
    paths: list[str | Path] = sorted(glob(str(_home(str(part)))))  # noqa: PTH207  (Path's takes hidden files)
    if not paths:
        raise DataError(f"{part}: no file or folder matches the pattern")
    return paths


def locate(source: str, cache: str | Path | None = None) -> Path:
    """The file or folder of one source; a named dataset is made now if it is not in the cache."""
    if source.startswith("minari:"):
        return download(source.removeprefix("minari:"))
    there = _local(source)
    if there is not None:
        return there
    provider = _provider_of(source)
    if provider is not None:
        return provider.dataset_folder(source, cache)
    name = source if source.isprintable() else repr(source)
    near = suggestion(source, (known for one in _providers() for known in one.dataset_names()))
    raise DataError(
        f"{name}: no such file or folder, and no Minari set of that id in {datasets_root()}; to download one, write "
        f"minari:ID; {near or 'himatch data list shows the sets that himatch makes'}"
    )


def task_made_for(source: str) -> str | None:
    """The task of a named dataset, known before that is made; ``None`` for any other source."""
    for part in map(str, split_sources(source)):
        if part.startswith("minari:") or _local(part) is not None:
            continue
        provider = _provider_of(part)
        if provider is not None:
            return provider.dataset_task(part)
    return None


def _provider_of(name: str) -> DatasetProvider | None:
    return next((provider for provider in _providers() if name in provider.dataset_names()), None)


def _providers() -> Iterator[DatasetProvider]:
    """Himatch's own, then those of installed packages."""
    yield cast("DatasetProvider", import_module(BUILT_IN))
    yield from _announced()


@once
def _announced() -> tuple[DatasetProvider, ...]:
    providers: list[DatasetProvider] = []
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            providers.append(entry.load())
        except Exception as reason:  # somebody else's plugin must not take the program down
            note(f"the datasets of {entry.name} could not be loaded: {one_line(reason)}")
    return tuple(providers)


def _local(source: str) -> Path | None:
    """The path or local Minari set of that name, where there is one."""
    for place in (_home(source), datasets_root() / source):
        if _exists(place):
            return place
    return None


def _home(source: str) -> Path:
    """The path with ``~`` as the home folder."""
    try:
        return Path(source).expanduser()
    except RuntimeError:  # of a user who is not there
        return Path(source)


def _exists(path: Path) -> bool:
    """Like ``Path.exists``, which raises where several joined sources make a name too long for a file."""
    try:
        return path.exists()
    except OSError:
        return False
