"""Film one rollout of docs/matching.md: three modes that no episode shows, rehearsed, at three times their speed.

python docs/scripts/film.py
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

from PIL import Image, ImageSequence

import himatch as hm

FILM = Path(__file__).parent.parent / "pictures" / "three-modes.webp"
THREE_MODES = "0.4*normal(3,0.5)+0.3*normal(6,0.5)+0.3*normal(10,0.5)"
FASTER = 3


def main() -> None:
    """Rehearse, roll out, film, thin out."""
    warnings.simplefilter("ignore")
    policy = hm.load("halfcheetah-cdt")
    expected = policy.rehearse([THREE_MODES], keep=False)[0]
    result = policy.match(THREE_MODES, conditioning="rehearsed")
    print(f"expected {expected}\nachieved {result.w1:.3f}, played {result.played:.0%}")
    with tempfile.TemporaryDirectory() as folder, Image.open(result.video(Path(folder) / "all.webp")) as film:
        shown = [(frame.convert("RGB"), int(film.info["duration"])) for frame in ImageSequence.Iterator(film)]
    kept = [*shown[::FASTER], shown[-1]]  # the last one stays for a while
    (first, *others), pauses = zip(*kept, strict=True)
    first.save(FILM, save_all=True, append_images=others, duration=pauses, loop=0, quality=60, method=6)
    print(f"written to {FILM}, {FILM.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
