"""The static half of ``medtasks validate``: task files, templates and documents, without a model or scores."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medtasks.benchmarks.base import Benchmark
from medtasks.benchmarks.declared_errors import gold_text
from medtasks.benchmarks.stages import WITHHELD
from medtasks.catalog import raised_at, task_files
from medtasks.data.preparation import Progress
from medtasks.data.prepared import is_mini
from medtasks.data.store import open_prepared
from medtasks.errors import MedtasksError, NoRowsError, NotPreparedError, UsageError, first_line
from medtasks.harness.installed import harness_names
from medtasks.metrics.closed_answer import normalise
from medtasks.metrics.registry import get_metric
from medtasks.prompts import template_variables
from medtasks.registry import all_benchmarks
from medtasks.schema import shown, suggestion
from medtasks.task_model import GroupFile, TaskFile, check_task
from medtasks.task_source import Place, TaskSource, read_task
from medtasks.validation.documents import check_documents, options_of
from medtasks.validation.findings import Finding, Severity, Tally, failed, found, in_task, of_defects
from medtasks.validation.names import (
    GOLD_FIELDS,
    check_description,
    check_functions,
    check_members,
    check_metadata,
    everything_in,
    task_rows,
)
from medtasks.validation.prepared import WindowCheck, is_window
from medtasks.validation.rendered import GIVEN_BY_STAGE_1, check_giveaways, check_judged, check_prompts
from medtasks.validation.templates import Template, check_variables, read_template

_KEY_OF_A_TASK_FILE = re.compile(rb"^(?:task|group|include|dataset_path|metric_list)[ \t]*:", re.MULTILINE)


def validate_tasks(
    names: Sequence[str] | None = None,
    paths: Sequence[Path] = (),
    *,
    documents: bool = True,
    prepared: Collection[str] = (),
    progress: Progress | None = None,
) -> list[Finding]:
    """Findings about tasks and groups: their YAML, templates and documents.

    Args:
        names: tasks and groups (a group includes its members); all if there are no ``paths`` either.
        paths: task files, or directories of them; of a package's directory, only its ``tasks`` directories.
        documents: whether to check documents and render prompts, if data are prepared.
        prepared: benchmarks whose windows are left to `validate_prepared`.

    Raises:
        UsageError: a name is unknown, or there is no task file at a path.
    """
    registered = {name: path for name, _, path in task_files()}
    given = [file for path in paths for file in _files_at(path)]
    known = {**registered, **{path.stem: path for path in given if not _is_shared(path)}}
    chosen = dict.fromkeys(given)
    if names or not paths:
        chosen |= dict.fromkeys(_files_of(names, registered))
    findings = list(_layout(given))
    checker = TaskChecker(known, documents, prepared)
    for number, path in enumerate(chosen, start=1):
        if not _is_shared(path):
            findings += checker.findings(path)
        if progress is not None:
            progress(number, len(chosen))
    findings += _shared_parts(given, checker.files)
    # a defect of a shared part is reported once, however many tasks include it
    once = {(one.code, one.file, one.line, one.field, one.message): one for one in reversed(findings)}
    return sorted(once.values(), key=lambda one: (one.file, one.line or 0, one.code, one.field, one.message))


def _is_shared(path: Path) -> bool:
    return path.name.startswith("_")


def _files_at(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"{path}: no such file or directory; name a task, a task file or a directory of task files.")
    below = [one for one in sorted(path.rglob("*.y*ml")) if one.suffix in (".yaml", ".yml") and one.is_file()]
    parts = [(one, one.relative_to(path).parts[:-1]) for one in below]
    parts = [(one, folders) for one, folders in parts if not any(folder.startswith(".") for folder in folders)]
    if path.resolve().name == "tasks":
        files = [one for one, _ in parts]
    elif any("tasks" in folders for _, folders in parts):
        files = [one for one, folders in parts if "tasks" in folders]
    else:
        files = [one for one, folders in parts if "rubrics" not in folders and _is_task_file(one)]
    if not files:
        raise UsageError(f"{path}: contains no task file; name the directory of the benchmark's YAML files.")
    return files


def _is_task_file(path: Path) -> bool:
    try:
        return path.parent.name == "groups" or bool(_KEY_OF_A_TASK_FILE.search(path.read_bytes()))
    except OSError:
        return True  # the check of the file reports what is wrong with it


def _files_of(names: Sequence[str] | None, registered: Mapping[str, Path]) -> Iterator[Path]:
    if not names:
        yield from registered.values()
        return
    for name in names:
        if name not in registered:
            near = suggestion(name, registered)
            raise UsageError(f"task {shown(name)} is unknown{near}; `medtasks list` shows what there is.")
    yield from (registered[name] for name in everything_in(names, registered) if name in registered)


def _layout(given: Sequence[Path]) -> Iterator[Finding]:
    first: dict[str, Path] = {}
    for path in given:
        if path.suffix != ".yaml":
            message = "the file is never read, expected the suffix .yaml; rename it."
            yield found("MT116", path.stem, message, Place(path, 1))
        elif not _is_shared(path) and first.setdefault(path.stem, path) != path:
            message = f"{first[path.stem]} has the same name, expected one file per task; rename one of them."
            yield found("MT119", path.stem, message, Place(path, 1))


def _shared_parts(given: Sequence[Path], included: set[Path]) -> Iterator[Finding]:
    for path in given:
        if not _is_shared(path) or path.resolve() in included:
            continue
        task = read_task(path)
        yield from of_defects(task, task.defects)
        message = "no task file that was checked includes this shared part; include or remove it."
        yield found("MT118", path.stem, message, Place(path, 1))


_OPTION_FILTERS = frozenset({"OptionLetterFilter", "LastStageOptionFilter"})
_SETTINGS = "lmms_eval_specific_kwargs"


class TaskChecker:
    """Checks files one by one; ``files`` are all files read so far, including included ones.

    ``known`` are all tasks and groups with their files; windows of the benchmarks in ``prepared`` are left to
    `validate_prepared`.
    """

    def __init__(self, known: Mapping[str, Path], documents: bool, prepared: Collection[str] = ()) -> None:
        self._known = known
        self._prepared = prepared
        self._documents = documents
        self._described: set[str] = set()
        self.files: set[Path] = set()

    def findings(self, path: Path) -> Iterator[Finding]:
        """Findings about the task or group file ``path``; the names in it are checked once the schema accepts it."""
        task = read_task(path)
        self.files |= {file.resolve() for file in task.files}
        file, defects = check_task(task)
        yield from of_defects(task, defects)
        if task.name in harness_names():
            message = f"lmms-eval has {task.name!r} already, which --tasks runs instead of this {task.kind}; rename it."
            yield in_task(task, "MT138", message, task.kind)
        if file is None:
            return
        yield from check_metadata(task, file, self._known)
        benchmark = all_benchmarks().get(file.metadata.benchmark)
        if benchmark is not None and benchmark.name not in self._described:
            self._described.add(benchmark.name)
            yield from check_description(task, benchmark)
        if isinstance(file, GroupFile):
            yield from check_members(task, file, self._known)
        else:
            yield from self._task(task, file, benchmark)

    def _task(self, task: TaskSource, file: TaskFile, benchmark: Benchmark | None) -> Iterator[Finding]:
        about_functions = list(check_functions(task, file))
        yield from about_functions
        if file.cluster_key is None:
            message = "`cluster_key` is missing, so samples count as independent; add it (`cluster` in our documents)."
            yield in_task(task, "MT142", message, "cluster_key")
        settings = file.lmms_eval_specific_kwargs
        templates = {
            key: read_template(name, task.place(_SETTINGS, key))
            for key in ("template", "stage1_template", "system_template")
            if (name := getattr(settings, key)) is not None
        }
        further = [
            read_template(name, task.place("metadata", "prompts", number))
            for number, name in enumerate(file.metadata.prompts[1:], start=1)
        ]
        for template in (*templates.values(), *further):
            yield from template.findings
        if benchmark is None:
            return
        documents: list[dict[str, Any]] = []
        yield from _confidence(task, file)
        if self._documents and not any(one.field == "process_docs" for one in about_functions):
            documents, unmade = self._task_documents(task, file)
            yield from unmade
        asked = [templates, *({**templates, "template": one} for one in further)]
        about_variables = [one for each in asked for one in _variables(task, file, each, benchmark, documents)]
        yield from about_variables
        if documents:
            key = file.cluster_key
            if key is not None and not any(key in document for document in documents):
                message = f"no document has `{key}`, so samples count as independent; name a field that they have."
                yield in_task(task, "MT142", message, "cluster_key")
            # a template with an unknown variable fails on every document for the same reason
            sound = all(one.sound for one in (*templates.values(), *further)) and not failed(about_variables)
            names = {key: template.name for key, template in templates.items() if sound}
            tally = Tally(task.name, len(documents), task.place("process_docs"))
            windows = benchmark.name not in self._prepared
            yield from document_findings(documents, benchmark, names, tally, windows=windows)
            yield from check_judged(task, file, documents, benchmark)
            yield from _confident_options(task, file, documents)
            yield from _error_texts(task, file, documents)

    def _task_documents(self, task: TaskSource, file: TaskFile) -> tuple[list[dict[str, Any]], list[Finding]]:
        """The documents of a task, or why there are none."""
        rows = task_rows(file)
        if rows is None:
            message = "`process_docs` is not a medtasks.api.Rows; make it one to have documents checked."
            return [], [in_task(task, "MT302", message, "process_docs")]
        place = task.place("process_docs")
        varied = file.metadata.varied
        try:
            made = rows.documents()
            if not all(isinstance(document, dict) for document in made):
                raise MedtasksError("`documents` must return mappings; return one per question.")
        except NotPreparedError as error:
            message = f"{str(error).rstrip('.')}; prepare the data to have them checked."
            return [], [in_task(task, "MT300", message, "process_docs")]
        except NoRowsError as error:  # a release may leave them out, miniature data must not
            left_out = ", ".join(f"{count:,} {reason}" for reason, count in rows.excluded().items())
            if varied is not None and left_out:
                why = "has options to rotate" if varied == "options" else "has one answer that can be compared"
                message = f"no row of {file.metadata.compare_with} {why} ({left_out}); remove `{varied}`."
                return [], [in_task(task, "MT143", message, "metadata", varied)]
            severity: Severity | None = None if is_mini() else "note"
            return [], [found("MT303", task.name, f"{error}.", place, "process_docs", severity)]
        except (Exception, SystemExit) as error:  # another package's code may raise anything
            if varied is not None and isinstance(error, UsageError):
                return [], [in_task(task, "MT143", str(error), "metadata", varied)]
            raised = raised_at(error.__cause__ or error)
            message = f"{' '.join(first_line(error).split()).rstrip('.')}; fix the loader, or prepare the data again."
            at = Place(Path(raised[0]), raised[1]) if raised and error.__cause__ else place
            return [], [found("MT301", task.name, message, at, "process_docs")]
        return made, []


def _confidence(task: TaskSource, file: TaskFile) -> Iterator[Finding]:
    """Whether the metric that ``metadata.confidence`` names can say that an answer is right."""
    declared = file.metadata.confidence
    names = [entry.metric for entry in file.metric_list]
    if declared is None:
        return
    problem = "" if declared.correct in names else f"not in metric_list ({', '.join(names)})"
    with contextlib.suppress(MedtasksError):  # an unknown metric is a finding of its own
        problem = problem or ("" if get_metric(declared.correct).width == 2 else "not 0 or 1 for an answer")
    if problem:
        message = f"`confidence.correct` is {shown(declared.correct)}, which is {problem}; name a metric that is."
        yield in_task(task, "MT144", message, "metadata", "confidence")


def _confident_options(task: TaskSource, file: TaskFile, documents: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    declared = file.metadata.confidence
    if declared is not None and declared.of == "option" and not any(one.get("choices") for one in documents):
        message = "no document has `choices`, whose letters would have probabilities; write of: answer, or remove it."
        yield in_task(task, "MT144", message, "metadata", "confidence")


def _error_texts(task: TaskSource, file: TaskFile, documents: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Texts in ``metadata.errors`` that are no document's gold answer, or no option of any."""
    gold = {normalise(text): text for document in documents if (text := gold_text(document))}
    options = {normalise(text): text for document in documents for _, text in options_of(document)}
    for number, kind in enumerate(file.metadata.errors):
        for key, known, what in (("gold", gold, "gold answer"), ("answer", options, "option")):
            for field in (key, f"{key}_other_than"):
                for text in getattr(kind, field):
                    if known and normalise(text) not in known:
                        near = suggestion(text, known.values())
                        message = (
                            f"`errors[{number}].{field}` has {shown(text)}, which is the {what} of no document{near}"
                        )
                        yield in_task(task, "MT146", f"{message}; correct it.", "metadata", "errors", number, field)


