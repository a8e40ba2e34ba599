"""The static half of ``medtasks validate``: task files, templates and documents, without a model or scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from medtasks.errors import UsageError
from medtasks.prompts import isolated_rendering
from medtasks.schema import shown, suggestion
from medtasks.task_files import task_files
from medtasks.task_source import Place, kind_of, read_task
from medtasks.validation.findings import Finding, found, of_defects
from medtasks.validation.one_task import TaskChecker

Progress = Callable[[int, int], None]
"""Called with how many are done, of how many."""

_KEY_OF_A_TASK_FILE = re.compile(rb"^(?:task|group|include|dataset_path|metric_list)[ \t]*:", re.MULTILINE)


def validate_tasks(
    names: Sequence[str] | None = None,
    paths: Sequence[Path] = (),
    *,
    documents: bool = True,
    prepared: Collection[str] = (),
    progress: Progress | None = None,
) -> list[Finding]:
    """Findings about tasks and groups: their YAML, their templates and the documents that their data give.

    Args:
        names: tasks and groups (a group includes its members); without names and ``paths`` all there are.
        paths: task files, or directories of them; in a package's directory, what is in its ``tasks`` directories.
        documents: whether prompts are rendered and documents checked, as far as data are prepared.
        prepared: benchmarks whose windows `validate_prepared` checks, so that they are not checked here.
        progress: called after each file.

    Returns:
        Findings without duplicates, by file and line.

    Raises:
        UsageError: there is no task of a name, or no file at a path.
    """
    registered = {name: path for name, _, path in task_files()}
    given = [file for path in paths for file in _files_at(path)]
    known = {**registered, **{path.stem: path for path in given if not _is_shared(path)}}
    chosen = dict.fromkeys(given)
    if names or not paths:
        chosen |= dict.fromkeys(_named(names, registered))
    findings = list(_layout(given))
    checker = TaskChecker(known, documents, prepared)
    with isolated_rendering():
        for number, path in enumerate(chosen, start=1):
            if not _is_shared(path):
                findings += checker.findings(path)
            if progress is not None:
                progress(number, len(chosen))
    findings += _shared_parts(given, checker.files)
    # a defect of a shared part is reported once, whichever tasks include it
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
        raise UsageError(f"{path}: holds no task file; name the directory of the benchmark's YAML files.")
    return files


def _is_task_file(path: Path) -> bool:
    try:
        return path.parent.name == "groups" or bool(_KEY_OF_A_TASK_FILE.search(path.read_bytes()))
    except OSError:
        return True  # the check of the file reports what is wrong with it


def _named(names: Sequence[str] | None, registered: Mapping[str, Path]) -> Iterator[Path]:
    if not names:
        yield from registered.values()
        return
    for name in names:
        if name not in registered:
            near = suggestion(name, registered)
            raise UsageError(f"task {shown(name)} is unknown{near}; `medtasks list` shows what there is.")
    waiting, seen = list(names), set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in registered:
            continue
        seen.add(name)
        yield registered[name]
        if kind_of(registered[name]) == "group":
            group = read_task(registered[name])
            waiting += [member for _, member in group.entries("task") if isinstance(member, str)]


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
