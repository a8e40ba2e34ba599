"""Families of models: a judge tends to favour answers of its own kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
    return tuple(
        family for family, pattern in _FAMILIES.items() if re.search(pattern, name, re.IGNORECASE)
    )


def family_warnings(judges: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
    """A warning in one sentence for each judge that is the model with these ``names``, or of its
    family.
    """
    warnings: dict[str, str] = {}
    for judge in sorted(judges):
        for name in names:
            if judge.strip().casefold() == name.strip().casefold() or {*family_of(judge)} & {
                *family_of(name)
            }:
                warnings.setdefault(
                    judge,
                    f"judge {judge[-80:]!a} and model {name[-80:]!a} are of the same family: judges tend to favour "
                    "answers of their own kind (homogeneity bias: the Kvasir-VQA-x1 paper asks for judges of another "
                    "architecture); use a judge from another family, or several judges.",
                )
    return tuple(warnings.values())
