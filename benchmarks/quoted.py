"""Is every number that a page quotes from the results still the report's? After a rerun, put the new ones in.

    himatch report results
    python benchmarks/quoted.py            # what is stale
    python benchmarks/quoted.py --write    # mends the numbers; verdicts that changed need new sentences

``docs/quoted.toml`` has the sentences, with a lookup wherever they have a number: ``{synthetic.rehearsed}`` is the mean
of a row of a table, ``{synthetic.rehearsed[hopper/listed].played}`` another column and value. What is looked up are
``claims.csv`` and ``tables.csv`` of the report, and JSON files in ``benchmarks``.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import quoted_files

ROOT = Path(__file__).parents[1]
QUOTED = ROOT / "docs" / "quoted.toml"
REPORT = ROOT / "results" / "report"
NUMBER = r"[-+]?\d(?:[\d,]*\d)?(?:\.\d+)?"
WRITTEN = re.compile(r"(?<![\w.])[-+]?\d+\.\d{2,}(?!\.?\d)")
"""What must come from somewhere: two decimals, and no version of anything."""
CODE = re.compile(
    r"^```.*?^```|`[^`\n]*`|\]\([^)\s]*\)|(?:torch|Python)\s[\d.]+(?: or [\d.]+)?", re.DOTALL | re.MULTILINE
)
PERCENTAGE = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)? %")
REST = r"(?:(?!\n\n|\n- ).)*"
"""Of a paragraph, a table, an entry of a list."""
PLACE = re.compile(r"([\w-]+)\.([^\[\].]+)(?:\[([^\]]+)\])?(?:\.(\w+))?")
FORMATS = {"success": ".3g", "slope": ".2f", "share": ".0%", "return": ",.0f"}
"""Of a table's measure; all others have three decimals, as in the report."""
Known = dict[tuple[str, str, str], Mapping[str, str]]


class QuoteError(Exception):
    """A lookup that finds nothing, or a sentence that is not there."""


@dataclass(frozen=True)
class Stale:
    """A number that is another one now, at a place of a page."""

    start: int
    end: int
    value: str


@dataclass(frozen=True)
class Page:
    """What a page quotes."""

    path: Path
    quotes: tuple[str, ...]
    guarded: tuple[str, ...]
    """Headings of sections that may have no other numbers."""
    exceptions: Mapping[str, str]
    """Words with numbers from elsewhere, and from where; with ``…`` to the end of the paragraph, table or entry."""
    percentages: bool = False
    """Whether percentages are guarded, too."""


# -- what is known -------------------------------------------------------------------------------------------------


def numbers(spec: Mapping[str, Any]) -> Known:
    """Every value that can be looked up, by group, row and column."""
    known = {**_cells(spec["tables"]), **_claims(spec["claims"])}
    return {**known, **quoted_files.numbers(ROOT, spec.get("files", {}))}


def _read(name: str) -> list[dict[str, str]]:
    with (REPORT / name).open(newline="") as file:
        return list(csv.DictReader(file))


def _cells(tables: Mapping[str, Mapping[str, str]]) -> Known:
    found: Known = {}
    lines = _read("tables.csv")
    measures = {line["table"]: line["measure"] for line in reversed(lines)}  # the first of each; slopes come after
    for group, names in tables.items():
        label, rows = names["table"], {row: key for key, row in names.items() if key not in ("table", "measure")}
        measure = names.get("measure", measures[label])
        for line in lines:
            if (line["table"], line["measure"]) != (label, measure) or line["row"] not in rows:
                continue
            column = "/".join(filter(None, (line["task"], line["group"])))
            found[group, rows[line["row"]], column] = _values(line, measure)
        if lacking := set(rows.values()) - {row for of, row, _ in found if of == group}:
            raise QuoteError(f"{label} has no row for {', '.join(sorted(lacking))}")
    return found


