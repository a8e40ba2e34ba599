"""The board's tables, plots, published rows and costs: every number in its place, whatever order
runs come in.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import FAIR, GOOD, KEY, POOR, board, cxr, entry, page, ranked, right, run, signed
from medtasks.leaderboard.board.build import OrganiserFacts, build_board
from medtasks.leaderboard.board.findings import finding
from medtasks.leaderboard.board.models import Described, read_by_model
from medtasks.leaderboard.board.usage import Price
from medtasks.leaderboard.schema.board import Board, Refused

from medtasks.catalog.board_layout import BoardLayout, Column
from medtasks.catalog.spec import leaf_tasks
from medtasks.cli.leaderboard import report
from medtasks.metrics.timelines import Round, Timeline
from medtasks.runs.signature import parse_signature
from medtasks.runs.usage import RunUsage, Usage
from medtasks.scoring.scores import Letters


def test_comparable_runs_are_ranked_and_rows_stand_in_that_order() -> None:
    found = page(POOR, GOOD, FAIR)
    assert (found.name, found.tables[0].name, found.rankings[0].cluster) == (
        "mi_cxr",
        "headline",
        "patient",
    )
    assert ranked(found) == [row.model for row in found.tables[0].rows] == ["good", "fair", "poor"]
    cell, score = (
        found.tables[0].rows[0].cells[KEY],
        GOOD.entries["mi_cxr"].scores.metrics["accuracy"],
    )
    assert (cell.value, (cell.low, cell.high)) == (score.value, score.interval)
    assert (cell.items, cell.signature) == (240, signed("accuracy", "mi_cxr"))


def test_the_chance_level_is_that_of_the_items_scored() -> None:
    """Not 1/5 of the benchmark's letters: the documents of these runs have 3 and 4 options of their
    own.
    """
    lucky = cxr(0.29, 5)
    score = lucky.scores.metrics["accuracy"].model_copy(update={"chance": 0.2917})
    scores = lucky.scores.model_copy(update={"metrics": {"accuracy": score}})
    made = board(run("lucky", [replace(lucky, scores=scores)]), FAIR)
    (found,) = made.benchmarks
    (ranking,) = found.rankings
    assert ranking.column.chance == 0.2917
    cells = {row.model: row.cells[KEY] for row in found.tables[0].rows}
    assert finding(ranking, made.models, cells).endswith("lucky is not above chance (29.2 %).")


def test_a_column_has_the_best_constant_answer_and_the_best_blind_run() -> None:
    """Blind runs of other data do not count, and each is beaten by the best."""
    blind = [run("low", [cxr(0.3, 5)], blind=True), run("high", [cxr(0.5, 7)], blind=True)]
    other = run("other", [cxr(0.9, 8, data="d1")], blind=True)
    ranking, *_ = page(GOOD, FAIR, POOR, *blind, other).rankings
    column = ranking.column
    assert (column.chance, column.constant, column.constant_answer) == (0.2, 0.2, "A")
    high = blind[1].entries["mi_cxr"].scores.metrics["accuracy"].value
    assert (column.blind, column.blind_model) == (high, "high")
    assert page(GOOD, FAIR, other).rankings[0].column.blind is None


def test_a_model_that_does_not_exceed_the_best_blind_run_is_named() -> None:
    made = board(GOOD, POOR, run("blind", [cxr(0.5, 7)], blind=True))
    (found,) = made.benchmarks
    cells = {row.model: row.cells[KEY] for row in found.tables[0].rows}
    level = f"{100 * (found.rankings[0].column.blind or 0):.1f} %"
    sentence = finding(found.rankings[0], made.models, cells)
    assert sentence.endswith(f" lab/poor is not above the best blind run ({level}).")


def test_the_order_of_runs_changes_no_byte() -> None:
    runs = [GOOD, FAIR, POOR, run("good", [cxr(0.7, 5)], "run-old", created="2026-10-01"),
            run("odd", [cxr(0.7, 6, data="d1")]), run("blind", [cxr(0.5, 7)], blind=True)]  # fmt: skip
    refused = [Refused(folder="b", reason="x"), Refused(folder="a", reason="y")]
    expected = board(*runs).model_dump_json()
    for seed in range(3):
        draw = random.Random(seed)
        draw.shuffle(runs)
        draw.shuffle(refused)
        assert board(*runs).model_dump_json() == expected
    assert [one.folder for one in build_board(runs, refused, title="x").refused] == ["a", "b"]


def test_a_row_may_come_of_several_runs() -> None:
    icr = entry("mi_cxr_icr", {"accuracy": right(0.4, 3)})
    found = page(GOOD, run("good", [icr], "run-icr"), FAIR)
    assert found.tables[0].rows[0].runs == ("run-good", "run-icr")
    assert [*found.tables[0].rows[0].cells] == [KEY, "mi_cxr_icr.accuracy"]
    assert [one.column.key for one in found.rankings] == [KEY, "mi_cxr_icr.accuracy"]


FAMILIES = {
    "family": {"TEL": range(120), "GTS": range(120, 240)},
    "null_option": {"<b>null</b>": range(60)},
}


def test_a_breakdown_has_a_column_for_every_group_that_a_run_holds() -> None:
    found = page(run("a", [cxr(0.5, 1, breakdowns=FAMILIES)]), GOOD)
    (table,) = [table for table in found.tables if table.name == "null-option"]
    (column,) = table.columns
    assert (column.label, column.group) == ("<b>null</b>", "<b>null</b>")
    assert column.key.startswith("mi_cxr.accuracy.null_option.b-null-b-")
    assert column.chance == 0.2
    (row,) = table.rows
    assert row.cells[column.key].items == 60
    assert parse_signature(row.cells[column.key].signature)["part"] == "null_option=<b>null</b>"


def test_units_and_directions_come_from_the_metrics() -> None:
    names = {"chrf": "points", "rougeL": "fraction"}
    tables = {"rougeL": right(0.5, 1), "chrf": np.tile([8.0, 9, 9], (240, 6))}
    found = page(run("a", [entry("kvasir_vqa_x1", tables)]))
    assert {one.metric: one.unit for one in found.tables[0].columns} == names
    streams = {"false_alarm_rate": right(0.2, 1), "signed_delay": right(0.3, 1)}
    found = page(run("a", [entry("medstreambench", streams)]))
    (timing,) = [table for table in found.tables if table.name == "timing"]
    facts = {one.metric: (one.unit, one.higher_is_better, one.signed) for one in timing.columns}
    assert facts == {
        "false_alarm_rate": ("fraction", False, False),
        "signed_delay": ("seconds", False, True),
    }


def test_a_signed_headline_ranks_nobody() -> None:
    late = BoardLayout(
        "medstreambench",
        tuple(Column("medstreambench", one, one) for one in ("signed_delay", "content")),
    )
    runs = [run(name, [entry("medstreambench", {"signed_delay": right(share, 1), "content": right(share, 2)})])
            for name, share in (("late", 0.9), ("early", 0.2))]  # fmt: skip
    (made,) = board(*runs, layouts=[late]).benchmarks
    assert [one.column.metric for one in made.rankings] == ["content"]
    assert [one.metric for one in made.tables[0].columns] == ["signed_delay", "content"]


def test_every_number_of_a_plot_stands_in_its_table() -> None:
    letters = Letters(
        gold=dict.fromkeys("ABCDE", 48), chosen=dict.fromkeys("ABCDE", 48), null_chosen_when_wrong=1,
        null_missed_when_right=1,
    )  # fmt: skip
    tasks = ("mi_cxr_icr", "mi_cxr_stagewise", "mi_cxr_cot", "mi_cxr_icr_cot", "mi_cxr_tel_single")
    entries = [entry(task, {"accuracy": right(0.5, seed)}) for seed, task in enumerate(tasks)]
    found = page(run("a", [cxr(0.5, 1, breakdowns=FAMILIES, letters=letters), *entries]), GOOD)
    tables = {table.name: {column.key for column in table.columns} for table in found.tables}
    assert len(tables) == len(found.tables)
    plots = {plot.name: plot for plot in found.plots}
    assert {"families", "subtypes", "stage-wise", "prompting-cot", "letters", "null-option"} <= {
        *plots
    }
    for plot in plots.values():
        assert {*plot.columns, *plot.against} <= tables[plot.table]
    assert plots["families"].columns == (KEY, "mi_cxr_icr.accuracy")
    assert plots["families"].chance == 0.2
    assert plots["stage-wise"].columns == (KEY,)
    assert plots["stage-wise"].against == ("mi_cxr_stagewise.accuracy",)
    assert plots["prompting-cot"].columns == (KEY, "mi_cxr_icr.accuracy")
    assert [(one.model, one.task, one.gold["A"]) for one in found.letters] == [("a", "mi_cxr", 48)]


def test_a_plot_that_no_table_holds_gets_one() -> None:
    parts = [entry(f"med_cmr_{kind}_sod", {metric: right(0.5, 1)})
             for kind, metric in (("mcq", "accuracy"), ("open", "open_total"))]  # fmt: skip
    found = page(run("a", parts))
    (plot,) = [plot for plot in found.plots if plot.name == "formats"]
    (table,) = [table for table in found.tables if table.name == plot.table]
    assert (plot.table, plot.columns, plot.against) == (
        "formats", ("med_cmr_mcq_sod.accuracy",), ("med_cmr_open_sod.open_total",)
    )  # fmt: skip
    assert [row.model for row in table.rows] == ["a"]


def test_timelines_are_those_of_comparable_runs() -> None:
    def streamed(model: str) -> Any:
        rounds = (
            Round(time=1.0, answerable=True, positive=True, valid=True, content=None, said="alert"),
        )
        told = Timeline(model=model, task="medstreambench_proactive", item="i", query_time=0.0, expected_time=1.0,
                        tolerance=0.5, rounds=rounds)  # fmt: skip
        return entry(
            "medstreambench_proactive", {"responsiveness": right(0.5, 1)}, timelines=(told,)
        )

    found = page(run("a", [streamed("a")]), run("b", [streamed("b")], mini=True))
    assert [one.model for one in found.timelines] == ["a"]
    assert [plot.name for plot in found.plots if plot.kind == "timeline"] == ["timelines"]


def test_columns_that_nobody_has_are_left_out_and_published_ones_stay() -> None:
    shown = page(GOOD, published=True)
    assert [column.key for column in page(GOOD).tables[0].columns] == [KEY]
    assert [column.key for column in shown.tables[0].columns] == [KEY, "mi_cxr_icr.accuracy"]
    assert page(GOOD).published == ()
    figures = [one for one in shown.published if one.table == "README, results"]
    assert {one.column for one in figures} <= {
        column.key for table in shown.tables for column in table.columns
    }
    assert figures[0].value == pytest.approx(float(figures[0].printed or "nan"))
    assert shown.published_gaps[0].startswith("Table 1, InternVL3.5-14B and QwenVL3-8B: ")
    assert not {one.model for one in shown.published} & {
        one.model for one in shown.rankings[0].ranked
    }


def test_models_are_shown_as_the_organiser_says_and_runs_that_no_page_shows_say_so() -> None:
    said = {"good": Described(name="Good", family="fine", trained={"mi_cxr": "yes"})}
    made = board(GOOD, FAIR, run("else", []), organiser=OrganiserFacts(said))
    assert (made.models["good"].name, made.models["good"].trained) == ("Good", {"mi_cxr": "yes"})
    assert made.models["fair"].trained == {"mi_cxr": "unknown"}
    assert made.latest == "2026-11-01T00:00:00+00:00"
    assert made.runs["run-else"].notes == (
        "none of its scores is on this board: no page shows its tasks",
    )


def test_keys_differ_wherever_columns_do() -> None:
    from medtasks.leaderboard.schema.numbers import column_key

    groups = ["a b", "a-b", "a_b", "a.b", "../b", "", "Ä", "ä", "x" * 80, "x" * 81]
    keys = [column_key(Column("t", "m", "l", "part", group)) for group in groups]
    assert len({*keys}) == len(groups)
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.") for key in keys)
    assert all(".." not in key and len(key) < 80 for key in keys)


def test_the_command_line_says_who_leads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(board(GOOD, FAIR, POOR), Path("page"))
    assert "lab/good leads lab/fair by" in " ".join(capsys.readouterr().out.split())
    assert (board().benchmarks, board().models, board().latest) == (
        (),
        {},
        None,
    )  # an empty board is a board
    report(board(GOOD), tmp_path)
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("  lab/good is the only model with a comparable result (MI-CXR: ")
    assert last == f"1 run of 1 model: {tmp_path / 'index.html'}"


COUNTED = Usage(
    samples=1000,
    seconds=1800.0,
    process_seconds=7200.0,
    devices=2,
    prompt_tokens=3_000_000,
    output_tokens=50_000,
)
TASKS = leaf_tasks("mi_cxr")
USAGE = RunUsage(**COUNTED.model_dump(), tasks=dict.fromkeys(TASKS, Usage(samples=1, seconds=2.0)))


def test_a_cost_is_tokens_by_price_or_hours_by_price(tmp_path: Path) -> None:
    by_tokens, by_hours = (
        Price(prompt_price=0.4, completion_price=1.6),
        Price(device_hour_price=2.5),
    )
    assert by_tokens.cost(COUNTED) == pytest.approx(3 * 0.4 + 0.05 * 1.6)
    assert by_hours.cost(COUNTED) == pytest.approx(2 * 2 * 2.5)
    # without the count there is no cost
    assert by_tokens.cost(Usage(samples=3, output_tokens=9)) is None
    assert by_hours.cost(Usage(samples=3, prompt_tokens=9, output_tokens=9)) is None
    # a file of prices is YAML or JSON
    for text in (
        "Qwen2.5-VL-7B*: {device_hour_price: 2.50}\n",
        '{"Qwen2.5-VL-7B*": {"device_hour_price": 2.5}}',
    ):
        (tmp_path / "prices").write_text(text)
        assert read_by_model(tmp_path / "prices", Price) == {"Qwen2.5-VL-7B*": by_hours}


def runs(**usage: Any) -> list[Any]:
    return [
        run("good", [cxr(0.8, 1)], usage=USAGE.model_dump()),
        run("fair", [cxr(0.6, 2)], **usage),
    ]


def test_a_board_has_the_usage_of_ranked_runs_and_their_cost() -> None:
    prices = {"lab/good": Price(device_hour_price=3.0)}
    found = page(*runs(), organiser=OrganiserFacts(prices=prices))
    (good,) = found.usage
    assert (good.model, good.run, good.cost) == ("good", "run-good", 12.0)
    assert good.usage == COUNTED
    assert good.score == found.tables[0].rows[0].cells[KEY]
    plot = found.plots[-1]
    assert (plot.kind, plot.columns, plot.table) == ("cost", (KEY,), "headline")
    made = board(*runs(), organiser=OrganiserFacts(prices=prices))
    assert made.runs["run-good"].cost == 12.0
    assert plot.title.endswith(" against cost")
    free = page(*runs())
    assert free.usage[0].cost is None
    assert free.plots[-1].title.endswith(" against time")


def test_usage_changes_neither_models_nor_comparability() -> None:
    plain = page(run("good", [cxr(0.8, 1)]), run("fair", [cxr(0.6, 2)]))
    assert plain.usage == ()
    assert all(plot.kind != "cost" for plot in plain.plots)
    found = page(*runs(usage={"samples": 5, "seconds": 1.0}))
    assert (found.rankings, found.tables) == (plain.rankings, plain.tables)
    made = board(*runs(), organiser=OrganiserFacts(prices={"*": Price(device_hour_price=3.0)}))
    assert Board.model_validate_json(made.model_dump_json()) == made
