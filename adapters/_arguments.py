"""Model arguments and generation settings: declared as pydantic models, refused with one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from medtasks.errors import UsageError
from medtasks.schema import first_problem


def _not_a_flag(value: object) -> object:
    if isinstance(value, bool):  # which pydantic would take for 0 or 1
        raise PydanticCustomError("expected", "a number")
    return value


_Number = BeforeValidator(_not_a_flag)
Count = Annotated[int, _Number, Field(ge=1)]
Natural = Annotated[int, _Number, Field(ge=0)]
NonNegative = Annotated[float, _Number, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, _Number, Field(ge=0, le=1)]
S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """Settings that users write; ``source`` is the option or key that holds them."""

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
            raise UsageError(f"{cls.source}: {first_problem(error, cls)}.") from error


class Arguments(Settings):
    """``--model_args`` of a back-end; the harness turns ``revision=12`` into a number.

    The harness also passes the three fields to every back-end; those that use one declare it again.
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)
    source: ClassVar[str] = "model_args"

    batch_size: Any = None
    max_batch_size: Any = None
    device: Any = None
