"""The benchmark folders that are in use: those of this process, and those that the user has added.

``medtasks add`` writes the path of a folder into ``benchmarks.json`` in the user's configuration
directory; ``MEDTASKS_BENCHMARKS`` and ``--include_path`` name folders for one process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from medtasks.catalog.benchmark_folder import load_benchmark_folder
from medtasks.catalog.folder_tasks import folder_package
from medtasks.catalog.task_package import LeftOut, TaskPackage
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.files import canonical_json
from medtasks.core.replacement import replaced
from medtasks.core.settings import current_settings

_INCLUDED: dict[Path, None] = {}
"""Folders that the command line of this process names."""


def include(path: Path) -> None:
    """Use the folder ``path`` in this process; what was read of packages must be forgotten."""
    _INCLUDED[path.resolve()] = None


def registration_file() -> Path:
    """The file of the folders that the user has added; it may not exist yet."""
    from platformdirs import user_config_path

    return user_config_path("medtasks") / "benchmarks.json"


def added_folders() -> dict[str, Path]:
    """The folders that the user has added, by the names of their benchmarks.

    Raises:
        UsageError: the list cannot be read.
    """
    file = registration_file()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _unreadable(file, str(error)) from error
    if not isinstance(content, dict) or not all(isinstance(path, str) for path in content.values()):
        raise _unreadable(file, "expected the path of each folder by its name")
    return {name: Path(path) for name, path in sorted(content.items())}


def _unreadable(file: Path, reason: str) -> UsageError:
    """The error of a list of folders that cannot be read."""
    return UsageError(
        f"{file}: cannot be read as the list of added benchmarks ({reason}); fix it, or delete it "
        "and add the folders again."
    )


def refuse_other_folder(name: str, path: Path) -> None:
    """Refuse a folder if the user has added another one whose benchmark has this name.

    Raises:
        UsageError: there is one that still exists, or the list cannot be read.
    """
    added = added_folders().get(name)
    if added is not None and added != path.resolve() and added.is_dir():
        raise UsageError(
            f"{path}: the benchmark {name} is already added from {added}; change `name` in one "
            f"benchmark.yaml, or run: medtasks remove {name}"
        )


def add_folder(name: str, path: Path) -> None:
    """Add the folder of the benchmark ``name`` for all commands of this user.

    Raises:
        UsageError: the list cannot be read or written, or has another folder of this name.
    """
    refuse_other_folder(name, path)
    _write({**added_folders(), name: path.resolve()})


def remove_folder(name: str) -> Path:
    """Remove the benchmark ``name`` from the user's list; return its folder, which is kept.

    Raises:
        UsageError: the list cannot be read or written, or does not have the name.
    """
    folders = added_folders()
    if name not in folders:
        names = ", ".join(folders) or "none"
        raise UsageError(f"the benchmark {name!r} is not added; added are: {names}.")
    path = folders.pop(name)
    _write(folders)
    return path


def _write(folders: Mapping[str, Path]) -> None:
    """Replace the user's list."""
    file = registration_file()
    paths = {name: str(path) for name, path in folders.items()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced(file) as temporary:
            temporary.write_text(canonical_json(paths, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{file}: cannot be written ({error.strerror}); give access to it, or name the folders "
            "in MEDTASKS_BENCHMARKS instead."
        ) from error


def folder_packages(packaged: Iterable[Path] = ()) -> Iterator[TaskPackage | LeftOut]:
    """Every folder in use as a package, or why it is left out; each folder once.

    Folders in installed packages come first (``packaged``), then those of the command line, of
    ``MEDTASKS_BENCHMARKS``, and added ones.
    """
    paths: dict[Path, str] = dict.fromkeys((*packaged, *_INCLUDED), "")
    for path in current_settings().benchmarks:
        paths.setdefault(path.resolve(), "fix or unset MEDTASKS_BENCHMARKS")
    try:
        for name, path in added_folders().items():
            paths.setdefault(path, f"move it back, or run: medtasks remove {name}")
    except UsageError as error:
        yield LeftOut("list of added benchmarks", "", str(error))
    for path, fix in paths.items():
        try:
            if fix and not path.is_dir():
                raise UsageError(f"{path} is not a directory; {fix}.")
            yield folder_package(load_benchmark_folder(path))
        except MedtasksError as error:
            yield LeftOut(f"folder {path.name}", "", str(error))
