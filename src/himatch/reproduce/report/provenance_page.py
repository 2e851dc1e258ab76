"""Where every number comes from, folded away at the end of the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import display_name


def provenance_section(results: Sequence[JobResult]) -> str:
    """Each result with everything it says about itself."""
    jobs = "".join(map(_job, results))
    return (
        f'<section id="provenance">\n<h2>Provenance</h2>\n'
        f'<details class="folded"><summary>{len(results)} results with their settings and versions</summary>\n'
        f"{jobs}</details>\n</section>\n"
    )


def _job(result: JobResult) -> str:
    facts = {
        "feature": result.feature,
        "policy": result.policy,
        "conditioning": result.conditioning,
        "budget": result.budget,
        "seeds": result.seeds,
        "rollouts": result.episodes,
        "targets": len(result.targets),
        **result.provenance,
    }
    own = ", himatch's policy" if result.policy == "himatch" else ""
    where = escape(f"{result.suite}, {result.task}, {result.feature}, {result.conditioning}{own}")
    name, text = escape(display_name(result.method)), escape(json.dumps(facts, indent=1, sort_keys=True, default=str))
    summary = f'<summary>{name} <span class="muted">{where}</span></summary>'
    return f'<details class="job">{summary}<pre>{text}</pre></details>\n'
