"""The site as files: what the pages say, what they hold no trace of, and how a folder is
replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from zipfile import ZipFile

import pytest
from boards import HOSTILE, board, changed, held_samples, hostile_board, sample, sample_text
from invented_runs import MODELS, write_run_of
from lxml import html
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.schema.board import Board
from medtasks.leaderboard.schema.numbers import interval, number
from medtasks.leaderboard.schema.score_tables import BoardRow, Cell
from medtasks.leaderboard.site.charts import charts
from medtasks.leaderboard.site.comparison_data import data_values
from medtasks.leaderboard.site.data_scripts import data_script
from medtasks.leaderboard.site.html_filters import safe_link
from medtasks.leaderboard.site.model_tables import model_parts
from medtasks.leaderboard.site.pages import page_environment, pages_of
from medtasks.leaderboard.site.run_samples import Answers, runs_on_board, samples_of
from medtasks.leaderboard.site.tables import ColumnView, subtitles
from medtasks.leaderboard.written_site import write_site

from medtasks.core.errors import UsageError
from medtasks.core.text import visible
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_folder import RunFolder, read_manifest


class Page:
    """Elements and attributes of a page, its words, and the cells of its tables by table and row
    heading.
    """

    def __init__(self, source: Path | str) -> None:
        root = html.document_fromstring(
            source if isinstance(source, str) else source.read_text(encoding="utf-8")
        )
        self.elements = [
            (one.tag, dict(one.attrib)) for one in root.iter() if isinstance(one.tag, str)
        ]
        self.words: str = root.text_content()
        self.text = " ".join(self.words.split())
        self.rows: dict[str, dict[str, list[str]]] = {}
        for table in root.iter("table"):
            of_table = self.rows.setdefault(table.get("id", ""), {})
            for row in table.iter("tr"):
                key, *cells = (" ".join(" ".join(cell.itertext()).split()) for cell in row)
                of_table.setdefault(key, cells)

    def attributes(self, name: str) -> Iterator[str]:
        return (found[name] for _, found in self.elements if name in found)


SMALL = board().model_copy(update={"benchmarks": board().benchmarks[:1]})
"""The board with one benchmark only."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site") / "board"
    write_site(board(), directory, samples=sample_text())
    return directory


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site") / "hostile"
    write_site(hostile_board(), directory, samples=sample_text(hostile=True))
    return directory


def rendered(made: Board, name: str) -> str:
    """One page of a site that is not written."""
    return pages_of(made, {}, [])[name]()


@cache
def pages(directory: Path) -> dict[str, Page]:
    return {path.name: Page(path) for path in sorted(directory.glob("*.html"))}


def test_every_link_and_file_of_the_site_is_there(site: Path) -> None:
    found = pages(site)
    assert {"samples.html", *(f"model-{slug}.html" for slug in board().models)} <= set(found)
    for name, page in found.items():
        for target in [*page.attributes("href"), *page.attributes("src")]:
            parts = urlsplit(target)
            if parts.scheme:
                assert parts.scheme == "https", target
                continue
            assert not parts.path or (site / unquote(parts.path)).is_file(), (name, target)
            if parts.fragment and "=" not in parts.fragment:
                assert unquote(parts.fragment) in set(found[parts.path or name].attributes("id")), (
                    name,
                    target,
                )
    exports = {path.relative_to(site).as_posix() for path in (site / "exports").rglob("*.*")}
    assert {"exports/pond_vqa/scores.csv", "exports/all-exports.zip"} <= exports
    assert exports <= set(found["index.html"].attributes("href"))


def test_downloads_have_titles_formats_and_sizes(site: Path) -> None:
    for page, expected in {
        "index.html": ("The whole board: JSON", "All scores: CSV", "Headline: Markdown, LaTeX"),
        "benchmark-pond_vqa.html": (
            "Methods section: Markdown, LaTeX",
            "Class by level: Markdown, LaTeX",
        ),
    }.items():
        tree = html.parse(site / page).getroot()
        (downloads,) = tree.xpath("//details[@id='downloads']")
        texts = []
        for line in downloads.xpath(".//li"):
            for hidden in line.xpath(".//*[@class='vh']"):
                hidden.drop_tree()
            sizes = [
                re.fullmatch(r"([\d.]+) (bytes|kB|MB)", text)
                for text in line.xpath(".//small/text()")
            ]
            paths = line.xpath(".//a/@href")
            for path, size in zip(paths, sizes, strict=True):
                stated = float(size[1]) * {"bytes": 1, "kB": 1_000, "MB": 1_000_000}[size[2]]
                assert stated == pytest.approx((site / path).stat().st_size, rel=0.05)
            texts.append(re.sub(r" [\d.]+ (bytes|kB|MB)", "", line.text_content()))
        assert texts[0] == "All exports of this leaderboard: ZIP"
        assert {*expected} <= {*texts}


