"""Draw the figure of docs/matching.md: one target that no episode shows under four conditionings, pretrained cheetah.

python docs/scripts/conditionings.py
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

import himatch as hm
from himatch.rollout import CONDITIONINGS
from himatch.viz.style import ROLLOUT, blank, save

PICTURES = Path(__file__).parent.parent / "pictures"
THREE_MODES = "0.4*normal(3,0.5)+0.3*normal(6,0.5)+0.3*normal(10,0.5)"
SAID = {
    "nominal": "the target's own z:\nfor what an episode shows",
    "remaining": "what remains of it:\nfor totals, disturbances",
    "planned": "training episodes in turn:\nunseen, no simulator",
    "rehearsed": "a program tried before:\nunseen, with a simulator",
}


def main() -> None:
    """Rehearse, roll out, draw."""
    warnings.simplefilter("ignore")
    policy = hm.load("halfcheetah-cdt")
    expected = policy.rehearse([THREE_MODES], keep=False)[0]
    print("expected", expected)
    figure = blank(9, 5.4)
    grid = figure.subplots(2, 4, sharex="row", sharey="row")
    for conditioning, (above, below) in zip(CONDITIONINGS, grid.T, strict=True):
        result = policy.match(THREE_MODES, conditioning=conditioning)
        print(conditioning, f"W1 {result.w1:.3f}, played {result.played:.0%}")
        edges = np.linspace(-1, 13, 57)
        above.hist(result.values[:, 0], edges, density=True, color="0.8")
        above.hist(result.pooled(0)[:, 0], edges, density=True, histtype="step", color=ROLLOUT, lw=1.5)
        above.set_title(f"{conditioning}, W1 {result.w1:.2f}\n{SAID[conditioning]}", fontsize=9)
        above.set(xlabel="x velocity", yticks=[])
        phi = result.features[0][0][:, 0]
        smooth = np.convolve(phi, np.ones(25) / 25, mode="valid")
        below.plot(np.arange(len(smooth)) + 12, smooth, color=ROLLOUT, lw=1)
        below.set(xlabel="step")
    grid[0, 0].set_ylabel("target grey,\nrollouts blue")
    grid[1, 0].set_ylabel("x velocity of\none rollout")
    print("written to", save(figure, PICTURES / "conditionings.png"))


if __name__ == "__main__":
    main()
