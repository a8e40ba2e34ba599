"""Which back-ends of the installed harness can be used, and what the others lack."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from medtasks.core.errors import first_line
from medtasks.core.extras import install_line, problems_of, words_for
from medtasks.core.schema import suggestion
from medtasks.runs.our_back_ends import BACK_ENDS

COMMON = (
    "medtasks_vlm",
    "medtasks_vllm",
    "qwen2_5_vl",
    "qwen3_vl",
    "llava_hf",
    "huggingface",
    "async_hf",
    "openai",
    "async_openai",
    "claude",
    "gemini",
    "litellm",
    "vllm",
)
"""Back-ends that ``medtasks doctor`` checks by default."""

_NEEDED_WHEN_RUN = {
    "qwen2_vl": "qwen_vl_utils",
    "qwen2_5_vl": "qwen_vl_utils",
    "qwen3_vl": "qwen_vl_utils",
    "vllm": "vllm",
    "vllm_generate": "vllm",
    "claude": "anthropic",
    "gemini": "google.genai",
    "litellm": "litellm",
}
"""The module that a back-end needs to run, although it can be imported without it."""
_DISTRIBUTIONS = {"qwen_vl_utils": "qwen-vl-utils", "google": "google-genai"}
"""Distributions whose name is not that of their module."""
_VENDORS = ("claude", "gemini", "litellm")
"""Back-ends with an extra of their name, which installs the vendor's package."""


class Lack(NamedTuple):
    """Why a back-end cannot be used, and the command that fixes it, if there is one."""

    reason: str
    fix: str = ""


def lack_of(model: str, *, force_simple: bool = False) -> Lack | None:
    """The reason why the back-end ``model`` cannot be used; None if it can be imported and run."""
    extra = BACK_ENDS[model].extra if model in BACK_ENDS else "harness"
    problems = problems_of(extra)
    if problems:
        return Lack(words_for(problems), install_line(extra))
    from lmms_eval.models import MODEL_REGISTRY_V2, list_available_models

    names = list_available_models(include_aliases=True)
    if model not in names:
        return Lack(f"unknown to lmms-eval{suggestion(model, names)}", "choose another --model")
    try:
        MODEL_REGISTRY_V2.get_model_class(model, force_simple=force_simple)
    except ModuleNotFoundError as error:
        return _lack_of_module(str(error.name), model)
    except (Exception, SystemExit) as error:  # back-end modules may raise anything
        return Lack(f"cannot be imported: {first_line(error)}")
    model_id = MODEL_REGISTRY_V2.resolve(model, force_simple=force_simple).model_id
    module = _NEEDED_WHEN_RUN.get(model_id)
    if module is None or _can_be_imported(module):
        return None
    return _lack_of_module(module, model)


def lacks(models: Sequence[str]) -> dict[str, Lack | None]:
    """:func:`lack_of` each of ``models``, without the output of their imports."""
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        return {model: lack_of(model) for model in models}


def _can_be_imported(module: str) -> bool:
    """Whether a module is installed, which may be in a package that is not."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _lack_of_module(module: str, model: str) -> Lack:
    """What to report of a back-end whose module ``module`` is not installed."""
    if module.startswith("lmms_eval"):
        return Lack(f"lmms-eval ships no module {module}")
    name = module.partition(".")[0]
    missing = "google.genai" if name == "google" else name
    return Lack(f"module {missing} is not installed", f"pip install {_requirement(name, model)}")


def _requirement(module: str, model: str) -> str:
    """The requirement that installs a module: an extra of ours, or a distribution."""
    if model in _VENDORS:
        return f'"medtasks[{model}]"'
    if module not in ("decord", "vllm"):
        return _DISTRIBUTIONS.get(module, module)
    for family in ("qwen", "llava"):
        if model.startswith(family):
            return f'"medtasks[{family}]"'
    return f'"medtasks[{module}]"'
