"""Families of models, and the warning about a judge of the judged model's family.

The table is ``families.yaml`` beside this module, or a user's file in the same format.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from medtasks.errors import DataError

Families = Mapping[str, Sequence[re.Pattern[str]]]
"""Family to the patterns that match its members."""

LONGEST = 1000  # characters at the end of a model's name or path that are matched
SHOWN = 80


def family_of(name: str, table: Families | None = None) -> tuple[str, ...]:
    """The families that a model's name or path matches, sorted; empty if the table does not know it.

    >>> family_of("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B")
    ('deepseek', 'qwen')
    """
    families = _shipped() if table is None else table
    end = name[-LONGEST:]
    return tuple(sorted(family for family, patterns in families.items() if any(one.search(end) for one in patterns)))


def same_family(judge: str, judged: str, table: Families | None = None) -> str | None:
    """A warning in one sentence if the judge is the judged model or of its family, else None.

    The Kvasir-VQA-x1 paper (section 4.2.5) calls this homogeneity bias and asks for judges of another architecture.
    """
    shared = sorted(set(family_of(judge, table)) & set(family_of(judged, table)))
    if judge.strip().casefold() == judged.strip().casefold():
        found = f"judge {_short(judge)} is the judged model itself"
    elif shared:
        found = f"judge {_short(judge)} and model {_short(judged)} belong to the same family ({', '.join(shared)})"
    else:
        return None
    return (
        f"{found}: judges tend to favour answers of their own kind (homogeneity bias: the Kvasir-VQA-x1 paper asks "
        "for judges of another architecture); use a judge from another family, or several judges."
    )


def _short(name: str) -> str:
    """The end of a name, safe to print: on one line, without control characters."""
    return ascii(name if len(name) <= SHOWN else "…" + name[-SHOWN:])


@functools.cache
def _shipped() -> Families:
    return read_families(Path(__file__).with_name("families.yaml"))


def _pattern(written: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(written, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{written[:SHOWN]!r} is not a regular expression ({error})") from error
    if pattern.search(""):
        raise ValueError(f"{written[:SHOWN]!r} matches every model, expected a part of the family's names")
    return pattern


_Name = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,39}$")]
_Patterns = Annotated[list[Annotated[str, AfterValidator(_pattern)]], Field(min_length=1)]
_TABLE: TypeAdapter[Any] = TypeAdapter(Annotated[dict[_Name, _Patterns], Field(min_length=1)])


class _Loader(yaml.BaseLoader):
    """Every value is text (``no`` is a name here, not false), every key is unique."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found = super().construct_mapping(node, deep)
        if len(found) < len(node.value):
            raise yaml.constructor.ConstructorError(problem="a family is duplicated; join the two lists")
        return found


def read_families(path: Path) -> Families:
    """The table in the YAML file ``path``: family name to a list of regular expressions, case ignored.

    Raises:
        DataError: the file cannot be read or is not such a table (names family, found and expected).
    """
    try:
        table: Families = _TABLE.validate_python(yaml.load(path.read_bytes(), _Loader))
    except ValidationError as error:
        first = error.errors()[0]
        family = f"family {first['loc'][0]!s:.{SHOWN}}: " if first["loc"] else ""
        found = first["msg"].removeprefix("Value error, ")
        raise DataError(f"{path}: {family}{found}, found {str(first['input'])[:SHOWN]!r}; fix the table.") from error
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not a readable YAML file ({reason}); fix or restore it.") from error
    return table
