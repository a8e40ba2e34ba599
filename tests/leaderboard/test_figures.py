"""Figures, as files and on pages, show what the board says, to everybody: dark page, no colour, no
sight, odd names, missing values.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from boards import board, changed, hostile_board, large_board, write_exports
from matplotlib.figure import Figure
from medtasks.leaderboard.figures.axes import time_axis
from medtasks.leaderboard.figures.bars import BarChart
from medtasks.leaderboard.figures.draw import draw_all
from medtasks.leaderboard.figures.drawing.images import images
from medtasks.leaderboard.figures.drawing.style import DARK, drawing
from medtasks.leaderboard.figures.figure import Figure as Plotted
from medtasks.leaderboard.figures.labels import distinct, short
from medtasks.leaderboard.figures.looks import LOOKS
from medtasks.leaderboard.figures.plots import figures_of
from medtasks.leaderboard.figures.radar import Radar
from medtasks.leaderboard.schema.board import Board
from medtasks.leaderboard.schema.numbers import shown
from medtasks.leaderboard.schema.plot_data import BoardPlot
from medtasks.leaderboard.site.pages import pages_of

SVG = "{http://www.w3.org/2000/svg}"
KINDS = {
    "bars": ("series_mcq", "families"),
    "cost": ("pond_vqa", "cost"),
    "heatmap": ("pond_vqa", "class-ranks"),
    "latency": ("stream_qa", "latency"),
    "paired": ("pond_vqa", "transformed"),
    "radar": ("pond_vqa", "classes"),
}


@dataclass(frozen=True)
class Drawn:
    """Figures of a board, and the texts of their SVGs in a folder."""

    folder: Path
    files: Mapping[tuple[str, str], Mapping[str, str]]
    figures: Mapping[tuple[str, str], Plotted]

    def svg(self, key: tuple[str, str]) -> str:
        return (self.folder / self.files[key]["svg"]).read_text(encoding="utf-8")

    def texts(self, key: tuple[str, str]) -> list[str]:
        root = ElementTree.fromstring(self.svg(key))
        return ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]


def drawn(made: Board, folder: Path) -> Drawn:
    figures = {
        (one.name, name): figure
        for one in made.benchmarks
        for name, figure in figures_of(made, one).items()
    }
    return Drawn(folder, draw_all(made, folder, ("svg",)), figures)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    return drawn(board(), tmp_path_factory.mktemp("figures"))


def with_plot(plot: BoardPlot, made: Board | None = None, benchmark: str = "stream_qa") -> Board:
    """The board with one benchmark, and that with one plot."""
    return changed(made or board(), lambda fields: fields.update(plots=[plot]), benchmark)


def one_plot(
    key: tuple[str, str], made: Board | None = None, change: Callable[[Any], Any] | None = None
) -> Board:
    """The board with that plot alone; ``change`` is given the benchmark as a dictionary."""

    def edit(fields: dict[str, Any]) -> None:
        fields["plots"] = [one for one in fields["plots"] if one["name"] == key[1]]
        if change is not None:
            change(fields)

    return changed(made or board(), edit, key[0])


def percent(text: str) -> float:
    return float(text.removesuffix("%"))


def figure_of(made: Board) -> Plotted:
    """The only figure of a board, not drawn."""
    (figure,) = figures_of(made, made.benchmarks[0]).values()
    return figure


def test_every_plot_is_drawn_and_every_kind_is_there(plain: Drawn) -> None:
    tables = ("letters", "timeline")  # drawn in tables of the pages
    plots = {
        (one.name, it.name): it
        for one in board().benchmarks
        for it in one.plots
        if it.kind not in tables
    }
    assert set(plain.figures) == set(plots)
    assert (
        {plots[key].kind for key in KINDS.values()}
        == set(KINDS)
        == {one.kind for one in plots.values()}
    )
    widths = {ElementTree.fromstring(plain.svg(key)).attrib["width"] for key in plain.figures}
    assert {round(float(one.removesuffix("pt")) / 0.75) for one in widths} == {461}  # of a phone


@pytest.mark.parametrize("key", KINDS.values(), ids=KINDS)
def test_a_figure_is_text_that_stands_alone_and_follows_a_dark_page(
    plain: Drawn, key: tuple[str, str]
) -> None:
    svg, figure = plain.svg(key), plain.figures[key]
    root = ElementTree.fromstring(svg)
    assert root.findtext(f"{SVG}title") == figure.title
    assert "Cedar-Med 4B" in " ".join(plain.texts(key)) or "Cedar-Med 4B" in svg
    assert not list(root.iter(f"{SVG}image"))
    assert not list(root.iter(f"{SVG}script"))
    links = [
        value for one in root.iter() for name, value in one.attrib.items() if name.endswith("href")
    ]
    assert all(link.startswith("#") for link in links)
    assert "<!DOCTYPE" not in svg
    dark = re.search(r"@media \(prefers-color-scheme: dark\)\{(.*)\}</style>", svg)
    assert dark is not None
    assert all(f"fill:{one} !important" in dark[1] for one in DARK.values())
    # all text that does not lie on a coloured cell has a colour that the style changes
    colours = {
        found
        for one in root.iter(f"{SVG}text")
        for found in re.findall(r"fill: (#\w+)", one.attrib["style"])
    }
    assert colours <= {*DARK, "#101010", "#fafafa"}
    assert all("fill" in one.attrib["style"] for one in root.iter(f"{SVG}text"))


@pytest.mark.parametrize("kind", ["bars", "paired"])
def test_bars_and_dumbbells_have_the_boards_values_on_an_axis_with_zero(
    kind: str, plain: Drawn
) -> None:
    shape, plot, made = plain.figures[KINDS[kind]].shape, plain.figures[KINDS[kind]].plot, board()
    table = next(
        table for one in made.benchmarks for table in one.tables if table.name == plot.table
    )
    cells = {made.models[row.model].name: row.cells for row in table.rows}
    pairs = (
        zip(plot.columns, plot.against, strict=True)
        if plot.against
        else [(key,) for key in plot.columns]
    )
    for keys, group in zip(pairs, shape.groups, strict=True):
        axis, zero = group.axis, percent(group.axis.place(0.0))
        for mark in group.bars if kind == "bars" else group.dumbbells:
            drawn_values = [mark.value] if kind == "bars" else [mark.first, mark.second]
            values = [cells[mark.label][key].value for key in keys]
            assert drawn_values == pytest.approx([100 * one for one in values])
            scales = [(percent(axis.place(one)) - zero) / one for one in drawn_values]
            scales += [percent(axis.width(one)) / one for one in drawn_values]
            assert scales == pytest.approx([100 / (axis.high - axis.low)] * len(scales), rel=1e-2)
            if kind == "bars":
                assert mark.text.rstrip("*") == shown(values[0], "fraction")
                assert mark.text in plain.texts(KINDS[kind])


def test_bars_say_what_is_best_and_what_chance_is(plain: Drawn) -> None:
    assert plain.texts(KINDS["bars"]).count("dashed: chance 20.0") == 3
    alt = plain.figures[KINDS["bars"]].alt
    assert "with 95 % intervals" in alt
    assert "Dashed: chance 20.0." in alt
    assert (
        "TEL: best Aurora-VL 72B 88.5 (86.4, 90.5) %, last Uniform guessing 20.9 (18.3, 23.6) %"
        in alt
    )
    assert "2 rows are not comparable and not drawn" in alt


def test_bars_are_drawn_with_the_highest_floor_and_name_the_others() -> None:
    made = board()
    (benchmark,) = [
        one for one in made.benchmarks if any(plot.name == "families" for plot in one.plots)
    ]
    (table,) = [one for one in benchmark.tables if one.name == "families"]
    floors = {"constant": 0.228, "constant_answer": "C", "blind": 0.31, "blind_model": "x"}
    changed = table.model_copy(
        update={"columns": tuple(one.model_copy(update=floors) for one in table.columns)}
    )
    tables = tuple(changed if one is table else one for one in benchmark.tables)
    filled = benchmark.model_copy(update={"tables": tables})
    bars = figures_of(made, filled)["families"]
    assert {group.note for group in bars.shape.groups} == {
        "dashed: best blind run 31.0; chance 20.0, always C 22.8"
    }
    assert {group.floor.level for group in bars.shape.groups} == {31.0}


def test_a_score_against_cost_takes_what_most_models_have(plain: Drawn) -> None:
    key = KINDS["cost"]
    best = next(one for one in board().benchmarks[0].usage if one.model == "aurora-72b")
    assert "ROUGE-L against time (s per sample)" in plain.figures[key].alt
    assert f"Aurora-VL 72B {100 * best.score.value:.1f} (" in plain.figures[key].alt
    assert f") at {best.usage.seconds / best.usage.samples:.3g}" in plain.figures[key].alt
    assert {"time (s per sample)", "ROUGE-L (%)", "Birch Flash"} <= set(plain.texts(key))

    def paid(benchmark: dict[str, Any]) -> None:
        for one in benchmark["usage"]:
            one["cost"] = 5.0

    by_cost = figure_of(one_plot(key, change=paid)).alt
    assert "against cost (per 1,000 samples)" in by_cost
    assert "at 2.5" in by_cost  # of 2,000 answers

    def untimed(benchmark: dict[str, Any]) -> None:
        for one in benchmark["usage"]:
            one["usage"] = {**one["usage"], "seconds": None}

    by_tokens = figure_of(one_plot(key, change=untimed)).alt
    assert "against tokens (per sample)" in by_tokens
    assert by_tokens.endswith("Without a value: Birch Flash.")


def test_an_incomplete_score_against_cost_is_marked() -> None:
    def change(benchmark: dict[str, Any]) -> None:
        benchmark["usage"][0]["score"]["incomplete"] = True

    figure = figure_of(one_plot(KINDS["cost"], change=change))
    assert figure.incomplete
    assert [curve.label for curve in figure.shape.curves][:2] == ["Aurora-VL 72B*", "Birch Flash"]


def test_a_dumbbell_shows_the_difference_of_two_fractions_or_of_one_and_points(
    plain: Drawn,
) -> None:
    """Both are drawn on one axis; columns of one label are told apart by their tasks."""
    table = next(one for one in board().benchmarks[0].tables if one.name == "levels")
    first, other = table.columns[0], table.columns[3]
    row = next(one for one in table.rows if one.model == "aurora-72b")
    difference = (
        f"{100 * ((row.cells[first.key].value or 0) - (row.cells[other.key].value or 0)):+.1f}"
    )
    assert difference in plain.texts(KINDS["paired"])
    assert (
        f"Level 1 minus Transformed, level 1: Aurora-VL 72B {difference}"
        in plain.figures[KINDS["paired"]].alt
    )

    def change(benchmark: dict[str, Any]) -> None:
        for column in (column for table in benchmark["tables"] for column in table["columns"]):
            if column["task"] == "pond_vqa_transformed_level1":
                column |= {"unit": "points", "label": "Level 1"}
        for task, value in (("pond_vqa_level1", 0.25), ("pond_vqa_transformed_level1", 12.5)):
            with_cell("aurora-72b", f"{task}.rougeL", value=value, low=None, high=None)(benchmark)

    figure = figure_of(one_plot(KINDS["paired"], change=change))
    assert figure.shape.groups[0].dumbbells[0].difference == "+12.5"
    pair = "Level 1 (pond_vqa_level1) minus Level 1 (pond_vqa_transformed_level1)"
    assert f"{pair}: Aurora-VL 72B +12.5" in figure.alt


def coloured_cells(made: Drawn, key: tuple[str, str]) -> int:
    """The cells of a heat map with a number."""
    return sum(re.fullmatch(r"[01]\.\d\d", text) is not None for text in made.texts(key))


def with_cell(model: str, key: str, **fields: Any) -> Callable[[dict[str, Any]], None]:
    """Change the fields of a model's cells in one column."""

    def change(benchmark: dict[str, Any]) -> None:
        for row in (
            row for table in benchmark["tables"] for row in table["rows"] if row["model"] == model
        ):
            if key in row["cells"]:
                row["cells"][key] |= fields

    return change


