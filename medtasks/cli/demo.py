"""``medtasks demo``: miniature data, real inference on CPU, scores with intervals, a
leaderboard.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from medtasks.catalog.contents import task_packages
from medtasks.cli.console import table, write
from medtasks.cli.help import PlainCommand
from medtasks.core.cache import cache_root
from medtasks.core.extras import require
from medtasks.core.progress_bars import progress
from medtasks.core.settings import using

if TYPE_CHECKING:
    from medtasks.leaderboard.schema.board import Board
    from medtasks.leaderboard.site.charts import Chart


class Model(NamedTuple):
    """A back-end and its arguments."""

    backend: str
    arguments: str


# on tasks that it was not trained on it would not stop by itself
_TINY = "pretrained=tiny,device=cpu,max_new_tokens=32"
MODELS = {
    "tiny": Model("medtasks_vlm", _TINY),
    "tiny_blind": Model("medtasks_vlm", f"{_TINY},blind=true"),
    "oracle": Model("medtasks_baseline", "policy=oracle"),
    "noisy_oracle": Model("medtasks_baseline", "policy=noisy_oracle,accuracy=0.95,seed=1"),
    "uniform": Model("medtasks_baseline", "policy=uniform,seed=0"),
}
"""The models that are evaluated, by the directory of their results."""
COLUMNS_OF_TABLE = 2
"""Scores beside each other that fit 80 columns."""

app = typer.Typer()


@app.command("demo", cls=PlainCommand)
def demo(
    out: Annotated[Path, typer.Option(help="Directory for results and logs.")] = Path(
        "medtasks-demo"
    ),
) -> None:
    """Evaluate a tiny vision-language model, with and without images, and three baselines on
    miniature data.

    Example:
        medtasks demo --out medtasks-demo
    """
    require("vlm", "medtasks demo")
    os.environ["MEDTASKS_DATA"] = "mini"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _write_filled(
        "medtasks demo: four benchmarks in miniature, asked of a tiny vision-language model that "
        "learned from other drawings, of the same model without the pictures, and of three "
        "baselines. A stub that compares words judges the open answers."
    )
    out.mkdir(parents=True, exist_ok=True)
    from medtasks.judge.stub import StubJudge

    with StubJudge() as stub, progress("starting") as bar:
        judge_file = _write_judge_file(out, stub.url)
        for number, (name, model) in enumerate(MODELS.items()):
            bar(number, len(MODELS))
            write(f"  running {name}: {model.backend}, {model.arguments} …")
            (out / name).mkdir(exist_ok=True)
            log = out / name / "harness.log"
            with _harness_output_in(log), using(judge=str(judge_file)):
                from medtasks.harness import run_tasks

                run_tasks(model.backend, model.arguments, groups(), out / name)
        bar(len(MODELS), len(MODELS))
    from medtasks.leaderboard.publish import BoardOptions, publish

    board = publish(
        [out / name for name in MODELS],
        out / "leaderboard",
        BoardOptions(title="medtasks demonstration", demonstration=True),
        cache=cache_root(),
    )
    _report(board, out)


def _write_judge_file(out: Path, url: str) -> Path:
    """Write a file for ``--judge`` with the stub at ``url`` as the only judge."""
    from medtasks.judge.stub import MODEL

    # a user's own key must not be sent to the stub
    judge = {"model": MODEL, "base_url": url, "api_key_env": "MEDTASKS_STUB_KEY"}
    settings = {"judges": [judge], "store": str((out / "verdicts.sqlite").absolute())}
    path = out / "judge.yaml"
    path.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    return path


def groups() -> list[str]:
    """The main groups of our benchmarks."""
    names = []
    for package in task_packages():
        if package.ours and any(package.task_files()):
            names.append(package.module.rpartition(".")[2])
    return names


@contextmanager
def _harness_output_in(log: Path) -> Iterator[None]:
    """Write the harness's hundreds of lines to a file, whose end is printed if the run fails."""
    try:
        with (
            log.open("w", encoding="utf-8") as stream,
            redirect_stdout(stream),
            redirect_stderr(stream),
        ):
            yield
    except BaseException:
        sys.stderr.write("\n".join(log.read_text(encoding="utf-8").splitlines()[-15:]) + "\n")
        raise


def _report(board: Board, out: Path) -> None:
    """Print the headline scores, what they show, and where the results are."""
    from medtasks.leaderboard.site.charts import overview_charts

    charts = overview_charts(board)
    _show_scores(board, charts)
    write("")
    gains: list[str] = []
    for chart in charts:
        _write_filled(f"{chart.benchmark.title}: {chart.finding}", "  ")
        gains += _gains_by_pictures(chart)
    _write_filled(f"Gain of tiny from images: {', '.join(gains)}.", "  ")
    write(
        "\nMiniature data: a demonstration, not a benchmark result.\n"
        f"Leaderboard, for a browser: {out}/leaderboard/index.html\n"
        f"Samples, scores and manifest of each run: {out}/*/*_medtasks/\n"
        "Next, with real data: medtasks prepare --help\n"
        "and your model: lmms-eval --model medtasks_vlm --model_args pretrained=MODEL --tasks TASK"
    )


def _show_scores(board: Board, charts: Sequence[Chart]) -> None:
    """Tables of the headline scores, a row for each model: best first, and each blind run below the
    run of its model.
    """
    columns = [_scores_by_model(board, chart) for chart in charts]
    names: dict[str, None] = {}
    for scores in columns:
        names.update(dict.fromkeys(scores))
    for start in range(0, len(charts), COLUMNS_OF_TABLE):
        part = slice(start, start + COLUMNS_OF_TABLE)
        rows = [["", *(chart.ranking.column.label for chart in charts[part])]]
        for name in names:
            rows.append([name, *(scores.get(name, "no value") for scores in columns[part])])
        headings = ("", *(chart.benchmark.title for chart in charts[part]))
        title = "" if start else "\nHeadline scores in %, with 95 % confidence intervals"
        table(headings, rows, title)


def _scores_by_model(board: Board, chart: Chart) -> dict[str, str]:
    """The scores of a chart with their intervals, by the name of the model."""
    from medtasks.leaderboard.schema.numbers import interval, number, shown_name

    column = chart.ranking.column
    scores = {}
    for row in chart.rows:
        cell = row.cells[column.key]
        if cell.value is not None:
            ends = interval(cell.low, cell.high, column.unit)
            name = shown_name(board, row.model, row.blind)
            scores[name] = f"{number(cell.value, column.unit)} [{ends}]"
    return scores


def _gains_by_pictures(chart: Chart) -> list[str]:
    """How many points better models are with pictures than without."""
    from medtasks.leaderboard.board.media_gain import GAINS
    from medtasks.leaderboard.schema.numbers import interval, number

    column = chart.ranking.column
    gains = []
    for board_table in chart.benchmark.tables:
        if board_table.name != GAINS:
            continue
        for row in board_table.rows:
            gain = row.cells.get(f"{column.key}.gain")
            if gain is not None and gain.value is not None:
                points = number(gain.value, column.unit)
                ends = interval(gain.low, gain.high, column.unit)
                gains.append(f"{points} points ({ends}) on {chart.benchmark.title}")
    return gains


def _write_filled(text: str, indent: str = "") -> None:
    """Print a text in lines as wide as the terminal."""
    from medtasks.scoring.summary import width

    write(textwrap.fill(text, width(), subsequent_indent=indent))
