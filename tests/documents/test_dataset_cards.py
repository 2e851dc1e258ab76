"""docs/datasets.md describes the datasets that the bundled agents make."""

from __future__ import annotations

import re
import runpy

import numpy as np
import pytest
from document_blocks import ROOT

from himatch.datagen.recipes import RECIPES
from himatch.experts.cards import read_cards

SCRIPT = runpy.run_path(str(ROOT / "docs" / "scripts" / "datasets.py"))
PAGE = (ROOT / "docs" / "datasets.md").read_text()
MEND = "mend it with: python docs/scripts/datasets.py"


@pytest.mark.parametrize("name", RECIPES)
def test_cards_are_of_the_bundled_agents(name: str) -> None:
    """Weights are named by their hash: whoever replaces an agent has to measure its datasets anew."""
    (card,) = re.findall(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert SCRIPT["agents_line"](RECIPES[name]) in card, MEND
    assert re.search(r"^\| `reward` \|", card, re.MULTILINE), MEND


@pytest.mark.parametrize("name", RECIPES)
def test_returns_are_those_the_agents_are_known_for(name: str) -> None:
    """The mean over the episodes of a dataset against the cards of its agents, measured on other episodes."""
    cards = [read_cards()[part.expert]["stochastic"] for part in RECIPES[name].parts]
    expected = np.mean([card["mean"] for card in cards])
    (row,) = re.findall(rf"^\| \[`{name}`\].*$", PAGE, re.MULTILINE)
    found = float(row.split("|")[6].split("(")[0].replace(",", ""))
    spread = np.sqrt(np.mean([card["std"] ** 2 for card in cards]))
    assert abs(found - expected) < 4 * max(spread / np.sqrt(20), 0.02 * abs(expected)), MEND
