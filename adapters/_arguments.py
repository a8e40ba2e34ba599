"""Model arguments and generation settings: declared as pydantic models, refused with one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from medtasks.errors import UsageError


def _refuse_flag(value: object) -> object:
    if isinstance(value, bool):  # which pydantic would take for 0 or 1
        raise ValueError("expected a number")
    return value


_Number = BeforeValidator(_refuse_flag)
Count = Annotated[int, _Number, Field(ge=1)]
Natural = Annotated[int, _Number, Field(ge=0)]
NonNegative = Annotated[float, _Number, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, _Number, Field(ge=0, le=1)]
S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """Settings that users write; ``source`` is what messages call the place where they stand."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: ClassVar[str] = "generation_kwargs"

    @classmethod
    def read(cls: type[S], given: Mapping[str, Any]) -> S:
        """``given`` checked; None and empty text leave a setting at its default.

        Raises:
            UsageError: a setting is missing, unknown or out of range; names it, what was found and what is expected.
        """
        try:
            return cls.model_validate({name: value for name, value in given.items() if value not in (None, "")})
        except ValidationError as error:
            raise UsageError(f"{cls.source}: {cls._sentence(error.errors()[0])}.") from error

    @classmethod
    def _sentence(cls, error: Any) -> str:
        name = ".".join(map(str, error["loc"]))
        if error["type"] == "missing":
            return f"{name} is missing"
        if error["type"] == "extra_forbidden":
            known = (field for field, info in cls.model_fields.items() if info.annotation is not Any)
            return f"unknown argument {name}; known are {', '.join(known)}"
        expected = error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
        return f"{name} is {error['input']!r}, {re.sub('expected (?=greater|less)', 'expected a number ', expected)}"


class Arguments(Settings):
    """``--model_args`` of a back-end; the harness turns ``revision=12`` into a number.

    The harness also passes the three fields to every back-end; those that use one declare it again.
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)
    source: ClassVar[str] = "model_args"

    batch_size: Any = None
    max_batch_size: Any = None
    device: Any = None
