from __future__ import annotations

import subprocess
import sys

import pytest

import himatch as hm


def test_every_public_name_is_there() -> None:
    for name in hm.__all__:
        assert getattr(hm, name) is not None
    assert set(hm.__all__) == set(dir(hm))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = hm.nonsense


def test_rooms_are_there_without_an_import_of_their_own() -> None:
    code = "import himatch as hm; print(hm.targets.Drawn.__name__, hm.divergences.summarize.__name__)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["Drawn", "summarize"]


def test_importing_is_light() -> None:
    """Heavy libraries are imported when something needs them, not before."""
    code = "import sys, himatch; print([m for m in ('torch', 'scipy', 'h5py', 'matplotlib', 'ot') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
