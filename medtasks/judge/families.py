"""The family of a model by its name, and a warning about a judge of the judged model's family."""

from __future__ import annotations

import re

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
    return tuple(family for family, pattern in _FAMILIES.items() if re.search(pattern, name, re.IGNORECASE))


def same_family(judge: str, judged: str) -> str | None:
    """A warning in one sentence if the judge is the judged model or of its family, else None."""
    if judge.strip().casefold() != judged.strip().casefold() and not {*family_of(judge)} & {*family_of(judged)}:
        return None
    return (
        f"judge {judge[-80:]!a} and model {judged[-80:]!a} are of the same family: judges tend to favour answers of "
        "their own kind (homogeneity bias: the Kvasir-VQA-x1 paper asks for judges of another architecture); use a "
        "judge from another family, or several judges."
    )
