"""Shapes in signatures: ``Float[Tensor, "K B N obs"]`` says what an array is, and ``@shaped`` has the tests check it.

jaxtyping and beartype check, and they are for developers: a user needs neither, and pays for no check at any call. So
they are used only where a test run has loaded them before himatch (``tests/conftest.py``). Anywhere else ``shaped``
gives back the very function it got, and ``Float[Tensor, ...]`` is ``Tensor``, as it is for mypy, which checks dtypes.

Axes have the same names everywhere: K models, B of a batch, N steps of context, T of an episode, E episodes, S target
states; ``obs``, ``act``, ``d`` features, ``k`` numbers of z, ``m`` of a code. ``*rows`` are any number of axes, ``#N``
is N or 1, a number is a size, and ``d*{self.count}`` is computed. What ruff would read as Python, such as one name
alone, begins with a space.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

CHECKED = {"beartype", "jaxtyping", "pytest"} <= sys.modules.keys()

if TYPE_CHECKING:
    from typing import Annotated as Bool  # what they are to jaxtyping, too, which a user's mypy need not have
    from typing import Annotated as Float
    from typing import Annotated as Int
    from typing import Annotated as UInt
elif CHECKED:
    from jaxtyping import Bool, Float, Int, UInt
else:

    class _Unchecked:
        def __class_getitem__(cls, array_and_shape):
            return array_and_shape[0]

    Bool = Float = Int = UInt = _Unchecked

__all__ = ["Array64", "Bool", "Float", "Int", "UInt", "shaped"]

Array64 = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])


def shaped(function: Function) -> Function:
    """Check, while testing, that arguments and results have the shapes that the signature says."""
    if not CHECKED:
        return function
    from beartype import BeartypeConf, FrozenDict, beartype
    from jaxtyping import jaxtyped

    get_type_hints(function, include_extras=True)  # fails where jaxtyping would silently check nothing
    # What cannot become an array the function refuses in its own words, and an integer is a float as it is for mypy.
    conf = BeartypeConf(hint_overrides=FrozenDict({ArrayLike: object}), is_pep484_tower=True)
    return jaxtyped(function, typechecker=beartype(conf=conf))  # type: ignore[return-value]
