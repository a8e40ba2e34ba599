"""``medtasks demo``: miniature data, real inference on CPU, scores with intervals, a leaderboard."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medtasks.cli.console import progress, table, write
from medtasks.text import printable

if TYPE_CHECKING:
    from medtasks.benchmarks.base import Demo


@dataclass(frozen=True)
class _Model:
    label: str
    directory: str
    backend: str
    arguments: str


GENERATION = "max_new_tokens=16"
"""The limit is low because a model with random weights always reaches it; equal for all models, for comparability."""

MODELS = (
    _Model("tiny VLM (random weights)", "tiny_vlm", "medtasks_vlm", "pretrained=tiny,device=cpu"),
    _Model("oracle", "oracle", "medtasks_baseline", "policy=oracle"),
    _Model("uniform guessing", "uniform", "medtasks_baseline", "policy=uniform,seed=0"),
    _Model("too early", "early", "medtasks_baseline", "policy=early"),
)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Directory for results and logs.")] = Path("medtasks-demo"),
) -> None:
    """Evaluate a tiny vision-language model and three baselines on the miniature data, through lmms-eval."""
    os.environ["MEDTASKS_DATA"] = "mini"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    write("medtasks demo: four benchmarks in miniature, a real vision-language model with random weights, on CPU.")
    write("Open answers are judged by a stub that compares words instead of a language model: a demonstration only.")
    out.mkdir(parents=True, exist_ok=True)
    folders: dict[str, Path] = {}
    with _stub_judge(out / "judge.yaml"), progress("starting") as bar:
        for number, model in enumerate(MODELS):
            bar(number, len(MODELS))
            write(f"  running {model.label} …")
            folders[model.label] = _run(model, out)
        bar(len(MODELS), len(MODELS))
    _report(folders, out)
    _publish(out)


@contextlib.contextmanager
def _stub_judge(settings: Path) -> Iterator[None]:
    """A judge for the runs in the block, configured as a user would: by a file named in the environment."""
    from medtasks.judge.config import VARIABLE
    from medtasks.judge.stub import MODEL, StubJudge

    before = os.environ.get(VARIABLE)
    with StubJudge() as stub:
        # a user's own key must not be sent to the stub
        judge = {"model": MODEL, "base_url": stub.url, "api_key_env": "MEDTASKS_STUB_KEY"}
        store = str(settings.with_name("verdicts.sqlite").absolute())
        settings.write_text(json.dumps({"judges": [judge], "store": store}, indent=1) + "\n", encoding="utf-8")
        os.environ[VARIABLE] = str(settings)
        try:
            yield
        finally:
            os.environ.pop(VARIABLE)
            if before is not None:
                os.environ[VARIABLE] = before


def _run(model: _Model, out: Path) -> Path:
    folder = out / model.directory
    folder.mkdir(exist_ok=True)
    with _harness_output_in(folder / "harness.log"):
        from medtasks.harness import run_tasks

        return run_tasks(
            model.backend,
            model.arguments,
            [*_shown_groups(), *_tracks(), *other_tasks()],
            folder,
            gen_kwargs=GENERATION,
        )


def _demos() -> dict[str, Demo]:
    from medtasks.registry import all_benchmarks

    return {name: benchmark.demo for name, benchmark in all_benchmarks().items() if benchmark.demo is not None}


def _shown_groups() -> dict[str, tuple[str, ...]]:
    """The metrics to show for each group."""
    return {name: demo.metrics for name, demo in _demos().items()}


def _tracks() -> list[str]:
    """Further tasks: other ways of asking the same questions."""
    return [task for demo in _demos().values() for task in demo.tasks]


def other_tasks() -> list[str]:
    """The tasks of benchmarks with miniature data but without a `Demo`."""
    from medtasks.registry import all_benchmarks
    from medtasks.spec import leaf_tasks, load_specs

    drawn = {name for name, one in all_benchmarks().items() if one.mini is not None and one.demo is None}
    covered = {leaf for group in [*_shown_groups(), *_tracks()] for leaf in leaf_tasks(group)}
    tasks = [name for name, spec in load_specs().items() if spec.kind == "task" and spec.metadata.benchmark in drawn]
    return [name for name in tasks if name not in covered]


@contextlib.contextmanager
def _harness_output_in(log: Path) -> Iterator[None]:
    """Write the harness's hundreds of lines to a file, whose end is printed if the run fails."""
    try:
        with (
            log.open("w", encoding="utf-8") as stream,
            contextlib.redirect_stdout(stream),
            contextlib.redirect_stderr(stream),
        ):
            yield
    except BaseException:
        sys.stderr.write("\n".join(log.read_text(encoding="utf-8").splitlines()[-15:]) + "\n")
        raise


