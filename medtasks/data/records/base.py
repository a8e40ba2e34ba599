"""What all records share, and the words in which a wrong field is refused."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from medtasks.errors import DataError

__all__ = ["Record", "Where", "build", "is_file_name", "is_text", "text_field", "texts_by_key", "wrong"]


@dataclass(frozen=True)
class Where:
    """The place of a row: file (as the user named it), line or row number, counted from 1, and its id if known."""

    file: str
    line: int
    record: str = ""
    unit: str = "line"

    def __str__(self) -> str:
        named = f", record {self.record}" if self.record else ""
        return f"{self.file}, {self.unit} {self.line}{named}"


class Record(BaseModel):
    """What every record has: an id that stays the same when rows move, its cluster, its media."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    sample_id: str
    cluster: str
    media: tuple[str, ...]


def is_file_name(img_id: str) -> bool:
    """Whether an image id can be part of a file name: it must not lead out of the image folder."""
    return re.fullmatch(r"[\w.-]{1,200}", img_id) is not None and not img_id.startswith(".")


R = TypeVar("R", bound=Record)


def build(record: Callable[..., R], where: Where, **fields: Any) -> R:
    """``record(**fields)``, with a validation error said as one sentence (:class:`DataError`)."""
    try:
        return record(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{where}: " + (f"field `{place}`: " if place else "") + f"{message}.") from error


_SHORT = reprlib.Repr()  # rows may hold anything, however deep
_SHORT.maxstring, _SHORT.maxother, _SHORT.maxlist, _SHORT.maxlong = 120, 80, 8, 40


def wrong(where: Where, field: str, found: object, expected: str) -> DataError:
    """The error that a field is missing, or holds ``found`` where ``expected`` should stand."""
    shown = _SHORT.repr(found)
    shown = shown if len(shown) <= 160 else shown[:157] + "…"
    said = "is missing" if found is None else f"is {shown}"
    return DataError(f"{where}: field `{field}` {said}, expected {expected}; fix the row.")


def text_field(row: Mapping[str, Any], field: str, where: Where) -> str:
    """The text of ``field``, which must not be blank; raises :class:`DataError`."""
    value = row.get(field)
    if not is_text(value) or not value.strip():
        raise wrong(where, field, value, "a text that is not empty")
    return str(value)


def is_text(value: object) -> TypeGuard[str]:
    """Whether ``value`` is a text that can be written down: JSON may hold half a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def texts_by_key(row: Mapping[str, Any], field: str, keys: tuple[str, ...], where: Where) -> dict[str, str]:
    """The object ``field`` with exactly ``keys``, each a text that is not blank; raises :class:`DataError`."""
    value = row.get(field)
    if not isinstance(value, Mapping) or set(value) != set(keys):
        found = sorted(map(str, value)) if isinstance(value, Mapping) else value
        raise wrong(where, field, found, f"an object with exactly the keys {', '.join(keys)}")
    for key in keys:
        if not is_text(value[key]) or not value[key].strip():
            raise wrong(where, f"{field}.{key}", value[key], "a text that is not empty")
    return {key: value[key] for key in keys}
