"""What every installed package of tasks provides, and what of it is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from medtasks.errors import MedtasksError
from medtasks.harness.names import harness_names
from medtasks.packages import LeftOut, TaskPackage, task_packages
from medtasks.registry import everything_left_out, plugin_of


@dataclass(frozen=True)
class PackageReport:
    """One package of another lab; ``brings`` counts what is used of it."""

    owner: str
    brings: str
    left_out: tuple[LeftOut, ...]


def package_report() -> list[PackageReport]:
    """A report on every other package that registers tasks, unusable ones included, by distribution."""
    packages = {one.owner: one for one in task_packages() if not one.ours}
    left_out = [*everything_left_out(), *names_of_the_harness()]
    for package in packages.values():
        left_out += _broken_files(package)
    owners = dict.fromkeys([*packages, *(one.owner for one in left_out)])
    return [
        PackageReport(
            owner,
            _brings(packages[owner]) if owner in packages else "",
            tuple(one for one in left_out if one.owner == owner),
        )
        for owner in sorted(owners)
    ]


def _brings(package: TaskPackage) -> str:
    plugin = plugin_of(package)
    files = list(package.task_files())
    groups = sum(path.parent.name == "groups" for path in files)
    counts = {
        "benchmark": len(plugin.benchmarks),
        "task": len(files) - groups,
        "group": groups,
        "filter": len(plugin.filters),
        "metric": len(plugin.metrics),
        "rubric": len(list(package.rubric_files())),
        "card": len(plugin.cards),
    }
    return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count)


def _broken_files(package: TaskPackage) -> Iterator[LeftOut]:
    """Task files and rubrics that cannot be read."""
    from medtasks.judge.rubric import load_rubric
    from medtasks.registry import code_left_out
    from medtasks.spec import load_spec

    if code_left_out(package) is not None:
        return
    for word, load, paths in (
        ("task", load_spec, package.task_files()),
        ("rubric", load_rubric, package.rubric_files()),
    ):
        for path in paths:
            try:
                load(path.stem)
            except MedtasksError as error:
                yield LeftOut(package.owner, f"{word} {path.stem}", str(error), str(path))


def names_of_the_harness() -> list[LeftOut]:
    """Tasks and groups of other packages that lmms-eval has as well: ``--tasks`` runs its own."""
    others = [package for package in task_packages() if not package.ours]
    return [
        LeftOut(
            package.owner,
            f"task {path.stem}",
            "lmms-eval has one of that name, which --tasks runs in its place; rename it.",
            str(path),
        )
        for package in others
        for path in package.task_files()
        if path.stem in harness_names()
    ]
