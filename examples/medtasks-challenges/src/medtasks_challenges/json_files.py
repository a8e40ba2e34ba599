"""JSON files of challenges, also in ZIP files: read whole, with lists of objects in a field."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medtasks.api import DataError


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        DataError: the file is missing, cannot be read, or is not JSON.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text, expected JSON; check the file.") from error
    return parse_json(text, path)


@contextmanager
def reading_zip(path: Path) -> Iterator[None]:
    """Report that a ZIP file cannot be read, or is damaged or encrypted.

    Raises:
        DataError: the block could not read it.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path.") from error
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: is not a readable ZIP file ({error}); check it.") from error


def parse_json(text: str | bytes, path: Path) -> Any:
    """The content of a JSON text; ``path`` is the file that it is from.

    Raises:
        DataError: it is not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not valid JSON ({error}); check the file.") from error


def objects_in(content: Any, field: str, path: Path) -> list[Mapping[str, Any]]:
    """The objects of a list, or of the list that an object has in ``field``.

    Raises:
        DataError: the content has another form.
    """
    entries = content.get(field) if isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise DataError(
            f"{path}: field `{field}` is {entries!r:.80}, expected a list of objects; fix the file."
        )
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise DataError(
                f"{path}: entry {number} of `{field}` is {entry!r:.80}, expected an object; "
                "fix the file."
            )
    return entries
