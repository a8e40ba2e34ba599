"""The catalog: all task packages, medtasks itself and installed ones, and what was read from them,
once per process.

A package registers an entry point in the group ``medtasks.tasks`` and keeps its files in
directories next to the module that it names: ``tasks/<benchmark>/*.yaml`` (and ``groups/``),
``templates/<module>/``, ``rubrics/<module>_*.yaml``. Packages are listed from these directories
without importing any code, so that start-up stays fast; their code is described in
:mod:`medtasks.catalog.registry`.

Task names share one namespace, the harness's: if two packages have a task of the same name, the
package installed later is left out. All other names start with the package's module, so that
packages cannot collide.

Functions decorated with `once` return benchmarks, filters and metrics (``registry``), templates
(``prompts``), rubrics (``rubric``) and tasks (``spec``).
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import medtasks.templates
from medtasks.core.errors import GuestCodeError, first_line
from medtasks.core.findings import Place
from medtasks.core.text import one_line

GROUP = "medtasks.tasks"
OURS = "medtasks"
SHARED = ("medtasks.answers", "medtasks.metrics.registry")
"""The modules of the filters and metrics that benchmarks share."""

once = functools.cache
"""Computes a function once per process for the same arguments, which must be hashable; errors are
not kept.
"""

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@dataclass(frozen=True)
class LeftOut:
    """A package, or one ``part`` of it, that is not used; ``why`` is a sentence with the fix."""

    owner: str
    part: str
    why: str
    place: Place | None = None

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place and str(self.place.file) not in self.why else ""
        what = f"{self.part} of {self.owner}" if self.part else self.owner
        return f"{what} is left out: {self.why}{place}"

    def warn(self) -> None:
        """Print it to standard error, but not within :func:`without_warnings`."""
        if not _QUIET.get():
            print(f"medtasks: {one_line(str(self))}", file=sys.stderr, flush=True)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Print no warnings in the block: the command reports what is left out itself."""
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


@dataclass(frozen=True, eq=False)  # hashed as part of cache keys; paths are slow to hash
class TaskPackage:
    """An installed distribution with tasks; ``module`` is the one that its entry point names."""

    distribution: str
    version: str
    module: str
    tasks: Path
    templates: Path
    rubrics: Path

    @property
    def owner(self) -> str:
        """Distribution and version, for tables and messages."""
        return f"{self.distribution} {self.version}"

    @property
    def known_as(self) -> str:
        """``medtasks``, or distribution and version of another package."""
        return OURS if self.ours else self.owner

    @property
    def ours(self) -> bool:
        return self.distribution == OURS

    @property
    def prefix(self) -> str:
        """Prefix of the names of its metrics, rubrics and template directories; empty for ours."""
        return "" if self.ours else self.module.replace(".", "_")

    def owns(self, name: str) -> bool:
        """Whether the package may use ``name`` for a metric, a rubric or a rubric's score.

        >>> package = TaskPackage("acme-bench", "1.0", "acme_bench", Path(), Path(), Path())
        >>> package.owns("acme_bench_recall"), package.owns("recall")
        (True, False)
        """
        return not self.prefix or name.startswith(f"{self.prefix}_")

    def task_files(self) -> list[Path]:
        """Its task and group files, sorted by path."""
        return sorted([*self.tasks.glob("*/[!_]*.yaml"), *self.tasks.glob("*/groups/*.yaml")])

    def rubric_files(self) -> list[Path]:
        return [path for path in sorted(self.rubrics.glob("*.yaml")) if self.owns(path.stem)]

    def foreign_files(self) -> Iterator[LeftOut]:
        """Files that are ignored because their names could collide with another package's."""
        for path in sorted(self.templates.rglob("*.j2")) if self.prefix else ():
            if not path.is_relative_to(self.templates / self.prefix):
                name = path.relative_to(self.templates).as_posix()
                why = f"it is outside templates/{self.prefix}/; move it there."
                yield LeftOut(self.owner, f"template {name}", why, Place(path, 1))
        for path in sorted(self.rubrics.glob("*.yaml")):
            if not self.owns(path.stem):
                why = f"its name must start with that of the package; call it {self.prefix}_{path.stem}."
                yield LeftOut(self.owner, f"rubric {path.stem}", why, Place(path, 1))


def find_packages() -> tuple[tuple[TaskPackage, ...], tuple[LeftOut, ...]]:
    """Ours, then every usable installed package, in the order of installation; and what is not
    used.
    """
    benchmarks = import_module("medtasks.benchmarks")
    root, templates = Path(benchmarks.__path__[0]), Path(medtasks.templates.__path__[0])
    # the modules with the filters and metrics that benchmarks share, then one package per benchmark
    # directory
    folders = dict.fromkeys(SHARED, root / "shared")
    folders |= {f"{benchmarks.__name__}.{name}": root / name for name in benchmarks.DIRECTORIES}
    used = [
        TaskPackage(
            OURS, medtasks.__version__, module, folder / "tasks", templates, folder / "rubrics"
        )
        for module, folder in folders.items()
    ]
    left_out: list[LeftOut] = []
    taken = {path.stem: package.known_as for package in used for path in package.task_files()}
    for point in sorted(entry_points(group=GROUP), key=_installation):
        distribution, version, place = (
            _named(point, "name", point.name),
            _named(point, "version", "unknown"),
            None,
        )
        try:
            package = _read(point.value, distribution, version)
            names = {path.stem: path for path in package.task_files()}
            owner = next((other.known_as for other in used if other.module == package.module), None)
            if owner is not None:
                raise LookupError(
                    f"its module {package.module} belongs to {owner}; uninstall one of them."
                )
            clash = next((name for name in names if name in taken), None)
            if clash is not None:
                place = Place(names[clash], 1)
                raise LookupError(
                    f"its task {clash} is already defined by {taken[clash]}; rename one of them."
                )
        except LookupError as error:
            left_out.append(LeftOut(f"{distribution} {version}", "", str(error.args[0]), place))
            continue
        taken |= dict.fromkeys(names, package.owner)
        used.append(package)
        left_out += package.foreign_files()
    return tuple(used), tuple(left_out)


