"""Which library multiplies matrices of single precision on a CPU.

PyTorch asks MKL, which on some processors uses half of their vector width. oneDNN uses all of it, and is asked where a
product may be rounded to bfloat16. A processor without matrix units has nothing to gain from rounding and does not
round; whether that is so here is tried out, once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

SIZE = 256  # of the product that is tried out: large enough for oneDNN to be asked

_lock = threading.Lock()
_entries = 0


@contextmanager
def wide_products() -> Iterator[None]:
    """Products by oneDNN, where they are as exact as MKL's and nobody chose a precision; elsewhere nothing changes."""
    global _entries
    settings: Any = getattr(getattr(torch.backends, "mkldnn", None), "matmul", None)  # not in every PyTorch
    with _lock:
        free = _entries > 0 or (getattr(settings, "fp32_precision", None) == "none" and _exact(settings))
        if free:
            _entries += 1
            settings.fp32_precision = "bf16"
    try:
        yield
    finally:
        if free:
            with _lock:
                _entries -= 1
                if not _entries:
                    settings.fp32_precision = "none"


@cache
def _exact(settings: Any) -> bool:
    """Whether products stay exact where they may be rounded."""
    factor = 1.0 + 2.0**-12  # rounded to bfloat16 it would be one
    factors = torch.full((SIZE, SIZE), factor)
    try:
        settings.fp32_precision = "bf16"
        found = factors @ factors
    except RuntimeError:
        return False
    finally:
        settings.fp32_precision = "none"
    return bool(((found / SIZE - factor**2).abs() < 1e-5).all())
