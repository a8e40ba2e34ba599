"""Scores for a model's repository on the hub, and the registration of a benchmark in its dataset's repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import medtasks
from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.board_layout import Column
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.files import replaced
from medtasks.core.text import counted, first_names
from medtasks.data.store import open_prepared
from medtasks.metrics.item_metrics import SIGNED
from medtasks.metrics.registry import unit_of
from medtasks.runs.scores import MetricScore, coverage_text
from medtasks.verify.store import user_store

from ..board.numbers import UNITS, column_key, safe_name
from ..board.rows import is_incomplete
from ..intake.collect import collect
from ..rank.comparability import ComparabilityGroup, ComparabilityGroups
from ..verify.scored_run import ScoredRun

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

FOLDER = ".eval_results"
FRAMEWORK = "lmms-eval"


def hub_files(
    results: Sequence[Path], model: str, *, source_url: str | None = None
) -> tuple[dict[str, bytes], list[str]]:
    """The files by path for the repository of ``model`` (owner/name), and why other headline scores are not in them.

    The newest run of a score counts. ``source_url`` is the address of the evidence, such as a leaderboard.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    notes: dict[str, None] = {}
    entries: dict[tuple[str, str], EvalResultEntry] = {}
    for run in _runs_of(results, model):
        groups = ComparabilityGroups([run], demonstration=False)
        for benchmark, column in ((name, column) for name in all_layouts() for column in _headline(name)):
            entry, name = run.entries.get(column.task), column_key(column)
            score = None if entry is None else entry.scores.metrics.get(column.metric)
            if score is None or not score.samples:
                continue
            if reason := next(_reasons(run, column, score, groups.of(column.task, column.metric)), None):
                notes[f"not exported: {name} of {run.public.folder} ({reason})"] = None
                continue
            try:
                dataset, revision = dataset_of(benchmark, run.manifest.data[benchmark].fingerprint)
            except UsageError as error:
                notes[f"not exported: {error}"] = None
                continue
            entries[benchmark, name] = EvalResultEntry(
                dataset_id=dataset,
                task_id=name,
                value=score.value,
                dataset_revision=revision,
                date=run.public.created,
                source_url=source_url,
                source_name=None if source_url is None else f"medtasks {medtasks.__version__}",
                notes=_notes(run, column, score),
            )
    if not entries:
        reasons = first_names(notes, 3, "; ") or "the runs have no headline score"
        raise UsageError(f"no score may be published: {reasons}.")
    files = {}
    for benchmark in dict.fromkeys(benchmark for benchmark, _ in entries):
        listed = eval_result_entries_to_yaml([entry for (of, _), entry in entries.items() if of == benchmark])
        files[f"{FOLDER}/{safe_name(benchmark)}.yaml"] = _yaml(listed)
    return files, list(notes)


def _runs_of(results: Sequence[Path], model: str) -> list[ScoredRun]:
    """The runs of one model, the oldest first."""
    if not all(model.split("/")) or model.count("/") != 1:
        raise UsageError(f"--model {model}: expected owner/name, the model's repository on the hub; fix it.")
    runs, refused = collect(results, user_store())
    if refused:
        raise MedtasksError(f"{refused[0].folder}: {refused[0].reason.rstrip('.')}.")
    if len(models := {run.model: str(run.public.model_facts.get("name", run.model)) for run in runs}) > 1:
        raise UsageError(f"the runs are of several models ({first_names(models.values())}); give those of one.")
    return sorted(runs, key=lambda run: run.public.created)


def _headline(benchmark: str) -> list[Column]:
    """The headline scores of a benchmark over all items; signed ones have no best value and are left out."""
    layout = all_layouts().get(benchmark)
    columns = () if layout is None else layout.headline
    return [one for one in columns if one.breakdown is None and one.metric not in SIGNED]


def _reasons(run: ScoredRun, column: Column, score: MetricScore, group: ComparabilityGroup) -> Iterator[str]:
    """Why the score may not be published."""
    facts = [run.manifest.tasks[name] for name in run.manifest.groups.get(column.task, (column.task,))]
    for _, reasons in group.apart:
        yield from reasons
    if any(task.subset for task in facts):
        yield "only a subset of the clusters was asked"
    if failed := sum(sum(task.failed.values()) for task in facts):
        yield f"{counted(failed, 'request')} without a response"
    if score.value is None:
        yield score.reason or "it has no value"
    elif is_incomplete(score):
        yield "too many items lack a response or a verdict"
    if not group.ranked:
        yield "it is not comparable"


def _notes(run: ScoredRun, column: Column, score: MetricScore) -> str:
    """What the number is: metric with unit, interval, items, coverage, judge and signature."""
    unit = unit_of(column.metric)
    parts = [f"{column.label}: {column.metric}, {'fraction' if unit == 'fraction' else UNITS[unit]}"]
    if score.interval is not None:
        low, high = score.interval
        cluster = load_spec(column.task).benchmark.cluster
        parts.append(f"95 % interval {low:.6g} to {high:.6g} (bootstrap, cluster: {cluster})")
    parts.append(coverage_text(score.samples, score.answered, score.judged) or f"{score.samples:,} items")
    judge = run.public.judged_by.get(column.task) if score.judged is not None else None
    parts += [f"judged by {judge}"] if judge else []
    return "; ".join([*parts, f"signature {run.entries[column.task].signatures[column.metric]}"])


def write_hub_files(files: dict[str, bytes], out: Path) -> list[Path]:
    """Write the files below ``out``; files of the same benchmarks are replaced."""
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        with replaced(out / name) as partial:
            partial.write_bytes(content)
    return [out / name for name in files]


def push(files: dict[str, bytes], model: str) -> str:
    """Open a pull request with the files on the model's repository; return its address."""
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HfHubHTTPError

    http_error: type[Exception] = HfHubHTTPError.__bases__[0]  # of httpx or, since huggingface_hub 2.4, httpx2
    operations = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=content) for name, content in files.items()]
    try:
        done = HfApi().create_commit(
            model,
            operations=operations,
            commit_message="Add evaluation results",
            commit_description="Scores with intervals and signatures, computed by medtasks.",
            create_pr=True,
        )
    except (http_error, ValueError, OSError) as error:
        raise MedtasksError(
            f"{model}: the hub did not take the pull request ({first_line(error)}); nothing was changed there."
        ) from error
    return str(done.pr_url)


def benchmark_file(benchmark: str) -> bytes:
    """``eval.yaml``, with which the owner of a dataset registers a benchmark: a task for each headline score."""
    known = get_benchmark(benchmark)
    dataset, _ = dataset_of(benchmark)
    if not (columns := _headline(benchmark)):
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


def dataset_of(benchmark: str, fingerprint: str = "") -> tuple[str, str | None]:
    """The dataset on the hub that a benchmark is from, and its revision if the data prepared here are those;
    `UsageError` if the benchmark's source is not a dataset on the hub."""
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