def _values(line: Mapping[str, str], measure: str) -> dict[str, str]:
    """The numbers of a cell, those that it has, as the report writes them."""

    def shown(key: str) -> str:
        number = float(line[key])
        return f"{100 * number:.3g}" if measure == "success" else format(number, FORMATS.get(measure, ".3f"))

    plain = {"mean": "mean", "paper": "paper_mean", "charged": "charged", "within": "within_episode", "iqm": "iqm"}
    values = {name: shown(key) for name, key in plain.items() if line[key]}
    if line["mean_low"]:
        values["interval"] = f"{shown('mean')} [{shown('mean_low')}, {shown('mean_high')}]"
    if line["played"]:
        values["played"] = f"{float(line['played']):.0%}"
    if line["charged"]:
        values["lasted"] = f"{values['mean']} ({values['charged']}, {values['played']})"
    return {name: value.replace("%", " %") for name, value in values.items()}


def _claims(by_verdict: Mapping[str, Mapping[str, str]]) -> Known:
    """``claim`` has those that are named; ``claims`` counts them all."""
    lines = _read("claims.csv")
    by_text, found = {line["claim"]: line for line in lines}, Known()
    for name, text in (named for names in by_verdict.values() for named in names.items()):
        if text not in by_text:
            raise QuoteError(f"no claim is called {text!r}")
        found["claim", name, ""] = by_text[text]
    for source in ("paper", "himatch"):
        counts = Counter(line["verdict"] for line in lines if line["source"] == source)
        words = {"holds": "holds", "close": "too close to call", "fails": "does not hold"}
        tally = {name: str(counts[verdict]) for name, verdict in words.items()}
        found["claims", source, ""] = {**tally, "all": str(sum(map(int, tally.values())))}
    return found


def look_up(place: str, known: Known) -> str:
    """The value of ``group.row[column].value``; the average's mean without the latter two."""
    parts = PLACE.fullmatch(place)
    if parts is None:
        raise QuoteError(f"{place!r} is no lookup: group.row[column].value")
    group, row, column, value = parts.groups()
    found = known.get((group, row, column or "average")) or known.get((group, row, column or ""))
    if found is None:
        columns = [c for g, r, c in known if (g, r) == (group, row)]
        raise QuoteError(f"nothing at {place!r}; columns: {', '.join(columns) or 'none, no such row'}")
    if not found.get(value or "mean"):
        raise QuoteError(f"{place!r} has no {value or 'mean'}; it has {', '.join(k for k in found if found[k])}")
    return found[value or "mean"]


# -- what is written -----------------------------------------------------------------------------------------------


def read_pages(spec: Mapping[str, Any]) -> list[Page]:
    """Every page, with its quotes one a line."""
    pages = []
    for name, page in spec["pages"].items():
        quotes = tuple(line.strip() for line in page["quotes"].splitlines() if line.strip())
        settings = tuple(page.get("guarded", ())), page.get("exceptions", {}), page.get("percentages", False)
        pages.append(Page(ROOT / name, quotes, *settings))
    return pages


def find(quote: str, text: str, known: Known) -> tuple[tuple[int, int], list[Stale]]:
    """Where a quote stands in a text, line breaks aside, and those of its numbers that are others now."""
    pattern, values = "", []
    for literal, place, spec, _ in Formatter().parse(quote):
        pattern += _spaced(literal)
        if place is not None:
            value = look_up(place, known)
            values.append(format(float(value), spec) if spec else value)
            pattern += f"({_any_number(values[-1])})"
    matches = list(re.finditer(pattern, text))
    if len(matches) != 1:
        raise QuoteError(f"{len(matches)} places, not one, have: {quote}")
    match = matches[0]
    spans = [(*match.span(i), value) for i, value in enumerate(values, 1)]
    stale = [Stale(*span) for span in spans if " ".join(text[span[0] : span[1]].split()) != span[2]]
    return match.span(), stale


def _spaced(literal: str) -> str:
    return r"\s+".join(map(re.escape, re.split(r"\s+", literal)))


def _any_number(value: str) -> str:
    """A pattern for other numbers in the place of these."""
    return NUMBER.join(map(_spaced, re.split(NUMBER, value)))