CLASS = "pond_vqa_level1.rougeL.question_class.count"


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("bars", "series_mcq_icr.accuracy"),
        ("paired", "pond_vqa_level2.rougeL"),
        ("radar", CLASS),
        ("heatmap", CLASS),
    ],
)
def test_a_missing_value_is_a_gap_and_never_zero(
    kind: str, column: str, plain: Drawn, tmp_path: Path
) -> None:
    key = KINDS[kind]
    missing = with_cell("aurora-8b", column, value=None, low=None, high=None, reason="no judge")
    found = drawn(one_plot(key, change=missing), tmp_path)
    assert "Without a value: Aurora-VL 8B in " in found.figures[key].alt
    assert "Without a value" not in plain.figures[key].alt
    before, after = plain.texts(key), found.texts(key)
    assert "0.0" not in set(after) - set(before)
    said = {"bars": "no value", "paired": "no value: Level 2"}
    if kind in said:
        assert after.count(said[kind]) == before.count(said[kind]) + 1
    if (
        kind == "heatmap"
    ):  # the hatched ground shows in one cell, and the others' ranks do not count it
        assert coloured_cells(found, key) == coloured_cells(plain, key) - 1
        assert "0.67" in set(after) - set(before)


def test_columns_of_several_units_stand_on_axes_of_their_own(tmp_path: Path) -> None:
    columns = (
        "stream_qa_future.content",
        "stream_qa_future.signed_delay",
        "stream_qa_open.open_total",
    )
    plot = BoardPlot(name="mixed", title="Mixed", kind="bars", table="parts", columns=columns)
    found = drawn(with_plot(plot), tmp_path)
    root = ElementTree.fromstring(found.svg(("stream_qa", "mixed")))
    titles = [
        one
        for one in root.iter(f"{SVG}text")
        if "lines are 95 % intervals" in "".join(one.itertext())
    ]
    headings = {
        "".join(one.itertext()): float(one.attrib["y"])
        for one in root.iter(f"{SVG}text")
        if "y" in one.attrib
    }
    places = [float(one.attrib["y"]) for one in titles]
    assert ["".join(one.itertext()).partition(";")[0] for one in titles] == [
        "percent",
        "seconds",
        "score",
    ]
    # each axis ends above the next one's heading
    assert places[0] < headings["Delay"] < places[1] < headings["Judged answers"] < places[2]