def test_the_archive_has_every_export_and_no_time_of_its_own(site: Path) -> None:
    path = site / "exports" / "all-exports.zip"
    exports = {
        file.relative_to(path.parent).as_posix(): file
        for file in path.parent.rglob("*.*")
        if file != path
    }
    with ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == sorted(exports)
        assert all(archive.read(name) == file.read_bytes() for name, file in exports.items())
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("which", ["site", "hostile"])
def test_pages_are_strict(which: str, request: pytest.FixtureRequest) -> None:
    for name, page in pages(request.getfixturevalue(which)).items():
        policies = [found["content"] for tag, found in page.elements if "http-equiv" in found]
        assert len(policies) == 1
        assert "default-src 'none'" in policies[0]
        assert "unsafe" not in policies[0]
        ids = list(page.attributes("id"))
        assert len(ids) == len(set(ids)), name
        for tag, found in page.elements:
            assert tag not in ("iframe", "object", "embed", "base", "style")
            assert not [key for key in found if key.startswith("on") or key == "style"], (name, tag)
            if tag in ("script", "img", "link"):
                assert not urlsplit(found.get("src", found.get("href", ""))).scheme, name
            if tag == "a" and urlsplit(found["href"]).scheme:
                assert found["href"].startswith(("http://", "https://"))
                assert "noopener" in found["rel"]


def test_tables_speak_to_screen_readers(site: Path) -> None:
    for name, page in pages(site).items():
        tags = [tag for tag, _ in page.elements]
        assert tags.count("table") == tags.count("caption"), name
        assert all("scope" in found for tag, found in page.elements if tag == "th"), name
        assert tags.count("h1") == tags.count("main") == 1


def test_the_ranking_says_value_interval_rank_and_group(site: Path) -> None:
    shown = board().benchmarks[1]
    ranking, rows = shown.rankings[0], Page(site / "benchmark-series_mcq.html").rows["headline"]
    for place in ranking.ranked:
        cell = next(row for row in shown.tables[0].rows if row.model == place.model).cells[
            ranking.column.key
        ]
        facts = board().models[place.model]
        found = rows[f"{facts.name} {facts.family}"]
        assert found[:3] == [
            f"{number(cell.value, 'fraction')} {interval(cell.low, cell.high, 'fraction')}",
            f"{place.rank} {place.best}–{place.worst}",
            "".join(place.letters),
        ]
        assert found[3:] == [
            facts.size or "not stated",
            facts.type,
            facts.trained.get("series_mcq", "unknown"),
        ]
    page = Page(site / "benchmark-series_mcq.html")
    assert ranking.signature in page.text
    assert "2.1 percentage points" in page.text


def test_blind_and_other_rows_are_not_comparable_and_say_why(site: Path) -> None:
    page = Page(site / "benchmark-pond_vqa.html")
    beside = list(page.rows["headline"])
    place = beside.index("Aurora-VL 72B not ranked: blind: prompts without media")
    assert beside[place - 1] == "Aurora-VL 72B Aurora"
    assert page.rows["headline"][beside[place]][1:3] == ["", ""]  # neither rank nor group
    assert page.rows["apart-headline"]["Dune 30B-A3B"][0] == (
        "run with --limit: 100 of 2,000 documents prompt 9d8c7b6a instead of 1f0c2a7b"
    )
    overview = Page(site / "index.html").text
    assert "run with --limit: 100 of 2,000 documents; prompt 9d8c7b6a" in overview
    assert "manifest.json names no tasks." in overview


