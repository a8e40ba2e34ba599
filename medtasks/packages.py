"""Who brings tasks: medtasks itself, and installed packages that say so with an entry point.

A package registers under the group ``medtasks.tasks`` and keeps its files in folders beside the module that it names:
``tasks/<benchmark>/*.yaml`` (and ``groups/``), ``templates/``, ``rubrics/``. What there is, is told from these folders
alone, without importing any of its code (target S6); the code, where there is any, is :mod:`medtasks.plugin`'s.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

__all__ = ["GROUP", "OURS", "TaskPackage", "task_packages"]

GROUP = "medtasks.tasks"
"""The entry-point group."""

OURS = "medtasks"


@dataclass(frozen=True)
class TaskPackage:
    """One distribution that brings tasks; ``module`` is what its entry point names, ``folder`` where its files lie."""

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

    def names(self) -> Iterator[tuple[str, str]]:
        """(kind, name) of everything that must be nobody else's: tasks and groups, templates, rubrics."""
        for path in sorted([*self.tasks.glob("*/[!_]*.yaml"), *self.tasks.glob("*/groups/*.yaml")]):
            yield "task", path.stem
        for path in sorted(self.templates.rglob("*.j2")):
            yield "template", path.relative_to(self.templates).as_posix()
        for path in sorted(self.rubrics.glob("*.yaml")):
            yield "rubric", path.stem


@functools.cache
def task_packages() -> tuple[TaskPackage, ...]:
    """Ours, then every installed one that can be used, by distribution.

    A package that cannot be found, brings no task, or takes a name that another one has, is left out: one sentence on
    standard error says why, and everything else works.
    """
    found = [_ours()]
    taken = dict.fromkeys(found[0].names(), OURS)
    for point in sorted(entry_points(group=GROUP), key=_order):
        package = _read(point)
        if isinstance(package, str):
            _warn(package)
            continue
        clashes = [(kind, name) for kind, name in package.names() if (kind, name) in taken]
        if clashes:
            kind, name = clashes[0]
            other = taken[clashes[0]]
            _warn(f"{package.owner} is left out: its {kind} {name} is already {other}'s; rename one of them.")
            continue
        taken |= dict.fromkeys(package.names(), package.owner)
        found.append(package)
    return tuple(found)


def _ours() -> TaskPackage:
    import medtasks.rubrics
    import medtasks.tasks
    import medtasks.templates

    folders: Sequence[Path] = [
        Path(module.__path__[0]) for module in (medtasks.tasks, medtasks.templates, medtasks.rubrics)
    ]
    return TaskPackage(OURS, medtasks.__version__, "medtasks.builtin", *folders)


def _order(point: EntryPoint) -> tuple[str, str]:
    return (point.dist.name if point.dist else "", point.name)


def _read(point: EntryPoint) -> TaskPackage | str:
    """The package of an entry point, or why there is none."""
    distribution = point.dist.name if point.dist else point.name
    try:
        spec = find_spec(point.module)  # imports the package around it, where it names a module within one
    except Exception as error:
        return (
            f"package {distribution} is left out: {point.module} cannot be imported ({type(error).__name__}: {error})."
        )
    if spec is None or spec.origin is None:
        return f"package {distribution} is left out: it names the module {point.module}, which does not exist."
    folder = Path(spec.origin).parent
    package = TaskPackage(
        distribution,
        point.dist.version if point.dist else "unknown",
        point.module,
        folder / "tasks",
        folder / "templates",
        folder / "rubrics",
    )
    if not any(True for _ in package.names()):
        return (
            f"package {distribution} is left out: {folder} holds no YAML file in tasks/ or rubrics/; check its package "
            "data."
        )
    return package


def _warn(text: str) -> None:
    print(f"medtasks: {text}", file=sys.stderr, flush=True)
