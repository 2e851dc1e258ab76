"""The pickled episode lists of the Decision Transformer family, read without running any code.

A pickle is a program. This reader lets it build containers, numbers and NumPy arrays, the latter through stand-ins
that accept raw bytes and nothing else; any other name it asks for is refused.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from himatch._runtime.files import reading
from himatch.data.checks import listed
from himatch.errors import DataError


class _Dtype:
    """Stands in for ``numpy.dtype``: a plain numeric type and its byte order."""

    def __init__(self, code: Any, *_: Any) -> None:
        if isinstance(code, type):
            raise DataError("the pickle holds an unusual array type")
        self.value = np.dtype(str(code))
        if self.value.kind not in "fiubU" or self.value.subdtype is not None:
            raise DataError(f"the pickle holds an array of type {self.value}; only numbers are admitted")

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        if order in ("<", ">"):
            self.value = self.value.newbyteorder(order)


class _Array:
    """Stands in for ``numpy.ndarray`` between its construction and the state that fills it."""

    value: np.ndarray[Any, Any]

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        self.value = _from_bytes(raw, dtype, shape, "F" if fortran else "C")


def _from_bytes(raw: Any, dtype: Any, shape: Any, order: str = "C") -> np.ndarray[Any, Any]:
    if not isinstance(dtype, _Dtype) or not isinstance(raw, (bytes, bytearray)):
        raise DataError("the pickle holds an array of objects; only numbers are admitted")
    shape = tuple(int(n) for n in ((shape,) if isinstance(shape, int) else shape))
    return np.frombuffer(raw, dtype=dtype.value).reshape(shape, order="F" if order == "F" else "C")


def _reconstruct(subtype: Any, *_: Any) -> _Array:
    if subtype is not _Array:
        raise DataError("the pickle holds an array of a foreign class; only plain NumPy arrays are admitted")
    return _Array()


def _scalar(dtype: Any, raw: Any) -> Any:
    return _from_bytes(raw, dtype, ())[()]


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """Old protocols write bytes as text in Latin-1."""
    if not isinstance(text, str) or encoding != "latin1":
        raise DataError("the pickle encodes text in an unusual way")
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _encode,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED[f"{_core}.multiarray", "_reconstruct"] = _reconstruct
    _ADMITTED[f"{_core}.multiarray", "scalar"] = _scalar
    _ADMITTED[f"{_core}.numeric", "_frombuffer"] = _from_bytes


class _Unpickler(pickle._Unpickler):
    """The one written in Python: the one in C allocates whatever memory a damaged pickle names."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    read: Callable[[int], bytes]

    def _build(self) -> None:
        """Fill an array; the state of anything else (our own functions, say) is not the pickle's to set."""
        if not isinstance(self.stack[-2], (_Array, _Dtype)):
            raise DataError("the pickle sets the state of something that is not an array")
        build: Callable[[Any], None] = pickle._Unpickler.dispatch[pickle.BUILD[0]]
        build(self)

    def _bytearray(self) -> None:
        """As many bytes as there are; Python's own allocates the number that the pickle names first."""
        self.stack.append(bytearray(self.read(int.from_bytes(self.read(8), "little"))))

    dispatch[pickle.BUILD[0]] = _build
    dispatch[pickle.BYTEARRAY8[0]] = _bytearray

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise DataError(
                f"the pickle asks for {listed([f'{module}.{name}'])}; only NumPy arrays and built-in containers are "
                "read, because anything else could run code. Save the episodes as .npz instead"
            ) from None

    def persistent_load(self, pid: Any) -> Any:
        raise DataError("the pickle refers to objects outside the file")


def read_pickle(path: Path) -> list[dict[str, Any]]:
    """The episodes of a pickled list of dictionaries of arrays; what is ``None`` counts as left out."""
    where = str(path)
    try:
        with reading(where), path.open("rb") as file:
            try:
                content = _plain(_Unpickler(file).load(), {})
            except (pickle.UnpicklingError, AttributeError) as reason:
                raise DataError(f"cannot be read, the pickle is damaged ({reason})") from reason
    except DataError as reason:
        prefix = "" if str(reason).startswith(where) else f"{where}: "
        raise DataError(f"{prefix}{reason}") from reason.__cause__
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, (list, tuple)) or not all(isinstance(episode, dict) for episode in content):
        raise DataError(f"{where}: expected a list of episodes, each a dictionary of arrays")
    return [{str(key): value for key, value in episode.items() if value is not None} for episode in content]


def _plain(value: Any, seen: dict[int, Any], depth: int = 0) -> Any:
    """Replace stand-ins by what they hold. Episode lists are shallow; deeper nesting is an attack or a mistake."""
    if depth > 4:
        raise DataError("the pickle nests containers too deeply to be a list of episodes")
    if isinstance(value, (_Array, _Dtype)):
        if not hasattr(value, "value"):
            raise DataError("the pickle holds an array without content")
        return value.value
    if not isinstance(value, (dict, list, tuple)):
        return value
    if id(value) not in seen:  # containers may be shared; each is replaced once
        items = value.items() if isinstance(value, dict) else enumerate(value)
        plain = {key: _plain(item, seen, depth + 1) for key, item in items}
        seen[id(value)] = plain if isinstance(value, dict) else list(plain.values())
    return seen[id(value)]