def test_a_missing_value_says_why(site: Path) -> None:
    page = Page(site / "benchmark-stream_qa.html")
    assert page.rows["parts"]["Birch Flash"][3].startswith("no value")
    assert "no judge has seen these responses; run `medtasks judge RESULTS`" in page.text
    assert "369 of 400 judged" in page.rows["parts"]["Aurora-VL 72B"][3]


def test_judged_scores_name_their_judge_in_the_heading_and_others_in_their_cells(
    site: Path,
) -> None:
    names = ("benchmark-stream_qa.html", "model-aurora-72b.html", "benchmark-pond_vqa.html")
    assert ["judged by judge-32b" in Page(site / name).text for name in names] == [
        True,
        True,
        False,
    ]
    cells = [
        Cell(value=0.5, items=9, judged=9, judge=name, signature="")
        for name in ("one", "one", "two (a stub)")
    ]
    column = next(one for table in board().benchmarks[0].tables for one in table.columns)
    rows = [BoardRow(model="m", cells={column.key: cell}, runs=()) for cell in cells]
    assert ColumnView(column, rows).judge == ""
    score = page_environment(board()).get_template("parts.html.j2").module.score
    assert "judged by" not in score(cells[0], ColumnView(column, rows[:2]))
    assert all(f"judged by {cell.judge}" in score(cell, ColumnView(column)) for cell in cells)


def test_nothing_is_best_by_a_signed_or_an_incomplete_score(site: Path) -> None:
    text = (site / "benchmark-stream_qa.html").read_text(encoding="utf-8")
    table = text[text.index('id="parts"') :].partition("</table>")[0]
    heads = re.findall(r"<th scope=\"col\".*?</th>", table)
    assert [head.endswith(" <small>s, 0 is best</small></th>") for head in heads] == [
        False,
        False,
        False,
        True,
        False,
    ]
    places = [
        [
            number
            for number, cell in enumerate(re.findall(r"<td[ >].*?</td>", row, re.S))
            if 'class="top"' in cell
        ]
        for row in table.split("<tr ")[1:]
    ]
    assert {place for found in places for place in found} == {0, 1}  # content, responsiveness
    assert "lower is better" not in table
    column = board().benchmarks[0].tables[0].columns[0]
    cells = [
        Cell(value=value, items=9, signature="", incomplete=value == 0.9)
        for value in (0.5, 0.6, 0.9)
    ]
    rows = [BoardRow(model="m", cells={column.key: cell}, runs=()) for cell in cells]
    assert (
        ColumnView(column, competing=rows).best,
        ColumnView(column, competing=rows[1:]).best,
    ) == (0.6, None)


def test_an_incomplete_score_says_so_on_every_page() -> None:
    def few_verdicts(pond: dict[str, Any]) -> None:
        first, *others = pond["tables"][0]["rows"]
        best = max(
            row["cells"]["pond_vqa.rougeL"]["value"] for row in others
        )  # a tie with the best is no place either
        first["cells"]["pond_vqa.rougeL"] |= {
            "judged": 1200,
            "bounds": (0.5, 0.9),
            "incomplete": True,
            "value": best,
        }
        ranking = pond["rankings"][0]
        ranking |= {"ranked": ranking["ranked"][1:], "unranked": {first["model"]: "incomplete"}}

    made = changed(board(), few_verdicts)
    model, top = (
        made.benchmarks[0].tables[0].rows[0].model,
        made.benchmarks[0].rankings[0].ranked[0].model,
    )
    page = rendered(made, "index.html")
    rows = {
        name: next(one for one in page.split("<tr ") if f'data-m="{name}"' in one)
        for name in (model, top)
    }
    note = '<small class="note">1,200 of 2,000 judged</small>'
    assert note in rows[model]
    assert "<i>" not in rows[model]
    assert ['class="top"' in row for row in rows.values()] == [False, True]
    assert note in rendered(made, "benchmark-pond_vqa.html")
    data = dict(data_values(made, {}))[f"model-{model}"]()["cells"]["pond_vqa.rougeL"]
    assert "; 1,200 of 2,000 judged; " in data[1]
    assert data[4] is False


