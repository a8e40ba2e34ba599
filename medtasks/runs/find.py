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
    place = path.parent.resolve() / path.name if path.is_symlink() else path.resolve()
    names = [place.name]
    for root in roots:
        if place != root.resolve() and place.is_relative_to(root.resolve()):
            names.append(place.relative_to(root.resolve()).as_posix())
    return max(names, key=len)


def is_unfinished(folder: Path) -> bool:
    """Whether ``folder`` contains the replies of an unfinished run."""
    return (folder / PLAN).is_file()


def run_folders(
    path: Path,
    other: Callable[[Path, list[str], list[str]], None] | None = None,
    closed: Callable[[OSError], object] | None = None,
) -> list[Path]:
    """The result directories at or below ``path``; symbolic links are not followed.

    Hidden directories are skipped, except for a run that a crash left aside while it was being
    replaced: reading it restores it. ``other`` is called with each directory that is not a run's,
    and the names of its subdirectories and files; ``closed`` with the error for each that cannot be
    listed.
    """
    found: list[Path] = []
    for directory, names, others in os.walk(path, onerror=closed):
        current = Path(directory)
        for name in sorted(names):
            whole = current / name[1:].removesuffix(".aside")
            if name.startswith(".") and name.endswith(f"{SUFFIX}.aside") and not whole.exists():
                found.append(whole)
        whole_run = "manifest.json" in others and (current == path or "samples" in names)
        if whole_run or current.resolve().name.endswith(SUFFIX):
            found.append(current)
            names.clear()
            continue
        names[:] = sorted(name for name in names if not name.startswith("."))
        if other is not None:
            other(current, names, others)
    return found


def unfinished_runs(path: Path) -> list[Path]:
    """The directories of unfinished runs at or below ``path``."""
    found = [path] if is_unfinished(path) else []
    run_folders(
        path,
        lambda here, names, _: found.extend(
            here / name for name in names if is_unfinished(here / name)
        ),
    )
    return found


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
    found = one_run(path)
    if is_unfinished(found):
        raise no_run(
            path, "it is an unfinished run: score the replies so far first (medtasks score)"
        )
    return found


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
    found = run_folders(path)
    if len(found) == 1:
        return found[0]
    if found:
        names = first_names((str(one.relative_to(path)) for one in sorted(found)), 5)
        raise UsageError(
            f"{path}: contains {len(found)} result directories ({names}), expected one; give its path."
        )
    if unfinished := unfinished_runs(path):
        raise no_run(
            path, f"{unfinished[0]} is an unfinished run, give it to score the replies so far"
        )
    raise no_run(path)
