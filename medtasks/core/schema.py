"""Pydantic's errors in our own wording: the field, what was found, what was expected."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, PlainValidator, StringConstraints, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError
from typing_extensions import Self

from medtasks.core.text import first_names, shortened

Keys = tuple[str | int, ...]
"""The path to a value: keys of mappings and positions in lists, from the top."""

Text = Annotated[str, StringConstraints(pattern=r"\S")]
"""A string that is not blank."""

_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_parsing": "a number",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "json_invalid": "valid JSON ({error})",
    "json_type": "JSON in a string",
    "literal_error": "{expected}",
    "model_type": "a mapping",
    "none_required": "no such field",
    "string_pattern_mismatch": "a non-empty string",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_unicode": "a string of valid Unicode",
    "too_long": "at most {max_length}",
    "too_short": "at least {min_length}",
    "tuple_type": "a list",
}
"""The expected value in words, by pydantic's type of error; for other types pydantic's words are
used.
"""


class Frozen(BaseModel):
    """An immutable model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Compact(Frozen):
    """A model with many instances, which does not store the names of the fields that were set: they
    take as much memory as the values.
    """

    def model_post_init(self, _: Any, /) -> None:
        object.__setattr__(self, "__pydantic_fields_set__", _NO_NAMES)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        copied.model_post_init(None)
        return copied


_NO_NAMES: set[str] = set()


class Problem(NamedTuple):
    """One invalid value: pydantic's type of error (or a custom one), the path to the value, and a
    message.
    """

    kind: str
    keys: Keys
    message: str


def expects(words: str, fits: Callable[[Any], bool]) -> PlainValidator:
    """A validator for values that no type describes: ``fits`` tests them, ``words`` describes
    them.
    """

    def check(value: Any) -> Any:
        if not fits(value):
            raise PydanticCustomError("expected", "{words}", {"words": words})
        return value

    return PlainValidator(check)


def text_that(words: str, fits: Callable[[str], object]) -> PlainValidator:
    """As :func:`expects`, for strings: ``fits`` returns something false for the wrong ones."""
    return expects(words, lambda value: isinstance(value, str) and bool(fits(value)))


def problems(
    error: ValidationError,
    model: type[BaseModel] | None = None,
    *,
    secret: bool = False,
    source: Mapping[str, Any] | None = None,
) -> Iterator[Problem]:
    """All problems in a validation error.

    A validator's own message is kept unchanged after the field; ``at`` in its context is the key or
    position. With ``model``, messages about unknown keys list the known ones. If values are
    ``secret``, none is in a message. ``source`` is what was validated, if a missing field of it was
    validated as None: it tells the two apart.
    """
    for detail in error.errors(include_url=False):
        context, keys = detail.get("ctx", {}), detail["loc"]
        if "at" in context:
            keys = (*keys, context["at"])
        message = _message(detail, keys, model, secret=secret, source=source)
        yield Problem(detail["type"], keys, message)


def own_problems(all_problems: list[Problem]) -> Iterator[Problem]:
    """The problems that do not merely follow from others.

    A list is too short only because its wrong items were left out; a key is missing only because it
    is misspelt, which the unknown key's own message suggests.
    """
    outer_keys: set[Keys] = set()
    unknown_keys: list[Keys] = []
    for problem in all_problems:
        outer_keys.update(problem.keys[:length] for length in range(len(problem.keys)))
        if problem.kind == "extra_forbidden":
            unknown_keys.append(problem.keys)
    for problem in all_problems:
        if problem.kind == "too_short" and problem.keys in outer_keys:
            continue
        if problem.kind == "missing" and _is_misspelt(problem.keys, unknown_keys):
            continue
        yield problem


def _is_misspelt(missing: Keys, unknown_keys: list[Keys]) -> bool:
    """Whether an unknown key beside the missing one looks like it."""
    for keys in unknown_keys:
        if keys[:-1] == missing[:-1] and suggestion(keys[-1], [str(missing[-1])]):
            return True
    return False


