"""Scores for a model's repository on the hub, and the registration of a benchmark in its dataset's repository."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import CommitOperationAdd, EvalResultEntry, HfApi, eval_result_entries_to_yaml
from huggingface_hub.errors import HfHubHTTPError

import medtasks
from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.board_layout import Column
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.cache import cache_root
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.files import replaced
from medtasks.core.text import counted, first_names
from medtasks.data.store import open_prepared
from medtasks.metrics.item_metrics import SIGNED
from medtasks.metrics.registry import unit_of
from medtasks.runs.scores import MetricScore, coverage_text

from ..board.claimed import FOLDER
from ..board.numbers import UNITS, column_key, safe_name
from ..board.rows import is_incomplete
from ..intake.collect import collect
from ..rank.comparability import ComparabilityGroups
from ..verify.scored_run import RunStore, ScoredRun

_HTTP_ERROR: type[Exception] = HfHubHTTPError.__bases__[0]
"""Any error of the hub's HTTP client, which is httpx or, since huggingface_hub 2.4, httpx2."""

FRAMEWORK = "lmms-eval"


def hub_files(
    results: Sequence[Path], model: str, *, source_url: str | None = None
) -> tuple[dict[str, bytes], list[str]]:
    """The files for a model's repository (owner/name) by path, and why other scores are not in them.

    The newest run of a score counts. ``source_url`` is the address of the evidence, such as a leaderboard.

    Raises:
        UsageError: the name is wrong, there are several models, or no score may be published.
        MedtasksError: there is no run, or one cannot be read.
    """
    if not all(model.split("/")) or model.count("/") != 1:
        raise UsageError(f"--model {model}: expected owner/name, the model's repository on the hub; fix it.")
    runs, refused = collect(results, RunStore(cache_root() / "scores"))
    if refused:
        raise MedtasksError(f"{refused[0].folder}: {refused[0].reason.rstrip('.')}.")
    if len(models := {run.model: str(run.public.model_facts.get("name", run.model)) for run in runs}) > 1:
        raise UsageError(f"the runs are of several models ({first_names(models.values())}); give those of one.")
    columns = [(benchmark, column) for benchmark in all_layouts() for column in headline_columns(benchmark)]
    entries: dict[str, dict[str, EvalResultEntry]] = {}
    notes: dict[str, None] = {}
    for run in sorted(runs, key=lambda run: str(run.public.created)):
        groups = ComparabilityGroups([run], demonstration=False)
        for benchmark, column in columns:
            entry = run.entries.get(column.task)
            score = None if entry is None else entry.scores.metrics.get(column.metric)
            if score is None or not score.samples:
                continue
            if why := _why_not(run, column, score, groups):
                notes[f"not exported: {column_key(column)} of {run.public.folder} ({why})"] = None
                continue
            try:
                made = _entry(run, benchmark, column, score, source_url)
            except UsageError as error:
                notes[f"not exported: {error}"] = None
            else:
                entries.setdefault(f"{FOLDER}/{safe_name(benchmark)}.yaml", {})[column_key(column)] = made
    if not entries:
        reasons = first_names(notes, 3, "; ") or "the runs have no headline score"
        raise UsageError(f"no score may be published: {reasons}.")
    files = {name: _yaml(eval_result_entries_to_yaml([*made.values()])) for name, made in entries.items()}
    return files, list(notes)


def headline_columns(benchmark: str) -> list[Column]:
    """The headline scores of a benchmark over all items; signed ones have no best value and are left out."""
    layout = all_layouts().get(benchmark)
    columns = () if layout is None else layout.headline
    return [one for one in columns if one.breakdown is None and one.metric not in SIGNED]


def _why_not(run: ScoredRun, column: Column, score: MetricScore, groups: ComparabilityGroups) -> str:
    """The first reason not to publish a score; empty if there is none."""
    group = groups.of(column.task, column.metric)
    tasks = [run.manifest.tasks[name] for name in run.manifest.groups.get(column.task, (column.task,))]
    reasons = [reason for several in group.apart.values() for reason in several]
    if any(facts.subset for facts in tasks):
        reasons.append("only a subset of the clusters was asked")
    if failed := sum(sum(facts.failed.values()) for facts in tasks):
        reasons.append(f"{counted(failed, 'request')} without a response")
    if score.value is None:
        reasons.append(score.reason or "it has no value")
    elif is_incomplete(score):
        reasons.append("too many items lack a response or a verdict")
    return next(iter(reasons), "" if group.ranked else "it is not comparable")


