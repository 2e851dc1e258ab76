"""The pickled episode lists of the Decision Transformer family, read without running any code.

A pickle is a program. This reader lets it build containers, numbers and stand-ins that only keep what they are given;
any other name it asks for is refused. Arrays are made of the stand-ins afterwards, from raw bytes and nothing else.
"""

from __future__ import annotations

import math
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from himatch._runtime.files import reading
from himatch.data.wording import listed
from himatch.errors import DataError


class _Built:
    """Stands in for what a pickle builds; keeps what it is built from, to be checked when the pickle is read."""

    arguments: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Dtype(_Built):
    """``numpy.dtype``."""


class _Array(_Built):
    """``numpy.ndarray``, between its construction and the state that fills it."""


class _Reconstructed(_Array):
    """``_reconstruct(ndarray, (0,), b"b")``, the beginning of an array."""


class _Buffer(_Array):
    """``_frombuffer(bytes, dtype, shape, order)``, a whole array."""


class _Scalar(_Built):
    """``scalar(dtype, bytes)``."""


class _Encoded(_Built):
    """``_codecs.encode(text, "latin1")``: old protocols write bytes as text in Latin-1."""


_ADMITTED: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _Encoded,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED[f"{_core}.multiarray", "_reconstruct"] = _Reconstructed
    _ADMITTED[f"{_core}.multiarray", "scalar"] = _Scalar
    _ADMITTED[f"{_core}.numeric", "_frombuffer"] = _Buffer


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
                stored = _Unpickler(file).load()
            except (pickle.UnpicklingError, AttributeError) as reason:
                raise DataError(f"cannot be read, the pickle is damaged ({reason})") from reason
        content = _plain(stored, {})
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
    if isinstance(value, _Array):
        return _array(value)
    if isinstance(value, _Scalar):
        dtype, raw = _arguments(value, 2)
        return _from_bytes(raw, dtype, ())[()]
    if isinstance(value, _Dtype):
        return _dtype(value)
    if isinstance(value, _Encoded):
        return _bytes(value)
    if not isinstance(value, (dict, list, tuple)):
        return value
    if id(value) not in seen:  # containers may be shared; each is replaced once
        items = value.items() if isinstance(value, dict) else enumerate(value)
        plain = {key: _plain(item, seen, depth + 1) for key, item in items}
        seen[id(value)] = plain if isinstance(value, dict) else list(plain.values())
    return seen[id(value)]


def _arguments(built: _Built, count: int) -> tuple[Any, ...]:
    if len(built.arguments) != count:
        raise DataError(f"cannot be read, the pickle is damaged ({len(built.arguments)} arguments for an array)")
    return built.arguments


def _array(built: _Array) -> np.ndarray[Any, Any]:
    if isinstance(built, _Buffer):
        raw, dtype, shape, order = _arguments(built, 4)
        return _from_bytes(raw, dtype, shape, fortran=order == "F")
    if isinstance(built, _Reconstructed) and built.arguments[:1] != (_Array,):
        raise DataError("the pickle holds an array of a foreign class; only plain NumPy arrays are admitted")
    if not isinstance(built.state, tuple) or len(built.state) != 5:
        raise DataError("the pickle holds an array without content")
    _, shape, dtype, fortran, raw = built.state
    return _from_bytes(raw, dtype, shape, fortran=bool(fortran))


def _from_bytes(raw: Any, dtype: Any, shape: Any, *, fortran: bool = False) -> np.ndarray[Any, Any]:
    raw = _bytes(raw) if isinstance(raw, _Encoded) else raw
    kind = _dtype(dtype) if isinstance(dtype, _Dtype) else None
    if kind is None or not isinstance(raw, (bytes, bytearray)):
        raise DataError("the pickle holds an array of objects; only numbers are admitted")
    shape = (shape,) if isinstance(shape, int) else shape
    if not isinstance(shape, (tuple, list)) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise DataError("cannot be read, the pickle is damaged (the shape of an array)")
    if kind.itemsize == 0 or len(raw) != math.prod(shape) * kind.itemsize:
        raise DataError(
            f"cannot be read, the pickle is damaged ({len(raw)} bytes for an array of shape {tuple(shape)})"
        )
    return np.frombuffer(raw, dtype=kind).reshape(tuple(shape), order="F" if fortran else "C")


def _dtype(built: _Dtype) -> np.dtype[Any]:
    """A plain numeric type and its byte order."""
    code = built.arguments[0] if built.arguments else None
    if not isinstance(code, str):
        raise DataError("the pickle holds an unusual array type")
    try:
        found = np.dtype(code)
    except (TypeError, ValueError, SyntaxError):
        raise DataError(f"the pickle holds an array of an unknown type {listed([code])}") from None
    if found.kind not in "fiubU" or found.subdtype is not None:
        raise DataError(f"the pickle holds an array of type {found}; only numbers are admitted")
    if built.state is None:
        return found
    if not isinstance(built.state, tuple) or len(built.state) < 2:
        raise DataError("cannot be read, the pickle is damaged (the type of an array)")
    order = built.state[1]
    return found.newbyteorder(order) if order in ("<", ">") else found


def _bytes(built: _Encoded) -> bytes:
    text, encoding = built.arguments if len(built.arguments) == 2 else (*built.arguments, "latin1")[:2]
    if not isinstance(text, str) or encoding != "latin1" or any(ord(letter) > 255 for letter in text):
        raise DataError("the pickle encodes text in an unusual way")
    return text.encode("latin1")
