"""An overview as plain text, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from himatch.overview.content import Column, Content, Promise

BLOCKS = "▁▂▃▄▅▆▇█"
MOST = 8  # dimensions, labels or columns that are shown; --json has all
WIDTH = 100


def as_text(shown: Content) -> str:
    """Everything that fits a screen; every line stands for itself."""
    parts = [_head(shown), _covered(shown), _labels(shown), _targets(shown), _conditionings(shown)]
    parts += [_rehearsed(shown), _columns(shown)]
    texts = ["\n".join(lines) for part in parts if (lines := list(part))]
    return "\n\n".join([*texts, f"next: {shown.next}"])


def _head(shown: Content) -> Iterator[str]:
    yield what(shown)
    data = shown.data
    parts = [str(data["source"])]
    parts += [f"{data[key]:,} {key}" for key in ("episodes", "steps") if data[key] is not None]
    parts += [f"sha256 {str(data['hash'])[:12]}"] if data["hash"] else []
    if data["kept_episodes"] not in (0, data["episodes"]):
        parts.append(f"{data['kept_episodes']} episodes kept here")
    yield f"data         {', '.join(parts)}"
    if shown.start is not None:
        yield f"started from {shown.start.get('run')} ({(shown.start.get('data') or {}).get('source')})"
    yield from _folded(
        "conditioned", f"on {shown.conditioned_on}" if shown.conditioned_on != "nothing" else "on nothing"
    )
    yield f"acts         {shown.acts}"
    yield f"sensitivity  {sensitivity(shown)}"


def what(shown: Content) -> str:
    """The policy in one line."""
    feature = f" of {shown.settings['feature']}" if "feature" in shown.settings else ""
    seeds = f"seed{'s' if len(shown.seeds) > 1 else ''} {', '.join(map(str, shown.seeds))}"
    steps = sorted({step for step in shown.steps if step is not None})
    trained = f", {' to '.join(f'{step:,}' for step in dict.fromkeys([steps[0], steps[-1]]))} steps" if steps else ""
    return f"{shown.name}: {shown.method}{feature} on {shown.task}, {seeds}{trained} ({shown.weights} weights)"


def sensitivity(shown: Content) -> str:
    """How much the policy uses its conditioning, in words."""
    if shown.sensitivity is None or shown.sensitivity_in_words is None:
        none = shown.conditioned_on == "nothing"
        return "none: it is not conditioned" if none else "not known: policy.score(episodes) tells, given episodes"
    found = zip(shown.sensitivity, shown.sensitivity_in_words, strict=True)
    said = ", ".join(f"{x:.3g} ({'IGNORES its conditioning' if word == 'ignores' else word})" for x, word in found)
    return f"{said} on {shown.scored_on}"


def _covered(shown: Content) -> Iterator[str]:
    if shown.covered:
        yield "what the data covers"
    for part in shown.covered[:MOST]:
        yield f"  {part.name}   {part.range[0]:.4g} {blocks(part.histogram)} {part.range[1]:.4g}"
        numbers = {"min": part.low, **{f"{q}%": x for q, x in part.quantiles.items()}, "max": part.high}
        yield "    " + "   ".join(f"{name}: {x:.3g}" for name, x in numbers.items())
    yield from _more(shown.covered, "dimensions")


def blocks(shares: Sequence[float]) -> str:
    """A histogram in one line; empty bins are blank."""
    most = max(shares)
    return "".join(BLOCKS[min(int(8 * s / most), 7)] if s > 0 else " " for s in shares) if most > 0 else ""


def _labels(shown: Content) -> Iterator[str]:
    if shown.labels:
        yield f"labels of {shown.labels[0].where} episodes"
    for label in shown.labels[:MOST]:
        yield f"  {label.name}, {label.episodes} episodes" + (f": {label.target}" if label.target else "")
    yield from _more(shown.labels, "labels")


def _targets(shown: Content) -> Iterator[str]:
    if not shown.targets:
        return
    said, wide = (max(len(getattr(t, key)) for t in shown.targets) for key in ("what", "target"))
    wide = max(wide, len("targets to begin with") - said)
    yield f"{'targets to begin with':<{said + wide + 4}}  outside the data   {mixture_of(shown)}"
    for target in shown.targets:
        outside = "-" if target.outside is None else f"{target.outside:.0%}"
        mixture = "-" if target.mixture is None else f"{target.mixture:.3f}"
        yield f"  {target.what:<{said}}  {target.target:<{wide}}  {outside:>16}   {mixture:>18}"


def mixture_of(shown: Content) -> str:
    """The heading of the distances of episode mixtures, with their unit where they are joint."""
    return "episode mixture W1" + (", joint, in spreads" if len(shown.covered) > 1 else "")


def _conditionings(shown: Content) -> Iterator[str]:
    if shown.conditionings:
        yield "conditioning (--conditioning)"
    for name, words in shown.conditionings.items():
        yield f"  {name:<9}  {words}"


def _rehearsed(shown: Content) -> Iterator[str]:
    if not shown.rehearsed:
        return
    wide = max(len("rehearsed targets"), *(len(one.target) + 2 for one in shown.rehearsed[:MOST]))
    yield f"{'rehearsed targets':<{wide}}  {'expected (nine cases of ten)':<28}  played"
    for one in shown.rehearsed[:MOST]:
        yield f"  {one.target:<{wide - 2}}  {promised(one):<28}  {one.played:>6.0%}"
    yield from _more(shown.rehearsed, "targets")


def promised(one: Promise) -> str:
    """``0.47 (0.44 to 0.49)``."""
    return f"{one.score:.3g} ({one.low:.3g} to {one.high:.3g})"


def _columns(shown: Content) -> Iterator[str]:
    rate = f", {shown.rate:g} a second" if shown.rate else ""
    yield f"columns, in order; episodes of up to {shown.horizon:,} steps{rate}"
    for name, columns in (("observations", shown.observations), ("actions", shown.actions)):
        text = ", ".join(map(column, columns[: 3 * MOST]))
        more = f", and {len(columns) - 3 * MOST} more (--json)" if len(columns) > 3 * MOST else ""
        if name == "actions" and shown.discrete is not None:
            last = shown.discrete["start"] + shown.discrete["count"] - 1
            text = f"one of {shown.discrete['start']} to {last}: {text}"
        yield from _folded(f"  {name} ({len(columns)})", text + more)


def column(column: Column) -> str:
    """``speed m/s [-1, 3]``."""
    unit = f" {column.unit}" if column.unit else ""
    return f"{column.name}{unit}" + ("" if column.low is None else f" [{column.low:.3g}, {column.high:.3g}]")


def _folded(title: str, text: str) -> Iterator[str]:
    """A title and text, which goes on below itself."""
    start = f"{title:<11}  " if not title.startswith(" ") else f"{title:<19}  "
    yield from wrap(start + text, WIDTH, subsequent_indent=" " * len(start), break_on_hyphens=False)


def _more(things: Sequence[object], what: str) -> Iterator[str]:
    if len(things) > MOST:
        yield f"  and {len(things) - MOST} more {what} (--json)"
