"""The files: they hold what the tables say, need nothing else, and are the same each time."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from report_results import every_suite, held_out, job, shifted

from himatch.cli.report import Report
from himatch.errors import HimatchError
from himatch.reproduce.report import CLAIMS, Written, build_tables, write_report
from himatch.reproduce.report.contents import gather
from himatch.reproduce.report.figures import distances
from himatch.reproduce.report.latex import escape, latex
from himatch.reproduce.report.markdown import markdown
from himatch.reproduce.report.site import grid_of
from himatch.reproduce.report.spreadsheet import targets_csv
from himatch.reproduce.results import JobResult, write_result

VOID = {"meta", "input", "br", "img", "link", "hr"}


@pytest.fixture(scope="module")
def results() -> list[JobResult]:
    return every_suite(("hopper",))


@pytest.fixture(scope="module")
def written(results: list[JobResult], tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_report(results, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def pages(written: Written) -> dict[str, str]:
    return {path.name: path.read_text() for path in written.files if path.suffix == ".html"}


class Reader(HTMLParser):
    """Checks that tags are closed in order, and collects what a browser would fetch and where links point."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.look(tag, attrs)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.look(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def look(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("src", "srcset", "data", "poster", "xlink:href") or (name == "href" and tag != "a"):
                self.fetched.append(value or "")
            elif name == "href":
                self.links.append(value or "")


def test_every_page_stands_alone(pages: dict[str, str]) -> None:
    for page in pages.values():
        reader = Reader()
        reader.feed(page)
        reader.close()
        assert reader.open == []
        assert {"script", "link", "iframe"}.isdisjoint(reader.tags)
        assert all(value.startswith(("data:", "#")) for value in reader.fetched)
        assert not re.search(r"url\((?!#)|@import|https?://", page)
        assert "prefers-color-scheme: dark" in page


def test_links_and_references_lead_somewhere(pages: dict[str, str]) -> None:
    readers = {name: Reader() for name in pages}
    for name, page in pages.items():
        readers[name].feed(page)
        assert len(readers[name].ids) == len(set(readers[name].ids))
    used = 0
    for name, page in pages.items():
        inside = [value for value in (*readers[name].links, *readers[name].fetched) if not value.startswith("data:")]
        inside += [f"#{key}" for key in re.findall(r"url\(#([^)]+)\)", page)]
        for value in inside:
            file, _, key = value.partition("#")
            assert not key or key in readers[file or name].ids, value
            assert file in ("", *pages), value
            used += 1
    assert used > len(pages) ** 2  # every page names all others


def test_the_pages_show_every_table_and_picture(pages: dict[str, str], written: Written) -> None:
    for table in written.tables:
        assert f'<section id="{table.label}">' in pages[f"{table.suite.name}.html"]
    pictures = [path for path in written.files if path.suffix == ".png"]
    every = "".join(pages.values())
    assert every.count("<svg") == len(pictures) == len(re.findall("<figure", every))
    assert "currentColor" in every
    assert "#010203" not in every


def test_cells_have_one_number_and_the_average_is_first(pages: dict[str, str], written: Written) -> None:
    table = next(table for table in written.tables if table.label == "unseen")
    (body,) = re.findall(r'<table class="numbers[^>]*>(.*?)</table>', pages["unseen.html"], re.DOTALL)
    texts = [text for text in re.findall(r"<td[^>]*>([^<]*)</td>", body) if text]
    assert all(re.fullmatch(r"\d+\.\d{3}|\d+%|\N{EN DASH}", text) for text in texts)
    grid = grid_of(table)
    assert len(grid.titles) == sum(width for _, width in grid.heads)
    assert all(len(cells) == len(grid.titles) for _, _, cells in (*grid.rows, *grid.more))
    several = build_tables([job("unseen", t, "CDT", "x_velocity", held_out()) for t in ("hopper", "walker2d")])
    assert [grid_of(one).heads[0][0] for one in several] == ["Average"]


def test_claims_come_first_and_effort_last(pages: dict[str, str], written: Written) -> None:
    text = (written.folder / "report.md").read_text()
    assert list(pages)[:2] == ["report.html", "claims.html"]
    assert list(pages)[-1] == "effort.html"
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert (headings[0], headings[-1]) == ("What holds", "Effort")
    for finding in written.findings:
        assert finding.claim in pages["claims.html"].replace("&#39;", "'")
        assert finding.claim in text
        judged = finding.verdict not in ("not run", "information")
        assert (finding.claim in pages["report.html"].replace("&#39;", "'")) == judged
    assert pages["claims.html"].count('class="verdict"') == len(written.findings)
    assert "no wall-clock time" in pages["effort.html"]
    assert "no wall-clock time" in text


