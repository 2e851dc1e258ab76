"""What stands above and below a table: what was measured, on which data, with how much effort."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from himatch.methods import METHODS
from himatch.reproduce.report.rows import policy_of, row_key
from himatch.reproduce.results import JobResult
from himatch.reproduce.specification import Specification, display_name, qualified
from himatch.reproduce.suite import Suite, TableLayout

HASH_DIGITS = 8
MADE, D4RL, BROUGHT = "made by himatch", "D4RL file", "not made by himatch"
# halfcheetah_medium_expert-v2.hdf5; what follows the stem may have been dropped on the way.
_D4RL_FILE = re.compile(r"(halfcheetah|hopper|walker2d|ant)[-_]medium[-_]expert([-_]v\d)?\.hdf5")
_HIMATCHS = (
    "Time embeddings start at a deviation of 0.02 and windows are drawn by length, as is himatch's way, unless a row "
    "says otherwise (docs/deviations.md)."
)
_D4RL_STEPS = 1_900_000  # they hold two million, some of which are held out; others may use the name


@dataclass(frozen=True)
class DataUsed:
    """A dataset as a result names it."""

    name: str
    digest: str
    origin: str
    episodes: int | None
    role: str = ""
    """What it was used for, where that is not training."""

    def __str__(self) -> str:
        known = [self.role, self.origin, f"{self.episodes:,} episodes" if self.episodes else ""]
        known.append(f"sha256 {self.digest[:HASH_DIGITS]}" if self.digest else "")
        details = ", ".join(part for part in known if part)
        return f"{self.name} ({details})" if details else self.name

    @property
    def is_papers(self) -> bool:
        """Whether it is a set that the paper used: D4RL's medium-expert files."""
        return self.origin == D4RL


def data_used(results: Iterable[JobResult]) -> list[DataUsed]:
    """The datasets of some results, each once: those trained on, then those that only gave targets."""
    found = list(results)
    trained_on = [_data(result.provenance.get("data") or {}) for result in found]
    targets_from = [_data(entry, "targets") for result in found if (entry := result.provenance.get("target_data"))]
    return list(dict.fromkeys([*trained_on, *targets_from]))


def by_data(results: Sequence[JobResult]) -> tuple[list[JobResult], dict[str, list[JobResult]]]:
    """Those that belong in one table, and others by the name of data that somebody brought; D4RL's files together.

    These stand apart only beside results on data that himatch made; alone they are what the tables are about.
    """
    own: list[JobResult] = []
    apart: dict[str, list[JobResult]] = {}
    digests: dict[tuple[str, str], str] = {}
    for result in results:
        data = _data(result.provenance.get("data") or {})
        if data.origin not in (D4RL, BROUGHT):
            own.append(result)
            continue
        name = "D4RL" if data.is_papers else data.name.removesuffix(".hdf5")
        if digests.setdefault((name, result.task), data.digest) != data.digest:  # another file of that name
            name = f"{name} ({data.digest[:HASH_DIGITS]})"
        apart.setdefault(name, []).append(result)
    return (own, apart) if own else (list(results), {})


def data_hash(result: JobResult) -> str:
    """Which data a result stands on."""
    return data_used([result])[0].digest


def _data(entry: dict[str, Any], role: str = "") -> DataUsed:
    name = str(entry.get("name") or "data not named")
    made = entry.get("made_by_himatch")
    theirs = _D4RL_FILE.fullmatch(name.lower()) is not None and int(entry.get("steps") or 0) > _D4RL_STEPS
    origin = "" if made is None else MADE if made else D4RL if theirs else BROUGHT
    return DataUsed(name, str(entry.get("hash") or ""), origin, entry.get("episodes"), role)


def caption_of(suite: Suite, layout: TableLayout, results: Sequence[JobResult]) -> str:
    """What was measured, with how much effort, on which data."""
    trained = (*_policies(suite, results), *_steps(layout, results), *_weights(results), *_own_ways(layout, results))
    trained = (*trained, *_elsewhere(suite, layout, results))
    parts = (
        _measured(suite, layout),
        _drawn(results),
        _recorded(results),
        effort(results),
        *trained,
        *_sources(layout, results),
    )
    return " ".join(filter(None, (*parts, _other_feature(suite))))


def _other_feature(suite: Suite) -> str:
    return f"{suite.other_feature} So no ratio to its figures is given." if suite.other_feature else ""


