"""JSON of our own programs, read strictly: repeated keys and values of other types are errors."""

from __future__ import annotations

import re
from typing import TypeVar

import jiter
from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from medtasks.core.schema import shown

M = TypeVar("M", bound=BaseModel)

_REPEATED = re.compile(r'Detected duplicate key "(?P<key>.*)" at line \d+ column \d+', re.DOTALL)


def model_from_json(model: type[M], data: bytes) -> M:
    """The JSON object in ``data`` as ``model``; neither ``true`` nor ``"1"`` is a number.

    Raises:
        ValidationError: the JSON or a field is invalid, or an object has a key twice.
    """
    require_distinct_keys(data)
    return model.model_validate_json(data, strict=True)


def require_distinct_keys(data: bytes) -> None:
    """Raise a `ValidationError` if an object in the JSON ``data`` has a key twice, of which readers
    take different ones. Other errors are left to whatever reads the data.
    """
    try:
        jiter.from_json(data, catch_duplicate_keys=True)
    except ValueError as error:
        repeated = _REPEATED.search(str(error))
        if repeated is not None:
            message = f"the key {shown(repeated['key'])} is repeated, expected it once"
            problem = PydanticCustomError("repeated_key", "{message}", {"message": message})
            details = InitErrorDetails(type=problem, loc=(), input=None)
            raise ValidationError.from_exception_data("JSON", [details]) from error
