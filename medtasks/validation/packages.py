"""Packages, and parts of packages, that are left out: reported once, with the file and line of what is wrong."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from medtasks.packages import TaskPackage
from medtasks.registry import code_left_out, everything_left_out
from medtasks.task_files import owner_of
from medtasks.task_source import Place
from medtasks.validation.findings import Finding, found


def validate_packages(packages: Collection[TaskPackage]) -> list[Finding]:
    """Findings about what of ``packages`` is left out."""
    owners = {package.owner for package in packages}
    return [
        found(
            "MT150",
            one.owner,
            f"{one.part or 'the package'} is left out: {one.why}",
            Place(Path(one.file), one.line or 1) if one.file else None,
        )
        for one in everything_left_out()
        if one.owner in owners
    ]


def is_reported(task: Path, part: str) -> bool:
    """Whether :func:`validate_packages` reports why ``part`` of the package of a task file is not there."""
    package = owner_of(task)
    reported = any(one.owner == package.owner and one.part == part for one in everything_left_out())
    return not package.ours and reported


def of_broken_package(task: Path) -> bool:
    """Whether no code of a task file's package can be used, which :func:`validate_packages` reports."""
    package = owner_of(task)
    return not package.ours and code_left_out(package) is not None
