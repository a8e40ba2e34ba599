"""Exports say what the board says, are the same every time, and cannot be broken or turned against
the reader.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from boards import HOSTILE, board, hostile_board, write_exports
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from medtasks.leaderboard.board.model_traits import billions_of
from medtasks.leaderboard.board.usage import amount
from medtasks.leaderboard.exports.board_files import board_schema, exports_of
from medtasks.leaderboard.exports.csv_scores import COLUMNS, as_csv, csv_field
from medtasks.leaderboard.exports.latex_filters import latex_escaped
from medtasks.leaderboard.exports.latex_layout import MOST_LINES
from medtasks.leaderboard.exports.latex_tables import INTERVAL_MACRO, as_latex
from medtasks.leaderboard.exports.markdown_filters import markdown_escaped
from medtasks.leaderboard.exports.markdown_tables import as_markdown
from medtasks.leaderboard.exports.places import places
from medtasks.leaderboard.schema.board import Board, BoardModel
from medtasks.leaderboard.schema.numbers import difference, interval, number, safe_name, shown
from medtasks.leaderboard.schema.score_tables import BoardColumn, BoardRow, BoardTable, Cell
from medtasks.leaderboard.site.html_filters import size_class


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("exports")
    for name, made in (("plain", board()), ("hostile", hostile_board())):
        write_exports(made, root / name)
    return {name: root / name for name in ("plain", "hostile")}


def rows(folder: Path, benchmark: str) -> list[dict[str, str]]:
    text = (folder / benchmark / "scores.csv").read_bytes().decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_json_holds_the_whole_board_as_its_schema_says(folders: dict[str, Path]) -> None:
    text = (folders["plain"] / "board.json").read_text(encoding="utf-8")
    assert Board.model_validate_json(text) == board()
    schema = json.loads((folders["plain"] / "board.schema.json").read_text(encoding="utf-8"))
    assert schema == board_schema()
    Draft202012Validator(schema).validate(json.loads(text))
    assert all("description" in one for one in (schema, *schema["$defs"].values()))


def test_csv_has_every_score_once_with_all_digits(folders: dict[str, Path]) -> None:
    for benchmark in board().benchmarks:
        found = rows(folders["plain"], benchmark.name)
        cells = [
            (table.name, row, column, row.cells[column.key], apart)
            for table in benchmark.tables
            for row, apart in [
                *((one, False) for one in table.rows),
                *((one, True) for one in table.apart),
            ]
            for column in table.columns
            if column.key in row.cells
        ]
        for line, (table, row, column, cell, apart) in zip(
            [one for one in found if not one["published"]], cells, strict=True
        ):
            assert (line["table"], line["model"], line["blind"] == "yes") == (
                table,
                row.model,
                row.blind,
            )
            assert (line["task"], line["metric"], line["group"]) == (
                column.task,
                column.metric,
                column.group or "",
            )
            assert (float(line["value"]) if line["value"] else None) == cell.value
            assert (line["signature"], line["set_apart"] == "yes") == (cell.signature, apart)
            assert (line["reasons"] != "") == (apart or cell.value is None or cell.incomplete)
        published = [one["set_apart"] for one in found if one["published"]]
        assert published == ["yes"] * len(benchmark.published)


def test_csv_lines_end_as_the_standard_says_and_text_is_unchanged(folders: dict[str, Path]) -> None:
    assert HOSTILE in rows(folders["hostile"], "pond_vqa")[0]["name"]
    data = (folders["hostile"] / "pond_vqa" / "scores.csv").read_bytes()
    assert data.startswith(",".join(COLUMNS).encode() + b"\r\n")
    assert data.endswith(b"\r\n")
    assert data.count(b"\n") == data.count(b"\r\n")


@given(st.sampled_from(["=", "+", "-", "@", "\t=", "\r", " =", "＝"]), st.text(max_size=20))
def test_no_text_of_the_csv_is_a_formula_and_numbers_stay_numbers(start: str, rest: str) -> None:
    assert csv_field(start + rest) == "'" + (start + rest).replace(
        "\0", "\N{REPLACEMENT CHARACTER}"
    )
    assert csv_field(-0.25) == "-0.25"


@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_markdown_tables_keep_their_columns_whatever_names_hold(
    folders: dict[str, Path], name: str
) -> None:
    files = sorted(folders[name].rglob("*.md"))
    assert files
    for path in files:
        widths: list[int] = []
        for line in path.read_text(encoding="utf-8").split("\n"):
            cells = len(re.findall(r"(?<!\\)\|", line))
            if not cells:
                widths.clear()
                continue
            widths.append(cells)
            assert cells == widths[0], (path.name, line)
        assert "<script" not in re.sub(r"\\.", "", path.read_text(encoding="utf-8"))


def test_markdown_says_what_is_missing_apart_and_published(folders: dict[str, Path]) -> None:
    text = (folders["plain"] / "stream_qa" / "parts.md").read_text(encoding="utf-8")
    assert "no value: no judge has seen these responses" in text
    assert "Fractions are given in percent" in text
    _, apart = text.split("## Not comparable")
    assert "blind: prompts without media" in apart
    published = (
        (folders["plain"] / "stream_qa" / "headline.md")
        .read_text(encoding="utf-8")
        .split("## Published")[1]
    )
    assert "| Elm 13B | 41.2 |" in published
    assert (
        markdown_escaped("see https://example.org") == r"see https\://example.org"
    )  # names make no links
    assert markdown_escaped("a|b\n[c](d) `e` *f*") == r"a\|b \[c\](d) \`e\` \*f\*"


ACCURACY = BoardColumn(
    key="a", task="t", metric="accuracy", label="Accuracy", unit="fraction", higher_is_better=True
)
DELAY = BoardColumn(
    key="d", task="t", metric="delay", label="Delay", unit="seconds", higher_is_better=False
)


def table(column: BoardColumn, *cells: Cell | None) -> BoardTable:
    made = tuple(
        BoardRow(model=f"m{n}", cells={} if cell is None else {column.key: cell}, runs=(f"r{n}",))
        for n, cell in enumerate(cells)
    )
    return BoardTable(name="t", title="T", columns=(column,), rows=made)


def cell(value: float | None, signature: str = "s", **more: Any) -> Cell:
    return Cell(value=value, items=10, signature=signature, **more)


def test_places_are_those_of_printed_comparable_values() -> None:
    """What is printed alike shares a place; the lowest delay is best; incomplete values do not
    compete.
    """
    alike = (cell(0.6125), cell(0.61251), cell(0.6), cell(0.59), None, cell(None))
    assert places(table(ACCURACY, *alike), ACCURACY) == {0: 1, 1: 1, 2: 2}
    assert places(table(DELAY, cell(-1.0), cell(0.5), cell(3.0)), DELAY) == {0: 1, 1: 2}
    assert places(table(ACCURACY, cell(0.5), cell(0.6), cell(0.9, incomplete=True)), ACCURACY) == {
        1: 1,
        0: 2,
    }


def test_nobody_is_best_by_a_signed_score() -> None:
    made, late = board(), DELAY.model_copy(update={"signed": True})
    rows = table(late, cell(-5.7), cell(0.2), cell(3.0))
    assert places(rows, late) == {}
    latex = as_latex(made, made.benchmarks[2], rows)
    assert r"Model & \shortstack[r]{Delay\\(s, 0 is best)} \\" in latex
    assert not re.search(r"textbf|underline\{|arrow", latex)
    assert "| model | Delay (s, 0 is best) |" in as_markdown(made, made.benchmarks[2], rows)


def test_csv_says_which_end_is_best(folders: dict[str, Path]) -> None:
    ours = {
        (one["metric"], one["best"]) for one in rows(folders["plain"], "stream_qa") if one["unit"]
    }
    assert {("content", "highest"), ("signed_delay", "zero")} <= ours
    made = board().model_copy(
        update={"models": {"m0": BoardModel(slug="m0", name="=1+1", family="none")}}
    )
    text = as_csv(
        made,
        made.benchmarks[2].model_copy(
            update={"tables": (table(DELAY, cell(1.0)),), "published": ()}
        ),
    )
    line = next(csv.DictReader(io.StringIO(text)))
    assert (line["best"], line["name"]) == ("lowest", "'=1+1")


def test_latex_marks_best_and_second_and_leaves_out_what_is_not_comparable() -> None:
    made = board()
    values = (
        cell(0.5, low=0.4, high=0.6),
        cell(0.7),
        cell(0.6),
        cell(None, reason="?"),
        cell(0.65, incomplete=True),
    )
    far = BoardRow(
        model="far", cells={"a": cell(0.99)}, runs=("r",), reasons=("other\n\\end{table} prompt",)
    )
    text = as_latex(
        made, made.benchmarks[2], table(ACCURACY, *values).model_copy(update={"apart": (far,)})
    )
    lines = text.split("\n")
    assert [line for line in lines if line.startswith((r"\raggedright m", r"\medtasksintervals"))] == [
        r"\raggedright m0 & 50.0 \\", r"\medtasksintervals{ & {\scriptsize [40.0, 60.0]} \\}",
        r"\raggedright m1 & \textbf{70.0} \\", r"\raggedright m2 & \underline{60.0} \\",
        r"\raggedright m3 & -- \\", r"\raggedright m4 & 65.0* \\",
    ]  # fmt: skip
    assert [line for line in lines if "far" in line] == [
        r"% left out, not comparable: far: other \end{table} prompt"
    ]
    assert r"\label{tab:stream_qa-t}" in text
    assert "A star marks incomplete values." in text


def test_latex_without_intervals_has_numbers_alone() -> None:
    made = board()
    values = table(ACCURACY, cell(0.5, low=0.4, high=0.6), cell(0.7))
    text = as_latex(made, made.benchmarks[2], values, intervals=False)
    assert r"\raggedright m1 & \textbf{70.0} \\" in text
    assert not re.search(r"interval|scriptsize|\[40", text)


def test_a_table_wider_or_longer_than_a_page_becomes_several() -> None:
    made = board()
    classes = made.benchmarks[0].tables[2]
    wide = as_latex(made, made.benchmarks[0], classes)
    parts = re.findall(r"\\begin\{tabular\}\{p\{(\d+)pt\}(r+)\}", wide)
    assert sum(len(columns) for _, columns in parts) == len(classes.columns)
    labels = re.findall(r"\\label\{(.*)\}", wide)
    assert labels == [f"tab:pond_vqa-classes-{number}" for number in range(1, len(parts) + 1)]
    many = [cell(0.5 + n / 1000, low=0.4, high=0.6) for n in range(40)]
    long = as_latex(made, made.benchmarks[2], table(ACCURACY, *many))
    tabulars = long.split(r"\begin{tabular}")[1:]
    lines = [
        text.count(r"\raggedright m") + text.count(r"\medtasksintervals{ ") for text in tabulars
    ]
    assert sum(lines) == 80
    assert max(lines) <= MOST_LINES


def test_published_rows_have_one_note_for_each_table_of_a_paper() -> None:
    made = board()
    text = as_latex(made, made.benchmarks[2], made.benchmarks[2].tables[0])
    (note,) = re.findall(r"\\emph\{(.*)\}\} \\\\", text)
    figure = made.benchmarks[2].published[0]
    assert note == latex_escaped(
        f"Published, not re-run: {figure.paper}, {figure.table} ({figure.source})"
    )
    assert text.count(figure.paper) == 1


def test_letters_of_formulas_are_set_as_formulas() -> None:
    assert (
        latex_escaped("δ ≥ 2 → é")
        == r"\ensuremath{\delta} \ensuremath{\geq} 2 \ensuremath{\rightarrow} é"
    )


def check_balanced(text: str) -> None:
    opened: list[str] = []
    for command, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", text):
        if command == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []


def test_environments_of_latex_are_closed_in_order(folders: dict[str, Path]) -> None:
    for path in sorted(folders["plain"].rglob("*.tex")):
        check_balanced(path.read_text(encoding="utf-8"))


def test_latex_of_hostile_names_is_sound(folders: dict[str, Path]) -> None:
    for path in sorted(folders["hostile"].rglob("*.tex")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line.startswith("%") or line == INTERVAL_MACRO:
                continue
            bare = re.sub(
                r"\\(textbackslash|char34|textless|textgreater|textbar|ldots|[\\{}$&#%_])", "", line
            )
            assert not set('#%_^~"<>') & set(
                re.sub("tab:(pond_vqa|series_mcq|stream_qa)", "", bare)
            )
            assert bare.count("{") == bare.count("}")


@given(st.text(max_size=60))
def test_latex_keeps_braces_whole_and_prints_no_command(text: str) -> None:
    made = latex_escaped(text)
    known = r"\\(?:textbackslash\{\}|textasciitilde\{\}|textasciicircum\{\}|textless\{\}|textgreater\{\}|textbar\{\}"
    left = re.sub(
        known + r"|ensuremath\{\\?[A-Za-z-]+\}|textasciigrave\{\}|char34\{\}|ldots\{\}|[{}$&#%_])",
        "",
        made,
    )
    assert not set('\\$&#%_^~<>"`\n') & set(left)
    assert left.replace("{}", "").replace("{[}", "").replace("{]}", "").count("{") == 0


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(folders: dict[str, Path], tmp_path: Path) -> None:
    files = {name: sorted(folder.rglob("*.tex")) for name, folder in folders.items()}
    texts = {
        name: "\\clearpage ".join(path.read_text("utf-8") for path in paths)
        for name, paths in files.items()
    }
    tables = rf"{texts['plain']}\clearpage\typeout{{HOSTILE FILES}}{texts['hostile']}"
    document = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{tables}\end{{document}}"
    (tmp_path / "all.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip
    printed = done.stdout.decode("latin-1")
    assert done.returncode == 0, printed[-2000:]
    own, _, _ = printed.partition("HOSTILE FILES")
    assert "HOSTILE FILES" in printed
    assert not re.search(r"Overfull|Float too large", own), own[
        -2000:
    ]  # names of others may be of any length


def test_numbers_as_printed() -> None:
    values = [(0.6125, "fraction", "61.3"), (0.61249, "fraction", "61.2"), (0.285, "fraction", "28.5"),
              (1.0, "fraction", "100.0"), (41.25, "points", "41.3"), (-0.04, "seconds", "0.0"),
              (-0.05, "seconds", "-0.1"), (0.71749, "score", "0.717")]  # fmt: skip
    assert [shown(value, unit) for value, unit, _ in values] == [text for *_, text in values]
    assert (number(-1.25, "seconds"), difference(0.021, "fraction"), difference(0.0, "points")) == (
        "−1.3",
        "+2.1",
        "0.0",
    )
    ends = [(0.5, 0.62, "fraction"), (-1.0, 2.0, "seconds"), (None, None, "score")]
    assert [interval(*one) for one in ends] == ["50.0–62.0", "−1.0 to 2.0", ""]
    amounts = [12345.6, 999.6, 0.00123456, 31.0, None]
    assert [amount(value) for value in amounts] == ["12,346", "1,000", "0.00123", "31", ""]
    sizes = ["500M", "8B", "30B-A3B", "235B-A22B", "1T", None, "large"]
    assert [billions_of(size) for size in sizes] == [0.5, 8.0, 30.0, 235.0, 1000.0, None, None]
    assert [size_class(size) for size in sizes] == ["s", "m", "l", "x", "x", "n", "n"]


@given(st.lists(st.text(max_size=100), min_size=2, max_size=2, unique=True))
def test_names_of_files_are_safe_and_their_own(names: list[str]) -> None:
    made = [safe_name(name) for name in names]
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", one) and len(one) < 100 for one in made)
    assert made[0] != made[1]


def test_a_demonstration_says_so_in_every_file() -> None:
    files = exports_of(board().model_copy(update={"demonstration": True}))
    texts = [export.make() for name, export in files.items() if name.endswith((".md", ".tex"))]
    assert all("a demonstration, not a benchmark result" in text for text in texts)
    lines = csv.DictReader(io.StringIO(files["pond_vqa/scores.csv"].make()))
    assert {line["demonstration"] for line in lines} == {"yes"}
