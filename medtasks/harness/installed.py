"""The installed harness: the names of its tasks, and whether a back-end can be imported."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from medtasks.catalog.contents import LeftOut, task_packages
from medtasks.core.errors import UsageError, first_line
from medtasks.core.findings import Place
from medtasks.core.schema import suggestion

_KEY = re.compile(
    r"""^["']?(task|group|tag)["']?[ \t]*:[ \t]*([^#\n]*)[^\n]*((?:\n[ \t]*-[ \t][^\n]*)*)""", re.MULTILINE
)


@functools.cache
def harness_names() -> frozenset[str]:
    """All names of the installed lmms-eval's own tasks, groups and tags; empty if it is not installed. A task of that
    name in another package never runs: ``--tasks NAME`` selects the harness's."""
    spec = find_spec("lmms_eval")
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    files = (path for folder in folders for path in (Path(folder) / "tasks").rglob("*yaml"))  # shared parts have no dot
    texts = (path.read_text(encoding="utf-8-sig", errors="replace") for path in files)
    return frozenset(name for text in texts for name in _names_in(text))


def taken_names() -> list[LeftOut]:
    """Tasks and groups of other packages whose names lmms-eval uses too: ``--tasks`` runs lmms-eval's."""
    reason = "lmms-eval has a task of that name, and --tasks runs that one; rename yours."
    return [
        LeftOut(package.owner, f"task {path.stem}", reason, Place(path, 1))
        for package in task_packages()
        for path in package.task_files()
        if not package.ours and path.stem in harness_names()
    ]


def _names_in(text: str) -> Iterator[str]:
    for key, value, items in _KEY.findall(text):
        listed = value.strip().strip("[]").split(",") if value.strip() else []
        if not listed and key != "task":  # a list under `task` contains a group's members
            listed = [line.strip().lstrip("-") for line in items.splitlines()]
        yield from (name for one in listed if (name := one.strip().strip("\"'")))


COMMON = ("medtasks_vlm", "medtasks_vllm", "qwen2_5_vl", "qwen3_vl", "llava_hf", "huggingface", "async_hf", "openai",
          "async_openai", "vllm")  # fmt: skip
"""Back-ends that ``medtasks doctor`` checks by default."""

_AT_USE = {
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "qwen3_vl"), "qwen_vl_utils"),
    **dict.fromkeys(("medtasks_vllm", "vllm", "vllm_generate"), "vllm"),
}
"""The module that a back-end needs to run, although it can be imported without it."""
_DISTRIBUTIONS = {"qwen_vl_utils": "qwen-vl-utils", "google": "google-genai"}


class Lack(NamedTuple):
    """Why a back-end cannot be used, and the command that fixes it, if there is one."""

    found: str
    fix: str = ""


def lack_of(model: str, *, force_simple: bool = False) -> Lack | None:
    """What ``model`` lacks; None if it and everything it needs can be imported."""
    from lmms_eval.models import MODEL_REGISTRY_V2

    try:
        found = MODEL_REGISTRY_V2.resolve(model, force_simple=force_simple)
    except ValueError:
        from lmms_eval.models import list_available_models

        near = suggestion(model, list_available_models(include_aliases=True))
        raise UsageError(f"back-end {model!r} is unknown to lmms-eval{near}; choose another --model.") from None
    try:
        MODEL_REGISTRY_V2.get_model_class(model, force_simple=force_simple)
    except ModuleNotFoundError as error:
        return _without(str(error.name), model)
    except Exception as error:  # back-end modules may raise anything
        return Lack(f"cannot be imported: {first_line(error)}")
    needed = _AT_USE.get(found.model_id)
    return None if needed is None or find_spec(needed) is not None else _without(needed, model)


def lacks(models: Sequence[str]) -> dict[str, Lack | None]:
    """What each of ``models`` lacks; what their imports print is not shown."""
    found: dict[str, Lack | None] = {}
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        for model in models:
            try:
                found[model] = lack_of(model)
            except UsageError as error:
                found[model] = Lack(str(error))
            except SystemExit:
                found[model] = Lack("its import ends the process")
    return found


def _without(module: str, model: str) -> Lack:
    if module.startswith("lmms_eval"):
        return Lack(f"lmms-eval ships no module {module}")
    name = module.partition(".")[0]
    extra = next((family for family in ("qwen", "llava") if model.startswith(family)), name)
    wanted = f'"medtasks[{extra}]"' if name in ("decord", "vllm") else _DISTRIBUTIONS.get(name, name)
    return Lack(f"module {name} is not installed", f"pip install {wanted}")
