"""Write docs/commands.md from what the program says about itself.

python docs/scripts/commands.py
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from himatch.cli import main

PAGE = Path(__file__).parent.parent / "commands.md"
COLUMNS = "100"  # of the terminal; much wider ones get several panels side by side

HEAD = """# Commands

What `himatch COMMAND --help` says, for every command; written by `python docs/scripts/commands.py`. Exit codes: 0 done,
2 bad input (standard error says what is wrong and how to mend it, in one line, of tables in one for each kind of
problem), 130 interrupted. `himatch --version` prints the version. Notes about data that was repaired and targets out of
reach go to standard error.
"""


@dataclass(frozen=True)
class Row:
    """An argument, an option or a command below this one."""

    name: str
    text: str


def help_text(*command: str) -> str:
    """What ``himatch COMMAND --help`` prints."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = COLUMNS
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # frames are drawn where they can be encoded
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([*command, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    printed.seek(0)
    return printed.read()


def panels(text: str) -> Iterator[tuple[str, list[str]]]:
    """The framed panels of a help text: title and lines."""
    for title, body in re.findall(r"^╭─ (.*?) ─*╮\n(.*?)^╰─*╯", text, re.DOTALL | re.MULTILINE):
        yield title, [line.strip("│").rstrip() for line in body.splitlines()]


def rows(lines: list[str]) -> list[Row]:
    """Arguments and their descriptions, which stand beside and below them."""
    found: list[Row] = []
    for line in lines:
        new = re.match(r" (\S.*?)(?:  +(.*))?$", line)
        if new is not None:
            found.append(Row(new[1], new[2] or ""))
        elif found and line.strip():
            found[-1] = Row(found[-1].name, f"{found[-1].text} {line.strip()}".strip())
    return found


def introduction(lines: list[str]) -> tuple[str, list[str]]:
    """What a panel says before its first rule, and the lines after it."""
    rules = [number for number, line in enumerate(lines) if line.strip(" ─") == ""]
    if not rules:
        return "", lines
    return " ".join(line.strip() for line in lines[: rules[0]]), lines[rules[0] + 1 :]


def subcommands(lines: list[str]) -> list[str]:
    """The names of the commands below a command."""
    return re.findall(r"^\s+• (\S+)", "\n".join(lines), re.MULTILINE)


def table(head: str, listed: list[Row]) -> str:
    """A Markdown table; the default gets a column of its own."""
    lines = [f"| {head} | meaning | default |", "|---|---|---|"]
    for row in listed:
        name, text = row.name.split(", --no-")[0], row.text
        found = re.search(r" ?\((?:default: (.*)|(required|repeatable))\)$", text)
        default = "" if found is None else found[1] or found[2] or ""
        text = text if found is None else text[: found.start()]
        default = "" if default in ("None", "False") else f"`{default}`" if found and found[1] else default
        cells = [f"`{name}`", re.sub(r"([*$])", r"\\\1", text), default]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def section(command: tuple[str, ...], level: int, shown: dict[str, str] | None = None) -> str:
    """A command, and then those below it. Tables that a sister has are ``shown`` there: text to sister."""
    text = help_text(*command)
    description = text.split("\n\n")[1].replace("\n", " ").strip()
    parts, below = [f"{'#' * level} himatch {' '.join(command)}", description], []
    shown = {} if shown is None else shown
    same: dict[str, list[str]] = {}
    for title, lines in panels(text):
        if title == "subcommands":
            below = subcommands(lines)
            continue
        said, rest = introduction(lines)
        listed = [row for row in rows(rest) if row.name != "-h, --help"]
        if not listed:
            continue
        rows_of = table("argument" if title == "positional arguments" else "option", listed)
        sister = shown.setdefault(f"{title}\n{rows_of}", command[-1])
        if sister != command[-1]:
            same.setdefault(sister, []).append(title)
        else:
            named = [] if title in ("options", "positional arguments") else [f"*{title}*"]
            parts += [": ".join([*named, said])] if named and said else named
            parts.append(rows_of)
    parts += [f"As for `{sister}`: {', '.join(titles)}." for sister, titles in same.items()]
    tables: dict[str, str] = {}
    parts += [section((*command, name), level + 1, tables) for name in below]
    return "\n\n".join(parts)


def reference() -> str:
    """The whole page."""
    commands = [name for title, lines in panels(help_text()) if title == "subcommands" for name in subcommands(lines)]
    return HEAD + "\n" + "\n\n".join(section((name,), 2) for name in commands) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference())
    print(f"written to {PAGE}")
