"""Where judges are configured: YAML files, ``field=value`` pairs, and the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from medtasks.core.errors import UsageError
from medtasks.core.schema import problems
from medtasks.core.settings import current_settings
from medtasks.judge.settings import JudgeConfig

VARIABLE = "MEDTASKS_JUDGE"
"""Environment variable that configures judges for runs of the harness.

Its value is a file, or ``model=…,base_url=…``.
"""


def configured_judges() -> JudgeConfig | None:
    """The configuration in ``MEDTASKS_JUDGE``; None if it is not set.

    Raises:
        UsageError: as :func:`read_judges`, or a judge has ``batch: true``.
    """
    text = current_settings().judge
    if not text:
        return None
    config = read_judges([text])
    for name, settings in config.judges.items():
        if settings.batch:
            raise UsageError(
                f"{VARIABLE}: judge {name!r} has batch: true, which may take a day and would keep "
                "the model waiting; judge the finished run with `medtasks judge`."
            )
    return config


def read_judges(texts: Sequence[str], **more: Any) -> JudgeConfig:
    """The panel of judges in ``texts``, each a YAML file or a text such as ``model=…,base_url=…``.

    A file has one judge's settings, or ``judges`` (a list of them) and other fields of
    :class:`JudgeConfig`. ``more`` are such fields too, and take precedence unless they are None.

    Raises:
        UsageError: a text or file is wrong; names file and field.
    """
    fields: dict[str, Any] = {}
    judges: dict[str, Any] = {}
    sources: list[str] = []
    for text in texts:
        # a text may contain a key
        source = "the judge's settings" if "=" in text else text
        sources.append(source)
        content = _fields_of(text)
        panel: Any = [content]
        if "judges" in content:
            panel = content.pop("judges")
            fields |= _without_none(content)
        _add_judges(judges, panel, source)
    fields |= _without_none(more)
    try:
        return JudgeConfig.model_validate({**fields, "judges": judges})
    except ValidationError as error:
        raise _settings_error(error, ", ".join(sources), more) from None


def _settings_error(error: ValidationError, source: str, options: Mapping[str, Any]) -> UsageError:
    """The first problem of a configuration from ``source`` and command-line ``options``."""
    # secret: a key may be in the wrong field
    candidates = problems(error, JudgeConfig, secret=True)
    # unknown fields first: a field that is missing may only be misspelt
    problem = min(candidates, key=lambda candidate: candidate.kind != "extra_forbidden")
    field = str(problem.keys[0])
    if options.get(field) is not None:
        source = f"--{field}"
    return UsageError(f"{source}: {problem.message}; correct the judge's settings.")


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _add_judges(judges: dict[str, Any], panel: Any, source: str) -> None:
    """Add the settings of the judges in ``panel`` to ``judges``, by name."""
    is_list = isinstance(panel, list)
    if not is_list or not all(isinstance(settings, dict) for settings in panel):
        raise UsageError(
            f"{source}: field `judges` must be a list of judges, each with base_url and model."
        )
    for settings in panel:
        name = str(settings.pop("name", None) or settings.get("model") or "judge")
        if name in judges:
            raise UsageError(
                f"{source}: two judges are called {name!r}; give each a `name` of its own."
            )
        judges[name] = settings


def _fields_of(text: str) -> dict[str, Any]:
    """The fields that a text of pairs, or the YAML file that it names, sets."""
    if "=" in text and not Path(text).is_file():
        return _fields_of_pairs(text)
    return _fields_of_file(text)


def _fields_of_file(text: str) -> dict[str, Any]:
    """The fields that the YAML file ``text`` sets."""
    try:
        content = yaml.safe_load(Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "not valid YAML"
        raise UsageError(
            f"{text}: the judge's settings cannot be read ({why}); give a YAML file, or "
            "model=NAME,base_url=ADDRESS."
        ) from None
    if not isinstance(content, Mapping):
        problem = "is empty" if content is None else f"has a {type(content).__name__}"
        raise UsageError(f"{text}: {problem}, expected a mapping with base_url and model.")
    return dict(content)


def _fields_of_pairs(text: str) -> dict[str, Any]:
    """The fields in ``field=value`` pairs; values are read as YAML, names of models as texts."""
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
