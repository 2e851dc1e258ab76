"""What tests of interchange share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_hub import LocalHub, local_hub


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """A folder in place of the Hub."""
    pytest.importorskip("huggingface_hub")  # an extra; make test has it
    with local_hub(tmp_path, monkeypatch) as hub:
        yield hub
