"""``medtasks validate``: reads each task file once, applies the rules to it, and reports each cause
once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import TaskPackage, owner_of, raised_at, task_files, task_packages
from medtasks.catalog.prompts import template_variables
from medtasks.catalog.registry import all_benchmarks, place_of, plugin_of
from medtasks.catalog.spec import load_spec, read_task
from medtasks.catalog.task_model import GroupFile, TaskFile
from medtasks.core.errors import (
    MedtasksError,
    NoRowsError,
    NotPreparedError,
    UsageError,
    first_line,
)
from medtasks.core.findings import Finding, Place, failed, finding
from medtasks.core.schema import suggestion
from medtasks.core.text import first_names
from medtasks.data.prepared import is_mini
from medtasks.data.progress import Progress
from medtasks.data.store import open_prepared
from medtasks.harness.task_names import harness_names
from medtasks.validate import tasks
from medtasks.validate.behaviour import check_behaviour
from medtasks.validate.documents import (
    Documents,
    MediaCheck,
    TaskReport,
    check_data,
    check_documents,
)
from medtasks.validate.rendered import check_giveaways, check_judged, check_prompts, check_templates
from medtasks.validate.tasks import Files, task_rows

_COUNTED = re.compile(r"[\d,]+ of [\d,]+ documents, first .*?: ")


@dataclass
class Findings:
    """Findings about prepared data, by benchmark, and about tasks, sorted by place, from so many
    files.
    """

    files: int
    data: dict[str, list[Finding]] = field(default_factory=dict)
    tasks: list[Finding] = field(default_factory=list)

    @property
    def all(self) -> list[Finding]:
        return [*chain.from_iterable(self.data.values()), *self.tasks]


def validate(
    what: Sequence[str] = (),
    *,
    quick: bool = False,
    progress: Progress | None = None,
) -> Findings:
    """Findings about packages, benchmarks with their prepared data, tasks, groups, task files and
    their directories.

    ``what`` is by default everything that is prepared. ``quick`` leaves out what takes long:
    pictures and frames are not decoded, checksums not compared, and the scores of installed tasks
    not tried. Raises `UsageError` if there is nothing of that name, or no task file at a path,
    `NotPreparedError` if one of the benchmarks is not prepared.
    """
    files = Files()
    benchmarks, given, paths = _chosen(what, files)
    checks = _Checks(files, quick)
    data = {name: checks.check_prepared(name) for name in benchmarks}
    found, faulty = list[Finding](), set[TaskPackage]()
    for number, path in enumerate(paths, start=1):
        # a shared part is checked with what includes it, and alone as far as it can be read
        if _is_shared(path):
            findings = [one for one in read_task(path).defects if one.code <= "MT105"]
        else:
            findings = checks.check(path)
        found += findings
        if failed([one for one in findings if one.code < "MT500"]):
            faulty.add(owner_of(path))
        if progress is not None:
            progress(number, len(paths))
    first: dict[str, Path] = {}
    for path in given:
        if path.suffix != ".yaml":
            message = "the file is never read, expected the suffix .yaml"
            found.append(finding("MT116", path.stem, message, Place(path, 1)))
        elif not _is_shared(path) and first.setdefault(path.stem, path) != path:
            message = f"{first[path.stem]} has the same name, expected one file per task"
            found.append(finding("MT119", path.stem, message, Place(path, 1)))
    packages = dict.fromkeys(owner_of(path) for path in paths if path in files.known.values())
    return Findings(len(paths), data, _once([*found, *tasks.check_packages(packages, faulty)]))


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """One finding for each cause: a defect of documents, or the code, template or file at fault; by
    place. It names the other tasks that have the cause.
    """
    causes: dict[tuple[object, ...], list[Finding]] = {}
    places = {f"{one.file}, line {one.line}" for one in findings if one.severity == "error"}
    for one in findings:
        if (
            one.message.partition(": ")[0] in places
        ):  # it quotes the error in a file that it depends on
            continue
        counted, about = _COUNTED.match(one.message), one.code[2]
        cause: tuple[object, ...] = (one.code, one.file, one.line, one.field, one.message)
        if one.code == "MT303" or (counted and about == "3"):
            cause = (one.code, one.field, one.message[counted.end() :] if counted else one.message)
        elif counted or about == "5":
            cause = (one.code, one.file, one.line, one.code == "MT509" or one.field)
        causes.setdefault(cause, []).append(one)
    found = []
    for first, *others in causes.values():
        tasks = dict.fromkeys(one.where for one in others if one.where != first.where)
        also = (
            f" Also in {first_names(tasks)}."
            if tasks and others[0].message != first.message
            else ""
        )
        found.append(replace(first, message=f"{first.message}{also}"))
    return sorted(
        found, key=lambda one: (one.file, one.line or 0, one.code, one.field, one.message)
    )


def _chosen(what: Sequence[str], files: Files) -> tuple[list[str], list[Path], list[Path]]:
    """The benchmarks whose data are checked, the files given by a path, and all files."""
    packages = {
        name: one
        for one in task_packages()
        if not one.ours
        for name in (one.distribution, one.module)
    }
    names: list[str] = []
    for name in what:  # a package stands for its benchmarks
        brought = plugin_of(packages[name]).benchmarks if name in packages else ()
        names += [benchmark.name for benchmark in brought] or [name]
    by_path = bool(what) and all(Path(name).is_file() for name in what)
    of = {} if by_path else {name: files.benchmark_of(name) for name in files.known}
    named = [name for name in names if name in {*all_benchmarks(), *of.values()}]
    for name in all_benchmarks() if not what else ():
        try:
            open_prepared(name)
        except NotPreparedError:
            continue
        except (
            MedtasksError,
            OSError,
        ):  # the checks report what is wrong with data that cannot be opened
            pass
        named.append(name)
    if not what and not named:
        raise NotPreparedError("no benchmark is prepared; run: medtasks prepare --help")
    paths = [name for name in names if name not in named and name not in files.known]
    given = [file for path in paths for file in _files_at(Path(path), files.known)]
    members = [
        *(name for name in of if of[name] in named),
        *(name for name in names if name in files.known),
    ]
    everything = [files.known[name] for name in files.everything_in(members)]
    files.known |= {path.stem: path for path in given if not _is_shared(path)}
    return (
        [name for name in named if name in all_benchmarks()],
        given,
        list(dict.fromkeys([*given, *everything])),
    )


def _is_shared(path: Path) -> bool:
    return path.name.startswith("_")


def _files_at(path: Path, known: Mapping[str, Path]) -> list[Path]:
    """The task files at a path: those below ``tasks`` directories or, if there are none, all but
    rubrics.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        near = suggestion(path, [*known, *all_benchmarks()])
        raise UsageError(
            f"{path}: no such file or directory{near}; name a task, a task file or their directory."
        )
    below = [
        one
        for one in sorted(path.rglob("*.y*ml"))
        if one.suffix in (".yaml", ".yml") and one.is_file()
    ]
    folders = {one: one.relative_to(path).parts[:-1] for one in below}
    visible = [one for one in below if not any(name.startswith(".") for name in folders[one])]
    in_tasks = [one for one in visible if "tasks" in (path.resolve().name, *folders[one])]
    files = in_tasks or [one for one in visible if "rubrics" not in folders[one]]
    if not files:
        raise UsageError(
            f"{path}: contains no task file; name the directory of the benchmark's YAML files."
        )
    return files


