"""All files of a report, from results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from himatch._runtime.files import new_file
from himatch.reproduce.report.contents import gather
from himatch.reproduce.report.findings import Finding
from himatch.reproduce.report.forecast import Forecast, read_forecast
from himatch.reproduce.report.latex import latex
from himatch.reproduce.report.markdown import markdown
from himatch.reproduce.report.site import FIRST, pages
from himatch.reproduce.report.spreadsheet import cells_csv, claims_csv, costs_csv, targets_csv, without_csv
from himatch.reproduce.report.table import ResultTable
from himatch.reproduce.results import JobResult, read_results

TITLE = "Hindsight information matching: the benchmark"


@dataclass(frozen=True)
class Written:
    """What was written where."""

    folder: Path
    tables: tuple[ResultTable, ...]
    findings: tuple[Finding, ...]
    files: tuple[Path, ...]
    results: int
    failed: int

    @property
    def page(self) -> Path:
        """The file to open."""
        return self.folder / FIRST


def write_report(
    results: Sequence[JobResult],
    folder: str | Path,
    failures: Mapping[str, str] | None = None,
    *,
    title: str = TITLE,
    forecast: Forecast | None = None,
) -> Written:
    """Write ``report.html``, the pages beside it, ``report.md``, ``tables.tex``, CSV files and ``figures/*.png``.

    ``failures`` are jobs that left no result, with the reason in one line; ``forecast`` is what was expected.
    """
    folder, contents = Path(folder), gather(results, failures or {}, title, forecast)
    texts = {
        **pages(contents),
        "report.md": markdown(contents),
        "tables.tex": latex(contents.tables),
        "tables.csv": cells_csv(contents.tables),
        "claims.csv": claims_csv(contents.findings),
        "without.csv": without_csv(contents.findings),
        "targets.csv": targets_csv(contents.results),
        "costs.csv": costs_csv(contents.costs.rows),
    }
    files = [_write(folder / name, text.encode()) for name, text in texts.items()]
    files += [_write(folder / "figures" / f"{p.name}.png", p.png) for p in contents.every_picture]
    counts = len(contents.results), len(contents.failures)
    return Written(folder, tuple(contents.tables), tuple(contents.findings), tuple(files), *counts)


def report_on(folders: Sequence[str | Path], out: str | Path) -> Written:
    """The report of everything below some folders, with what failed there and what was expected."""
    results, failures = read_results(folders), read_failures(folders)
    return write_report(results, out, failures, forecast=read_forecast(folders))


def read_failures(folders: Sequence[str | Path]) -> dict[str, str]:
    """What the benchmark noted of jobs that failed: the last line says why."""
    found = [path for folder in folders for path in sorted(Path(folder).rglob("failures/*.txt"))]
    return {path.stem: (path.read_text().strip().splitlines() or ["unknown"])[-1] for path in found}


def _write(path: Path, content: bytes) -> Path:
    with new_file(path) as partial:
        partial.write_bytes(content)
    return path
