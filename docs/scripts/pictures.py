"""Draw the pictures of the front page and the tutorials: run each page as it stands, and keep what it draws.

python docs/scripts/pictures.py [PAGE ...]      (seven minutes on two CPU cores for all)
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from document_blocks import ROOT, run_page

PICTURES = {
    "docs/index.md": {"match.png": "index.png"},
    "docs/tutorials/own-dataset.md": {"speeds.png": "own-dataset.png"},
    "docs/tutorials/own-environment.md": {"match.png": "own-environment.png"},
    "docs/tutorials/drawing-a-target.md": {"bars.png": "drawing-bars.png", "curve.png": "drawing-curve.png"},
    "docs/tutorials/one-shot-imitation.md": {"imitation.png": "one-shot-imitation.png"},
    "docs/tutorials/new-aggregator.md": {"quantiles.png": "new-aggregator.png"},
}


def main() -> None:
    """Run the pages named, or all of them."""
    for page in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.path.insert(0, folder)
            run_page(page, {}, tested=False)
            sys.path.remove(folder)
            for drawn, kept in PICTURES[page].items():
                shutil.copy(drawn, ROOT / "docs" / "pictures" / kept)
            os.chdir(ROOT)


if __name__ == "__main__":
    main()
