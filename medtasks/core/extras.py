"""What our extras install, such as ``medtasks[vlm]``; one sentence where something is missing.

`pyproject.toml` alone states the packages of each extra and their versions: they are read from the
metadata of the installed medtasks.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from medtasks.core.errors import MissingExtraError, first_line
from medtasks.core.text import first_names


@contextmanager
def needs(extra: str, user: str) -> Iterator[None]:
    """Import in this block what ``extra`` installs, which ``user`` (a command, say) needs.

    Raises:
        MissingExtraError: a package is absent, has another version than medtasks needs, or cannot
            be imported.
    """
    require(extra, user)
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{user} cannot import what {install_line(extra)} installs ({first_line(error)}); "
            "install it again, in a new environment if need be."
        ) from error


def require(extra: str, user: str) -> None:
    """Check that all packages of ``extra`` are installed, without importing them.

    Raises:
        MissingExtraError: a package is absent, or has another version than medtasks needs.
    """
    problems = problems_of(extra)
    if problems:
        raise MissingExtraError(f"{user} {words_for(problems)}; run: {install_line(extra)}")


def words_for(problems: Sequence[str]) -> str:
    """The first ``problems`` in words that follow the name of what has them."""
    return f"needs {first_names(problems, 3)}"


def install_line(extra: str) -> str:
    """The command that installs an extra."""
    return f'pip install "medtasks[{extra}]"'


@functools.cache
def problems_of(extra: str) -> tuple[str, ...]:
    """What is absent of an extra, or has another version: the requirement and what was found."""
    problems: list[str] = []
    for name, specifier in versions_of(extra).items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            problems.append(f"{name}{specifier} (not installed)")
            continue
        if not specifier.contains(installed, prereleases=True):
            problems.append(f"{name}{specifier} ({installed} is installed)")
    return tuple(problems)


def versions_of(extra: str) -> dict[str, SpecifierSet]:
    """The versions that an extra allows, by package; those of extras that it includes, too."""
    versions: dict[str, SpecifierSet] = {}
    for requirement in _requirements_of(extra):
        name = requirement.name
        versions[name] = requirement.specifier & versions.get(name, SpecifierSet())
    return versions


def _requirements_of(extra: str) -> list[Requirement]:
    """The lines of an extra that apply to this machine, and those of the extras that it includes.

    There are none if medtasks runs from a directory that is not installed.
    """
    try:
        lines = requires("medtasks") or []
    except PackageNotFoundError:
        return []
    needed: list[Requirement] = []
    for line in lines:
        requirement = Requirement(line)
        if not _is_only_in(requirement, extra):
            continue
        if requirement.name != "medtasks":
            needed.append(requirement)
            continue
        for included in sorted(requirement.extras):
            needed += _requirements_of(included)
    return needed


def _is_only_in(requirement: Requirement, extra: str) -> bool:
    """Whether a line applies to this machine with the extra and not without it."""
    marker = requirement.marker
    if marker is None or marker.evaluate({"extra": ""}):
        return False
    return marker.evaluate({"extra": extra})