DELAY = "stream_qa_future.signed_delay"


def test_a_signed_score_has_ends_and_no_order() -> None:
    columns = ("stream_qa_future.content", "stream_qa_future.responsiveness")
    for kind in ("bars", "radar", "heatmap"):
        chosen = (DELAY,) * 3 if kind == "radar" else (*columns, DELAY)
        plot = BoardPlot(name=kind, title="Mixed", kind=kind, table="parts", columns=chosen)
        alt = figure_of(with_plot(plot)).alt
        if kind == "heatmap":
            assert "by 2 columns" in alt
            assert alt.endswith(" Not drawn, since 0 is best: Delay.")
        else:
            assert alt.startswith("Bar chart")
            assert "Delay, 0 is best: from " in alt
            assert "Delay: best" not in alt


@pytest.mark.parametrize(
    ("kind", "column"), [("bars", "series_mcq_icr.accuracy"), ("heatmap", CLASS)]
)
def test_a_value_over_too_few_verdicts_is_marked_and_is_not_best(
    kind: str, column: str, plain: Drawn, tmp_path: Path
) -> None:
    key = KINDS[kind]
    best = with_cell("uniform", column, value=0.999, judged=1200, incomplete=True)
    found = drawn(one_plot(key, change=best), tmp_path)
    assert "Some values are incomplete (*)." in found.texts(key)
    if kind == "bars":
        assert "99.9*" in found.texts(key)
        assert "best Uniform guessing" not in found.figures[key].alt
    else:
        assert coloured_cells(found, key) == coloured_cells(plain, key) - 1
        assert "hatched has no rank" in found.figures[key].alt


