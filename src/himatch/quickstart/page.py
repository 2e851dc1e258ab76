"""The quickstart as one HTML file: the table, the distributions, the cheetah, how it was learned, what comes next."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

from himatch._runtime.files import new_file, read_rows
from himatch.policy import Policy
from himatch.quickstart.findings import Findings
from himatch.reproduce.report.document import block, document, figure
from himatch.reproduce.report.figures.pictures import (
    COLORS,
    Picture,
    blank,
    legend,
    picture,
    quiet,
    rollout_line,
    style,
    target_area,
)
from himatch.runs.folder import METRICS, seed_folder

LEDE = """Each policy was asked for four distributions of a cheetah&rsquo;s x-velocity: those of two episodes it has
never seen, and two that nobody has ever run. The <b>BC</b> was trained on the same episodes but is told nothing; the
<b>CDT</b> (Categorical Decision Transformer) is told the distribution of the rest of the episode at every step; the
pretrained one comes with himatch. The numbers are Wasserstein distances in m/s between target and rollouts."""

LEGEND = """<p class="caption">W₁ to the target; the best of a row is shaded. <em>Episode mixture</em>: the nearest
mixture of whole training episodes, what time-sharing behaviours can reach. <em>Planned</em>: told that mixture part by
part instead of the target itself, which helps where the target lies between behaviours.</p>
"""

FILMED = "The pretrained CDT, planned, asked for the two-mode target: beginning, middle and end, in real time."

NEXT = """himatch match halfcheetah-cdt --target "normal(8,1)" --plot match.png      # another target
himatch match halfcheetah-cdt --target "normal(8,1)" --video match.mp4     # the same, filmed
himatch train cdt --data hopper-medium-expert --feature x_velocity --preset cpu --out runs/hopper
himatch data inspect YOUR_LOGS --plot logs.png                             # your own data
himatch benchmark xvel synthetic --budget smoke --out bench                # the paper's experiments"""


def write_page(findings: Findings, film: Path | str, path: Path) -> Path:
    """Write the page, and beside it the picture of the distributions; ``film`` may say why there is none."""
    with style():
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
    head = f"<thead><tr><th></th>{heads}</tr></thead>"
    return f'{LEGEND}<div class="scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>\n'


def _panels(findings: Findings) -> Picture:
    """Targets as rows, policies as columns."""
    names = list(findings.results)
    drawn = blank(1.75 * len(names) + 0.8, 1.15 * len(findings.targets) + 0.8)
    axes = drawn.subplots(len(findings.targets), len(names), squeeze=False, sharex=True)
    for i, line in enumerate(axes):
        for axis, name in zip(line, names, strict=True):
            result = findings.results[name][i]
            bins = result.frame.bins
            edges = bins.edges[0].tolist()
            target_area(axis, edges, bins.histogram(result.values)[0].tolist())
            rollout_line(axis, edges, bins.histogram(result.pooled(0))[0].tolist())
            axis.set_title(f"W1 {result.w1:.2f}", loc="right", fontsize=7, pad=2)
            quiet(axis)
        line[0].set_ylabel(findings.targets[i].replace("+", "\n+ ").replace("held-out ", "held-out\n"), fontsize=7)
    for axis, name in zip(axes[0], names, strict=True):
        axis.annotate(name, (0.5, 1.28), xycoords="axes fraction", ha="center", fontsize=8, weight="bold")
    drawn.supxlabel("x-velocity [m/s]", fontsize=8)
    return picture(drawn, "panels", "What was asked for (grey) and what the rollouts did (blue).")


def _curves(findings: Findings) -> Picture:
    drawn = blank(5.4, 2.6)
    axis = drawn.subplots()
    trained = {a.name: a.policy for a in findings.asked if a.conditioning == "nominal"}
    for color, (name, policy) in zip(COLORS, trained.items(), strict=False):
        rows = _metrics(policy)
        if not rows:  # a bundled policy keeps no curve
            continue
        axis.plot([row["step"] for row in rows], [row["loss"] for row in rows], color=color, label=name, lw=1.3)
        checked = [row for row in rows if "validation" in row]
        steps, values = [row["step"] for row in checked], [row["validation"] for row in checked]
        axis.plot(steps, values, color=color, ls="--", lw=1, label=f"{name}, validation")
    axis.set(xlabel="gradient steps", ylabel="action loss", yscale="log")
    legend(drawn, [axis])
    return picture(drawn, "curves", "Loss on the training episodes, and on some of them that were put aside (dashed).")


def _metrics(policy: Policy) -> list[dict[str, float]]:
    path = seed_folder(policy.folder, policy.seeds[0]) / METRICS
    return read_rows(path) if path.is_file() else []


def _film(film: Path | str) -> str:
    if isinstance(film, str):
        return f'<p class="caption">There is no film: {escape(film)}</p>\n'
    data = base64.b64encode(film.read_bytes()).decode()
    image = f'<img src="data:image/webp;base64,{data}" alt="{FILMED}">'
    return f"<figure>{image}<figcaption>{FILMED}</figcaption></figure>\n"


def _provenance(findings: Findings) -> str:
    items = []
    for a in findings.asked:
        if a.conditioning == "nominal":
            data, made = a.policy.description["data"], a.policy.description["versions"]
            known = ", ".join(f"{name} {version}" for name, version in made.items())
            items.append(
                f"<li>{escape(a.name)}: {data['episodes']:,} episodes of {escape(str(data['source']))}, sha256 "
                f"<code>{data['hash'][:16]}</code>, seed {a.policy.seeds[0]}, {escape(known)}</li>"
            )
    result = next(iter(findings.results.values()))[0]
    count = result.returns.size
    return f'<p class="caption">{count} rollouts for each target.</p>\n<ul class="plain">{"".join(items)}</ul>\n'
