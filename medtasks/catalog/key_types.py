"""The types of the keys of task files, which state what is expected in messages."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from medtasks.core.schema import expects, shown


class FunctionName(str):
    """The dotted name after ``!function``."""

    __slots__ = ()


ABSENT: Any = None
"""Default of an optional key; an explicit null is refused."""


def distinct_names(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same entries, of which none may have another one's name."""
    names: list[Any] = []
    for number, value in enumerate(values):
        name = getattr(value, "metric", None) or getattr(value, "name", value)
        if name in names:
            context = {"name": shown(name), "at": number}
            raise PydanticCustomError("MT114", "{name} is duplicated, expected once", context)
        names.append(name)
    return values


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, FunctionName)


def _is_name(value: Any) -> bool:
    return _is_text(value) and bool(value.strip())


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_name, value))


def _answers(value: Any) -> tuple[str, ...]:
    """An answer, or a list of answers, as a tuple."""
    texts = value if isinstance(value, list) else [value]
    if not texts or not _are_names(texts):
        words = 'an answer in quotes such as "yes", or a list of them'
        raise PydanticCustomError("expected", "{words}", {"words": words})
    return tuple(texts)


Name = Annotated[str, expects("a non-empty string", _is_name)]
Answers = Annotated[tuple[str, ...], PlainValidator(_answers)]
NameOrNames = Annotated[
    Any,
    expects("a string or a list of strings", lambda value: _is_name(value) or _are_names(value)),
]
Names = Annotated[tuple[Name, ...], Field(strict=False), AfterValidator(distinct_names)]
AnyText = Annotated[str, expects("a string", _is_text)]
Function = Annotated[
    FunctionName,
    expects("`!function` with a dotted name", lambda value: isinstance(value, FunctionName)),
]
NameOrFunction = Annotated[
    str, expects("a string or `!function`", lambda value: isinstance(value, str) and value.strip())
]
Tags = Annotated[
    Any,
    expects("none, a string or a list", lambda value: _is_name(value) or isinstance(value, list)),
]
Count = Annotated[int, Field(ge=1)]
FromZero = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def refuse_if(wrong: object, at: str, message: str, fix: str) -> None:
    """If ``wrong``, refuse a model whose settings contradict each other; the message names
    ``at``.
    """
    if wrong:
        raise PydanticCustomError("MT113", "{words}", {"words": f"{message}; {fix}", "at": at})


class TaskKeys(BaseModel):
    """A mapping of a task file, whose unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