class _Checks:
    def __init__(self, files: Files, quick: bool) -> None:
        self._files, self._quick = files, quick
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
            findings = [
                finding("MT401", name, str(error), _source_place(all_benchmarks()[name], error))
            ]
        if failed(findings):
            self._unusable.add(name)
        return findings

    def check(self, path: Path) -> list[Finding]:
        """Findings about a task or group file; the names in it are checked once the schema accepts
        it.
        """
        source = self._files.read(path)
        file, report = source.file, TaskReport(source)
        report.add(*source.defects)
        if source.name in harness_names():
            message = f"lmms-eval has {source.name!r} already, which --tasks runs instead of this {source.kind}"
            report.key("MT138", message, source.kind)
        if file is None:
            return report.findings()
        tasks.check_metadata(file, self._files.known, report)
        benchmark = all_benchmarks().get(file.metadata.benchmark)
        if benchmark is not None and benchmark.name not in self._described:
            self._described.add(benchmark.name)
            tasks.check_description(benchmark, report)
        if isinstance(file, GroupFile):
            tasks.check_members(file, self._files, report)
            return report.findings()
        tasks.check_functions(file, report)
        documents: Documents = []
        if benchmark is not None and not any(
            one.field == "process_docs" for one in report.findings()
        ):
            documents = self._made(file, benchmark, report)
        tasks.check_settings(file, documents, report)
        templates = check_templates(file, benchmark, report)
        if benchmark is None or not documents:
            return report.findings()
        report.documents = len(documents)
        # its media are decoded only if the benchmark's data are checked
        media = self._media.setdefault(
            benchmark.name, MediaCheck(open_prepared(benchmark.name), decode=False)
        )
        check_rows(
            documents, benchmark, templates, report, media, by_letter=tasks.reads_letters(file)
        )
        check_judged(file, documents, benchmark, report)
        findings = report.findings()
        installed = task_files().get(file.task)
        is_installed = installed is not None and installed.resolve() == path.resolve()
        # a fault of the file or of its documents changes scores, too
        if (
            not self._quick
            and is_installed
            and not failed([one for one in findings if one.code[2] in "13"])
        ):
            findings += check_behaviour(load_spec(file.task), benchmark, documents)
        return findings

    def _made(self, file: TaskFile, benchmark: Benchmark, report: TaskReport) -> Documents:
        """The documents of a task; none, with the reason reported, if there are none."""
        rows, varied = task_rows(file), file.metadata.varied
        if rows is None:
            if varied is None:  # else the task whose questions are asked has the error
                report.key("MT302", "`process_docs` is not a medtasks.api.Rows", "process_docs")
            return []
        if benchmark.name in self._unusable:  # reported for another task
            return []
        opened = False
        try:
            open_prepared(benchmark.name)
            opened = True
            return rows.documents()
        except NotPreparedError as error:
            report.key("MT300", str(error), "process_docs")
        except NoRowsError as error:  # a release may leave them out, miniature data must not
            if varied is not None and rows.excluded():
                report.key(
                    "MT143",
                    f"{str(error).partition(';')[0]}; remove `{varied}`",
                    "metadata",
                    varied,
                )
            else:
                report.key(
                    "MT303", str(error), "process_docs", severity=None if is_mini() else "note"
                )
        except (Exception, SystemExit) as error:  # another package's code may raise anything
            if not opened:
                message = f"the data of {benchmark.name} cannot be made: {first_line(error)}"
                report.say("MT301", message, place=_source_place(benchmark, error))
            elif varied is not None and isinstance(error, UsageError):
                report.key("MT143", str(error), "metadata", varied)
            else:
                report.say(
                    "MT301", first_line(error), "process_docs", raised_at(error.__cause__ or error)
                )
        if not opened:
            self._unusable.add(benchmark.name)
        return []


def _source_place(benchmark: Benchmark, error: BaseException) -> Place | None:
    """Where ``error`` was raised in a package's code, or else where the function is that reads its
    data.
    """
    return raised_at(error.__cause__ or error) or place_of(
        benchmark.data.read or benchmark.data.mini
    )


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
    stage1, visible = templates.get("stage1_template"), benchmark.visible_fields
    check_prompts(documents, template, stage1, visible, report, by_letter=by_letter)
    used = {str(document.get("prompt_template", template)) for document in documents}
    variables = {variable for name in used for variable in template_variables(name)}
    check_giveaways(documents, visible & variables, report)
    for document in documents:
        media(document, template, report)