def _variables(
    task: TaskSource,
    file: TaskFile,
    templates: Mapping[str, Template],
    benchmark: Benchmark,
    documents: Sequence[Mapping[str, Any]],
) -> Iterator[Finding]:
    fields = {str(field) for document in documents for field in document}
    hidden = (GOLD_FIELDS | set(benchmark.record.model_fields)) - benchmark.visible_fields
    staged = "stage1_template" in templates
    if staged:
        may_show = benchmark.visible_fields - WITHHELD  # it may do without all of them
        yield from check_variables(templates["stage1_template"], set(), fields, may_show, hidden | WITHHELD)
    if "system_template" in templates:  # the same text for every document
        shown_elsewhere = hidden | benchmark.visible_fields
        yield from check_variables(templates["system_template"], set(), fields, set(), shown_elsewhere)
    template = templates["template"]
    given = set(GIVEN_BY_STAGE_1) if staged else set()
    yield from check_variables(template, benchmark.visible_fields, fields, given, hidden)
    filters = {step.function.rpartition(".")[2] for pipeline in file.filter_list for step in pipeline.filter}
    has_options = bool(_OPTION_FILTERS & filters) or any(map(options_of, documents))
    if template.trees and has_options and not {"choices", "options"} & set(template.variables):
        message = f"template {template.name!r} shows neither `choices` nor `options`, expected the options of a "
        yield in_task(task, "MT207", f"{message}multiple-choice task; show them.", _SETTINGS, "template")


