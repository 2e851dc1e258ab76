"""A user's own Python: a file or a module, imported once."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from himatch.errors import HimatchError, one_line

_sources: dict[Path, bytes] = {}  # what files held when they were imported


def import_code(place: str, option: str) -> ModuleType:
    """Import a file (``my_tasks.py``) or a module by name; it runs once.

    Modules may lie in the current folder too, and a file finds its neighbours. Messages begin with ``option``, as the
    user wrote it (``--import my_tasks.py``).
    """
    path = Path(place).resolve() if place.endswith(".py") else None
    if path is not None and not path.is_file():
        raise HimatchError(f"{option}: no such file")
    folder = str(Path.cwd() if path is None else path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    importlib.invalidate_caches()  # the file may be younger than Python's list of the folder
    try:
        return importlib.import_module(place) if path is None else _import_file(path, option)
    except HimatchError:
        raise
    except SystemExit as reason:
        raise HimatchError(f"{option} calls sys.exit({reason.code!r}); take that out of it") from reason
    except ModuleNotFoundError as reason:
        if reason.name == place:
            raise HimatchError(f"{option}: no such module; give a path that ends in .py or a name") from None
        raise HimatchError(f"{option} failed: {reason}") from reason
    except Exception as reason:  # the user's own code: whatever it raises, say where
        raise HimatchError(f"{option} failed: {one_line(reason)}") from reason


def _import_file(path: Path, option: str) -> ModuleType:
    """A file's module; one that has changed is refused, since datasets say which file their policy comes from."""
    source = path.read_bytes()
    if _sources.get(path, source) != source:
        raise HimatchError(f"{option}: the file has changed since it was imported; start Python anew")
    module = _module(path)
    _sources[path] = source
    return module


def _module(path: Path) -> ModuleType:
    """Import under the file's own name, which Gymnasium's entry points (``"rig:Rig"``) and neighbours import."""
    found = importlib.util.find_spec(path.stem) if "." not in path.stem else None
    if found is not None and found.origin is not None and Path(found.origin).resolve() == path:
        return importlib.import_module(path.stem)
    name = str(path)  # another module has the file's name and keeps it
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None  # as for every file that ends in .py
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