def _entry(
    run: ScoredRun, benchmark: str, column: Column, score: MetricScore, source_url: str | None
) -> EvalResultEntry:
    """The score as the hub has it; its notes have metric with unit, interval, items, coverage, judge and signature."""
    dataset, revision = dataset_of(benchmark, run.manifest.data[benchmark].fingerprint)
    unit = unit_of(column.metric)
    notes = [f"{column.label}: {column.metric}, {'fraction' if unit == 'fraction' else UNITS[unit]}"]
    if score.interval is not None:
        low, high = score.interval
        cluster = load_spec(column.task).benchmark.cluster
        notes.append(f"95 % interval {low:.6g} to {high:.6g} (bootstrap, cluster: {cluster})")
    notes.append(coverage_text(score.samples, score.answered, score.judged) or f"{score.samples:,} items")
    if score.judged is not None and (judge := run.public.judged_by.get(column.task)):
        notes.append(f"judged by {judge}")
    notes.append(f"signature {run.entries[column.task].signatures[column.metric]}")
    return EvalResultEntry(
        dataset_id=dataset,
        task_id=column_key(column),
        value=score.value,
        dataset_revision=revision,
        date=run.public.created,
        source_url=source_url,
        source_name=None if source_url is None else f"medtasks {medtasks.__version__}",
        notes="; ".join(notes),
    )


def dataset_of(benchmark: str, fingerprint: str = "") -> tuple[str, str | None]:
    """The dataset on the hub that a benchmark is from, and its revision if the data prepared here are those.

    Raises:
        UsageError: the benchmark's source is not a dataset on the hub.
    """
    known = get_benchmark(benchmark)
    name = known.hub[0] if known.hub else known.source.split(",")[0]
    if name.count("/") != 1 or " " in name:
        raise UsageError(f"{benchmark}: its source is not a dataset on the hub ({name}), so no page could show scores.")
    try:
        manifest = open_prepared(benchmark).manifest
    except MedtasksError:  # the revision is then unknown
        return name, None
    same = manifest.fingerprint == fingerprint and manifest.source.kind == "hub"
    return name, manifest.source.revision if same else None


def write_hub_files(files: dict[str, bytes], out: Path) -> list[Path]:
    """Write the files below ``out``; files of the same benchmarks are replaced."""
    written = []
    for name, content in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as partial:
            partial.write_bytes(content)
        written.append(path)
    return written


def push(files: dict[str, bytes], model: str) -> str:
    """Open a pull request with the files on the model's repository; return its address.

    Raises:
        MedtasksError: the hub refuses it, or cannot be reached.
    """
    operations = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=content) for name, content in files.items()]
    try:
        done = HfApi().create_commit(
            model,
            operations=operations,
            commit_message="Add evaluation results",
            commit_description="Scores with intervals and signatures, computed by medtasks.",
            create_pr=True,
        )
    except (_HTTP_ERROR, ValueError, OSError) as error:
        raise MedtasksError(
            f"{model}: the hub did not take the pull request ({first_line(error)}); nothing was changed there."
        ) from error
    return str(done.pr_url)


def benchmark_file(benchmark: str) -> bytes:
    """``eval.yaml``, with which the owner of a dataset registers a benchmark: a task for each headline score.

    Raises:
        UsageError: there is no such benchmark, it has no headline score, or its source is not on the hub.
    """
    known = get_benchmark(benchmark)
    dataset, _ = dataset_of(benchmark)
    if not (columns := headline_columns(benchmark)):
        raise UsageError(f"{benchmark}: it has no board layout, so nothing says which scores count; add one.")
    content: dict[str, Any] = {
        "name": known.title,
        "description": f"{known.title} ({known.paper}), {dataset}: scored by medtasks {medtasks.__version__}.",
        "evaluation_framework": FRAMEWORK,
        "tasks": [{"id": column_key(column)} for column in columns],
    }
    return _yaml(content)


def _yaml(content: Any) -> bytes:
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=10_000)
    return text.encode()
