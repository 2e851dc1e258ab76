"""``himatch report``: from the results of benchmarks to tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from himatch.cli.flags import optional

if TYPE_CHECKING:
    from himatch.reproduce.report import Finding


@dataclass
class Report:
    """Make every table and figure of the paper from benchmark results: HTML, Markdown, LaTeX, CSV and PNG files."""

    folders: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Folders that himatch benchmark wrote; several are shown together."""
    out: Annotated[str | None, optional(metavar="FOLDER")] = None
    """Folder to write (the folder report in the first DIR)."""

    def run(self) -> None:
        """Read, arrange and write."""
        from himatch.errors import DataError
        from himatch.reproduce.report import report_on

        if not self.folders:
            raise DataError("name at least one folder that himatch benchmark wrote")
        written = report_on(self.folders, self.out or Path(self.folders[0]) / "report")
        missing = sum(row.is_missing for table in written.tables for row in table.methods)
        gaps = f", {missing} rows without results" if missing else ""
        gaps += f", {written.failed} failed" if written.failed else ""
        _show(written.findings)
        print(f"{written.results} results, {len(written.tables)} tables{gaps}: {written.page}")


def _show(findings: Sequence[Finding]) -> None:
    """Claims that the results decide, with the numbers that decide them."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from himatch.reproduce.report.findings import headline

    console = Console(highlight=False)
    table = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 1, 0), width=min(console.width, 120))
    for name, width in (("claim", None), ("ours", 20), ("against", 20), ("verdict", 18)):  # 20: a mean and its interval
        table.add_column(name, width=width, ratio=None if width else 1)
    colors = {"holds": "green", "too close to call": "yellow", "does not hold": "red"}
    for finding in findings:
        if finding.verdict != "not run":
            sides = [f"{side.figure}\n{side.name}" for side in (finding.ours, finding.other) if side is not None]
            verdict = Text(f"{finding}\n{finding.difference}", style=colors.get(finding.verdict, "dim"))
            table.add_row(Text(finding.claim), *map(Text, sides), verdict)
    if table.row_count:
        console.print(table)
    console.print(headline(findings))
