"""Programs by hand, for tests of what plays them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import himatch as hm
from himatch.rehearsal import Arena
from himatch.rollout.programs import Program, ProgramPart, written

EXPECTED = {"score": 1.0, "low": 0.5, "high": 1.5, "played": 1.0, "episodes": 20, "checked": 3}


def know_programs(policy: hm.Policy, targets: Sequence[Any], *programs: Program) -> None:
    """As if these targets had been rehearsed; by default each has two training episodes and then itself."""
    frame = policy.reference().frame
    for given in targets:
        target = policy.target(given)
        steps = len(target.values(frame))
        usual = (ProgramPart("episode(1)", 4), ProgramPart("episode(3)", 2), ProgramPart("target", steps - 6))
        found = programs or (usual,) * len(policy.seeds)
        record = {
            "target": target.name,
            "programs": {str(seed): written(program) for seed, program in zip(policy.seeds, found, strict=True)},
            "expected": EXPECTED,
        }
        now = Arena(policy.run, policy.agent, policy.temperature).now
        policy.run.programs.keep(target, frame, now, record)
