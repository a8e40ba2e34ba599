"""Configuration of judges: a YAML file, or ``field=value`` pairs on the command line or in the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medtasks.cache import cache_root
from medtasks.errors import UsageError
from medtasks.judge.ensemble import Rule
from medtasks.judge.settings import JudgeSettings
from medtasks.schema import Problem, problems
from medtasks.settings import current_settings

VARIABLE = "MEDTASKS_JUDGE"
"""Environment variable that configures judges for runs of the harness: a file, or ``model=…,base_url=…``."""


class JudgeConfig(BaseModel):
    """A panel of judges.

    Args:
        judges: settings by name; the default name is the model's.
        combine: how the scores of several judges are combined.
        threshold: coverage below which a score is marked incomplete.
        rubrics: which to judge; empty means the first of every task.
        store: the verdict store; None means the user's default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    judges: Annotated[dict[str, JudgeSettings], Field(min_length=1)]
    combine: Rule = "majority"
    threshold: float = Field(0.99, ge=0, le=1)
    rubrics: tuple[str, ...] = ()
    store: Path | None = None


def default_store() -> Path:
    return cache_root() / "verdicts.sqlite"


def configured_judges() -> JudgeConfig | None:
    """The configuration in ``MEDTASKS_JUDGE``; None if it is not set.

    Raises:
        UsageError: as :func:`read_judges`.
    """
    given = current_settings().judge
    if not given:
        return None
    config = read_judges([given])
    if batched := next((name for name, one in config.judges.items() if one.batch), None):
        raise UsageError(
            f"{VARIABLE}: judge {batched!r} has batch: true, which may take a day and would keep the model waiting; "
            "judge the finished run with `medtasks judge`."
        )
    return config


def read_judges(given: Sequence[str], **more: Any) -> JudgeConfig:
    """The panel of judges in ``given``, each a YAML file or a text such as ``model=…,base_url=…``.

    A file has one judge's settings, or ``judges`` (a list of them) and other fields of :class:`JudgeConfig`. ``more``
    are such fields too, and take precedence unless they are None.

    Raises:
        UsageError: a file cannot be read, or a field is missing, unknown or wrong; the message names both.
    """
    merged: dict[str, Any] = {}
    judges: dict[str, Any] = {}
    for text in given:
        content = _inline(text) if "=" in text and not Path(text).is_file() else _file(Path(text))
        several, content = (content.pop("judges"), content) if "judges" in content else ([content], {})
        if not isinstance(several, list) or not all(isinstance(one, dict) for one in several):
            raise UsageError(f"{_source(text)}: field `judges` must be a list of judges, each with base_url and model.")
        for one in several:
            name = str(one.pop("name", None) or one.get("model") or "judge")
            if name in judges:
                raise UsageError(f"{_source(text)}: two judges are called {name!r}; give each a `name` of its own.")
            judges[name] = one
        merged |= content
    merged |= {field: value for field, value in more.items() if value is not None}
    try:
        return JudgeConfig.model_validate({**merged, "judges": judges})
    except ValidationError as error:
        # secret: a key may be in the wrong field
        found = sorted(problems(error, JudgeConfig, secret=True), key=_by_cause)
        field = str(found[0].keys[0])
        source = f"--{field}" if more.get(field) is not None else ", ".join(map(_source, given))
        raise UsageError(f"{source}: {found[0].message}; correct the judge's settings.") from None


def _by_cause(problem: Problem) -> bool:
    """Sorts unknown fields first: a field that is missing may only be misspelt."""
    return problem.kind != "extra_forbidden"


def _source(text: str) -> str:
    """How a message names the source of settings; a text may contain a key."""
    return text if "=" not in text else "the judge's settings"


def _inline(text: str) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for entry in text.split(","):
        field, equals, value = entry.partition("=")
        if not equals or not field.strip():
            raise UsageError(
                "give a judge as field=value pairs separated by commas, such as "
                "model=NAME,base_url=http://127.0.0.1:8000/v1, or as a YAML file."
            )
        try:
            content[field.strip()] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError):  # for example an invalid date
            content[field.strip()] = value
    if "model" in content:
        content["model"] = str(content["model"])
    return content


def _file(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "not valid YAML"
        raise UsageError(
            f"{path}: the judge's settings cannot be read ({why}); give a YAML file, or model=NAME,base_url=ADDRESS."
        ) from None
    if not isinstance(content, Mapping):
        raise UsageError(f"{path}: found {type(content).__name__}, expected a mapping with base_url and model.")
    return dict(content)