def _installation(point: EntryPoint) -> tuple[float, str, str]:
    """The time of installation, by which packages are sorted so that no new one disables an older
    one, then names.

    The time is that of the metadata, which installers write last.
    """
    installed = 0.0
    assert point.dist is not None  # as for all that `entry_points` returns
    for file in point.dist.files or ():
        if file.name in ("METADATA", "PKG-INFO"):
            with suppress(OSError):  # a list of sources has it twice, one of them not installed
                installed = Path(str(file.locate())).parent.stat().st_mtime
                break
    return installed, _named(point, "name", point.name).lower().replace("_", "-"), point.name


def _named(point: EntryPoint, key: str, default: str) -> str:
    return str(point.dist.metadata.json.get(key, default)) if point.dist is not None else default


def _read(value: str, distribution: str, version: str) -> TaskPackage:
    """The package of an entry point; raises `LookupError` with the reason if it cannot be used.

    Its module is found without importing any package above it, as `find_spec` alone would.
    """
    module = value.partition(":")[0].partition("[")[0].strip()
    names = module.split(".")
    try:
        spec = find_spec(names[0])
        for number in range(2, len(names) + 1):
            inside = spec.submodule_search_locations if spec is not None else None
            spec = (
                PathFinder.find_spec(".".join(names[:number]), inside)
                if inside is not None
                else None
            )
    except (ImportError, ValueError, AttributeError) as error:
        raise LookupError(
            f"its module {module} cannot be found ({error}); check its entry point."
        ) from error
    if spec is None:
        raise LookupError(f"its module {module} does not exist; check its entry point.")
    if spec.origin is None:
        (found, *_) = spec.submodule_search_locations or [module]
        raise LookupError(
            f"{found} has no __init__.py and may hide its module {module}, because `python -m` looks in the working "
            "directory first; start in another directory, or add the file."
        )
    folder = Path(spec.origin).parent
    folders = (folder / name for name in ("tasks", "templates", "rubrics"))
    package = TaskPackage(distribution, version, module, *folders)
    if not package.task_files() and not any(package.rubrics.glob("*.yaml")):
        raise LookupError(
            f"{folder} has no YAML file in tasks/ or rubrics/; check its package data."
        )
    return package


@once
def packages_found() -> tuple[tuple[TaskPackage, ...], tuple[LeftOut, ...]]:
    """The packages in use, and what is left out, of which each is said once on standard error."""
    packages, left_out = find_packages()
    for part in left_out:
        part.warn()
    return packages, left_out


def task_packages() -> tuple[TaskPackage, ...]:
    """The packages in use, ours first."""
    return packages_found()[0]


def task_directory() -> Path:
    """The directory of our task files, which ``medtasks path`` prints for ``--include_path``."""
    return Path(medtasks.__path__[0]) / "benchmarks"


@once
def task_files() -> dict[str, Path]:
    """The file of every task and group by name, which is its stem: tasks are listed without reading
    any YAML.
    """
    paths = [path for package in task_packages() for path in package.task_files()]
    return {path.stem: path for path in sorted(paths, key=lambda path: path.stem)}


def kind_of(path: Path) -> Literal["task", "group"]:
    """Whether a file is a task or a group: groups are in ``groups/``."""
    return "group" if path.parent.name == "groups" else "task"


@once
def owner_of(path: Path) -> TaskPackage:
    """The package that the task file ``path`` belongs to; ours by default."""
    return next(
        (package for package in task_packages() if path.is_relative_to(package.tasks)),
        task_packages()[0],
    )


def resolve(name: str) -> Any:
    """The object that the dotted ``name`` of a task file refers to; raises `LookupError` with the
    reason.
    """
    module, _, attribute = name.rpartition(".")
    if not module or not attribute or name.startswith("."):
        raise LookupError("it is not a dotted name such as package.module.function")
    try:
        return getattr(import_module(module), attribute)
    except (
        Exception,
        SystemExit,
    ) as error:  # another package's code may do anything when it is imported
        reason = " ".join(first_line(error).split())[:300]
        raise LookupError(reason.rstrip(".")) from error


def raised_at(error: BaseException) -> Place | None:
    """The last frame of ``error`` in another package's code; None if there is none."""
    if isinstance(error, GuestCodeError) and error.place is not None:
        return error.place
    if isinstance(error, SyntaxError) and error.filename:
        return Place(Path(error.filename), error.lineno or 1)
    folders = [package.tasks.parent for package in task_packages() if not package.ours]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(Path(frame.filename).is_relative_to(folder) for folder in folders):
            return Place(Path(frame.filename), frame.lineno or 1)
    return None


def raised_in(error: BaseException) -> str:
    """Where ``error`` was raised, in parentheses: :func:`raised_at`, or else the last frame."""
    frames = traceback.extract_tb(error.__traceback__)
    last = Place(Path(frames[-1].filename), frames[-1].lineno or 1) if frames else "place unknown"
    return f"({raised_at(error) or last})"
