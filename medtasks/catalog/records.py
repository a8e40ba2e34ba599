"""Shared by all records: checks of release rows, and error messages for wrong fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, TypeGuard, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from medtasks.core.errors import DataError
from medtasks.core.schema import first_problem, shown
from medtasks.core.text import well_formed


@dataclass(frozen=True)
class Where:
    """The place of a row: file (as the user named it), line or row number, counted from 1, and its
    id if known.
    """

    file: str
    line: int
    record: str = ""
    unit: str = "line"

    def __str__(self) -> str:
        named = f", record {self.record[:80]}" if self.record else ""
        return f"{self.file}, {self.unit} {self.line}{named}"


class Record(BaseModel):
    """Fields of every record: an id that does not depend on the row's position, its cluster, its
    media.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    sample_id: str
    cluster: str
    media: tuple[str, ...]


class ReleaseRow(BaseModel):
    """A row of a release: a null is a missing field, and unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, row: Any) -> Any:
        if not isinstance(row, Mapping):
            return row
        given = {key: value for key, value in row.items() if value is not None}
        for name, field in cls.model_fields.items():
            alias = field.validation_alias
            names = (
                [*map(str, alias.choices)]
                if isinstance(alias, AliasChoices)
                else [str(alias or name)]
            )
            if not field.is_required() or any(one in given for one in names):
                continue
            null = next((one for one in names if one in row), None)
            if null is None and len(names) > 1:
                message = "none of the fields {names} is present, found {found}"
                found = ", ".join(sorted(map(str, row))) or "nothing"
                raise PydanticCustomError(
                    "alias", message, {"names": ", ".join(names), "found": found}
                )
            given[null or names[0]] = (
                None  # the field's type refuses it and states what is expected
            )
        return given


def with_keys(*keys: str) -> AfterValidator:
    """A validator for mappings with exactly these keys; it returns them in this order."""

    def check(value: dict[str, Any]) -> dict[str, Any]:
        if set(value) != set(keys):
            words = f"an object with exactly the keys {', '.join(keys)}"
            raise PydanticCustomError(
                "expected", "{words}", {"words": words, "found": sorted(map(str, value))}
            )
        return {key: value[key] for key in keys}

    return AfterValidator(check)


R = TypeVar("R")
K = TypeVar("K", bound=Record)
M = TypeVar("M", bound=ReleaseRow)


def parse_row(model: type[M], row: Mapping[str, Any], where: Where) -> M:
    """``row`` as ``model`` checks it; raises :class:`DataError` as :func:`build` does."""
    return _built(model.model_validate, where, row, obj=row)


def build(record: Callable[..., R], where: Where, **fields: Any) -> R:
    """``record(**fields)``; a field of the wrong type is a :class:`DataError` with place, field,
    found and expected.
    """
    return _built(record, where, {}, **fields)


def _built(record: Callable[..., R], where: Where, row: Mapping[str, Any], **fields: Any) -> R:
    try:
        return record(**fields)
    except ValidationError as error:
        raise DataError(f"{where}: {first_problem(error, source=row)}; fix the row.") from error


class Null(Enum):
    """In place of None, which is a missing field in messages: the field is there, and null."""

    NULL = "null"

    def __repr__(self) -> str:
        return "null"


def value_or_null(row: Mapping[str, Any], field: str) -> Any:
    """The value of ``field`` for a message: None if it is missing, :class:`Null` if it is null."""
    value = row.get(field)
    return Null.NULL if value is None and field in row else value


def wrong(where: Where, field: str, found: object, expected: str) -> DataError:
    """The error that ``field`` is missing (``found`` is None), or is not what was expected."""
    state = "is missing" if found is None else f"is {shown(found)}"
    return DataError(f"{where}: field `{field}` {state}, expected {expected}; fix the row.")


def text_field(row: Mapping[str, Any], field: str, where: Where, among: Iterable[str] = ()) -> str:
    """The text of ``field``, which must not be blank, and one of ``among`` if given; raises
    :class:`DataError`.
    """
    value = value_or_null(row, field)
    if among and value not in (known := tuple(among)):
        raise wrong(where, field, value, f"one of {', '.join(known)}")
    if not is_text(value) or not value.strip():
        raise wrong(where, field, value, "a non-empty string")
    return value


def texts_by_key(
    row: Mapping[str, Any], field: str, keys: tuple[str, ...], where: Where
) -> dict[str, str]:
    """The object ``field`` with exactly ``keys``, each a text that is not blank; raises
    :class:`DataError`.
    """
    value = value_or_null(row, field)
    if not isinstance(value, Mapping) or set(value) != set(keys):
        found = sorted(map(str, value)) if isinstance(value, Mapping) else value
        raise wrong(where, field, found, f"an object with exactly the keys {', '.join(keys)}")
    return {
        key: text_field({f"{field}.{key}": value[key]}, f"{field}.{key}", where) for key in keys
    }


def is_text(value: object) -> TypeGuard[str]:
    """Whether ``value`` is a text that can be encoded: JSON may have half a surrogate pair."""
    return isinstance(value, str) and well_formed(value) == value


def is_path_below(value: object) -> TypeGuard[str]:
    """Whether ``value`` is a relative path (POSIX) that does not lead out of its directory."""
    if not is_text(value) or "\\" in value or "\0" in value or value.startswith("/"):
        return False
    parts = PurePosixPath(value).parts
    return bool(parts) and ".." not in parts


@lru_cache(maxsize=4096)
def letters_and_digits(name: str) -> str:
    """A term of a release's vocabulary by its letters and digits alone: case, spacing and
    punctuation do not matter.

    >>> letters_and_digits("Small-object Detection")
    'smallobjectdetection'
    """
    return re.sub(r"[^a-z0-9]+", "", name.casefold())


def distinct(records: Iterable[K]) -> list[K]:
    """Records with unique ids: duplicates get ``#2``, ``#3``."""
    times: Counter[str] = Counter()
    found = []
    for record in records:
        name = record.sample_id
        times[name] += 1
        found.append(
            record.model_copy(update={"sample_id": f"{name}#{times[name]}"})
            if times[name] > 1
            else record
        )
    return found


def repeated(records: Sequence[Record]) -> dict[str, int]:
    """How many records repeat an earlier one except for the number of `distinct`, as an oddity;
    empty if none does.
    """
    several = {record.sample_id.partition("#")[0] for record in records if "#" in record.sample_id}
    alike = [record for record in records if record.sample_id.partition("#")[0] in several]
    number = len(alike) - len({record.model_dump_json(exclude={"sample_id"}) for record in alike})
    return {"records that only repeat an earlier one": number} if number else {}


def tallies(records: Iterable[Record], *fields: str) -> dict[str, dict[str, int]]:
    """How often each value of ``fields`` occurs; an empty one is ``(none)``."""
    rows = list(records)
    return {
        field: dict(Counter(getattr(record, field) or "(none)" for record in rows))
        for field in fields
    }