def _measured(suite: Suite, layout: TableLayout) -> str:
    feature = layout.feature.replace("_", "-").replace("xy-velocity", "(x, y)-velocity")
    if layout.measure == "return":
        return (
            "Returns of rollouts under held-out targets; nearest to the held-out episodes' own is best. D4RL's score "
            "is 0 for a random policy and 100 for an expert."
        )
    if layout.measure == "share":
        return f"Returns of rollouts as a part of the expert's. {suite.targets_note}"
    if layout.measure == "missed":
        return f"Distances of the {feature} at the deadline to a goal, in spreads. {suite.targets_note}"
    if layout.measure == "success":
        return f"Rollouts that reach their goal, in percent; the interval is over seeds. {suite.targets_note}"
    exact = "Exact " if layout.measure == "exact" else ""
    measured = f"{exact}Wasserstein-1 distance between the {feature} distributions of rollouts and target."
    codes = "" if layout.code_size is None else f"Codes have m = {layout.code_size} numbers."
    return " ".join(filter(None, (measured, suite.targets_note, codes)))


def _drawn(results: Sequence[JobResult]) -> str:
    """The seed of targets that were drawn from one."""
    seeds = sorted({seed for result in results if (seed := result.provenance.get("target_seed")) is not None})
    return f"They are those of seed {' and '.join(map(str, seeds))}." if seeds else ""


def _recorded(results: Sequence[JobResult]) -> str:
    """Which rollouts were read at other states than targets are."""
    known = {row_key(result.method, result).recorded_at for result in results if result.method is not None}
    if known <= {"t"}:
        return ""
    whose = "rows that say so" if "t" in known else "all rows"
    return f"Features of rollouts are read at s_t+1 in {whose}, as in the authors' code; those of targets at s_t."


def _policies(suite: Suite, results: Sequence[JobResult]) -> tuple[str, ...]:
    """What the policies of rows are, and what they have of the budget or of himatch and not of the paper."""
    found: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        if result.method is not None:
            found.setdefault(policy_of(result), []).append(result.provenance.get("training") or {})
    budgets = {result.budget for result in results if result.method is not None}
    if not found:
        return ()
    if found.keys() == {"paper"} and budgets == {"paper"}:
        return (_HIMATCHS,)
    whose = ", the paper's only with the budget paper" if "paper" in budgets else ", not the paper's"
    who = (
        "All rows have the paper's policy" if found.keys() == {"paper"} else "Rows that name no policy have the paper's"
    )
    given = any("context" in row.overrides for row in suite.methods)
    rest = "all else but context and batch is" if given else "all else is"
    said = (
        []
        if "paper" not in found
        else [f"{who} in head and loss: deterministic, squared error; {rest} the budget's{whose}."]
    )
    said.append(_HIMATCHS)
    known = {result.method for result in results}
    own_heads = [row.specification for row in suite.methods if row.own_head and row.specification in known]
    said += [f"{display_name(method)} has its own actor." for method in own_heads]
    if own := found.pop("himatch", None):
        kinds = dict.fromkeys(f"head {facts.get('head')}" for facts in own)
        chosen = ", at the temperature that training episodes select" if any("temperature" in t for t in own) else ""
        said.append(f"(himatch) is the policy of himatch's preset ({'; '.join(kinds)}){chosen}.")
    if found.keys() - {"paper"}:
        said.append("Other stochastic networks are from before himatch had a policy of its own.")
    return tuple(said)


def _steps(layout: TableLayout, results: Sequence[JobResult]) -> tuple[str, ...]:
    """Training steps: those of most results, then the rows that have others. A budget had others on other days."""
    keyed = [(row_key(result.method, result), result) for result in results if result.method is not None]
    known = [(key, (result.provenance.get("training") or {}).get("steps")) for key, result in keyed]
    rows = [(key, int(steps)) for key, steps in known if steps]
    if not rows:
        return ()
    budgets, usual = len({key.budget for key, _ in rows}) > 1, Counter(steps for _, steps in rows).most_common(1)[0][0]
    others: dict[int, dict[str, None]] = {}
    for key, steps in rows:
        if steps != usual and key.steps is None:  # a row with unusual steps has them in its name
            policy = None if key.policy == "paper" else key.policy
            name = qualified(layout.row_name(key.method), policy, "nominal", key.budget if budgets else None, None)
            others.setdefault(steps, {})[name] = None
    said = [f"{steps:,} of {' and '.join(names)}" for steps, names in others.items()]
    return (f"Training steps: {'; '.join([f'{usual:,}', *said])}.",)


