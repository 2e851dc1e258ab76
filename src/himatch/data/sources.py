"""Where a source lies: a path, a Minari id, or the name of a dataset that himatch makes."""

from __future__ import annotations

from glob import glob
from pathlib import Path

from himatch.data.minari import datasets_root, download
from himatch.datagen.recipes import RECIPES, suggestion
from himatch.errors import DataError


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
    """The file or folder of one source; a dataset that himatch makes is made now if it is not in the cache."""
    if source.startswith("minari:"):
        return download(source.removeprefix("minari:"))
    there = _local(source)
    if there is not None:
        return there
    if source in RECIPES:
        from himatch.datagen.cache import cached_dataset

        return cached_dataset(source, cache)
    name = source if source.isprintable() else repr(source)
    raise DataError(
        f"{name}: no such file or folder, and no Minari set of that id in {datasets_root()}; to download one, write "
        f"minari:ID; {suggestion(source) or 'himatch data list shows the sets that himatch makes'}"
    )


def task_made_for(source: str) -> str | None:
    """The task of a dataset that himatch makes, known before that is made; ``None`` for any other source."""
    made = (part for part in map(str, split_sources(source)) if part in RECIPES and _local(part) is None)
    return next((RECIPES[name].task for name in made), None)


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
