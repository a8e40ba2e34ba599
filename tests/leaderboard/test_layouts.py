"""Board layouts: ours are complete and valid, other packages' are checked before they are shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from catalogs import fresh
from medtasks.leaderboard.schema.reference import load_reference, place_of

from medtasks.benchmarks import layouts as boards
from medtasks.benchmarks.kvasir_vqa_x1.board import KVASIR_VQA_X1
from medtasks.benchmarks.layout_checks import check_layout, metrics_of
from medtasks.benchmarks.layout_parts import columns_of
from medtasks.benchmarks.layouts import (
    all_layouts,
    default_layout,
)
from medtasks.benchmarks.med_cmr.board import MED_CMR
from medtasks.benchmarks.medstreambench.board import MEDSTREAMBENCH
from medtasks.benchmarks.mi_cxr.board import MI_CXR
from medtasks.catalog.board_layout import ALL_GROUPS, BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.contents import task_packages
from medtasks.catalog.registry import Plugin, all_benchmarks
from medtasks.core.errors import MedtasksError

OURS = (KVASIR_VQA_X1, MI_CXR, MED_CMR, MEDSTREAMBENCH)


def test_every_benchmark_of_ours_has_a_page_or_stands_on_one_and_shows_what_exists() -> None:
    for layout in OURS:
        check_layout(layout)
        assert layout.why
    shown = all_layouts()
    assert list(shown) == [layout.benchmark for layout in OURS]
    for layout in OURS:
        own_tables = shown[layout.benchmark].tables[: len(layout.tables)]
        assert replace(shown[layout.benchmark], tables=own_tables) == layout
    assert [layout.shows for layout in OURS] == [
        "text",
        "nothing",
        "text",
        "text",
    ]  # MI-CXR's data are credentialed
    assert "kvasir_vqa_x1_transformed" in {column.task for column in columns_of(KVASIR_VQA_X1)}


def test_metrics_that_no_column_names_are_in_a_table_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = [column for column in MED_CMR.headline if column.metric != "accuracy_dimension_mean"]
    monkeypatch.setattr(boards, "plugin_of", lambda _: Plugin(layouts=(replace(
        MED_CMR, headline=tuple(plain), tables=(), plots=()),)))  # fmt: skip
    *_, table = all_layouts()["med_cmr"].tables
    assert (table.name, table.title) == ("other-metrics", "Other metrics")
    columns = {(column.task, column.metric): column.label for column in table.columns}
    assert columns["med_cmr_mcq", "accuracy_dimension_mean"] == (
        "accuracy_dimension_mean: All seven dimensions, multiple choice, pooled"
    )
    assert {metric for _, metric in columns} >= {"medreason_total", "prompt_spread"}
    assert not {column.metric for column in plain} & {metric for _, metric in columns}


@pytest.mark.parametrize(
    "benchmark",
    [name for name, one in all_benchmarks().items() if one.publication.figures is not None],
)
def test_every_published_figure_has_a_column(benchmark: str) -> None:
    columns = list(columns_of(all_layouts()[benchmark]))
    whole = {(one.task, one.metric, one.breakdown, one.group) for one in columns}
    figures = load_reference(benchmark).figures
    places = {place_of(one) for one in figures} - whole
    assert figures
    assert not {(*place[:3], ALL_GROUPS) for place in places} - whole


def test_the_plots_that_the_papers_argue_with_are_there() -> None:
    plots = {(plot.kind, plot.name): plot for layout in OURS for plot in layout.plots}
    assert [plot.ranks for (_, name), plot in plots.items() if name.startswith("class-ranks")] == [
        True,
        True,
    ]
    assert {("paired", "stage-wise"), ("letters", "letters"), ("bars", "families"),
            ("radar", "radar-mcq"), ("heatmap", "modality-mcq"), ("heatmap", "organ-open"), ("heatmap", "organ"),
            ("timeline", "timelines")} <= {*plots}  # fmt: skip
    assert all(len(plot.columns) == 7 for plot in MED_CMR.plots if plot.kind == "radar")
    # these show other scores than accuracies as well
    without = ("option-order", "prompt-sensitivity", "errors", "reasoning-failures")
    assert all(
        plot.chance for plot in MI_CXR.plots if plot.kind == "bars" and plot.name not in without
    )
    notes = {table.name: table.note for table in MI_CXR.tables}
    assert (notes["subtypes"], notes["report"].partition(" ")[0]) == ("", "GTS")


def test_a_group_has_the_metrics_of_its_tasks_and_its_pooled_ones() -> None:
    rates = ("undercall_rate", "overcall_rate", "direction_known_rate", "no_option_rate")
    assert metrics_of("med_cmr_mcq") == ("accuracy", "accuracy_dimension_mean", *rates)
    assert {"bleurt", "judged_strict"} <= {*metrics_of("kvasir_vqa_x1")}
    assert {"content_open", "content_closed_fallback", "overall_table4"} <= {
        *metrics_of("medstreambench")
    }


def broken() -> Iterator[tuple[BoardLayout, str]]:
    good = BoardLayout(
        "mi_cxr", (Column("mi_cxr", "accuracy", "Overall"),), shows="nothing", why="-"
    )

    def headline(*arguments: str) -> BoardLayout:
        return replace(good, headline=(Column(*arguments),))

    yield replace(good, headline=()), "no headline column"
    yield headline("nope", "accuracy", "x"), "task 'nope' is unknown"
    yield headline("mi_cxr", "rougeL", "x"), "metric 'rougeL' is unknown, expected one of accuracy"
    yield (
        headline("mi_cxr", "accuracy", "x", "organ", "eye"),
        "breakdown 'organ' is unknown, expected one of family",
    )
    yield headline("mi_cxr", "accuracy", "x", "family", "TEL"), "headline column 'x' is a breakdown"
    yield headline("mi_cxr", "accuracy", "x", "family"), "has only one of breakdown and group"
    late = Column("medstreambench", "signed_delay", "x")
    yield replace(good, headline=(late,)), "the headline has 'signed_delay', which is best at 0"
    yield (
        replace(good, plots=(Plot("a", "x", "heatmap", (late,)),)),
        "plot 'a' (heatmap) has 'signed_delay'",
    )
    for name, said in (
        ("../up", "lower-case"),
        ("headline", "is duplicated or reserved"),
        ("Letters", "lower-case"),
    ):
        yield replace(good, tables=(LayoutTable(name, "x", good.headline),)), said
    yield (
        replace(good, plots=(Plot("a", "x", "paired", good.headline),)),
        "1 columns and 0 `against`",
    )
    yield (
        replace(good, plots=(Plot("a", "x", "radar", 2 * good.headline),)),
        "2 columns, expected at least 3 axes",
    )
    yield (
        replace(good, plots=(Plot("a", "x", "bars", good.headline, good.headline),)),
        "1 columns and 1 `against`",
    )


@pytest.mark.parametrize(
    ("layout", "said"), broken(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_layout_that_cannot_be_shown_says_why(layout: BoardLayout, said: str) -> None:
    with pytest.raises(MedtasksError, match="board layout of mi_cxr: ") as caught:
        check_layout(layout)
    assert said in str(caught.value)


def test_a_benchmark_without_a_card_shows_its_groups_metrics() -> None:
    for benchmark in (layout.benchmark for layout in OURS):
        layout = default_layout(benchmark)
        assert benchmark in {column.task for column in layout.headline}
        assert all(column.metric == metrics_of(column.task)[0] for column in layout.headline)
        assert layout.shows == "nothing"


def test_a_layout_of_anothers_benchmark_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stranger:
        PLUGIN = Plugin(layouts=(replace(MI_CXR, why="mine now"),))

    ours = task_packages()
    stranger = replace(ours[0], distribution="stranger", version="3", module="stranger")
    monkeypatch.setitem(sys.modules, "stranger", Stranger)
    with fresh((*ours, stranger)):
        assert all_layouts()["mi_cxr"] is MI_CXR
    said = capsys.readouterr().err
    assert (
        "stranger 3 is left out: its board layout is for mi_cxr, which is none of its benchmarks"
        in said
    )
    assert len(said.splitlines()) == 1


def test_another_packages_layout_that_cannot_be_shown_is_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = replace(MI_CXR, headline=(Column("mi_cxr", "nope", "x"),))
    stranger = replace(task_packages()[0], distribution="stranger", version="3")
    monkeypatch.setattr(boards, "benchmark_owner", lambda name: stranger)  # noqa: ARG005
    monkeypatch.setattr(boards, "plugin_of", lambda package: Plugin(layouts=(wrong,)))  # noqa: ARG005
    assert all_layouts()["mi_cxr"] == default_layout("mi_cxr")
    left_out = "board layout mi_cxr of stranger 3 is left out: column 'x'"
    assert left_out in capsys.readouterr().err
