"""The site builds without a warning, holds every page and every public name, and needs no network to be read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from document_blocks import ROOT, pages

import himatch as hm

pytest.importorskip("sphinx")  # extras; make test has them
pytest.importorskip("myst_parser")
pytest.importorskip("furo")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(ROOT / "docs"), str(out)]
    built = subprocess.run([*command, "-d", str(out / ".doctrees")], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return out


def test_every_page_is_there(site: Path) -> None:
    for page in pages():
        if page.startswith("docs/"):
            assert (site / page.removeprefix("docs/")).with_suffix(".html").is_file(), page


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = (site / "api.html").read_text()
    for name in hm.__all__:
        if name != "__version__":
            assert f'id="himatch.{name}"' in reference, name
    assert 'id="himatch.targets.Drawn"' in reference
    assert "TypeAliasForwardRef" not in reference


def test_equations_are_drawn_by_the_browser(site: Path) -> None:
    concepts = (site / "concepts.html").read_text()
    assert concepts.count("<math") > 20
    drawn = "".join(re.findall(r"<m(?:i|o|n|text)\b[^>]*>([^<]*)<", concepts))
    assert "\\" not in drawn  # LaTeX that the converter handed through


def test_nothing_is_fetched_from_a_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        fetched = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:[^"]*)"', page.read_text())
        assert not fetched, f"{page.name}: {fetched}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?https?:", sheet.read_text()), sheet.name
