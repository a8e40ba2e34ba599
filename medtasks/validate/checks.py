"""The checks of one file, or of one benchmark's prepared data, each applied to what the previous
ones accept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import task_files
from medtasks.catalog.guest_code import place_of, raised_at
from medtasks.catalog.prompts import template_variables
from medtasks.catalog.registry import all_benchmarks
from medtasks.catalog.spec import load_spec
from medtasks.catalog.task_model import GroupFile, TaskFile
from medtasks.core.errors import (
    MedtasksError,
    NoRowsError,
    NotPreparedError,
    UsageError,
    first_line,
)
from medtasks.core.findings import Finding, Place, failed, finding
from medtasks.data.prepared import is_mini
from medtasks.data.store import open_prepared
from medtasks.harness.task_names import harness_names
from medtasks.validate.behaviour import check_behaviour
from medtasks.validate.documents import check_documents
from medtasks.validate.functions import check_functions, reads_letters, task_rows
from medtasks.validate.leaks import check_giveaways
from medtasks.validate.prepared_data import MediaCheck, check_data
from medtasks.validate.prompts import PromptCheck, check_judged
from medtasks.validate.report import Documents, TaskReport
from medtasks.validate.settings import check_settings
from medtasks.validate.task_files import FileIndex
from medtasks.validate.tasks import check_description, check_members, check_metadata
from medtasks.validate.templates import check_templates


class Checks:
    """Checks files and prepared data, and remembers which data cannot be used or were checked.

    ``quick`` leaves out what takes long: see :func:`medtasks.validate.run.validate`.
    """

    def __init__(self, index: FileIndex, quick: bool) -> None:
        self._index, self._quick = index, quick
        self._described: set[str] = set()
        self._unusable: set[str] = set()
        self._media: dict[str, MediaCheck] = {}

    def check_prepared(self, name: str) -> list[Finding]:
        """Findings about the prepared data of a benchmark; with an error, no task's documents are
        checked.
        """
        try:
            prepared = open_prepared(name)
            findings = check_data(prepared, not self._quick)
            self._media[name] = MediaCheck(prepared, not self._quick)
        except NotPreparedError:
            raise
        except (MedtasksError, OSError) as error:
            place = _source_place(all_benchmarks()[name], error)
            findings = [finding("MT401", name, str(error), place)]
        if failed(findings):
            self._unusable.add(name)
        return findings

    def check_file(self, path: Path) -> list[Finding]:
        """Findings about a task or group file; the names in it are checked once the schema accepts
        it.
        """
        source = self._index.read(path)
        report = TaskReport(source)
        report.add(*source.defects)
        if source.name in harness_names():
            has = f"lmms-eval has {source.name!r} already"
            message = f"{has}, which --tasks runs instead of this {source.kind}"
            report.on_key("MT138", message, source.kind)
        if source.file is None:
            return report.findings()
        check_metadata(source.file, self._index.paths, report)
        benchmark = all_benchmarks().get(source.file.metadata.benchmark)
        if benchmark is not None and benchmark.name not in self._described:
            self._described.add(benchmark.name)
            check_description(benchmark, report)
        if isinstance(source.file, GroupFile):
            check_members(source.file, self._index, report)
            return report.findings()
        return self._check_task(path, source.file, benchmark, report)

    def _check_task(
        self, path: Path, file: TaskFile, benchmark: Benchmark | None, report: TaskReport
    ) -> list[Finding]:
        """Findings about a task: those in ``report``, and those about its functions, documents,
        prompts and scores.
        """
        check_functions(file, report)
        documents: Documents = []
        has_rows = not any(finding.field == "process_docs" for finding in report.findings())
        if benchmark is not None and has_rows:
            documents = self._documents(file, benchmark, report)
        check_settings(file, documents, report)
        templates = check_templates(file, benchmark, report)
        if benchmark is None or not documents:
            return report.findings()
        report.document_count = len(documents)
        check_rows(
            documents,
            benchmark,
            templates,
            report,
            self._media_check(benchmark),
            by_letter=reads_letters(file),
        )
        check_judged(file, documents, benchmark, report)
        findings = report.findings()
        # a fault of the file or of its documents changes scores, too
        is_sound = not failed([finding for finding in findings if finding.code[2] in "13"])
        if is_sound and not self._quick and _is_installed(path, file.task):
            findings += check_behaviour(load_spec(file.task), benchmark, documents)
        return findings

    def _media_check(self, benchmark: Benchmark) -> MediaCheck:
        """The check of a benchmark's media, which are decoded only if its data are checked."""
        if benchmark.name not in self._media:
            prepared = open_prepared(benchmark.name)
            self._media[benchmark.name] = MediaCheck(prepared, decode=False)
        return self._media[benchmark.name]

    def _documents(self, file: TaskFile, benchmark: Benchmark, report: TaskReport) -> Documents:
        """The documents of a task; none, with the reason reported, if they cannot be made."""
        rows = task_rows(file)
        varied = file.metadata.varied
        if rows is None:
            # of a variant, the task whose questions are asked has the error
            if varied is None:
                message = "`process_docs` is not a medtasks.api.Rows"
                report.on_key("MT302", message, "process_docs")
            return []
        if benchmark.name in self._unusable or not self._opened(benchmark, report):
            return []
        try:
            return rows.documents()
        except NotPreparedError as error:
            report.on_key("MT300", str(error), "process_docs")
        except NoRowsError as error:
            if varied is not None and rows.excluded():
                message = f"{str(error).partition(';')[0]}; remove `{varied}`"
                report.on_key("MT143", message, "metadata", varied)
            else:  # a release may leave them out, miniature data must not
                severity = None if is_mini() else "note"
                report.on_key("MT303", str(error), "process_docs", severity=severity)
        except (Exception, SystemExit) as error:  # another package's code may raise anything
            _report_failure(error, varied, report)
        return []

    def _opened(self, benchmark: Benchmark, report: TaskReport) -> bool:
        """Open the prepared data of a benchmark; report once why they cannot be opened.

        Returns:
            Whether they were opened.
        """
        try:
            open_prepared(benchmark.name)
            return True
        except NotPreparedError as error:
            report.on_key("MT300", str(error), "process_docs")
        except (Exception, SystemExit) as error:  # another package's code may raise anything
            message = f"the data of {benchmark.name} cannot be made: {first_line(error)}"
            report.on_task("MT301", message, place=_source_place(benchmark, error))
        self._unusable.add(benchmark.name)
        return False