def _report(folders: dict[str, Path], out: Path) -> None:
    scores = {label: json.loads((folder / "scores.json").read_text()) for label, folder in folders.items()}
    for group, metrics in _shown_groups().items():
        for metric in metrics:
            rows = _score_rows(scores, group, metric)
            table(("", *folders), rows, title=f"\n{group}: {metric}, 95 % cluster-bootstrap interval")
    for task in other_tasks():
        for metric in next(iter(scores.values()))["tasks"][task]["metrics"]:
            rows = _score_rows(scores, task, metric)
            table(("", *folders), rows, title=f"\n{task}: {metric}, 95 % cluster-bootstrap interval")
    _show_tracks(scores)
    for sample in [demo.sample for demo in _demos().values() if demo.sample]:
        _show_sample(next(iter(folders.values())) / "samples" / f"{sample}.jsonl")
    write(f"\nMiniature data: a demonstration, not a benchmark result. Files in {out}:")
    for label, folder in folders.items():
        write(f"  {label}: {folder} (manifest.json, scores.json, samples/)")


def _publish(out: Path) -> None:
    """Build a leaderboard from the same results."""
    from medtasks.leaderboard.publish import publish

    site = out / "leaderboard"
    title = "medtasks demonstration"
    publish(
        [out / model.directory for model in MODELS],
        site,
        title=title,
        demonstration=True,
        figures=("svg",),
    )
    write(f"\nThe same results as a leaderboard, for a browser: {site / 'index.html'}")


def _score_rows(scores: dict[str, Any], group: str, metric: str) -> list[list[str]]:
    from medtasks.spec import leaf_tasks, load_spec

    leaves = leaf_tasks(group)
    names = dict.fromkeys([group, *(m for m in load_spec(group).members if m not in leaves), *leaves])
    rows: list[list[str]] = []
    for name in names:
        cells = []
        for one in scores.values():
            entry = {**one["tasks"], **one["groups"]}[name]["metrics"].get(metric)
            cells.append(_cell(entry) if entry and entry["samples"] else "")
        awaited = all(cell.startswith("awaits") for cell in cells)
        if any(cells) and not (awaited and rows):  # if all rows await a judge, one is enough
            rows.append([name, *cells])
    return rows


def _show_tracks(scores: dict[str, Any]) -> None:
    """The model's score on each track, compared with the plain way of asking the same questions."""
    label, own = next(iter(scores.items()))
    rows = []
    for group in [*_shown_groups(), *_tracks()]:
        paired = own["comparisons"].get(group)
        if paired is None:
            continue
        for metric in ("accuracy", "rougeL"):
            score = paired["metrics"].get(metric)
            if score is not None:
                interval = "" if score["interval"] is None else "[{:+.3f}, {:+.3f}]".format(*score["interval"])
                rows.append([paired["first"], paired["second"], metric, f"{score['difference']:+.3f}", interval])
    title = f"\nThe same questions, asked in two ways ({label}): difference, 95 % interval"
    table(("run", "against", "metric", "difference", "interval"), rows, title=title)


def _cell(entry: dict[str, Any]) -> str:
    from medtasks.results.scoring import MetricScore
    from medtasks.results.summary import format_score

    return format_score(MetricScore.model_validate(entry))


def _show_sample(path: Path) -> None:
    from medtasks.results.samples import read_samples

    sample = read_samples(path)[0].model_dump(mode="json")
    write(f"\nOne line of the sample log ({path}):")
    for key in ("sample_id", "cluster", "responses", "filtered", "status", "target", "scores"):
        write(f"  {key}: {printable(json.dumps(sample[key], ensure_ascii=False))}")