def test_published_rows_stand_apart_and_say_what_they_were_trained_on(site: Path) -> None:
    page = Page(site / "benchmark-pond_vqa.html")
    assert [names for names in page.rows if "Elm" in " ".join(page.rows[names])] == ["published-1"]
    elm, fir = (
        cells for name, cells in page.rows["published-1"].items() if name.startswith(("Elm", "Fir"))
    )
    assert elm[-1] == "unknown"
    assert fir[-1] == "yes"
    assert elm[0] == "41.2"
    assert elm[1].startswith("cannot be read")


def test_the_overview_has_a_chart_and_a_finding_for_each_benchmark(site: Path) -> None:
    page, shown = Page(site / "index.html"), board()
    assert (
        "Aurora-VL 72B and Birch Flash do not differ significantly; Aurora-VL 72B leads Cedar-Med 4B by"
        in page.text
    )
    for benchmark in shown.benchmarks:
        ranking = benchmark.rankings[0]
        cells = {row.model: row.cells[ranking.column.key] for row in benchmark.tables[0].rows}
        for one in ranking.ranked:
            value = number(cells[one.model].value, ranking.column.unit)
            assert (
                f"{value} {interval(cells[one.model].low, cells[one.model].high, ranking.column.unit)}"
                in page.text
            )


def test_a_chart_shows_a_blind_run_below_its_model() -> None:
    made, model = board(), next(iter(board().models))
    for benchmark in made.benchmarks:
        blind, _ = benchmark.tables[0].apart
        column = benchmark.rankings[0].column
        shown = [(chart, row) for chart in charts(made, benchmark) for row in chart.rows]
        at = [place for place, (_, row) in enumerate(shown) if row.blind]
        assert {shown[place][1].model for place in at} == {blind.model} == {model}
        assert all(
            shown[place - 1][1].model == model and not shown[place - 1][1].blind for place in at
        )
        row = shown[at[0]][1]
        assert row.cells[column.key] == blind.cells[column.key]


def test_only_a_demonstration_says_that_it_is_one(site: Path) -> None:
    assert "Demonstration" not in Page(site / "index.html").text
    demonstration = pages_of(SMALL.model_copy(update={"demonstration": True}), {}, [])
    assert all("results on miniature data" in page() for page in demonstration.values())


def test_hostile_text_is_text(site: Path, hostile: Path) -> None:
    friendly = pages(site)
    for name, page in pages(hostile).items():
        tags = [tag for tag, _ in page.elements]
        for tag in ("script", "img", "svg", "form"):
            assert tags.count(tag) == [found for found, _ in friendly[name].elements].count(tag), (
                name,
                tag,
            )
        assert not any(target.startswith("javascript") for target in page.attributes("href"))
        assert visible(HOSTILE) in page.text or HOSTILE in page.words, name
    for path in (hostile / "data").rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search("[<>&\u2028\u2029]", text), path
        assert text.count("\n") == 1
    assert {path.name for path in (hostile / "data").iterdir()} == {
        path.name for path in (site / "data").iterdir()
    }


def test_a_data_script_holds_its_value() -> None:
    value = {"__proto__": ["<!-- \\'</script>&"], "x": 0.5}
    script = data_script("place/o'x", lambda: value)
    found = re.fullmatch(
        r"\(window\.medtasks\?\?=\{\}\)\[(\".*\")\]=JSON\.parse\((\".*\")\);\n", script
    )
    assert json.loads(found[1]) == "place/o'x"
    assert json.loads(json.loads(found[2])) == value
    assert script.isascii()


INVISIBLE = "no polyp\u202e lamron\u2066\x00\x1b[2J\x85\ufeff\u200b\ud800"
SHOWN = r"no polyp\u{202e} lamron\u{2066}\u{0}\u{1b}[2J\u{85}\u{feff}\u{200b}\u{d800}"


def test_characters_that_a_page_does_not_show_are_written_out(tmp_path: Path) -> None:
    made, samples = board(), {}
    model = made.models["birch-flash"].model_copy(update={"name": INVISIBLE, "notes": (INVISIBLE,)})
    for key, read in sample_text().items():
        rows = [one.model_copy(update={"responses": (INVISIBLE,)}) for one in read().samples]
        samples[key] = partial(Answers, rows)
    made = made.model_copy(update={"models": {**made.models, "birch-flash": model}})
    write_site(made, tmp_path, samples=samples)
    files = [*tmp_path.rglob("*.html"), *(tmp_path / "data").rglob("*.js")]
    written = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in files
    }
    assert SHOWN in written["index.html"]
    in_scripts = json.dumps(json.dumps(SHOWN))[3:-3]
    assert any(
        in_scripts in text for name, text in written.items() if name.startswith("data/samples/")
    )
    invisible = re.compile("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f-\x9f]|&#5529[0-9];")
    assert [name for name, text in written.items() if invisible.search(text)] == []


