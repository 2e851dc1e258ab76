"""Notes point at the line of the user's own code that led to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from random_episodes import episode

import himatch as hm


def test_a_note_stands_at_the_users_line() -> None:
    long = episode(np.random.default_rng(0), steps=1005)
    with pytest.warns(hm.HimatchWarning, match="longer than the 1000 steps") as caught:
        hm.load_dataset([long], "hopper")
    line = Path(__file__).read_text().splitlines()[caught[0].lineno - 1]
    assert (caught[0].filename, line.strip()) == (__file__, 'hm.load_dataset([long], "hopper")')
