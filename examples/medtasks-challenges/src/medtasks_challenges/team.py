"""The team file: what the organisers' scripts call SUBMISSION_INFO, and what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from medtasks.api import DataError
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
_EXPECTED = {
    "Contact_emails": "a list of one or more texts",
    "measured": "the fields total_time, memory_used_mb, model_memory_mb and gpu_name",
    "measured.total_time": "a number of seconds from 0",
    "measured.memory_used_mb": "a number of megabytes from 0",
    "measured.model_memory_mb": "a number of megabytes from 0",
}
"""What a field is; the others are texts."""


class TeamMeasurements(BaseModel):
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
    measured: TeamMeasurements = TeamMeasurements()

    @property
    def submission_info(self) -> dict[str, Any]:
        """The six fields of SUBMISSION_INFO."""
        return self.model_dump(mode="json", exclude={"measured"})


def read_team(path: Path) -> Team:
    """The team of a YAML or JSON file.

    Raises:
        DataError: the file cannot be read, or a field is missing, repeated, unknown or wrong; names
            it.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_TeamLoader)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path.") from error
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path}: is not valid YAML ({reason}), expected the fields of a team; check the file."
        ) from error
    if not isinstance(content, dict):
        raise DataError(
            f"{path}: contains {content!r:.80}, expected the fields "
            f"{', '.join(Team.model_fields)}; fix the file."
        )
    try:
        return Team.model_validate(content)
    except ValidationError as error:
        raise DataError(f"{path}: {_first_problem(error)}; fix the file.") from error


class _TeamLoader(yaml.SafeLoader):
    """Refuses repeated keys, of which YAML's own loader keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping.

        Raises:
            yaml.YAMLError: a key is repeated.
        """
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # reported below, as no key of a mapping
            if key.value in seen:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"line {line} repeats the field {key.value}")
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _first_problem(error: ValidationError) -> str:
    """The first wrong field, what it is, and what was expected."""
    problem = error.errors()[0]
    keys = [str(key) for key in problem["loc"]]
    field = ".".join(keys)
    if problem["type"] == "missing":
        return f"field `{field}` is missing, expected {_EXPECTED.get(field, 'a text')}"
    found = f"field `{field}` is {problem['input']!r:.80}"
    if problem["type"] in ("extra_forbidden", "invalid_key"):
        names = TeamMeasurements.model_fields if len(keys) > 1 else Team.model_fields
        return f"{found}, expected no fields but {', '.join(names)}"
    expected = _EXPECTED.get(field, "a text")
    if problem["input"] is False and expected == "a text":
        expected = "a text (YAML reads NO as false: quote it)"
    return f"{found}, expected {expected}"
