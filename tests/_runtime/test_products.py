"""Products by oneDNN where they are exact, and settings that stay as they were."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from himatch._runtime import products
from himatch._runtime.products import wide_products


@pytest.fixture(autouse=True)
def tried_anew() -> Iterator[None]:
    products._exact.cache_clear()
    yield
    products._exact.cache_clear()


def precision() -> str:
    return str(torch.backends.mkldnn.matmul.fp32_precision)


def test_products_are_exact_and_settings_put_back() -> None:
    rng = np.random.default_rng(0)
    a, b = (torch.from_numpy(rng.normal(size=(256, 256)).astype(np.float32)) for _ in range(2))
    before = precision()
    with wide_products():
        with wide_products():
            pass
        inside, found = precision(), a @ b
    assert precision() == before
    assert inside in ("bf16", before)
    assert (found.double() - a.double() @ b.double()).abs().max() < 1e-4  # bfloat16 would be off by 0.1


def test_a_processor_that_rounds_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One with matrix units: the product that is tried out comes out as one of bfloat16."""
    monkeypatch.setattr(torch, "full", lambda size, value: torch.ones(size) * torch.tensor(value).bfloat16().float())
    before = precision()
    with wide_products():
        assert precision() == before


def test_who_chose_a_precision_keeps_it() -> None:
    settings = torch.backends.mkldnn.matmul
    settings.fp32_precision = "ieee"
    try:
        with wide_products():
            assert precision() == "ieee"
        assert precision() == "ieee"
    finally:
        settings.fp32_precision = "none"
