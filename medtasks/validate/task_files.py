"""The task and group files that are checked, and which of them a command line selects."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from medtasks.catalog.contents import kind_of, task_files, task_packages
from medtasks.catalog.installed_packages import installed_modules
from medtasks.catalog.registry import all_benchmarks, plugin_of
from medtasks.catalog.spec import read_installed
from medtasks.catalog.task_source import read_task
from medtasks.core.errors import MedtasksError, NotPreparedError, UsageError
from medtasks.core.schema import suggestion
from medtasks.data.store import open_prepared


class FileIndex:
    """Task and group files by name, at first those installed; each file is read once."""

    def __init__(self) -> None:
        """Index the installed files."""
        self.paths = dict(task_files())
        installed = set(self.paths.values())
        self.read = functools.cache(
            lambda path: read_installed(path) if path in installed else read_task(path)
        )

    def benchmark_of(self, name: str) -> str:
        """The benchmark that a task or group names or, if the file is too faulty to name one, its
        directory.
        """
        path = self.paths[name]
        metadata = self.read(path).content.get("metadata")
        benchmark = metadata.get("benchmark") if isinstance(metadata, dict) else None
        if isinstance(benchmark, str):
            return benchmark
        if kind_of(path) == "group":
            return path.parent.parent.name
        return path.parent.name

    def with_members(self, names: Iterable[str]) -> list[str]:
        """The tasks and groups ``names``, and those in the groups, at any depth; files may be
        faulty.
        """
        reached = dict.fromkeys(name for name in names if name in self.paths)
        waiting = list(reached)
        while waiting:
            members = self.read(self.paths[waiting.pop(0)]).content.get("task")
            for member in members if isinstance(members, list) else ():
                is_known = isinstance(member, str) and member in self.paths
                if is_known and member not in reached:
                    reached[member] = None
                    waiting.append(member)
        return list(reached)

    def add(self, paths: Iterable[Path]) -> None:
        """Add task and group files, in place of files of the same name; parts are not added."""
        for path in paths:
            if not is_shared(path):
                self.paths[path.stem] = path


@dataclass(frozen=True)
class SelectedFiles:
    """The benchmarks whose prepared data are checked, the files found at a path, and all files."""

    benchmarks: list[str]
    files_at_paths: list[Path]
    files: list[Path]


def select(what: Sequence[str], index: FileIndex) -> SelectedFiles:
    """The files that names and paths select; without any, those of all prepared benchmarks.

    Args:
        what: packages, benchmarks, tasks and groups by name, and paths of files and directories.
        index: the installed files.

    Raises:
        UsageError: a name is not known, or there is no task file at a path.
        NotPreparedError: nothing is named, and no benchmark is prepared.
    """
    names = _without_packages(what)
    owners = {} if _are_files(what) else _benchmarks_of_tasks(index)
    if what:
        benchmarks = [name for name in names if _is_benchmark(name, owners)]
    else:
        benchmarks = _prepared_benchmarks()

    tasks = [task for task, benchmark in owners.items() if benchmark in benchmarks]
    files_at_paths: list[Path] = []
    for name in names:
        if name in index.paths:
            tasks.append(name)
        elif name not in benchmarks:
            files_at_paths += files_at(Path(name), index)
    _require_installed(files_at_paths)
    installed = [index.paths[name] for name in index.with_members(tasks)]
    return SelectedFiles(
        benchmarks=[name for name in benchmarks if name in all_benchmarks()],
        files_at_paths=files_at_paths,
        files=list(dict.fromkeys([*files_at_paths, *installed])),
    )


def _are_files(what: Sequence[str]) -> bool:
    """Whether all that is named are files, for which no installed file has to be read."""
    return bool(what) and all(Path(name).is_file() for name in what)


def _benchmarks_of_tasks(index: FileIndex) -> dict[str, str]:
    """The benchmark of each installed task."""
    return {name: index.benchmark_of(name) for name in index.paths}


def _is_benchmark(name: str, owners: Mapping[str, str]) -> bool:
    """Whether a benchmark is called ``name``: a registered one, or one that a task file names."""
    return name in all_benchmarks() or name in owners.values()


def _without_packages(what: Iterable[str]) -> list[str]:
    """The names ``what``, with the benchmarks of a package in place of its name."""
    packages = {}
    for package in task_packages():
        if not package.ours:
            packages[package.distribution] = packages[package.module] = package
    names = []
    for name in what:
        benchmarks = plugin_of(packages[name]).benchmarks if name in packages else ()
        if benchmarks:
            names += [benchmark.name for benchmark in benchmarks]
        else:
            names.append(name)
    return names


def _prepared_benchmarks() -> list[str]:
    """The benchmarks with prepared data; raises `NotPreparedError` if there are none."""
    prepared = []
    for name in all_benchmarks():
        try:
            open_prepared(name)
        except NotPreparedError:
            continue
        except (MedtasksError, OSError):  # the checks report why the data cannot be opened
            pass
        prepared.append(name)
    if not prepared:
        raise NotPreparedError("no benchmark is prepared; run: medtasks prepare --help")
    return prepared


def is_shared(path: Path) -> bool:
    """Whether a file is a part that others include."""
    return path.name.startswith("_")


def files_at(path: Path, index: FileIndex) -> list[Path]:
    """The task files at a path: those below ``tasks`` directories or, if there are none, all but
    rubrics.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        near = suggestion(path, [*index.paths, *all_benchmarks()])
        raise UsageError(
            f"{path}: no such file or directory{near}; name a task, a task file or their directory."
        )
    in_tasks, elsewhere = [], []
    for file in sorted(path.rglob("*.y*ml")):
        folders = file.relative_to(path).parts[:-1]
        is_hidden = any(name.startswith(".") for name in folders)
        if file.suffix not in (".yaml", ".yml") or is_hidden or not file.is_file():
            continue
        if "tasks" in (path.resolve().name, *folders):
            in_tasks.append(file)
        elif "rubrics" not in folders:
            elsewhere.append(file)
    files = in_tasks or elsewhere
    if not files:
        raise UsageError(
            f"{path}: contains no task file; name the directory of the benchmark's YAML files."
        )
    return files


def _require_installed(files: Iterable[Path]) -> None:
    """Refuse task files of a package that is not installed.

    Neither its functions nor its templates nor its benchmark could be found.

    Raises:
        UsageError: names the package, and how to install it.
    """
    modules = installed_modules()
    for directory in dict.fromkeys(map(_module_directory, files)):
        if directory is None:
            continue
        root = directory
        while (root.parent / "__init__.py").is_file():
            root = root.parent
        module = ".".join(directory.relative_to(root.parent).parts)
        if module not in modules:
            raise UsageError(
                f"{directory}: the package {module} is not installed, so its functions, templates "
                f"and benchmark cannot be found; run `pip install -e {quote(_project(root))}`, "
                "then repeat this command."
            )


def _module_directory(file: Path) -> Path | None:
    """The directory of the module whose ``tasks`` directory has a task file; None without one."""
    for directory in file.resolve().parents:
        if directory.name == "tasks" and (directory.parent / "__init__.py").is_file():
            return directory.parent
    return None


def _project(root: Path) -> str:
    """The directory to install a top-level module from; ``PACKAGE`` if none is found above it."""
    for directory in root.parents:
        if (directory / "pyproject.toml").is_file() or (directory / "setup.py").is_file():
            return str(directory)
    return "PACKAGE"