def document_findings(
    documents: Sequence[Mapping[str, Any]],
    benchmark: Benchmark,
    templates: Mapping[str, str],
    tally: Tally,
    *,
    windows: bool = True,
) -> Iterator[Finding]:
    """Findings about one task's documents and, if ``templates`` (by key of the task file) has its template, about their
    prompts. ``windows``: also check that no frame is later than its window."""
    check_documents(documents, benchmark, tally)
    template = templates.get("template")
    if template is not None:
        check_prompts(documents, template, templates.get("stage1_template"), benchmark.visible_fields, tally)
        used = {str(document.get("prompt_template", template)) for document in documents}
        variables = {variable for name in used for variable in template_variables(name)}
        check_giveaways(documents, benchmark.visible_fields & variables, tally)
        if windows:
            _windows(documents, benchmark, template, tally)
    yield from tally.findings()


def _windows(documents: Sequence[Mapping[str, Any]], benchmark: Benchmark, template: str, tally: Tally) -> None:
    streams = [document for document in documents if is_window(document)]
    if not streams:
        return
    check = WindowCheck(open_prepared(benchmark.name), template, decode=False)
    for document in streams:
        try:
            for one in check(document):
                tally.add(one.code, document, one.message, "see the protocol card")
        except Exception as error:
            text = f"its window cannot be read ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
            tally.add("MT330", document, text, "fix the record")
