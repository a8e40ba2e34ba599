"""All static checks of one task or group file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medtasks.benchmarks.base import Benchmark
from medtasks.benchmarks.documents import Rows
from medtasks.data.prepared import is_mini
from medtasks.data.store import open_prepared
from medtasks.errors import MedtasksError, NoRowsError, NotPreparedError, first_line
from medtasks.guard import raised_at
from medtasks.harness.names import harness_names
from medtasks.prompts import template_variables
from medtasks.validation.codes import found
from medtasks.validation.documents import check_documents
from medtasks.validation.findings import Finding, Place, Severity
from medtasks.validation.giveaways import check_giveaways
from medtasks.validation.imported import check_functions, rows_of
from medtasks.validation.judged import check_judged
from medtasks.validation.options import options_of
from medtasks.validation.rendered import GIVEN_BY_STAGE_1, check_prompts
from medtasks.validation.report import failed
from medtasks.validation.tally import Tally
from medtasks.validation.task_names import (
    GOLD_FIELDS,
    benchmark_of,
    check_circles,
    check_description,
    check_members,
    check_metadata,
)
from medtasks.validation.task_text import TaskText, read_task
from medtasks.validation.task_yaml import check_keys
from medtasks.validation.templates import Template, check_variables, read_template
from medtasks.validation.windows import WindowCheck, is_window

__all__ = ["TaskChecker", "document_findings"]

_OPTION_FILTERS = frozenset({"OptionLetterFilter", "LastStageOptionFilter"})
_SETTINGS = "lmms_eval_specific_kwargs"


class TaskChecker:
    """Checks files one by one; ``files`` are all that it met, with those that they include.

    ``known`` are all tasks and groups with their files, ``most`` the documents of each task that are looked at,
    ``prepared`` the benchmarks whose windows are checked with their prepared data.
    """

    def __init__(
        self, known: Mapping[str, Path], documents: bool, most: int | None, prepared: Collection[str] = ()
    ) -> None:
        self._known = known
        self._prepared = prepared
        self._documents = documents
        self._most = most
        self._described: set[str] = set()
        self.files: set[Path] = set()

    def findings(self, path: Path) -> Iterator[Finding]:
        """Findings about the task or group file ``path``."""
        task = read_task(path)
        self.files |= {file.resolve() for file in task.files}
        about_keys = list(check_keys(task))
        yield from about_keys
        if task.unreadable or any(one.code == "MT115" for one in about_keys):
            return
        yield from _taken(task)
        yield from check_metadata(task, self._known)
        benchmark = benchmark_of(task)
        if benchmark is not None and benchmark.name not in self._described:
            self._described.add(benchmark.name)
            yield from check_description(task, benchmark)
        if task.kind == "group":
            yield from check_members(task, self._known)
            yield from check_circles(task, self._known)
            return
        yield from check_functions(task)
        if "cluster_key" not in task.content:
            message = "`cluster_key` is missing, so samples count as independent; add it (`cluster` in our documents)."
            yield task.finding("MT142", message, "cluster_key")
        templates = _templates(task)
        for template in templates.values():
            yield from template.findings
        if benchmark is None:
            return
        documents: list[dict[str, Any]] = []
        if self._documents:
            documents, unmade = self._made(task)
            yield from unmade
        about_variables = list(_variables(task, templates, benchmark, documents))
        yield from about_variables
        if documents:
            # a template that names what there is not fails on every document for the same reason
            sound = all(template.sound for template in templates.values()) and not failed(about_variables)
            names = {key: template.name for key, template in templates.items() if sound}
            tally = Tally(task.name, len(documents), task.place("process_docs"))
            windows = benchmark.name not in self._prepared
            yield from document_findings(documents, benchmark, names, tally, windows=windows)
            yield from check_judged(task, documents, benchmark)

    def _made(self, task: TaskText) -> tuple[list[dict[str, Any]], list[Finding]]:
        """The documents of a task, or why there are none."""
        rows = rows_of(task)
        if rows is None:
            return [], [] if _broken(task) else [_said(task, "MT302", "`process_docs` is no medtasks.api.Rows")]
        try:
            made = _documents(rows)
        except NotPreparedError as error:
            return [], [_said(task, "MT300", str(error).rstrip("."))]
        except NoRowsError as error:
            severity: Severity = "error" if is_mini() else "note"  # a release may leave them out
            return [], [found("MT303", task.name, f"{error}.", task.place("process_docs"), "process_docs", severity)]
        except (Exception, SystemExit) as error:  # another package's code may raise anything
            place = raised_at(error.__cause__ or error)
            message = f"{' '.join(first_line(error).split()).rstrip('.')}; fix the loader, or prepare the data again."
            at = Place(Path(place[0]), place[1]) if place and error.__cause__ else task.place("process_docs")
            return [], [found("MT301", task.name, message, at, "process_docs")]
        if self._most is not None and len(made) > self._most:
            text = f"{self._most:,} of {len(made):,} documents were looked at"
            return made[: self._most], [_said(task, "MT324", text)]
        return made, []


def _taken(task: TaskText) -> Iterator[Finding]:
    if task.name in harness_names():
        message = f"lmms-eval has {task.name!r} already, which --tasks runs in place of this {task.kind}; rename it."
        yield task.finding("MT138", message, task.kind)


def _documents(rows: Rows) -> list[dict[str, Any]]:
    made = rows.documents()
    if not all(isinstance(document, dict) for document in made):
        raise MedtasksError("`documents` gives something else than mappings; give one mapping for each question.")
    return made


def _broken(task: TaskText) -> bool:
    return any(one.code in ("MT109", "MT110", "MT120", "MT121") for one in _about_rows(task))


def _about_rows(task: TaskText) -> Iterator[Finding]:
    yield from (one for one in check_keys(task) if one.field == "process_docs")
    yield from (one for one in check_functions(task) if one.field == "process_docs")


def _said(task: TaskText, code: str, text: str) -> Finding:
    fixes = {
        "MT300": "prepare the data to have them checked",
        "MT302": "make it one to have documents checked",
        "MT324": "check all before a release",
    }
    return task.finding(code, f"{text}; {fixes[code]}.", "process_docs")


def _templates(task: TaskText) -> dict[str, Template]:
    """The templates that a task names, by key."""
    return {
        key: read_template(name, task.place(_SETTINGS, key))
        for key in ("template", "stage1_template")
        if isinstance(name := task.block(_SETTINGS).get(key), str) and name.strip()
    }


def _variables(
    task: TaskText, templates: Mapping[str, Template], benchmark: Benchmark, documents: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    fields = {str(field) for document in documents for field in document}
    hidden = (GOLD_FIELDS | set(benchmark.record.model_fields)) - benchmark.visible_fields
    staged = "stage1_template" in templates
    if staged:
        everything = hidden | benchmark.visible_fields  # the first stage is asked before the question is known
        yield from check_variables(templates["stage1_template"], set(), fields, set(), everything)
    template = templates.get("template")
    if template is None:
        return
    said = set(GIVEN_BY_STAGE_1) if staged else set()
    yield from check_variables(template, benchmark.visible_fields, fields, said, hidden)
    if template.trees and _has_options(task, documents) and not {"choices", "options"} & set(template.variables):
        message = f"template {template.name!r} shows neither `choices` nor `options`, expected the options of a "
        yield task.finding("MT207", f"{message}multiple-choice task; show them.", _SETTINGS, "template")


def _has_options(task: TaskText, documents: Sequence[Mapping[str, Any]]) -> bool:
    steps = [
        str(step.get("function")).rpartition(".")[2]
        for _, entry in task.entries("filter_list")
        if isinstance(entry, dict) and isinstance(entry.get("filter"), list)
        for step in entry["filter"]
        if isinstance(step, dict)
    ]
    return bool(_OPTION_FILTERS & set(steps)) or any(any(True for _ in options_of(one)) for one in documents)


def document_findings(
    documents: Sequence[Mapping[str, Any]],
    benchmark: Benchmark,
    templates: Mapping[str, str],
    tally: Tally,
    *,
    windows: bool = True,
) -> Iterator[Finding]:
    """Findings about the documents of one task, and about the prompts that ``templates`` (by key of the task file) make
    of them; without a template prompts are not looked at. ``windows``: whether no frame is later than its window."""
    check_documents(documents, benchmark, tally)
    template = templates.get("template")
    if template is not None:
        check_prompts(documents, template, templates.get("stage1_template"), benchmark.visible_fields, tally)
        check_giveaways(documents, benchmark.visible_fields & template_variables(template), tally)
        if windows:
            _windows(documents, benchmark, template, tally)
    yield from tally.findings()


def _windows(documents: Sequence[Mapping[str, Any]], benchmark: Benchmark, template: str, tally: Tally) -> None:
    """The temporal contract of documents that are windows of a stream."""
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