def test_numbers_in_pictures_keep_their_digits(pages: dict[str, str]) -> None:
    page = "".join(pages.values())
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    assert any(re.fullmatch(r"0\.\d{3}", text) for text in texts)
    assert not re.search(r' d="[^"]*\d\.\d{3}', page)  # coordinates do not


def test_names_are_escaped_in_the_page(tmp_path: Path) -> None:
    write_report([job("xvel", "hopper", "<b>&", "x_velocity", held_out())], tmp_path)
    text = (tmp_path / "xvel.html").read_text()
    assert "<b>&" not in text
    assert "&lt;b&gt;&amp;" in text


def test_pictures_are_small(written: Written) -> None:
    pictures = [path for path in written.files if path.suffix == ".png"]
    assert len(pictures) > 12
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert max(path.stat().st_size for path in pictures) < 100_000
    assert {"datasets.png", "xyvel-match-main-maps.png", "shift-xvel-match-histograms.png"} <= {
        path.name for path in pictures
    }


def test_every_claim_is_written_without_each_target(results: list[JobResult], tmp_path: Path) -> None:
    written = write_report(results, tmp_path)
    known = {f.claim: f.robustness for f in written.findings if f.robustness is not None}
    rows = list(csv.DictReader((tmp_path / "without.csv").read_text().splitlines()))
    assert known
    assert {row["claim"] for row in rows} == set(known)
    for claim, found in known.items():
        left = [float(row["difference"]) for row in rows if row["claim"] == claim]
        assert (min(left), max(left)) == pytest.approx((found.low, found.high))


def test_every_claim_is_written_in_the_words_of_the_report(results: list[JobResult], tmp_path: Path) -> None:
    written = write_report(results, tmp_path)
    rows = list(csv.DictReader((tmp_path / "claims.csv").read_text().splitlines()))
    assert [(row["claim"], row["verdict"], row["difference"]) for row in rows] == [
        (found.claim, found.verdict, found.difference) for found in written.findings
    ]
    steady = [f.robustness.steady for f in written.findings if f.robustness is not None]
    known = [str(left) for left in steady if left is not None]
    assert known == [
        f"{row['steady_ours']} against {row['steady_other']}: {row['steady_difference']}"
        for row in rows
        if row["steady_ours"]
    ]


def test_the_same_results_give_the_same_bytes(results: list[JobResult], tmp_path: Path) -> None:
    some = [result for result in results if result.suite in ("ant-xy", "data")]
    for folder, order in (("a", some), ("b", some[::-1])):
        write_report(order, tmp_path / folder)
    names = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert len(names) == 16
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_cells_survive_csv(written: Written) -> None:
    rows = list(csv.DictReader((written.folder / "tables.csv").read_text().splitlines()))
    every = [each for table in written.tables for each in (table, *table.smaller.values())]
    assert len(rows) == sum(len(table.rows) * len(table.columns) for table in every)
    assert {row["measure"] for row in rows} == {"w1", "exact", "return", "slope"}
    lines = iter(rows)
    for table in every:
        for row in table.rows:
            for cell in row.cells:
                line = next(lines)
                assert (line["table"], line["row"]) == (table.label, row.name)
                score = cell.ours
                assert line["mean"] == ("" if score is None else repr(score.mean))
                assert line["low"] == ("" if score is None or score.low is None else repr(score.low))
                assert line["paper_mean"] == ("" if cell.paper is None else repr(cell.paper.mean))
                assert line["best"] == str(int(cell.best))
                assert line["ratio"] == ("" if cell.ratio is None else repr(cell.ratio))


def test_targets_survive_csv(written: Written, results: list[JobResult]) -> None:
    rows = list(csv.DictReader((written.folder / "targets.csv").read_text().splitlines()))
    wanted = sum(len(target.w1) for result in results for target in result.targets)
    assert len(rows) == wanted
    assert sum(float(row["w1"]) for row in rows) == pytest.approx(
        sum(sum(target.w1) for result in results for target in result.targets)
    )
    assert {"w1_exact", "played", "w1_charged"} <= set(rows[0])
    fallen = replace(results[0].targets[0], played=[0.5, 1.0], exact=[0.2, 0.4], spread=[3.0])
    first, second = csv.DictReader(targets_csv([replace(results[0], seeds=[0, 1], targets=[fallen])]).splitlines())
    assert [float(row["played"]) for row in (first, second)] == [0.5, 1.0]
    assert [float(row["w1_charged"]) for row in (first, second)] == pytest.approx([0.5 * 0.2 + 0.5 * 3.0, 0.4])


def test_latex_escapes() -> None:
    assert escape(r"50 % of a_b & {c} \ #1 ~ ^ $") == (
        r"50 \% of a\_b \& \{c\} \textbackslash{} \#1 \textasciitilde{} \textasciicircum{} \$"
    )
    assert escape("0.1 ± 0.2") == r"0.1 $\pm$ 0.2"
    tables = build_tables([job("xvel", "hopper", "A_b & 100%", "x_velocity", held_out())])
    assert r"A\_b \& 100\%" in latex(tables)


