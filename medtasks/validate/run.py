"""``medtasks validate``: reads each task file once, applies the rules to it, and reports each cause
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from medtasks.catalog.contents import owner_of
from medtasks.catalog.task_package import TaskPackage
from medtasks.catalog.task_source import read_task
from medtasks.core.findings import Finding, Place, failed, finding
from medtasks.data.progress import Progress
from medtasks.validate.causes import merge_by_cause
from medtasks.validate.checks import Checks
from medtasks.validate.folders import folder_findings, in_folder
from medtasks.validate.packages import check_packages
from medtasks.validate.task_files import FileIndex, is_shared, select


@dataclass
class Findings:
    """Findings about prepared data, by benchmark, and about tasks, sorted by place; ``files`` is
    the number of files checked.
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
    """Findings about packages, benchmarks with their prepared data, benchmark folders, tasks,
    groups, task files and their directories.

    ``what`` is by default everything that is prepared. ``quick`` leaves out what takes long:
    pictures and frames are not decoded, checksums not compared, and the scores of installed tasks
    not tried. Raises `UsageError` if there is nothing of that name, or no task file at a path,
    `NotPreparedError` if one of the benchmarks is not prepared.
    """
    names, about_folders = folder_findings(what, decode=not quick, progress=progress)
    if what and not names:
        return Findings(0, about_folders)
    index = FileIndex()
    selection = select(names, index)
    index.add(selection.files_at_paths)
    checks = Checks(index, quick)
    data = dict(about_folders)
    for name in selection.benchmarks:
        data[name] = checks.check_prepared(name)
    findings: list[Finding] = []
    faulty: set[TaskPackage] = set()
    for number, path in enumerate(selection.files, start=1):
        # a shared part is checked with what includes it, and alone as far as it can be read
        about_file = _unreadable_parts(path) if is_shared(path) else checks.check_file(path)
        findings += about_file
        if failed([finding for finding in about_file if finding.code < "MT500"]):
            faulty.add(owner_of(path))
        if progress is not None:
            progress(number, len(selection.files))
    findings += _check_file_names(selection.files_at_paths)
    whole_files = [path for path in selection.files if path in index.paths.values()]
    packages = dict.fromkeys(map(owner_of, whole_files))
    findings += check_packages(packages, faulty)
    findings = [in_folder(finding) for finding in findings]
    return Findings(len(selection.files), data, merge_by_cause(findings))


def _unreadable_parts(path: Path) -> list[Finding]:
    """What makes a shared file unreadable."""
    return [defect for defect in read_task(path).defects if defect.code <= "MT105"]


def _check_file_names(paths: Sequence[Path]) -> list[Finding]:
    """Findings about files that runs would not find by their names: of another suffix, or of the
    name of an earlier file.
    """
    findings = []
    firsts: dict[str, Path] = {}
    for path in paths:
        if path.suffix != ".yaml":
            message = "the file is never read, expected the suffix .yaml"
            findings.append(finding("MT116", path.stem, message, Place(path, 1)))
        elif not is_shared(path) and firsts.setdefault(path.stem, path) != path:
            message = f"{firsts[path.stem]} has the same name, expected one file per task"
            findings.append(finding("MT119", path.stem, message, Place(path, 1)))
    return findings
