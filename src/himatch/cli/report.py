"""``himatch report``: from the results of benchmarks to tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass
class Report:
    """Make every table and figure of the paper from benchmark results: HTML, Markdown, LaTeX, CSV and PNG files."""

    folders: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Folders that himatch benchmark wrote; several are shown together."""
    out: Annotated[str | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder to write (the folder report in the first DIR)."""

    def run(self) -> None:
        """Read, arrange and write."""
        from himatch.benchmark.results import read_results
        from himatch.errors import DataError
        from himatch.report import read_failures, write_report

        if not self.folders:
            raise DataError("name at least one folder that himatch benchmark wrote")
        results = read_results(self.folders)
        failures = read_failures(self.folders)
        written = write_report(results, self.out or Path(self.folders[0]) / "report", failures)
        missing = sum(row.is_missing for table in written.tables for row in table.methods)
        gaps = f", {missing} rows without results" if missing else ""
        gaps += f", {len(failures)} failed" if failures else ""
        print(f"{len(results)} results, {len(written.tables)} tables{gaps}: {written.page}")
