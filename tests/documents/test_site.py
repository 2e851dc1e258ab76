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


def test_the_site(tmp_path: Path) -> None:
    """One test, because building takes most of its time."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += ["-d", str(tmp_path / "doctrees"), str(ROOT / "docs"), str(tmp_path / "site")]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    site = tmp_path / "site"
    check_pages(site)
    check_reference((site / "api.html").read_text())
    check_equations((site / "concepts.html").read_text())
    check_offline(site)


def check_pages(site: Path) -> None:
    for page in pages():
        if page.startswith("docs/"):
            assert (site / page.removeprefix("docs/")).with_suffix(".html").is_file(), page


def check_reference(reference: str) -> None:
    for name in hm.__all__:
        if name != "__version__":
            assert f'id="himatch.{name}"' in reference, name
    assert 'id="himatch.targets.Drawn"' in reference
    assert "TypeAliasForwardRef" not in reference


def check_equations(concepts: str) -> None:
    """Drawn by the browser, and nothing of LaTeX was handed through."""
    assert concepts.count("<math") > 20
    assert "\\" not in "".join(re.findall(r"<m(?:i|o|n|text)\b[^>]*>([^<]*)<", concepts))


def check_offline(site: Path) -> None:
    """Nothing is fetched from a network."""
    for page in site.rglob("*.html"):
        fetched = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:[^"]*)"', page.read_text())
        assert not fetched, f"{page.name}: {fetched}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?https?:", sheet.read_text()), sheet.name