def first_problem(
    error: ValidationError,
    model: type[BaseModel] | None = None,
    source: Mapping[str, Any] | None = None,
) -> str:
    """The message of the first problem; the arguments are those of :func:`problems`."""
    return next(problems(error, model, source=source)).message


def _message(
    error: ErrorDetails,
    keys: Keys,
    model: type[BaseModel] | None,
    *,
    secret: bool,
    source: Mapping[str, Any] | None,
) -> str:
    """What is wrong at these keys and what was expected; without the value if it is ``secret``."""
    kind, text = error["type"], error["msg"].removeprefix("Value error, ")
    place = f"field `{field_name(keys)}`" if keys else "the content"
    if kind == "missing":
        return f"{place} is missing"
    if kind == "extra_forbidden":
        return _unknown_key(place, keys, model)
    if kind == "json_invalid" and not keys:
        return f"not valid JSON ({error['ctx']['error']})"
    expected = _expected(error, text)
    if expected is not None:
        return f"{place} {_state(error, keys, secret=secret, source=source)}, expected {expected}"
    if kind == "value_error" and keys and not secret:
        return f"{place} is {shown(error['input'])}: {text}"
    return f"{place}: {text}" if keys else text


def _unknown_key(place: str, keys: Keys, model: type[BaseModel] | None) -> str:
    """The message about a key that the model at its place does not have."""
    for key in keys[:-1]:
        # another key is one of a mapping, or a position
        if isinstance(key, str) and model is not None and key in model.model_fields:
            model = next(_models_in(model.model_fields[key].annotation), None)
    names = list(model.model_fields) if model is not None else []
    expected = f", expected one of {first_names(names, 8)}" if names else ""
    return f"{place} is unknown{suggestion(keys[-1], names)}{expected}"


def _expected(error: ErrorDetails, text: str) -> str | None:
    """What pydantic expected, in words; None if its message is a sentence of its own."""
    kind = error["type"]
    if kind == "expected":
        return text
    if kind in _EXPECTED:
        return _EXPECTED[kind].format_map(error.get("ctx", {}))
    if text.startswith("Input should be "):
        return text.removeprefix("Input should be ").replace("a valid ", "a ", 1)
    return None


def _state(
    error: ErrorDetails, keys: Keys, *, secret: bool, source: Mapping[str, Any] | None
) -> str:
    """What was there instead of the expected value."""
    value = error.get("ctx", {}).get("found", error["input"])
    if value is not None:
        return "is wrong" if secret else f"is {shown(value)}"
    if source is None or _has_null(source, keys):
        return "is null"
    return "is missing"


def _has_null(source: Any, keys: Keys) -> bool:
    """Whether ``source`` has a null at the end of this path."""
    value = source
    for key in keys:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return False
    return value is None


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in the annotation of a field, such as ``list[Model] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def field_name(keys: Keys) -> str:
    """``("metric_list", 0, "metric")`` as ``metric_list[0].metric``."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


_SHORT = reprlib.Repr()  # files may contain anything, at any depth
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlist = _SHORT.maxdict = 6
_SHORT.maxlong = 40


def shown(value: object) -> str:
    """``value`` for a message: short, on one line, without control characters."""
    if type(value) is str and len(value) > 80:
        return repr(shortened(value, 80))
    return shortened(_SHORT.repr(value), 120)


def suggestion(name: object, names: Iterable[str]) -> str:
    """`` (did you mean …?)`` if one of the ``names`` is close, else an empty string."""
    near = get_close_matches(str(name)[:80], sorted(names), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def unknown(kind: str, name: object, names: Collection[str]) -> str:
    """A sentence that ``name`` is unknown, with the closest and the first of the ``names`` that
    exist.
    """
    some = first_names(names, 8) or "none"
    return f"{kind} {shown(name)} is unknown{suggestion(name, names)}, expected one of {some}"
