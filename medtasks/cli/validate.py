"""``medtasks validate``: check whether tasks and prepared data can be relied on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.catalog import owner_of, task_files, task_packages
from medtasks.cli.console import Json, progress, table, write, write_json
from medtasks.errors import MedtasksError, NotPreparedError, UsageError
from medtasks.packages import TaskPackage, without_warnings
from medtasks.registry import all_benchmarks
from medtasks.schema import suggestion
from medtasks.text import counted

if TYPE_CHECKING:
    from medtasks.validation.findings import Finding


def validate(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="Benchmarks, tasks, groups, task files or directories (default: all that is prepared)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not decode pictures and frames, and do not check how scores behave.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings as well.")] = False,
    as_json: Json = False,
) -> None:
    """Check task files, templates, prepared data (hidden fields, media, answers, windows), and how scores behave."""
    from medtasks.validation.findings import failed

    with without_warnings():  # the findings cover them
        chosen = _chosen(what or [])
        data = _data(chosen.benchmarks, quick)
        tasks = _tasks(chosen, quick)
    everything = [*(one for ones in data.values() for one in ones), *tasks]
    if as_json:
        write_json({"data": data, "tasks": tasks})
    else:
        _report(data, tasks, bool(chosen.names or chosen.paths))
    if failed(everything, strict):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Chosen:
    """Benchmarks whose data are checked, tasks and groups, paths, and the packages that provide them."""

    benchmarks: list[str]
    names: list[str]
    paths: list[Path]
    packages: list[TaskPackage]


def _chosen(what: Sequence[str]) -> _Chosen:
    """What the names in ``what`` refer to; everything that is prepared if it is empty."""
    files = {name: path for name, _, path in task_files()}
    of = _benchmarks_of(files)
    if not what:
        prepared = [name for name in all_benchmarks() if _is_prepared(name)]
        if not prepared:
            raise NotPreparedError("no benchmark is prepared; run: medtasks prepare --help")
        return _Chosen(prepared, [name for name in files if of[name] in prepared], [], list(task_packages()))
    benchmarks = [name for name in what if name in {*all_benchmarks(), *of.values()}]
    named = [name for name in what if name in files]
    paths = [Path(name) for name in what if name not in benchmarks and name not in named]
    for path in paths:
        if not path.exists():
            near = suggestion(path, [*files, *all_benchmarks()])
            raise UsageError(f"{path}: no such file or directory{near}; name a task, a task file or their directory.")
    names = list(dict.fromkeys([*(name for name in files if of[name] in benchmarks), *named]))
    packages = dict.fromkeys(owner_of(files[name]) for name in [*names, *_installed_below(paths)])
    return _Chosen([name for name in benchmarks if name in all_benchmarks()], names, paths, list(packages))


def _benchmarks_of(files: Mapping[str, Path]) -> dict[str, str]:
    """The benchmark of each task and group; a faulty file without one takes that of its directory."""
    from medtasks.task_source import read_task

    found: dict[str, str] = {}
    folders: dict[Path, str] = {}
    for name, path in files.items():
        named = read_task(path).block("metadata").get("benchmark")
        if isinstance(named, str):
            found[name] = folders[_folder(path)] = named
    return {name: found.get(name) or folders.get(_folder(path), "") for name, path in files.items()}


def _folder(path: Path) -> Path:
    return path.parent.parent if path.parent.name == "groups" else path.parent


def _is_prepared(benchmark: str) -> bool:
    from medtasks.data.store import open_prepared

    try:
        open_prepared(benchmark)
    except NotPreparedError:
        return False
    except MedtasksError:  # the checks report what is wrong with them
        return True
    return True


def _installed_below(paths: Sequence[Path]) -> list[str]:
    """Tasks and groups whose installed file is at or below one of ``paths``: only these can be scored."""
    given = {path.resolve() for path in paths}
    return [name for name, _, path in task_files() if given & {path.resolve(), *path.resolve().parents}]


def _data(benchmarks: Sequence[str], quick: bool) -> dict[str, list[Finding]]:
    """Findings about prepared data, by benchmark; data that cannot be opened are a finding, and the rest is checked."""
    from medtasks.data.store import open_prepared
    from medtasks.validation.findings import found
    from medtasks.validation.prepared import validate_prepared

    unopened: dict[str, Finding] = {}
    for name in benchmarks:
        try:
            open_prepared(name)  # all are prepared before the first is checked
        except NotPreparedError:
            raise
        except (MedtasksError, OSError) as error:
            unopened[name] = found("MT401", name, str(error))
    findings = {}
    for name in benchmarks:
        if name in unopened:
            findings[name] = [unopened[name]]
            continue
        with progress(f"checking {name}") as bar:
            findings[name] = validate_prepared(name, decode=not quick, progress=bar)
    return findings


def _tasks(chosen: _Chosen, quick: bool) -> list[Finding]:
    """Findings about packages, task files with their documents, and how scores behave."""
    from medtasks.validation.behaviour import validate_behaviour
    from medtasks.validation.names import validate_packages
    from medtasks.validation.tasks import validate_tasks

    findings = validate_packages(chosen.packages)
    if chosen.paths:
        print("medtasks: importing what the files name, from installed packages only", file=sys.stderr, flush=True)
    if chosen.names or chosen.paths:
        with progress("checking tasks") as bar:
            prepared = chosen.benchmarks
            findings += validate_tasks(chosen.names, chosen.paths, prepared=prepared, progress=bar)
    without = {one.where for one in findings if one.code in ("MT301", "MT303")}
    named = dict.fromkeys([*chosen.names, *_installed_below(chosen.paths)])
    scored = [name for name in _leaves(named) if name not in without]
    if scored and not quick:
        with progress("checking how scores behave") as bar:
            behaviour = validate_behaviour(scored, progress=bar)
        # why there are no documents to score is reported above
        findings += [one for one in behaviour if one.code != "MT500" or not without]
    return findings


def _leaves(names: Iterable[str]) -> list[str]:
    """The tasks in ``names``, without those whose files are faulty, which other checks report."""
    from medtasks.spec import leaf_tasks

    found: dict[str, None] = {}
    for name in names:
        with contextlib.suppress(MedtasksError):
            found |= dict.fromkeys(leaf_tasks(name))
    return list(found)


def _report(data: dict[str, list[Finding]], tasks: list[Finding], asked: bool) -> None:
    from medtasks.validation.findings import COLUMNS, as_rows, summary

    for name, findings in data.items():
        errors = sum(one.severity == "error" for one in findings)
        write(f"{name}: {counted(errors, 'error') if errors else 'no error'}")
        if findings:
            rows = [(one.severity, one.check, one.where, one.message) for one in findings]
            table(("severity", "check", "where", "message"), rows)
    if asked:
        write(f"task files, templates, documents, scores: {summary(tasks)}")
        if tasks:
            table(COLUMNS, as_rows(tasks))
