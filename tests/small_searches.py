"""A library and a search of a few rollouts, for tests that rehearse and do not ask how well it goes."""

from __future__ import annotations

import pytest

from himatch.rehearsal import hunt, repertoire, search

LIBRARY = {"EPISODES": 3, "MEANS": 2, "WIDTHS": (0.1,), "NUMBERS": 4, "TOGETHER": 3}
SEARCH = {"CANDIDATES": 5, "FEWEST": 5, "ROUNDS": 2, "FINAL_EPISODES": 2, "CHECKED": 3}
HUNT = {"SURVIVORS": 2, "FINALISTS": 1}


def shrink(patch: pytest.MonkeyPatch) -> None:
    """For as long as the patch lasts."""
    for module, sizes in ((repertoire, LIBRARY), (search, SEARCH), (hunt, HUNT)):
        for name, size in sizes.items():
            patch.setattr(module, name, size)
