"""The quickstart as one HTML file: the table, the distributions, the film, the losses, what comes next."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from himatch._runtime.files import new_file
from himatch.evaluation.pictures import step_histograms
from himatch.evaluation.result import MatchResult
from himatch.policy import Policy
from himatch.quickstart.findings import Findings
from himatch.reproduce.report.figures.histograms import short_name
from himatch.viz.histogram_grid import HistogramPanel, RolloutLine, histogram_grid
from himatch.viz.losses import LossCurve, loss_figure
from himatch.viz.pages import Pages
from himatch.viz.picture import Picture, picture
from himatch.viz.style import BinShares

FILMED = "The pretrained CDT, planned, under the two-mode target: beginning, middle and end, in real time."

NEXT = """himatch match halfcheetah-cdt --target "normal(8,1)" --plot match.png      # another target
himatch match halfcheetah-cdt --target "normal(8,1)" --video match.mp4     # the same, filmed
himatch train cdt --data hopper-medium-expert --feature x_velocity --preset cpu --out runs/hopper
himatch data inspect YOUR_LOGS --plot logs.png                             # your own data
himatch benchmark xvel synthetic --budget smoke --out bench                # the paper's experiments"""


def write_page(findings: Findings, film: Path | str, path: Path) -> Path:
    """Write the page, and beside it the picture of the distributions; ``film`` may say why there is none."""
    panels = _panels(findings)
    facts = {
        "title": "himatch: the quickstart",
        "findings": findings,
        "rows": [_row(findings, i) for i in range(len(findings.targets))],
        "panels": panels,
        "film": "" if isinstance(film, str) else base64.b64encode(film.read_bytes()).decode(),
        "no_film": film if isinstance(film, str) else "",
        "filmed": FILMED,
        "curves": _curves(findings),
        "next": NEXT,
        "provenance": _provenance(findings),
    }
    with new_file(path.with_suffix(".png")) as partial:
        partial.write_bytes(panels.png)
    with new_file(path) as partial:
        partial.write_text(Pages("himatch.quickstart").page("quickstart.html", facts), encoding="utf-8")
    return path


def _row(findings: Findings, i: int) -> tuple[str, str, list[tuple[str, bool]]]:
    """A target: its name, the episode mixture's W1, and that of every policy, with whether it is the lowest."""
    scores = [results[i].w1 for results in findings.results.values()]
    return findings.targets[i], f"{findings.mixture(i):.3f}", [(f"{w1:.3f}", w1 == min(scores)) for w1 in scores]


def _panels(findings: Findings) -> Picture:
    """Targets as rows, policies as columns."""
    drawn = histogram_grid(
        [[_panel(results[i]) for results in findings.results.values()] for i in range(len(findings.targets))],
        [short_name(name).replace("held-out ", "held-out\n") for name in findings.targets],
        [name.replace(", ", ",\n") for name in findings.results],
        "x-velocity [m/s]",
        one_x=True,
        panel=(1.6, 1.05),
    )
    return picture(drawn, "panels", "Targets (grey) and rollouts (blue). The number is W₁.")


def _panel(result: MatchResult) -> HistogramPanel:
    shown = step_histograms(result.frame, result.values, [result.pooled(0)])
    edges = shown.edges[0]
    return HistogramPanel(
        BinShares(edges, shown.target[0]), [RolloutLine(BinShares(edges, shown.rollouts[0, 0]))], f"{result.w1:.2f}"
    )


def _curves(findings: Findings) -> Picture:
    trained = {entry.name: _metrics(entry.policy) for entry in findings.entries if entry.conditioning == "nominal"}
    curves = [LossCurve.of_rows(name, rows) for name, rows in trained.items() if rows]  # a bundled policy has none
    caption = "Loss on the training episodes, and on the validation slice of them (dashed)."
    return picture(loss_figure(curves), "curves", caption)


def _metrics(policy: Policy) -> list[dict[str, float]]:
    return policy.run.folder.metrics(policy.seeds[0])


def _provenance(findings: Findings) -> list[dict[str, Any]]:
    """What each policy was trained on, and with what."""
    return [
        {"name": entry.name, "data": entry.policy.description["data"], "seed": entry.policy.seeds[0]}
        | {"versions": ", ".join(f"{name} {of}" for name, of in entry.policy.description["versions"].items())}
        for entry in findings.entries
        if entry.conditioning == "nominal"
    ]
