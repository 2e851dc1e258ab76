"""The quickstart as one HTML file: the table, the distributions, the film, the losses, what comes next."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

from himatch._runtime.files import new_file
from himatch.evaluation.pictures import step_histograms
from himatch.evaluation.result import MatchResult
from himatch.policy import Policy
from himatch.quickstart.findings import Findings
from himatch.reproduce.report.document import block, document, figure
from himatch.reproduce.report.figures.histograms import short_name
from himatch.viz.histogram_grid import HistogramPanel, RolloutLine, histogram_grid
from himatch.viz.losses import LossCurve, loss_figure
from himatch.viz.picture import Picture, picture
from himatch.viz.style import BinShares

LEDE = """The targets are four distributions of a cheetah&rsquo;s x-velocity: those of two held-out episodes, and two
that no episode shows. The <b>BC</b> was trained on the same episodes without conditioning; the <b>CDT</b> (Categorical
Decision Transformer) is conditioned at every step on the distribution of the rest of the episode; the pretrained one
comes with himatch. The numbers are Wasserstein distances in m/s between target and rollouts."""

LEGEND = """<p class="caption">W₁ to the target; the best of a row is shaded. <em>Episode mixture</em>: the nearest
mixture of whole training episodes, what time-sharing behaviours can reach. <em>Planned</em>: conditioned on that
mixture part by part instead of the target itself, which helps where the target lies between behaviours.</p>
"""

FILMED = "The pretrained CDT, planned, under the two-mode target: beginning, middle and end, in real time."

NEXT = """himatch match halfcheetah-cdt --target "normal(8,1)" --plot match.png      # another target
himatch match halfcheetah-cdt --target "normal(8,1)" --video match.mp4     # the same, filmed
himatch train cdt --data hopper-medium-expert --feature x_velocity --preset cpu --out runs/hopper
himatch data inspect YOUR_LOGS --plot logs.png                             # your own data
himatch benchmark xvel synthetic --budget smoke --out bench                # the paper's experiments"""


def write_page(findings: Findings, film: Path | str, path: Path) -> Path:
    """Write the page, and beside it the picture of the distributions; ``film`` may say why there is none."""
    panels, curves = _panels(findings), _curves(findings)
    sections = [("table", "How close they come", _table(findings)), ("distributions", "What they do", figure(panels))]
    sections.append(("film", "The cheetah", _film(film)))
    sections.append(("learning", "How they learned", figure(curves)))
    sections.append(("next", "What to try next", f"<pre>{escape(NEXT)}</pre>\n"))
    sections.append(("provenance", "Where the numbers come from", _provenance(findings)))
    body = "".join(block(*section) for section in sections)
    links = [(key, title) for key, title, _ in sections]
    with new_file(path.with_suffix(".png")) as partial:
        partial.write_bytes(panels.png)
    with new_file(path) as partial:
        partial.write_text(document("himatch: the quickstart", LEDE, links, body), encoding="utf-8")
    return path


def _table(findings: Findings) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("episode mixture", *findings.results))
    rows = []
    for i, name in enumerate(findings.targets):
        scores = [results[i].w1 for results in findings.results.values()]
        marks = ['<td class="best">' if w1 == min(scores) else "<td>" for w1 in scores]
        cells = "".join(f"{mark}{w1:.3f}</td>" for mark, w1 in zip(marks, scores, strict=True))
        rows.append(f'<tr><th scope="row">{escape(name)}</th><td>{findings.mixture(i):.3f}</td>{cells}</tr>')
    means = "".join(f"<td>{findings.held_out_mean(name):.3f}</td>" for name in findings.results)
    rows.append(f'<tr><th scope="row">mean, held-out</th><td></td>{means}</tr>')
    lasted = "".join(f"<td>{findings.played(name):.0%}</td>" for name in findings.results)
    rows.append(f'<tr><th scope="row">time played</th><td></td>{lasted}</tr>')
    head = f"<thead><tr><th></th>{heads}</tr></thead>"
    return f'{LEGEND}<div class="scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>\n'


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


def _film(film: Path | str) -> str:
    if isinstance(film, str):
        return f'<p class="caption">There is no film: {escape(film)}</p>\n'
    data = base64.b64encode(film.read_bytes()).decode()
    image = f'<img src="data:image/webp;base64,{data}" alt="{FILMED}">'
    return f"<figure>{image}<figcaption>{FILMED}</figcaption></figure>\n"


def _provenance(findings: Findings) -> str:
    items = []
    for entry in findings.entries:
        if entry.conditioning == "nominal":
            data, made = entry.policy.description["data"], entry.policy.description["versions"]
            known = ", ".join(f"{name} {version}" for name, version in made.items())
            items.append(
                f"<li>{escape(entry.name)}: {data['episodes']:,} episodes of {escape(str(data['source']))}, sha256 "
                f"<code>{data['hash'][:16]}</code>, seed {entry.policy.seeds[0]}, {escape(known)}</li>"
            )
    result = next(iter(findings.results.values()))[0]
    count = result.returns.size
    return f'<p class="caption">{count} rollouts for each target.</p>\n<ul class="plain">{"".join(items)}</ul>\n'