def _weights(results: Sequence[JobResult]) -> tuple[str, ...]:
    """Which weights results have that record no policy: then the lowest validation loss was the default."""
    methods = [(result.policy, result.method) for result in results if result.method is not None]
    older = dict.fromkeys(method for policy, method in methods if policy is None)
    if not older:
        return ()
    recorded = {policy for policy, _ in methods} - {None}
    whose = (
        "" if not recorded else " but (himatch)'s" if recorded == {"himatch"} else " of results that record no policy"
    )
    last = [display_name(method) for method in older if method.name in METHODS and not METHODS[method.name].validated]
    said = f", of {', '.join(last)} the last" if last else ""
    return (f"Weights{whose} are those of the lowest validation loss{said}.",)


def _own_ways(layout: TableLayout, results: Sequence[JobResult]) -> tuple[str, ...]:
    """What rows with the paper's names do otherwise, whatever their policy; tables of ours need not say it."""
    if not layout.is_papers:
        return ()
    known = [result for result in results if result.method is not None and result.seeds]
    names = {result.method.name for result in known if result.method is not None}
    said = []
    if "cdt" in names:
        said.append("CDT's z is scaled, and in rollouts clipped to the training support; the paper's is not.")
    if baselines := [name for name in ("meta-bc", "focal") if name in names]:
        whose = " and ".join(display_name(Specification(name)) for name in baselines)
        said.append(f"The paper trains {whose} for 100,000 steps a stage.")
    if "focal" in names:
        said.append("FOCAL starts as a clone, which the paper's does not.")
    if any(result.conditioning != "nominal" for result in known):
        said.append("Conditionings other than nominal are himatch's; a ratio there is to the paper's nominal row.")
    return tuple(said)


def _elsewhere(suite: Suite, layout: TableLayout, results: Sequence[JobResult]) -> tuple[str, ...]:
    """Rows that the paper has, but in another of a suite's tables."""
    shown = dict.fromkeys(r.method for r in results if r.method is not None and r.method not in layout.paper.rows)
    said = []
    for other in suite.tables:
        names = [display_name(method) for method in shown if method in other.paper.rows]
        if layout.is_papers and names and other.feature == layout.feature:
            said.append(f"The paper has {' and '.join(names)} in its table {other.paper_label} alone.")
    return tuple(said)


def effort(results: Sequence[JobResult]) -> str:
    """Budget, seeds and rollouts in words; rows name their budget where there are several."""
    names = sorted({result.budget for result in results})
    budgets = f"{names[0]} in every row" if len(names) == 1 else f"{' and '.join(names)}, as each row says"
    rolled_out = [result for result in results if result.seeds]  # the suite "data" has no rollouts
    if not rolled_out:
        return f"Budget {' and '.join(names)}."
    seeds = _span(len(result.seeds) for result in rolled_out)
    rollouts = _span(result.episodes for result in rolled_out)
    return f"Budget {budgets}: {seeds} seeds, {rollouts} rollouts for each target and seed."


def _span(numbers: Iterable[int]) -> str:
    values = sorted(set(numbers))
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _sources(layout: TableLayout, results: Sequence[JobResult]) -> tuple[str, ...]:
    used = data_used(results)
    named = f"Data: {'; '.join(map(str, used))}."
    if not layout.is_papers:
        return (named,)
    if layout.papers_data:
        return named, f"{layout.papers_data} The data differ."
    if all(data.is_papers for data in used):
        return (named,)
    return named, "The paper's figures stand on D4RL's medium-expert-v2 files: the data differ."


def missing_note(rows: Sequence[tuple[str, list[str]]], tasks: Sequence[str]) -> str:
    """Which jobs have left no result, in words; nothing where all have."""
    nowhere = [name for name, missing in rows if len(missing) == len(tasks)]
    partly = [f"{name} ({', '.join(missing)})" for name, missing in rows if 0 < len(missing) < len(tasks)]
    return f"Missing: {'; '.join((*nowhere, *partly))}." if nowhere or partly else ""
