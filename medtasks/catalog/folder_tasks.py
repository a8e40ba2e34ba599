"""The task files that follow from a ``benchmark.yaml``, and the package that they form.

They are written into the cache, in a directory named by a hash of their texts. Equal folders
therefore share their task files, and a folder may be read-only.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from medtasks.catalog.benchmark_file import BenchmarkFile
from medtasks.catalog.benchmark_folder import FILE_NAME, BenchmarkFolder
from medtasks.catalog.task_package import TaskPackage
from medtasks.core.cache import writable_cache
from medtasks.core.errors import UsageError, reading
from medtasks.core.files import short_hash
from medtasks.core.replacement import replace_directory, temporary_beside

CODE = "medtasks.benchmarks.folder_benchmark"
"""The module of the functions that these task files name."""

ROWS = "rows_of_"
"""Prefix of the rows of a benchmark among the names of `CODE`."""

PLACEHOLDER = '{"placeholder": true}\n'
"""The content of the dataset that ``process_docs`` replaces."""

_BASE = """\
dataset_path: json
dataset_kwargs:
  data_files:
    test: ../placeholder.jsonl # process_docs replaces it by the prepared data
test_split: test
output_type: generate_until
process_docs: !function {code}.{rows}{name}
doc_to_visual: !function medtasks.benchmarks.documents.doc_to_visual
doc_to_text: !function medtasks.benchmarks.documents.doc_to_text
doc_to_messages: !function medtasks.benchmarks.documents.doc_to_messages
doc_to_target: target
process_results: !function {code}.{scoring}
generation_kwargs:
  max_new_tokens: 4096
  temperature: 0
  until: []
filter_list:
  - name: medtasks
    filter:
      - function: !function medtasks.answers.{filter}
metric_list:
{metrics}
cluster_key: cluster
reasoning_tags: none # the filters remove thinking; the harness would hide the raw response
lmms_eval_specific_kwargs:
  template: {template}
"""

_METRIC = """\
  - metric: {name}
    aggregation: !function medtasks.benchmarks.aggregations.{name}
    higher_is_better: true"""

_VARIANT = """\
include: {name}.yaml
task: {task}
process_docs: !function medtasks.benchmarks.variants.{task}
metadata:
  version: {version}
  benchmark: {name}
  title: {title}
  compare_with: {name}
  {setting}
"""


@dataclass(frozen=True)
class FolderScoring:
    """How one kind of answer is scored.

    ``function`` is a function of `CODE`, and ``confidence`` the task files' setting of this name.
    """

    function: str
    filter: str
    metrics: tuple[str, ...]
    confidence: str = ""


CHOICE_METRICS = ("accuracy",)
TEXT_METRICS = ("exact_match", "rougeL", "chrf")
OTHER_TEXT_METRICS = ("exact_match", "chrf")
"""For languages other than English, because ROUGE counts only the letters a to z."""

_OPTIONS = FolderScoring("score_choices", "OptionLetterFilter", CHOICE_METRICS, "{of: option}")
_LABELS = FolderScoring("score_choices", "ClosedAnswerFilter", CHOICE_METRICS, "{of: answer}")
_TEXTS = FolderScoring("score_texts", "AnswerTextFilter", TEXT_METRICS)
_OTHER_TEXTS = FolderScoring("score_other_texts", "AnswerTextFilter", OTHER_TEXT_METRICS)


def folder_scoring(file: BenchmarkFile) -> FolderScoring:
    """How the answers of a benchmark are scored."""
    if file.answers == "options":
        return _OPTIONS
    if file.answers in ("yes/no", "closed"):
        return _LABELS
    return _TEXTS if file.language.partition("-")[0] == "en" else _OTHER_TEXTS


def task_names(file: BenchmarkFile) -> tuple[str, ...]:
    """The names of a benchmark's tasks: the plain one, and those that ask a question repeatedly."""
    names = [file.name]
    if file.answers == "options":
        names.append(f"{file.name}_circular")
    if len(file.prompt) > 1:
        names.append(f"{file.name}_prompts")
    return tuple(names)


