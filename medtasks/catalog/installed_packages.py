"""Which packages have tasks: installed ones, found by their entry points without importing their
code, and benchmark folders.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

import medtasks.templates
from medtasks.catalog.folders_in_use import folder_packages
from medtasks.catalog.task_package import OURS, LeftOut, TaskPackage
from medtasks.core.findings import Place

GROUP = "medtasks.tasks"
"""The group of entry points that name packages with tasks."""
SHARED = ("medtasks.answers", "medtasks.metrics.registry")
"""The modules of the filters and metrics that benchmarks share."""


def find_packages() -> tuple[tuple[TaskPackage, ...], tuple[LeftOut, ...]]:
    """Ours, then every usable installed package in the order of installation, then benchmark
    folders; and what is left out.
    """
    used = _our_packages()
    left_out: list[LeftOut] = []
    for point in sorted(entry_points(group=GROUP), key=_installation):
        distribution = _metadata(point, "name", point.name)
        version = _metadata(point, "version", "unknown")
        try:
            package = _package_of(_module_of(point), distribution, version)
            _refuse_clash(package, used)
        except _UnusableError as error:
            owner = f"{distribution} {version}"
            left_out.append(LeftOut(owner, "", error.why, error.place))
            continue
        used.append(package)
        left_out += package.foreign_files()
    packaged: list[Path] = []
    for package in used:
        packaged += package.benchmark_folders()
    for candidate in folder_packages(packaged):
        if isinstance(candidate, LeftOut):
            left_out.append(candidate)
            continue
        try:
            _refuse_clash(candidate, used)
        except _UnusableError as error:
            left_out.append(LeftOut(candidate.owner, "", error.why))
            continue
        used.append(candidate)
    return tuple(used), tuple(left_out)


def installed_modules() -> set[str]:
    """The modules of all installed packages with tasks, also of those that cannot be used."""
    ours = {package.module for package in _our_packages()}
    return ours.union(map(_module_of, entry_points(group=GROUP)))


def _module_of(point: EntryPoint) -> str:
    """The module that an entry point names."""
    return point.value.partition(":")[0].partition("[")[0].strip()


class _UnusableError(Exception):
    """A package cannot be used; ``why`` is a sentence with the fix."""

    def __init__(self, why: str, place: Place | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.place = place


def _our_packages() -> list[TaskPackage]:
    """The shared filters and metrics as one package a module, then one per benchmark directory."""
    benchmarks = import_module("medtasks.benchmarks")
    root = Path(benchmarks.__path__[0])
    templates = Path(medtasks.templates.__path__[0])
    folders = dict.fromkeys(SHARED, root / "shared")
    for name in benchmarks.DIRECTORIES:
        folders[f"{benchmarks.__name__}.{name}"] = root / name
    packages: list[TaskPackage] = []
    for module, folder in folders.items():
        tasks, rubrics = folder / "tasks", folder / "rubrics"
        packages.append(TaskPackage(OURS, medtasks.__version__, module, tasks, templates, rubrics))
    return packages


def _refuse_clash(package: TaskPackage, used: Sequence[TaskPackage]) -> None:
    """Refuse a package whose module or task names an earlier one has."""
    owners: dict[str, str] = {}
    for earlier in used:
        if earlier.module == package.module:
            if package.folder is not None:
                raise _UnusableError(
                    f"the name {package.module} belongs to {earlier.known_as}; change `name` in "
                    "one benchmark.yaml."
                )
            raise _UnusableError(
                f"its module {package.module} belongs to {earlier.known_as}; uninstall one of them."
            )
        owners |= dict.fromkeys((path.stem for path in earlier.task_files()), earlier.known_as)
    for path in package.task_files():
        if path.stem in owners:
            place = package.folder.place("name") if package.folder else Place(path, 1)
            raise _UnusableError(
                f"its task {path.stem} is already defined by {owners[path.stem]}; "
                "rename one of them.",
                place,
            )


def _installation(point: EntryPoint) -> tuple[float, str, str]:
    """The time of installation, then names: no package disables one that was installed earlier.

    The time is that of the metadata, which installers write last.
    """
    installed = 0.0
    assert point.dist is not None  # as for all that `entry_points` returns
    for file in point.dist.files or ():
        if file.name in ("METADATA", "PKG-INFO"):
            with suppress(OSError):  # a list of sources has it twice, one of them not installed
                installed = Path(str(file.locate())).parent.stat().st_mtime
                break
    name = _metadata(point, "name", point.name).lower().replace("_", "-")
    return installed, name, point.name


def _metadata(point: EntryPoint, key: str, default: str) -> str:
    """A field of the metadata of the distribution that an entry point is of."""
    if point.dist is None:
        return default
    return str(point.dist.metadata.json.get(key, default))


def _package_of(module: str, distribution: str, version: str) -> TaskPackage:
    """The package of a module, found without importing any of its code.

    Raises:
        _UnusableError: it cannot be used.
    """
    spec = _module_spec(module)
    if spec is None:
        raise _UnusableError(f"its module {module} does not exist; check its entry point.")
    if spec.origin is None:
        (directory, *_) = spec.submodule_search_locations or [module]
        raise _UnusableError(
            f"{directory} has no __init__.py and may hide its module {module}, because "
            "`python -m` looks in the working directory first; start in another directory, or add "
            "the file."
        )
    folder = Path(spec.origin).parent
    package = TaskPackage(
        distribution,
        version,
        module,
        tasks=folder / "tasks",
        templates=folder / "templates",
        rubrics=folder / "rubrics",
    )
    has_rubrics = any(package.rubrics.glob("*.yaml"))
    if not (package.task_files() or has_rubrics or package.benchmark_folders()):
        raise _UnusableError(
            f"{folder} has no YAML file in tasks/, rubrics/ or benchmarks/; check its package data."
        )
    return package


def _module_spec(module: str) -> ModuleSpec | None:
    """The spec of a module; None if there is none.

    `find_spec` alone would import the packages above the module.
    """
    names = module.split(".")
    try:
        spec = find_spec(names[0])
        for number in range(2, len(names) + 1):
            if spec is None or spec.submodule_search_locations is None:
                return None
            submodule = ".".join(names[:number])
            spec = PathFinder.find_spec(submodule, spec.submodule_search_locations)
    except (ImportError, ValueError, AttributeError) as error:
        raise _UnusableError(
            f"its module {module} cannot be found ({error}); check its entry point."
        ) from error
    return spec
