"""Writing challenge files: never over something that exists, and never part of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from medtasks.api import UsageError


def refuse_unwritable(out: Path) -> None:
    """Raise an error if the output exists, or if there is no directory to write it into.

    Commands call it first, so that a wrong path is reported before the answers are scored.

    Raises:
        UsageError: it exists, or its parent is missing or not a directory.
    """
    with _writing(out):
        if out.exists():
            raise UsageError(f"--out {out}: exists already; give another name, or remove it.")
        if not out.parent.is_dir():
            raise UsageError(f"--out {out}: {out.parent} is not a directory; create it first.")


def write_file(out: Path, content: bytes) -> None:
    """Write a new file.

    Raises:
        UsageError: it cannot be written.
    """
    with _writing(out), out.open("xb") as file:
        file.write(content)


def write_folder(out: Path, texts: Mapping[str, str]) -> None:
    """Write a new directory with these texts by file name.

    Raises:
        UsageError: it cannot be written.
    """
    contents = {name: text.encode() for name, text in texts.items()}
    with _writing(out):
        out.mkdir()
    for name, content in contents.items():
        write_file(out / name, content)


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Report an `OSError` of the block as an output that cannot be written."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"--out {out}: cannot be written ({error.strerror}); give another path."
        ) from error