def task_texts(folder: BenchmarkFolder) -> dict[str, str]:
    """The text of each task file by the name of its task."""
    plain_task, *variants = task_names(folder.file)
    texts = {plain_task: _plain_text(folder)}
    for task in variants:
        texts[task] = _variant_text(folder, task)
    return texts


def _variant_text(folder: BenchmarkFolder, task: str) -> str:
    """The text of the file of a task that asks each question repeatedly."""
    file = folder.file
    if task.endswith("_circular"):
        variation = "options rotated"
        setting = "options: {order: circular}"
    else:
        variation = "paraphrased prompts"
        setting = f"prompts: {json.dumps(folder.templates)}"
    return _VARIANT.format(
        name=file.name,
        task=task,
        version=file.version,
        title=_quoted(f"{file.title}, {variation}"),
        setting=setting,
    )


def _plain_text(folder: BenchmarkFolder) -> str:
    """The task file that asks each question once."""
    file = folder.file
    scoring = folder_scoring(file)
    lines = [
        f"task: {file.name}",
        "metadata:",
        f"  version: {file.version}",
        f"  benchmark: {file.name}",
        f"  title: {_quoted(file.title)}",
    ]
    if file.breakdowns:
        lines.append(f"  breakdowns: {_quoted(file.breakdowns)}")
    if scoring.confidence:
        lines.append(f"  confidence: {scoring.confidence}")
    if file.rubric is not None:
        lines.append(f"  rubrics: {_quoted(list(folder.rubrics))}")
    base = _BASE.format(
        code=CODE,
        rows=ROWS,
        name=file.name,
        scoring=scoring.function,
        filter=scoring.filter,
        metrics="\n".join(_METRIC.format(name=metric) for metric in scoring.metrics),
        template=_quoted(folder.templates[0]),
    )
    return "\n".join(lines) + "\n" + base


def _quoted(value: object) -> str:
    """A text, or a list of texts, as YAML."""
    return json.dumps(value, ensure_ascii=False)


def folder_package(folder: BenchmarkFolder) -> TaskPackage:
    """The package of a folder; its task files are written unless they exist.

    Raises:
        UsageError: they cannot be written.
    """
    texts = task_texts(folder)
    name = f"{folder.name}-{short_hash(json.dumps(texts, sort_keys=True))}"
    generated = writable_cache() / "folders" / name
    tasks = generated / "tasks"
    if not _are_written(texts, tasks / folder.name):
        _write(texts, generated, folder)
    return TaskPackage(
        distribution=folder.name,
        version=_content_hash(folder),
        module=folder.name,
        tasks=tasks,
        templates=generated / "templates",
        rubrics=generated / "rubrics",
        folder=folder,
    )


def _are_written(texts: dict[str, str], directory: Path) -> bool:
    """Whether ``directory`` has the task files with exactly these texts."""
    try:
        for name, text in texts.items():
            if (directory / f"{name}.yaml").read_text(encoding="utf-8") != text:
                return False
    except (OSError, UnicodeDecodeError):
        return False
    return True


def _write(texts: dict[str, str], target: Path, folder: BenchmarkFolder) -> None:
    """Write the task files; several processes may do so at once, since they write the same."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(target) as work:
            directory = work / "tasks" / folder.name
            directory.mkdir(parents=True)
            (work / "tasks" / "placeholder.jsonl").write_text(PLACEHOLDER, encoding="utf-8")
            for name, text in texts.items():
                (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
            replace_directory(target, work)
    except OSError as error:
        if _are_written(texts, target / "tasks" / folder.name):
            return  # another process was first
        raise UsageError(
            f"{target}: the task files of {folder.name} cannot be written ({error.strerror}); "
            "free some space, or set MEDTASKS_CACHE to another directory."
        ) from error


def _content_hash(folder: BenchmarkFolder) -> str:
    """The first 8 hex digits of the SHA-256 of ``benchmark.yaml``, templates and rubric."""
    digest = hashlib.sha256()
    paths = [folder.path / FILE_NAME]
    for directory in folder.template_directories:
        paths += sorted(directory.glob("*.j2"))
    paths += folder.rubrics.values()
    for path in paths:
        with reading(path, "give access to it", UsageError):
            digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:8]
