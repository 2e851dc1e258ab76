"""Pages use the field's words, one meaning each."""

from __future__ import annotations

import re

import pytest
from document_blocks import ROOT, pages

INSTEAD = {
    r"is told|are told|was told|told (?:the|a|what|nothing)": "conditioned on",
    r"hears|listens?|asked (?:for|to)": "uses or ignores its conditioning",
    r"by chance": "stochastic policy, sampled actions",
    r"middle action": "mean action",
    r"familiar|cuts? off": "z clipped to the training support",
    r"newest": "last step, last-token inference",
    r"mixture reference|reference mixture|nearest mixture of (?:whole )?episodes": "episode mixture",
    r"feeds?": "conditioner",
}
GENERATED = ("docs/commands.md", "docs/datasets.md")  # from the program and the data, by docs/scripts


def prose(page: str) -> str:
    """A page without its code, file names and links."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


@pytest.mark.parametrize(
    "page", [*(page for page in pages() if page not in GENERATED), "CONTRIBUTING.md", "CHANGELOG.md"]
)
def test_words(page: str) -> None:
    text = prose(page)
    for word, better in INSTEAD.items():
        found = re.search(rf"[^\n]*\b(?:{word})\b[^\n]*", text, re.IGNORECASE)
        assert found is None, f"{page}: write {better}: {found[0]}"