def test_latex_is_balanced(written: Written) -> None:
    text = (written.folder / "tables.tex").read_text()
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") == len(written.tables) + 2  # slopes
    for body in re.findall(r"\\begin{tabular}.*?\n(.*?)\\end{tabular}", text, re.DOTALL):
        lines = [line for line in body.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        assert len({len(re.findall(r"(?<!\\)&", line)) for line in lines}) == 1
    unescaped = re.sub(r"\\[{}]", "", text)
    assert unescaped.count("{") == unescaped.count("}")
    assert text.isascii()


def test_markdown(written: Written) -> None:
    text = (written.folder / "report.md").read_text()
    for table in written.tables:
        assert f"## {table.layout.title}" in text
    for name in re.findall(r"\(figures/([^)]+)\)", text):
        assert (written.folder / "figures" / name).is_file()
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    # Slopes of two tables; the paper's claims and himatch's, without one target, orderings, effort.
    assert len(blocks) == len(written.tables) + 2 + 5
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    assert "**" in text
    assert "## Not run" in markdown(gather([], {}, "x"))
    assert "Table `xvel_match_main` of the paper. " in text
    assert "Table `unseen` of himatch's own. " in text


def test_results_without_histograms_still_make_a_report(tmp_path: Path) -> None:
    result = job("xvel", "hopper", "DT", "x_velocity", held_out())
    for target in result.targets:
        target.histograms.clear()
    made = write_report([result], tmp_path)
    assert [path.name for path in made.files if path.suffix == ".png"] == ["xvel-match-main-distances.png"]


def test_a_method_has_one_colour_in_all_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was not run on some of the tasks."""
    rows = [("halfcheetah", "nominal"), ("halfcheetah", "remaining"), ("halfcheetah", "planned"), ("hopper", "planned")]
    results = [job("shift", task, "Categorical DT", "x_velocity", shifted(), conditioning=how) for task, how in rows]
    figures: list[Figure] = []
    monkeypatch.setattr(distances, "picture", lambda figure, *_: figures.append(figure))
    (table,) = build_tables(results)
    distances.shift_chart(table)
    lines = [line for axis in figures[0].axes for line in axis.get_lines() if line.get_label() != "episode mixture"]
    colors = {(line.get_label(), line.get_color()) for line in lines}
    assert len(lines) == 4
    assert len(colors) == len(dict(colors)) == len({color for _, color in colors}) == 3


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_result(tmp_path / "run", job("xvel", "hopper", "DT", "x_velocity", held_out()))
    Report((str(tmp_path / "run"),)).run()
    said = capsys.readouterr().out
    assert "1 results, 1 tables, 4 rows without results" in said
    papers = sum(claim.source == "paper" for claim in CLAIMS)
    assert f"The paper's claims: {papers} not run." in said
    assert (tmp_path / "run" / "report" / "report.html").is_file()
    (tmp_path / "run" / "failures").mkdir()
    (tmp_path / "run" / "failures" / "hopper-bc.txt").write_text("Traceback\n  line\nValueError: <no> data\n")
    Report((str(tmp_path / "run"),), out=str(tmp_path / "elsewhere")).run()
    assert "1 failed" in capsys.readouterr().out
    assert "`hopper-bc`: ValueError: \\<no> data" in (tmp_path / "elsewhere" / "report.md").read_text()
    assert "hopper-bc</code>: ValueError: &lt;no&gt; data" in (tmp_path / "elsewhere" / "report.html").read_text()
    with pytest.raises(HimatchError, match="no results"):
        Report((str(tmp_path / "empty"),)).run()
    with pytest.raises(HimatchError, match="at least one folder"):
        Report(()).run()


def test_the_command_shows_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for method in ("Categorical DT", "DT", "Meta-BC", "FOCAL"):
        write_result(tmp_path, job("ant-xy", "ant", method, "xy_velocity", held_out()))
    Report((str(tmp_path),)).run()
    said = capsys.readouterr().out
    assert "ant-xy: CDT" in said
    assert "holds" in said
    papers = sum(claim.source == "paper" for claim in CLAIMS)
    assert f"The paper's claims: 4 hold, {papers - 4} not run." in said


def test_results_that_say_little_of_themselves(tmp_path: Path) -> None:
    result = job("xvel", "hopper", "DT", "x_velocity", held_out())
    result.provenance.clear()
    write_report([result], tmp_path)
    assert "data not named" in (tmp_path / "xvel.html").read_text()
    assert json.dumps("x_velocity") in (tmp_path / "effort.html").read_text().replace("&#34;", '"')