def _is_installed(path: Path, task: str) -> bool:
    """Whether a file is the one that runs use for its task."""
    installed = task_files().get(task)
    return installed is not None and installed.resolve() == path.resolve()


def _report_failure(error: BaseException, varied: str | None, report: TaskReport) -> None:
    """Report that the documents of a task, or of its variant ``varied``, cannot be made."""
    if varied is not None and isinstance(error, UsageError):
        report.on_key("MT143", str(error), "metadata", varied)
        return
    place = raised_at(error.__cause__ or error)
    report.on_task("MT301", first_line(error), "process_docs", place)


def _source_place(benchmark: Benchmark, error: BaseException) -> Place | None:
    """Where ``error`` was raised in a package's code, or else the function that reads its data."""
    reader = benchmark.data.read or benchmark.data.mini
    return raised_at(error.__cause__ or error) or place_of(reader)


def check_rows(
    documents: Documents,
    benchmark: Benchmark,
    templates: Mapping[str, str],
    report: TaskReport,
    media: MediaCheck,
    *,
    by_letter: bool = False,
) -> None:
    """Report the defects of documents and, if ``templates`` has the task's, of their prompts and
    media.

    ``by_letter`` says that the task's filter reads option letters.
    """
    check_documents(documents, benchmark, report)
    template = templates.get("template")
    if template is None:
        return
    visible = benchmark.visible_fields
    check_prompts = PromptCheck(
        template, templates.get("stage1_template"), visible, report, by_letter
    )
    check_prompts(documents)
    variables: set[str] = set()
    for name in {str(document.get("prompt_template", template)) for document in documents}:
        variables.update(template_variables(name))
    check_giveaways(documents, visible & variables, report)
    for document in documents:
        media(document, template, report)