def test_what_is_no_web_address_is_no_link() -> None:
    wrong = (
        "javascript:alert(1)",
        "https://",
        "//x.org",
        "http://a b",
        "data:x",
        "JaVaScRiPt:x",
        None,
    )
    assert [safe_link(text) for text in wrong] == [None] * len(wrong)


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_the_same_board_gives_the_same_bytes(site: Path, tmp_path: Path) -> None:
    write_site(
        Board.model_validate_json(board().model_dump_json()),
        tmp_path / "again",
        samples=sample_text(),
    )
    assert contents(tmp_path / "again") == contents(site)


def test_an_earlier_site_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write_site(
        SMALL, target, samples=held_samples({("pond_vqa", "pond_vqa_level1", "uniform"): []})
    )
    assert (target / "data/samples").exists()
    (target / "CNAME").write_text("board.example.org")
    (target / ".git").mkdir()
    (target / ".git/HEAD").write_text("ref")
    write_site(SMALL.model_copy(update={"title": "Second"}), target)
    assert "Second" in Page(target / "index.html").text
    assert not (target / "data/samples").exists()
    assert [(target / name).read_text() for name in ("CNAME", ".git/HEAD")] == [
        "board.example.org",
        "ref",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_and_what_would_be_lost_leave_the_earlier_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw_all(_: Board, site: Path, __: Any) -> dict[tuple[str, str], Any]:
        (site / "figures").mkdir()
        if broken:
            raise OSError("disk full")
        return {}

    monkeypatch.setattr("medtasks.leaderboard.figures.draw.draw_all", draw_all)
    target = tmp_path / "out"
    write_site(SMALL, target)
    before, broken = contents(target), True
    with pytest.raises(OSError, match="disk full"):
        write_site(SMALL, target, figures=["svg"])
    assert contents(target) == before
    broken = False
    for mine in (target / "figures", target / "figures" / "mine.svg"):  # a file, then a directory
        (target / "figures").unlink(missing_ok=True)
        mine.parent.mkdir(exist_ok=True)
        mine.write_text("mine")
        with pytest.raises(
            UsageError, match=r"figures: the site now has a directory of that name; move yours"
        ):
            write_site(SMALL, target, figures=["svg"])
        assert mine.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("held", ["notes.txt", "site.json"])
def test_a_folder_of_something_else_is_refused(held: str, tmp_path: Path) -> None:
    (tmp_path / held).write_text(f'{{"generator": "another", "holds": ["{held}"]}}')
    with pytest.raises(UsageError, match="name a new directory"):
        write_site(board(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [held]


def test_columns_with_one_label_are_told_apart_by_what_differs() -> None:
    first = board().benchmarks[0].tables[2].columns[0]
    tasks = ("pond_vqa", "pond_vqa_level1", "pond_vqa_level2")
    columns = [first.model_copy(update={"key": task, "task": task}) for task in tasks]
    assert subtitles(columns) == dict(zip(tasks, ("all", "level1", "level2"), strict=True))
    other = first.model_copy(update={"key": "other", "metric": "bleu", "breakdown": None})
    assert subtitles([first, other]) == {
        first.key: f"rougeL, {first.breakdown}",
        "other": "bleu, all",
    }
    alone = first.model_copy(update={"key": "alone", "label": "Alone"})
    assert subtitles([first, alone]) == {first.key: "", "alone": ""}


def test_a_model_has_its_matrix_of_groups_by_tasks() -> None:
    part = model_parts(board(), "aurora-8b")[0]
    matrix = next(one for one in part.tables if one.headings)
    assert [heading.sub for heading in matrix.headings] == ["level1", "level2", "level3"]
    assert [label for label, _ in matrix.lines] == ["color", "count", "instrument_location", "size"]
    column = matrix.lines[1][1][1]
    assert column is not None
    assert column.key == "pond_vqa_level2.rougeL.question_class.count"
    assert matrix.row.cells[column.key] == board().benchmarks[0].tables[2].rows[1].cells[column.key]


def test_only_rows_that_are_not_comparable_are_called_so() -> None:
    slug = "birch-flash"  # has no row that is not comparable

    def without(pond: dict[str, Any]) -> None:
        for content, name in ((pond["tables"][0], "rows"), (pond["rankings"][0], "ranked")):
            content[name] = [one for one in content[name] if one["model"] != slug]

    made = changed(board(), without)
    assert Page(rendered(made, f"model-{slug}.html")).rows[""]["PondVQA"][0] == "no headline score"
    # only rows that are not comparable
    assert (
        Page(rendered(made, "model-dune-30b-a3b.html")).rows[""]["PondVQA"][0]
        == "not comparable, see below"
    )


def test_a_published_figure_is_shown_in_our_unit_with_what_was_printed() -> None:
    def printed(pond: dict[str, Any]) -> None:
        figure = pond["published"][0]
        cell = {"printed": "0.4123", "value": 0.4123, "rankable": False, "notes": ("Odd.",)}
        pond["published"] = [{**figure, **cell}]

    page = Page(rendered(changed(board(), printed), "benchmark-pond_vqa.html"))
    _, figure = page.rows["published-1"].values()
    assert figure[0] == "41.2 1 not comparable printed 0.4123"
    assert "Odd." in page.text


OPTIONS = {"question": "What?", "choices": {"A": "one", "B": "two"}}


def test_samples_show_what_their_licence_allows() -> None:
    samples = [
        sample("t", "s1", "B", {"accuracy": 1.0}, responses=("I think B.", "A"), document=OPTIONS),
        sample(
            "t",
            "s2",
            "a long answer",
            {"accuracy": None},
            target="long",
            document={"question": "Why?"},
        ),
    ]
    held = {(benchmark, "t", "m"): samples for benchmark in ("pond_vqa", "series_mcq")}
    made = dict(data_values(board(), held_samples(held)))
    texts, hidden = (
        made[f"samples/{benchmark}/t/by-m"]()["rows"] for benchmark in ("pond_vqa", "series_mcq")
    )
    assert texts == [
        ["s1", "[response 1] I think B.\n\n[response 2] A", "B", "ok", [1.0]],
        ["s2", "a long answer", "a long answer", "ok", [None]],
    ]
    assert hidden == [["s1", None, "B", "ok", [1.0]], ["s2", None, None, "ok", [None]]]
    assert made["samples/pond_vqa/t/by-m"]()["words"] == {"ok": "with an answer"}
    assert made["samples/pond_vqa/t/questions"]() == [
        ["s1", "What?\nA. one\nB. two", "B"],
        ["s2", "Why?", "long"],
    ]
    assert made["samples/series_mcq/t/questions"]() == []


def test_a_models_page_folds_what_has_no_value() -> None:
    """Also for a model that nobody judged, its page shows a table line only for a score."""
    made = board()
    for slug in made.models:
        for part in model_parts(made, slug):
            for table in (*part.tables, *part.apart):
                lines = [
                    *(([column]) for column in table.columns),
                    *(line for _, line in table.lines),
                ]
                empty = [line for line in lines if not table.has_value(line)]
                assert all(table.why_none(line) for line in empty)
    (slug,) = [slug for slug, model in made.models.items() if model.name == "Birch Flash"]
    tree = html.fromstring(rendered(made, f"model-{slug}.html"))
    folds = tree.xpath("//details[starts-with(normalize-space(summary), 'Without a value')]")
    assert folds
    assert all("open" not in fold.attrib for fold in folds)
    assert all(fold.xpath(".//dd[starts-with(., 'no value: ')]") for fold in folds)
    rows = tree.xpath(
        "//section[starts-with(@id, 'on-') or starts-with(@aria-labelledby, 'on-')]//tbody/tr"
    )
    assert all(row.xpath("./td[not(@class='no')]") for row in rows)


def test_a_benchmarks_page_folds_what_has_no_value() -> None:
    def is_empty(table: str, model: str, column: str) -> bool:
        return (
            table == "levels"
            or column == "pond_vqa.chrf"
            or (table, model) == ("classes", "uniform")
        )

    def without_verdicts(fields: dict[str, Any]) -> None:
        empty = {"value": None, "low": None, "high": None, "reason": "9 of 9 items await a judge"}
        for table in fields["tables"]:
            for row in (*table["rows"], *table["apart"]):
                for column, cell in row["cells"].items():
                    if is_empty(table["name"], row["model"], column):
                        cell |= empty

    made = changed(board(), without_verdicts)
    tree = html.fromstring(rendered(made, "benchmark-pond_vqa.html"))
    (tables,) = tree.xpath("//details[@id='without-value']")
    assert "open" not in tables.attrib
    assert tables.findtext("summary") == "Without a value: 1 table"
    title = next(table.title for table in made.benchmarks[0].tables if table.name == "levels")
    assert tables.xpath("string(.//dt)") == title
    assert tables.xpath("string(.//dd)") == "no value: 9 of 9 items await a judge"
    assert not tree.xpath("//*[@id='table-levels'] | //a[@href='#table-levels']")

    folds = tree.xpath("//details[starts-with(summary, 'Without a value')][@class='why']")
    assert all("open" not in fold.attrib for fold in folds)
    summaries = [fold.find("summary").text for fold in folds]
    assert summaries == ["Without a value: 1 column", "Without a value: 1 row"]
    assert folds[0].xpath("string(.//dt)") == "chrF"
    assert not tree.xpath("//th[@data-k='pond_vqa.chrf']")
    assert folds[1].xpath("string(.//dt)") == "Uniform guessing"
    rows = tree.xpath("//table[@id='classes']/tbody/tr")
    assert rows
    assert all(row.xpath("./td[@data-v]") for row in rows)
    assert "uniform" in {
        row.get("data-m") for row in tree.xpath("//table[@id='headline']/tbody/tr")
    }  # it has the facts


def test_samples_are_those_of_the_runs_that_are_ranked(tmp_path: Path) -> None:
    series = next(one for one in board().benchmarks if one.name == "series_mcq")
    shown = board().model_copy(
        update={"benchmarks": (series.model_copy(update={"name": "mi_cxr"}),)}
    )
    runs = {}
    for key, model in (("run-aurora-8b", MODELS[0]), ("run-dune-30b-a3b-limit", MODELS[3])):
        folder = write_run_of(tmp_path, model, ["mi_cxr_tel_single"])

        facts = {
            "digest": RunFolder(folder).content,
            "counts": {"mi_cxr_tel_single": {}, "../../other": {}},
        }
        runs[key] = shown.runs[key].model_copy(update=facts)
    write_run_of(tmp_path, MODELS[1], ["mi_cxr_tel_single"])  # is not on the board
    made = shown.model_copy(update={"runs": {**shown.runs, **runs}})
    found = samples_of(made, runs_on_board(made, [tmp_path]), RunStore(tmp_path / "cache"))
    assert [*found] == [("mi_cxr", "mi_cxr_tel_single", "aurora-8b")]
    read = found["mi_cxr", "mi_cxr_tel_single", "aurora-8b"]().samples
    assert [one.filtered for one in read] == [one.target for one in read]  # the oracle's


def test_samples_of_a_track_are_on_the_page_that_names_it_and_a_broken_folder_stops_no_board(
    tmp_path: Path,
) -> None:
    track = "kvasir_vqa_x1_transformed"
    tasks = read_manifest(write_run_of(tmp_path, MODELS[3], [track])).tasks
    assert {one.benchmark for one in tasks.values()} == {track}
    (tmp_path / "broken_medtasks").mkdir()
    made = build_board(*collect([tmp_path]), title="Board", demonstration=True)
    assert [one.folder for one in made.refused] == ["broken_medtasks"]
    assert "broken_medtasks" in rendered(made, "index.html")
    assert [one.name for one in made.benchmarks] == ["kvasir_vqa_x1"]
    found = samples_of(made, runs_on_board(made, [tmp_path]), RunStore(tmp_path / "cache"))
    (slug,) = made.models
    assert {*found} == {("kvasir_vqa_x1", task, slug) for task in tasks}
    assert all(read().samples for read in found.values())
