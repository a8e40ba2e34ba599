"""``medtasks demo``: miniature data, real inference on CPU, scores with intervals, a
leaderboard.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks.catalog.contents import task_packages
from medtasks.cli.console import progress, table, write
from medtasks.core.cache import cache_root
from medtasks.core.settings import using

if TYPE_CHECKING:
    from medtasks.leaderboard.schema.board import Board

# on tasks that it was not trained on it would not stop by itself
_TINY = "pretrained=tiny,device=cpu,max_new_tokens=32"
MODELS = {
    "tiny": ("medtasks_vlm", _TINY),
    "tiny_blind": ("medtasks_vlm", f"{_TINY},blind=true"),
    "oracle": ("medtasks_baseline", "policy=oracle"),
    "noisy_oracle": ("medtasks_baseline", "policy=noisy_oracle,accuracy=0.95,seed=1"),
    "uniform": ("medtasks_baseline", "policy=uniform,seed=0"),
}
"""Back-end and arguments by directory."""


def demo(out: Path = Path("medtasks-demo")) -> None:
    """Evaluate a tiny vision-language model, with and without pictures, and three baselines on the
    miniature data.
    """
    os.environ["MEDTASKS_DATA"] = "mini"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _write_filled(
        "medtasks demo: four benchmarks in miniature, asked of a tiny vision-language model that learned from other "
        "drawings, of the same model without the pictures, and of three baselines. A stub that compares words judges "
        "the open answers."
    )
    out.mkdir(parents=True, exist_ok=True)
    from medtasks.judge.stub import MODEL, StubJudge

    with StubJudge() as stub, progress("starting") as bar:
        # a user's own key must not be sent to the stub
        judge = {"model": MODEL, "base_url": stub.url, "api_key_env": "MEDTASKS_STUB_KEY"}
        settings = {"judges": [judge], "store": str((out / "verdicts.sqlite").absolute())}
        (out / "judge.yaml").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        for number, (name, (backend, arguments)) in enumerate(MODELS.items()):
            bar(number, len(MODELS))
            write(f"  running {name}: {backend}, {arguments} …")
            (out / name).mkdir(exist_ok=True)
            with (
                _harness_output_in(out / name / "harness.log"),
                using(judge=str(out / "judge.yaml")),
            ):
                from medtasks.harness import run_tasks

                run_tasks(backend, arguments, groups(), out / name)
        bar(len(MODELS), len(MODELS))
    from medtasks.leaderboard.publish import publish

    runs = [out / name for name in MODELS]
    title = "medtasks demonstration"
    _report(
        publish(runs, out / "leaderboard", title=title, demonstration=True, cache=cache_root()), out
    )


def groups() -> list[str]:
    """The main groups of our benchmarks."""
    ours = [
        package.module for package in task_packages() if package.ours and any(package.task_files())
    ]
    return [module.rpartition(".")[2] for module in ours]


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
    from medtasks.leaderboard.board.media_gain import GAINS
    from medtasks.leaderboard.schema.numbers import interval, number, shown_name
    from medtasks.leaderboard.site.charts import overview_charts

    shown = overview_charts(board)
    scores: list[
        dict[str, str]
    ] = []  # of each chart, by model, best first, and below it that of its blind run
    gains = []
    for chart in shown:
        column = chart.ranking.column
        cells = {
            shown_name(board, row.model, row.blind): row.cells[column.key] for row in chart.rows
        }
        scores.append(
            {
                name: f"{number(cell.value, column.unit)} [{interval(cell.low, cell.high, column.unit)}]"
                for name, cell in cells.items()
                if cell.value is not None
            }
        )
        blind = (row for one in chart.benchmark.tables if one.name == GAINS for row in one.rows)
        for gain in filter(None, (row.cells.get(f"{column.key}.gain") for row in blind)):
            if gain.value is not None:
                ends = interval(gain.low, gain.high, column.unit)
                gains.append(
                    f"{number(gain.value, column.unit)} points ({ends}) on {chart.benchmark.title}"
                )
    names = dict.fromkeys(name for own in scores for name in own)
    for start in range(0, len(shown), 2):  # two beside each other fit 80 columns
        pair, columns = shown[start : start + 2], scores[start : start + 2]
        rows = [["", *(one.ranking.column.label for one in pair)]]
        rows += [[name, *(own.get(name, "no value") for own in columns)] for name in names]
        title = "" if start else "\nHeadline scores in %, with 95 % confidence intervals"
        table(("", *(one.benchmark.title for one in pair)), rows, title)
    write("")
    for one in shown:
        _write_filled(f"{one.benchmark.title}: {one.finding}", "  ")
    _write_filled(f"What the pictures add to tiny: {', '.join(gains)}.", "  ")
    write(
        "\nMiniature data: a demonstration, not a benchmark result.\n"
        f"Leaderboard, for a browser: {out}/leaderboard/index.html\n"
        f"Samples, scores and manifest of each run: {out}/*/*_medtasks/\n"
        "Next, with real data: medtasks prepare --help\n"
        "and your model: lmms-eval --model medtasks_vlm --model_args pretrained=MODEL --tasks TASK"
    )


def _write_filled(text: str, indent: str = "") -> None:
    from medtasks.scoring.summary import width

    write(textwrap.fill(text, width(), subsequent_indent=indent))
