"""The team file: what the organisers' scripts call SUBMISSION_INFO, and what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from medtasks.api import DataError
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Measured(BaseModel):
    """What the organisers' script measures while it runs the model; None is unknown.

    Args:
        total_time: seconds in which the answers were generated.
        memory_used_mb: GPU memory that is allocated after the answers, without that of the model.
        model_memory_mb: GPU memory that the model takes once it is loaded.
        gpu_name: name of the GPU.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    total_time: _Amount | None = None
    memory_used_mb: _Amount | None = None
    model_memory_mb: _Amount | None = None
    gpu_name: _Text | None = None

    @property
    def unknown(self) -> list[str]:
        """The names of what is unknown."""
        return [name for name, value in self if value is None]


class Team(BaseModel):
    """Who submits. The names are the organisers', who ask that they are not changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    Participant_Names: _Text
    Affiliations: _Text
    Contact_emails: tuple[_Text, ...] = Field(min_length=1)
    Team_Name: _Text
    Country: _Text
    Notes_to_organizers: str = ""
    measured: Measured = Measured()

    @property
    def submission_info(self) -> dict[str, Any]:
        """The six fields of SUBMISSION_INFO."""
        return self.model_dump(mode="json", exclude={"measured"})


def read_team(path: Path) -> Team:
    """The team of a YAML or JSON file.

    Raises:
        DataError: the file cannot be read, or a field is missing, unknown or wrong; names it.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path.") from error
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path}: is not valid YAML ({reason}), expected the fields of a team; check the file."
        ) from error
    try:
        return Team.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(key) for key in first["loc"]) or "the whole file"
        state = "missing" if first["type"] == "missing" else f"{first['input']!r:.80}"
        raise DataError(
            f"{path}: field `{field}` is {state} ({first['msg']}), expected the fields "
            f"{', '.join(Team.model_fields)}; fix the file."
        ) from error
