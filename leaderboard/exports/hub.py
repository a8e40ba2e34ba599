"""Scores for a model's repository on the hub, and the registration of a benchmark in its dataset's
repository.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import CommitOperationAdd, EvalResultEntry, HfApi, eval_result_entries_to_yaml
from huggingface_hub.errors import HfHubHTTPError

import medtasks
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.replacement import replaced
from medtasks.metrics.registry import unit_of
from medtasks.scoring.scores import coverage_text

from ..schema.numbers import UNITS, column_key, safe_name
from ..verify.hub_datasets import dataset_of
from .publishable import Headline, headline_columns, no_score, publishable

_HTTP_ERROR: type[Exception] = HfHubHTTPError.__bases__[0]
"""Any error of the hub's HTTP client, which is httpx or, since huggingface_hub 2.4, httpx2."""

FOLDER = ".eval_results"
FRAMEWORK = "lmms-eval"


def hub_files(
    results: Sequence[Path], model: str, *, source_url: str | None = None
) -> tuple[dict[str, bytes], list[str]]:
    """The files for a model's repository by path, and why other scores are not in them.

    The newest run of a score counts. ``source_url`` is the address of the evidence, such as a
    leaderboard.
    """
    headlines, notes = publishable(results, model)
    newest = {(headline.benchmark, headline.task_id): headline for headline in headlines}
    entries: dict[str, list[EvalResultEntry]] = {}
    for headline in newest.values():
        try:
            entry = _entry(headline, source_url)
        except UsageError as error:
            notes.append(f"not exported: {error}")
            continue
        path = f"{FOLDER}/{safe_name(headline.benchmark)}.yaml"
        entries.setdefault(path, []).append(entry)
    notes = list(dict.fromkeys(notes))
    if not entries:
        raise no_score(notes)
    files = {}
    for path, in_file in entries.items():
        files[path] = _yaml(eval_result_entries_to_yaml(in_file))
    return files, notes


def _entry(headline: Headline, source_url: str | None) -> EvalResultEntry:
    """The score as the hub shows it; `UsageError` if its data are not a dataset there."""
    data = headline.run.manifest.data[headline.benchmark]
    dataset, revision = dataset_of(headline.benchmark, data.fingerprint)
    return EvalResultEntry(
        dataset_id=dataset,
        task_id=headline.task_id,
        value=headline.score.value,
        dataset_revision=revision,
        date=headline.run.public.created,
        source_url=source_url,
        source_name=None if source_url is None else f"medtasks {medtasks.__version__}",
        notes=_description(headline),
    )


def _description(headline: Headline) -> str:
    """What the number is: metric with unit, interval, items, coverage, judge and signature."""
    score, column = headline.score, headline.column
    unit = unit_of(column.metric)
    unit_name = "fraction" if unit == "fraction" else UNITS[unit]
    parts = [f"{column.label}: {column.metric}, {unit_name}"]
    if score.interval is not None:
        low, high = score.interval
        method = f"{score.interval_method}, cluster: {load_spec(column.task).benchmark.cluster}"
        parts.append(f"95 % interval {low:.6g} to {high:.6g} ({method})")
    coverage = coverage_text(score.samples, score.answered, score.judged)
    parts.append(coverage or f"{score.samples:,} items")
    judge = headline.run.public.judged_by.get(column.task)
    if judge and score.judged is not None:
        parts.append(f"judged by {judge}")
    verification = headline.run.verification
    if any(verification[task].outcome != "verified" for task in headline.tasks):
        parts.append("questions and references not verified")
    parts.append(f"signature {headline.signature}")
    return "; ".join(parts)


def write_hub_files(files: dict[str, bytes], out: Path) -> list[Path]:
    """Write the files below ``out``; files of the same benchmarks are replaced."""
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        with replaced(out / name) as partial:
            partial.write_bytes(content)
    return [out / name for name in files]


def push(files: dict[str, bytes], model: str) -> str:
    """Open a pull request with the files on the model's repository; return its address."""
    operations = [
        CommitOperationAdd(path_in_repo=name, path_or_fileobj=content)
        for name, content in files.items()
    ]
    try:
        commit = HfApi().create_commit(
            model,
            operations=operations,
            commit_message="Add evaluation results",
            commit_description="Scores with intervals and signatures, computed by medtasks.",
            create_pr=True,
        )
    except (_HTTP_ERROR, ValueError, OSError) as error:
        raise MedtasksError(
            f"{model}: the hub did not take the pull request ({first_line(error)}); "
            "nothing was changed there."
        ) from error
    return str(commit.pr_url)


def benchmark_file(benchmark: str) -> bytes:
    """``eval.yaml``, with which the owner of a dataset registers a benchmark: a task for each
    headline score.
    """
    facts = get_benchmark(benchmark)
    dataset, _ = dataset_of(benchmark)
    columns = headline_columns(benchmark)
    if not columns:
        raise UsageError(
            f"{benchmark}: it has no board layout, so nothing says which scores count; add one."
        )
    source = f"{facts.title} ({facts.publication.paper}), {dataset}"
    content: dict[str, Any] = {
        "name": facts.title,
        "description": f"{source}: scored by medtasks {medtasks.__version__}.",
        "evaluation_framework": FRAMEWORK,
        "tasks": [{"id": column_key(column)} for column in columns],
    }
    return _yaml(content)


def _yaml(content: Any) -> bytes:
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=10_000)
    return text.encode()
