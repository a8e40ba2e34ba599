"""Prices of models, and the usage of the runs that a board ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_runs import KEY, board, cxr, page
from made_runs import run as made_run
from medtasks.leaderboard.board.board import Board
from medtasks.leaderboard.board.models import read_by_model
from medtasks.leaderboard.board.usage import Price

from medtasks.catalog.spec import leaf_tasks
from medtasks.runs.usage import RunUsage, Usage

COUNTED = Usage(
    samples=1000, seconds=1800.0, process_seconds=7200.0, devices=2, prompt_tokens=3_000_000, output_tokens=50_000
)
TASKS = leaf_tasks("mi_cxr")
USAGE = RunUsage(**COUNTED.model_dump(), tasks=dict.fromkeys(TASKS, Usage(samples=1, seconds=2.0)))


def test_a_cost_is_tokens_by_price_or_hours_by_price() -> None:
    assert Price(prompt_price=0.4, completion_price=1.6).cost(COUNTED) == pytest.approx(3 * 0.4 + 0.05 * 1.6)
    assert Price(device_hour_price=2.5).cost(COUNTED) == pytest.approx(2 * 2 * 2.5)
    # without the count there is no cost
    assert Price(prompt_price=0.4, completion_price=1.6).cost(Usage(samples=3, output_tokens=9)) is None
    assert Price(device_hour_price=2.5).cost(Usage(samples=3, prompt_tokens=9, output_tokens=9)) is None


def test_a_file_of_prices_is_yaml_or_json(tmp_path: Path) -> None:
    yaml, json = tmp_path / "prices.yaml", tmp_path / "prices.json"
    yaml.write_text("Qwen2.5-VL-7B*: {device_hour_price: 2.50}\n")
    json.write_text('{"Qwen2.5-VL-7B*": {"device_hour_price": 2.5}}')
    assert read_by_model(yaml, Price) == read_by_model(json, Price) == {"Qwen2.5-VL-7B*": Price(device_hour_price=2.5)}


def runs(**usage: Any) -> list[Any]:
    return [made_run("good", [cxr(0.8, 1)], usage=USAGE.model_dump()), made_run("fair", [cxr(0.6, 2)], **usage)]


def test_a_board_has_the_usage_of_ranked_runs_and_their_cost() -> None:
    prices = {"lab/good": Price(device_hour_price=3.0)}
    found = page(*runs(), prices=prices)
    (good,) = found.usage
    assert (good.model, good.run, good.cost) == ("good", "run-good", 12.0)
    assert good.usage == COUNTED
    assert good.score == found.tables[0].rows[0].cells[KEY]
    plot = found.plots[-1]
    assert (plot.kind, plot.columns, plot.table) == ("cost", (KEY,), "headline")
    assert board(*runs(), prices=prices).runs["run-good"].cost == 12.0
    assert plot.title.endswith(" against cost")
    free = page(*runs())
    assert free.usage[0].cost is None
    assert free.plots[-1].title.endswith(" against time")


def test_usage_changes_neither_models_nor_comparability() -> None:
    plain = page(made_run("good", [cxr(0.8, 1)]), made_run("fair", [cxr(0.6, 2)]))
    assert plain.usage == ()
    assert all(plot.kind != "cost" for plot in plain.plots)
    found = page(*runs(usage={"samples": 5, "seconds": 1.0}))
    assert (found.rankings, found.tables) == (plain.rankings, plain.tables)
    made = board(*runs(), prices={"*": Price(device_hour_price=3.0)})
    assert Board.model_validate_json(made.model_dump_json()) == made
