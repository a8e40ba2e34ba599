"""Families of models: a judge tends to favour answers of its own kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from medtasks.judge.settings import JudgeConfig
from medtasks.runs.manifest import RunManifest

_FAMILIES = {
    "claude": "claude",
    "cohere": r"command-[ar]\b|\baya-",
    "deepseek": "deepseek",
    "glm": "glm",
    "google": "gemini|gemma",
    "grok": "grok",
    "internvl": "internvl|internlm",
    "kimi": "kimi",
    "llama": "(?<!o)llama(?!-?factory)|vicuna",
    "llava": "llava",
    "minicpm": "minicpm",
    "mistral": "mi[sx]tral|pixtral|magistral",
    "openai": r"\b(chat)?gpt-?(oss|[345])|(^|/)o[134]\b",
    "phi": r"\bphi-?[1-4]",
    "qwen": "qwen|qwq|lingshu|hulu-?med",
}


def family_of(name: str) -> tuple[str, ...]:
    """The families that a model's name or path mentions, sorted: a distilled model has two."""
    families = []
    for family, pattern in _FAMILIES.items():
        if re.search(pattern, name, re.IGNORECASE):
            families.append(family)
    return tuple(families)


def warnings_on_run(config: JudgeConfig, manifest: RunManifest) -> tuple[str, ...]:
    """A sentence for each judge that is the run's model or of its family."""
    judges = [settings.model for settings in config.judges.values()]
    return family_warnings(judges, _model_names(manifest))


def _model_names(manifest: RunManifest) -> list[str]:
    """What may name the run's model: its facts, and all values of ``--model_args``."""
    values = [manifest.model.get(key) for key in ("checkpoint", "pretrained", "model")]
    model_args = manifest.settings.get("model_args") or {}
    if isinstance(model_args, Mapping):
        values += model_args.values()
    else:
        values += _values_of_pairs(str(model_args))
    return [value for value in values if isinstance(value, str) and value]


def _values_of_pairs(text: str) -> list[str]:
    """The values of a text such as ``pretrained=NAME,device=cpu``; a repeated key has its last."""
    value_by_key = {}
    for entry in text.split(","):
        key, _, value = entry.partition("=")
        value_by_key[key] = value
    return list(value_by_key.values())


def family_warnings(judges: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each judge that is the model with these ``names``, or of its family."""
    warnings: list[str] = []
    for judge in sorted(set(judges)):
        relative = _first_relative(judge, names)
        if relative is not None:
            warnings.append(
                f"judge {judge[-80:]!a} and model {relative[-80:]!a} are of the same family: "
                "judges tend to favour answers of their own kind (homogeneity bias: the "
                "Kvasir-VQA-x1 paper asks for judges of another architecture); use a judge from "
                "another family, or several judges."
            )
    return tuple(warnings)


def _first_relative(judge: str, names: Sequence[str]) -> str | None:
    """The first of the ``names`` that is the judge's or of its family."""
    families = set(family_of(judge))
    for name in names:
        is_same = judge.strip().casefold() == name.strip().casefold()
        if is_same or not families.isdisjoint(family_of(name)):
            return name
    return None
