"""A library and a search of a few rollouts, for tests that rehearse and do not ask how well it goes."""

from __future__ import annotations

import pytest

from himatch.rehearsal import repertoire, search

LIBRARY = {"EPISODES": 3, "MEANS": 2, "WIDTHS": (0.1,), "NUMBERS": 4, "TOGETHER": 3}
SEARCH = {"CANDIDATES": 5, "SURVIVORS": 2, "ROUNDS": 2, "FINALISTS": 1, "FINAL_EPISODES": 2, "CHECKED": 3}


def shrink(patch: pytest.MonkeyPatch) -> None:
    """For as long as the patch lasts."""
    for module, sizes in ((repertoire, LIBRARY), (search, SEARCH)):
        for name, size in sizes.items():
            patch.setattr(module, name, size)
