"""Finding result directories: every command accepts a run's directory, or a directory that contains
it.

Only light modules are imported: `medtasks.open` lists runs before anything of them is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from medtasks.core.errors import UsageError
from medtasks.core.replacement import recover_directory
from medtasks.core.text import first_names

SUFFIX = "_medtasks"
"""Suffix of the names of result directories."""
PLAN = "run.json"
"""Describes an unfinished run, beside its replies (`medtasks.runs.unfinished`)."""
NO_RUN = f"contains no result directory (…{SUFFIX})"
"""Why a path without a run is refused."""


def name_below(path: Path, roots: Sequence[Path]) -> str:
    """The path below the root that contains it, with ``/``: the name of a submission, without what
    is above the root.

    A root itself has its own name; of several roots, the one that gives the longest name counts.
    """
    place = path.resolve()
    if path.is_symlink():
        place = path.parent.resolve() / path.name
    names = [place.name]
    for root in roots:
        resolved_root = root.resolve()
        if place != resolved_root and place.is_relative_to(resolved_root):
            names.append(place.relative_to(resolved_root).as_posix())
    return max(names, key=len)


def is_unfinished(folder: Path) -> bool:
    """Whether ``folder`` contains the replies of an unfinished run."""
    return (folder / PLAN).is_file()


def run_folders(
    path: Path,
    on_other: Callable[[Path, list[str], list[str]], None] | None = None,
    on_error: Callable[[OSError], object] | None = None,
) -> list[Path]:
    """The result directories at or below ``path``; symbolic links are not followed.

    Hidden directories are skipped, except for a run that a crash left aside while it was being
    replaced: reading it restores it. ``on_other`` is called with each directory that is not a
    run's, and the names of its subdirectories and files; ``on_error`` with the error for each that
    cannot be listed.
    """
    folders: list[Path] = []
    for directory, subdirectories, files in os.walk(path, onerror=on_error):
        current = Path(directory)
        folders += _runs_left_aside(current, subdirectories)
        is_at_top = current == path
        has_run = "manifest.json" in files and (is_at_top or "samples" in subdirectories)
        if has_run or current.resolve().name.endswith(SUFFIX):
            folders.append(current)
            subdirectories.clear()  # which `os.walk` then does not enter
            continue
        subdirectories[:] = sorted(name for name in subdirectories if not name.startswith("."))
        if on_other is not None:
            on_other(current, subdirectories, files)
    return folders


def _runs_left_aside(directory: Path, subdirectories: Sequence[str]) -> list[Path]:
    """The paths of runs whose replacement was interrupted before the new run was in place."""
    runs = []
    for name in sorted(subdirectories):
        if name.startswith(".") and name.endswith(f"{SUFFIX}.aside"):
            run = directory / name[1:].removesuffix(".aside")
            if not run.exists():
                runs.append(run)
    return runs


def unfinished_runs(path: Path) -> list[Path]:
    """The directories of unfinished runs at or below ``path``."""
    runs = [path] if is_unfinished(path) else []

    def add_unfinished(directory: Path, subdirectories: list[str], _files: list[str]) -> None:
        for name in subdirectories:
            if is_unfinished(directory / name):
                runs.append(directory / name)

    run_folders(path, add_unfinished)
    return runs


def require_directory(path: Path) -> None:
    """Refuse a path that is not a directory of results."""
    try:
        os.scandir(path).close()
    except FileNotFoundError:
        raise UsageError(
            f"{path}: no such directory; give a result directory (…{SUFFIX})."
        ) from None
    except NotADirectoryError:
        raise UsageError(
            f"{path}: is a file, expected a result directory (…{SUFFIX}); give one."
        ) from None
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be listed ({error.strerror}); give access to it."
        ) from None


def no_run(path: Path, fix: str = "give one, or a directory that contains some") -> UsageError:
    """The error that there is no run at or below ``path``."""
    return UsageError(f"{path}: {NO_RUN}; {fix}.")


def finished_run(path: Path) -> Path:
    """The only result directory at or below ``path``; raises :class:`UsageError` as
    :func:`one_run`, and for an unfinished run, which has no scores.
    """
    folder = one_run(path)
    if is_unfinished(folder):
        raise no_run(
            path, "it is an unfinished run: score the replies so far first (medtasks score)"
        )
    return folder


def one_run(path: Path) -> Path:
    """The only result directory at or below ``path``, or ``path`` itself if it is an unfinished
    run.

    Raises:
        UsageError: it is not a directory, or contains no run, or several; names them.
    """
    recover_directory(path)
    require_directory(path)
    if is_unfinished(path):
        return path
    folders = run_folders(path)
    if len(folders) == 1:
        return folders[0]
    if folders:
        names = [str(folder.relative_to(path)) for folder in sorted(folders)]
        raise UsageError(
            f"{path}: contains {len(folders)} result directories ({first_names(names, 5)}), "
            "expected one; give its path."
        )
    unfinished = unfinished_runs(path)
    if unfinished:
        raise no_run(
            path, f"{unfinished[0]} is an unfinished run, give it to score the replies so far"
        )
    raise no_run(path)