def test_what_has_no_value_at_all_is_not_drawn(tmp_path: Path) -> None:
    plot = BoardPlot(
        name="none", title="None", kind="bars", table="parts", columns=("stream_qa.unknown",)
    )
    assert draw_all(with_plot(plot), tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_the_best_rank_has_the_lightest_colour(plain: Drawn) -> None:
    page = pages_of(board(), {}, [])["benchmark-pond_vqa.html"]()
    found = re.findall(r'<td class="g(\d)">([01]\.\d\d)</td>', page)
    cells = {(float(rank), int(colour)) for colour, rank in found}
    assert len(found) == coloured_cells(plain, KINDS["heatmap"])
    assert {(0.0, 9), (1.0, 0)} <= cells
    assert all(
        darker <= lighter for (_, darker), (_, lighter) in pairwise(sorted(cells, reverse=True))
    )


def test_points_are_within_the_plane(plain: Drawn) -> None:
    shape = plain.figures[KINDS["cost"]].shape
    points = [point for curve in shape.curves for point in curve.points]
    assert len(points) == len(shape.curves) > 0
    assert all(
        0 <= shape.x(one.x) <= 320 and 0 <= shape.y(one.y) <= 220 and one.radius > 0
        for one in points
    )
    assert all(0 <= shape.x(value) <= 320 for value, _ in shape.across.ticks)


@pytest.mark.parametrize(("models", "shape"), [(1, BarChart), (2, BarChart), (3, Radar)])
def test_a_radar_is_for_three_models_or_more(models: int, shape: type) -> None:
    def keep(fields: dict[str, Any]) -> None:
        for content in fields["tables"]:
            content["rows"] = content["rows"][:models]

    assert isinstance(figure_of(one_plot(KINDS["radar"], change=keep)).shape, shape)


def test_a_radar_has_an_axis_for_each_column(plain: Drawn) -> None:
    shape = plain.figures[KINDS["radar"]].shape
    spokes = shape.spokes
    assert len(spokes) == len(plain.figures[KINDS["radar"]].plot.columns)
    assert (spokes[0].x, spokes[0].y) == (0.0, -140.0)  # upwards
    values = [None, *(shape.rim for _ in spokes[1:])]
    assert shape.dots(values) == [(spoke.x, spoke.y) for spoke in spokes[1:]]
    path = shape.path(values)
    # a missing value is a gap: neither the first nor the last point is joined across it
    assert (path.count("M"), path.count("L")) == (1, len(spokes) - 2)


def test_rounds_lie_in_the_order_of_their_times() -> None:
    lines = board().benchmarks[2].timelines
    axis = time_axis(lines, [lines[0].query_time - 1])
    (start, _), (end, _) = axis.ticks
    assert axis.place(start) == axis.place(lines[0].query_time - 1) == "2%"
    assert axis.place(end) == "98%"
    for line in lines:
        places = [(one.time, percent(axis.place(one.time))) for one in line.rounds]
        assert sorted(places) == sorted(places, key=lambda place: place[1])


@pytest.mark.parametrize(
    "made", [board(), hostile_board(), large_board(12)], ids=["board", "hostile", "large"]
)
def test_every_plot_with_values_is_on_its_page_and_no_file_is_needed(made: Board) -> None:
    pages = pages_of(made, {}, [])
    for benchmark in made.benchmarks:
        text = pages[f"benchmark-{benchmark.name}.html"]()
        assert all(f'<figure id="figure-{name}"' in text for name in figures_of(made, benchmark))
        assert "<img" not in text


def test_letters_have_their_share_and_the_one_that_is_right() -> None:
    counts = {"gold": {"A": 6, "B": 6}, "chosen": {"A": 3, "B": 9}}
    made = changed(
        board(), lambda fields: fields.update(letters=[fields["letters"][0] | counts]), "series_mcq"
    )
    assert (
        '<path class="ch" d="M50 0V8"/><path d="M0 4H25"/>'
        in pages_of(made, {}, [])["benchmark-series_mcq.html"]()
    )


def test_at_most_eight_models_but_all_on_a_heat_map() -> None:
    made = large_board(31)
    best = [made.models[one.model].name for one in made.benchmarks[0].rankings[0].ranked]
    radar, heat = (figure_of(one_plot(KINDS[kind], made)) for kind in ("radar", "heatmap"))
    assert (radar.title, heat.title) == ("Classes of level 1 (8 of 31 models)", "Rank by class")
    assert [curve.label for curve in radar.shape.curves] == best[:8]
    assert [row.label for row in heat.shape.rows] == best


NAMES = ["$x_1$ \\alpha", "_hidden", "a" * 200, "evil\u202egpj.exe\x07", "<b>&amp;</b>", "模型 é"]


def test_odd_names_are_shown_as_they_are(tmp_path: Path) -> None:
    made = board()
    models = {
        slug: one.model_copy(update={"name": name})
        for (slug, one), name in zip(made.models.items(), NAMES, strict=True)
    }
    made = made.model_copy(update={"models": models})
    key, replaced = (
        ("stream_qa", "parts"),
        "evil\N{REPLACEMENT CHARACTER}gpj.exe\N{REPLACEMENT CHARACTER}",
    )
    for kind, columns in (("bars", 2), ("radar", 3)):
        parts = (
            "stream_qa.overall",
            "stream_qa_future.content",
            "stream_qa_future.responsiveness",
        )[-columns:]
        plot = BoardPlot(name="parts", title="Parts", kind=kind, table="parts", columns=parts)
        texts = drawn(with_plot(plot, made), tmp_path / kind).texts(key)
        for name in ("$x_1$ \\alpha", "_hidden", "<b>&amp;</b>", "模型 é", replaced):
            assert name in texts, kind
        assert {text for text in texts if text.startswith("aaa")} == {short("a" * 200, 26)}


def test_hostile_text_is_text(tmp_path: Path) -> None:
    for kind in ("bars", "heatmap"):
        found, key = drawn(one_plot(KINDS[kind], hostile_board()), tmp_path), KINDS[kind]
        root = ElementTree.fromstring(found.svg(key))
        assert {one.tag.removeprefix(SVG) for one in root.iter()} & {
            "script",
            "img",
            "foreignObject",
            "a",
        } == set()
        assert not [name for one in root.iter() for name in one.attrib if name.startswith("on")]
        assert (tmp_path / found.files[key]["svg"]).resolve().is_relative_to(tmp_path)


def test_names_that_look_alike_once_shortened_are_told_apart() -> None:
    names = ["x" * 30 + "middle one" + "y" * 30, "x" * 30 + "middle two" + "y" * 30]
    assert distinct(names, 20) == [short(names[0], 20) + " (1)", short(names[0], 20) + " (2)"]
    assert len(short(names[0], 20)) == 20


def test_series_differ_without_colour() -> None:
    for sign in ("colour", "marker", "hatch", "line"):
        assert len({getattr(one, sign) for one in LOOKS}) == len(LOOKS)


def test_formats_a_demonstration_and_the_callers_settings(tmp_path: Path) -> None:
    """A demonstration says so; the caller's settings change nothing, and stay."""
    key = KINDS["radar"]
    made = one_plot(key).model_copy(update={"demonstration": True})
    with matplotlib.rc_context({"font.size": 31, "svg.fonttype": "path", "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        files = draw_all(made, tmp_path)
        assert dict(matplotlib.rcParams) == before
    begins = {one: (tmp_path / path).read_bytes()[:5] for one, path in files[key].items()}
    assert begins == {"svg": b"<?xml", "png": b"\x89PNG\r", "pdf": b"%PDF-"}
    texts = Drawn(tmp_path, files, {}).texts(key)
    assert "Miniature data: a demonstration, not a benchmark result." in texts


SCRIPT = """
import hashlib, json, sys
from pathlib import Path
from medtasks.leaderboard.schema.board import Board
from medtasks.leaderboard.exports.board_files import exports_of
from medtasks.leaderboard.figures.draw import draw_all
board = Board.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
draw_all(board, Path("out"))
for name, export in exports_of(board).items():
    Path("out", name).parent.mkdir(exist_ok=True)
    Path("out", name).write_bytes(export.make().encode("utf-8", "replace"))
assert "matplotlib.pyplot" not in sys.modules and "torch" not in sys.modules
paths = sorted(path for path in Path("out").rglob("*.*"))
print(json.dumps({path.as_posix()[4:]: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}))
"""


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(python: Any, tmp_path: Path) -> None:
    """Every kind of figure, whatever the seed of Python's hashes (sets, names of embedded fonts)
    and the time zone.
    """
    made = board()
    benchmarks = [
        one.model_copy(
            update={
                "plots": tuple(
                    plot for plot in one.plots if (one.name, plot.name) in KINDS.values()
                )
            }
        )
        for one in made.benchmarks
    ]
    made = made.model_copy(update={"benchmarks": tuple(benchmarks)})
    (tmp_path / "board.json").write_text(made.model_dump_json(), encoding="utf-8")
    assert draw_all(made, tmp_path / "here").keys() == {*KINDS.values()}
    write_exports(made, tmp_path / "here")
    done = python("-c", SCRIPT, "board.json", PYTHONHASHSEED="7", TZ="Asia/Tokyo")
    assert done.returncode == 0, done.stderr
    here = {
        path.relative_to(tmp_path / "here").as_posix(): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in (tmp_path / "here").rglob("*.*")
    }
    assert json.loads(done.stdout) == here
    assert {Path(name).suffix for name in here} == {
        ".svg",
        ".png",
        ".pdf",
        ".json",
        ".csv",
        ".md",
        ".tex",
        ".bib",
    }


def test_the_last_bit_of_a_position_changes_no_byte() -> None:
    """The layout solver's last bit depends on memory addresses, and ids in an SVG are hashes of all
    digits.
    """

    def saved(towards: float) -> bytes:
        with drawing():
            figure = Figure()
            figure.add_axes((0.1, 0.1, 0.8, math.nextafter(0.8, towards))).barh([0], [1])
            return images(figure, "Title", ("svg",))["svg"]

    assert saved(0) == saved(1)