def check(spec: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong, a line each."""
    known, pages = numbers(spec), read_pages(spec)
    for verdict, names in spec["claims"].items():
        for name, claim in names.items():
            if (now := known["claim", name, ""]["verdict"]) != verdict:
                where = [str(page.path.relative_to(ROOT)) for page in pages if f"{{claim.{name}." in str(page.quotes)]
                yield f"{claim!r}: {now}, no longer {verdict}; sentences in {', '.join(where) or 'some page'}"
    for page in pages:
        yield from (f"{page.path.relative_to(ROOT)}: {wrong}" for wrong in check_page(page, known))


def check_page(page: Page, known: Known) -> Iterator[str]:
    """What is wrong on a page."""
    text, spans = page.path.read_text(), []
    for quote in page.quotes:
        by_hand = [number for literal, *_ in Formatter().parse(quote) for number in WRITTEN.findall(literal)]
        if by_hand and page.guarded:
            yield f"{by_hand[0]} is not looked up in: {quote}"
        try:
            span, stale = find(quote, text, known)
        except QuoteError as wrong:
            yield str(wrong)
            continue
        spans.append(span)
        yield from (f"{text[s.start : s.end]!r} is {s.value!r} now, in: {quote}" for s in stale)
    for words in page.exceptions:
        pattern = _spaced(words.removesuffix("…")) + (REST if words.endswith("…") else "")
        found = [match.span() for match in re.finditer(pattern, text, re.DOTALL)]
        if len(found) != 1:
            yield f"an exception is there {len(found)} times, not once: {words}"
        spans.extend(found)
    for heading in page.guarded:
        section = _section(heading, text)
        if section is None:
            yield f"no section {heading!r}"
            continue
        for number in unquoted(text, spans, section, page.percentages):
            around = " ".join(text[max(0, number.start() - 60) : number.end() + 20].split())
            yield f"{number[0]} comes from nowhere, in: {around}"


def _section(heading: str, text: str) -> tuple[int, int] | None:
    """From a heading to the next one of its level, or of a higher one."""
    begins = re.search(rf"^{re.escape(heading)}$", text, re.MULTILINE)
    if begins is None:
        return None
    level = len(heading) - len(heading.lstrip("#"))
    ends = re.compile(rf"^#{{1,{level}}} ", re.MULTILINE).search(_without_code(text), begins.end())
    return begins.start(), ends.start() if ends else len(text)


def unquoted(
    text: str, spans: Sequence[tuple[int, int]], section: tuple[int, int], percentages: bool
) -> Iterator[re.Match[str]]:
    """Numbers of a section outside of these spans and of code."""
    plain = _without_code(text)
    for pattern in (WRITTEN, PERCENTAGE)[: 1 + percentages]:
        for number in pattern.finditer(plain, *section):
            if not any(start <= number.start() < end for start, end in spans):
                yield number


def _without_code(text: str) -> str:
    """Spaces in the place of code, of links and of versions."""
    return CODE.sub(lambda code: re.sub(r"\S", " ", code[0]), text)


def mend(page: Page, known: Known) -> int:
    """Put the numbers of today into a page, and say how many were others."""
    text, changed = page.path.read_text(), 0
    for quote in page.quotes:
        try:
            _, stale = find(quote, text, known)
        except QuoteError:
            continue  # check says so
        for s in sorted(stale, key=lambda s: -s.start):
            text = text[: s.start] + s.value + text[s.end :]
        changed += len(stale)
    page.path.write_text(text)
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the numbers of today in")
    given = parser.parse_args()
    spec = tomllib.loads(QUOTED.read_text())
    try:
        if given.write:
            known = numbers(spec)
            print(f"{sum(mend(page, known) for page in read_pages(spec))} numbers changed")
        wrong = list(check(spec))
    except QuoteError as error:  # of a table or a claim: nothing can be looked up
        wrong = [f"{QUOTED.name}: {error}"]
    print("\n".join(wrong) or f"{sum(len(page.quotes) for page in read_pages(spec))} quotes are up to date")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
