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
    """Products by oneDNN, where they are as exact as MKL's; elsewhere nothing changes."""
    global _entries
    if not _exact():
        yield
        return
    with _lock:
        _entries += 1
        _settings().fp32_precision = "bf16"
    try:
        yield
    finally:
        with _lock:
            _entries -= 1
            if not _entries:
                _settings().fp32_precision = "none"


def _settings() -> Any:
    return getattr(getattr(torch.backends, "mkldnn", None), "matmul", None)


@cache
def _exact() -> bool:
    """Whether products stay exact; not where somebody has chosen a precision, or this PyTorch offers no choice."""
    with _lock:
        settings = _settings()
        if settings is None or getattr(settings, "fp32_precision", None) != "none":
            return False
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
