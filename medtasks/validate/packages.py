"""The rule for packages: neither they nor a part of them is left out."""

from __future__ import annotations

from collections.abc import Collection

from medtasks.benchmarks.layout_checks import layouts_left_out
from medtasks.catalog.registry import everything_left_out
from medtasks.catalog.task_package import TaskPackage
from medtasks.core.findings import Finding, finding


def check_packages(
    packages: Collection[TaskPackage], faulty: Collection[TaskPackage]
) -> list[Finding]:
    """Findings about ``packages``, or parts of them, that are left out.

    Board layouts are checked only where nothing else is wrong: those of ``faulty`` packages, which
    have faulty files, may lack what these files would define.
    """
    owners = {package.owner for package in packages}
    left_out = [part for part in everything_left_out() if part.owner in owners]
    incomplete = {part.owner for part in left_out} | {package.owner for package in faulty}
    for package in packages:
        if package.owner not in incomplete:
            left_out += layouts_left_out(package)
    findings = []
    for part in left_out:
        message = f"{part.part or 'the package'} is left out: {part.why}"
        findings.append(finding("MT150", part.owner, message, part.place))
    return findings
