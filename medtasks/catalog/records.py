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
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from medtasks.core.errors import DataError
from medtasks.core.schema import first_problem, shown
from medtasks.core.text import well_formed


@dataclass(frozen=True)
class Where:
    """The place of a row.

    Attributes:
        file: the file as the user named it.
        line: number of the line or row, counted from 1.
        record: the row's id; empty if unknown.
        unit: what ``line`` counts.
    """

    file: str
    line: int
    record: str = ""
    unit: str = "line"

    def __str__(self) -> str:
        named = f", record {self.record[:80]}" if self.record else ""
        return f"{self.file}, {self.unit} {self.line}{named}"


class Record(BaseModel):
    """One question of a benchmark; its id does not depend on the row's position in the release."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    sample_id: str
    cluster: str
    media: tuple[str, ...]


class ReleaseRow(BaseModel):
    """A row of a release: a null is a missing field, and unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _nulls_as_missing(cls, row: Any) -> Any:
        """The row with its nulls left out.

        A required field without a value is set to None: its type refuses that in a message that
        states what is expected.
        """
        if not isinstance(row, Mapping):
            return row
        values = {key: value for key, value in row.items() if value is not None}
        for name, field in cls.model_fields.items():
            names = _names_in_row(name, field)
            has_value = any(spelling in values for spelling in names)
            if field.is_required() and not has_value:
                values[_name_of_missing(row, names)] = None
        return values


def _name_of_missing(row: Mapping[Any, Any], names: Sequence[str]) -> str:
    """The name of a missing field for its message: the one under which the row has a null.

    Raises:
        PydanticCustomError: the row has none of several names.
    """
    for name in names:
        if name in row:
            return name
    if len(names) == 1:
        return names[0]
    message = "none of the fields {names} is present, found {found}"
    present = ", ".join(sorted(map(str, row))) or "nothing"
    raise PydanticCustomError("alias", message, {"names": ", ".join(names), "found": present})


def _names_in_row(name: str, field: FieldInfo) -> list[str]:
    """The names under which a row may have a field: its aliases, or its own."""
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return [str(choice) for choice in alias.choices]
    return [str(alias or name)]


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
    """``record(**fields)``.

    Raises:
        DataError: a field has the wrong type; names place, field, what was found and expected.
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


def wrong(where: Where, field: str, value: object, expected: str) -> DataError:
    """The error that ``field`` is missing (``value`` is None), or is not what was expected."""
    state = "is missing" if value is None else f"is {shown(value)}"
    return DataError(f"{where}: field `{field}` {state}, expected {expected}; fix the row.")


def text_field(row: Mapping[str, Any], field: str, where: Where, among: Iterable[str] = ()) -> str:
    """The text of ``field``.

    Raises:
        DataError: it is missing, blank, or not one of ``among``, unless that is empty.
    """
    value = value_or_null(row, field)
    allowed = tuple(among)
    if allowed and value not in allowed:
        raise wrong(where, field, value, f"one of {', '.join(allowed)}")
    if not is_text(value) or not value.strip():
        raise wrong(where, field, value, "a non-empty string")
    return value


def texts_by_key(
    row: Mapping[str, Any], field: str, keys: tuple[str, ...], where: Where
) -> dict[str, str]:
    """The texts of the object ``field``.

    Raises:
        DataError: it does not have exactly ``keys``, or a text is blank.
    """
    value = value_or_null(row, field)
    expected = f"an object with exactly the keys {', '.join(keys)}"
    if not isinstance(value, Mapping):
        raise wrong(where, field, value, expected)
    if set(value) != set(keys):
        raise wrong(where, field, sorted(map(str, value)), expected)
    texts: dict[str, str] = {}
    for key in keys:
        path = f"{field}.{key}"
        texts[key] = text_field({path: value[key]}, path, where)
    return texts


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
    """The letters and digits of a term, in lower case: spacing and punctuation do not matter.

    >>> letters_and_digits("Small-object Detection")
    'smallobjectdetection'
    """
    return re.sub(r"[^a-z0-9]+", "", name.casefold())


def distinct(records: Iterable[K]) -> list[K]:
    """Records with unique ids: duplicates get ``#2``, ``#3``."""
    occurrences: Counter[str] = Counter()
    unique: list[K] = []
    for record in records:
        sample_id = record.sample_id
        occurrences[sample_id] += 1
        number = occurrences[sample_id]
        if number > 1:
            record = record.model_copy(update={"sample_id": f"{sample_id}#{number}"})
        unique.append(record)
    return unique


def repetition_count(records: Iterable[Record]) -> int:
    """The number of records that repeat an earlier one in everything but the id.

    Only records that had the same id before `distinct` numbered them (``x``, ``x#2``) are compared.
    """
    records_by_id: dict[str, list[Record]] = {}
    for record in records:
        original_id = record.sample_id.partition("#")[0]
        records_by_id.setdefault(original_id, []).append(record)
    compared = 0
    contents: set[str] = set()
    for records_of_id in records_by_id.values():
        if any("#" in record.sample_id for record in records_of_id):
            compared += len(records_of_id)
            for record in records_of_id:
                contents.add(record.model_dump_json(exclude={"sample_id"}))
    return compared - len(contents)


def tallies(records: Iterable[Record], *fields: str) -> dict[str, dict[str, int]]:
    """How often each value of ``fields`` occurs, by field; an empty value is ``(none)``."""
    counts: dict[str, Counter[str]] = {field: Counter() for field in fields}
    for record in records:
        for field in fields:
            counts[field][getattr(record, field) or "(none)"] += 1
    return {field: dict(counter) for field, counter in counts.items()}
