"""The installed harness: the names of its tasks, and its back-ends: which can be used, how they
present a prompt, which model they run, and what makes them answer every request.

Taken from lmms-eval 0.7.3 with transformers 4.57 and 5; ``performance/backends`` tries them all.
Chat back-ends get one user turn, media first, then the text. Simple ones get media and text
separately and choose the order; some of either kind add a system prompt. Those that call a server
send pictures as PNG, or as ``LMMS_IMAGE_ENCODE_FORMAT`` says. This changes scores, so it is in the
protocol hash and in the model's identity.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks.core.errors import first_line
from medtasks.core.schema import suggestion

if TYPE_CHECKING:
    from medtasks.catalog.spec import TaskSpec

_TEXT_FIRST, _MEDIA_FIRST = "text before media", "media before text"
_SIMPLE_ORDER = {
    **dict.fromkeys(("gpt4v", "openai"), _TEXT_FIRST),
    **dict.fromkeys(
        ("claude", "gemma3", "llava_hf", "qwen2_5_vl", "qwen2_vl", "qwen3_vl"), _MEDIA_FIRST
    ),
}
_UNUSED_SYSTEM_PROMPT = ("chat.qwen2_5_vl",)  # have a ``system_prompt``, but do not send it
SYSTEM_PROMPT = "task's system prompt"

_NOT_IDENTITY = frozenset(
    {"batch_size", "max_batch_size", "share_prefix", "device", "device_map", "api_key", "timeout",
     "max_retries", "retry_backoff_s", "num_concurrent", "num_cpus",
     "replicas", "gpus", "cpus", "address", "unit_tokens"}
)  # fmt: skip
"""Model arguments that do not change answers: a resumed run may change them."""
_ELSEWHERE = _NOT_IDENTITY | {"base_url", "azure_endpoint", "work_dir", "httpx_trust_env"}
"""The same, and server addresses: a server's model is the same at every address."""
_CHECKPOINT = (
    "pretrained",
    "model",
    "model_version",
    "model_name",
    "model_id",
    "model_path",
    "engine",
)
"""Names of the argument that selects the checkpoint, or the model of a server."""

_PATTERNS = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors", "*.bin", "*.py")
_WHOLE = 64 * 2**20
_ENDS = 2**20
METHOD = (
    "sha256 over name, size and bytes of configuration, tokenizer and weight files; "
    "of files over 64 MiB the first and last MiB stand for the bytes"
)


def backend_name(lm: Any) -> str:
    """The back-end's name in the harness, which is that of its module."""
    return type(lm).__module__.rpartition(".")[2]


# --- the prompt ---


def presentation(lm: Any) -> dict[str, str]:
    """How the back-end changes our tasks' prompts; empty if it does not."""
    if hasattr(lm, "describe"):  # ours
        return {}
    found, name = {}, backend_name(lm)
    if lm.is_simple:
        order = _SIMPLE_ORDER.get(name, f"as {name} has it")
        if hasattr(lm, "image_first"):
            order = _MEDIA_FIRST if lm.image_first else _TEXT_FIRST
        found = {"interface": "simple", "order": order}
    elif (
        hasattr(lm, "client")
        and (encoding := os.environ.get("LMMS_IMAGE_ENCODE_FORMAT", "PNG").upper()) != "PNG"
    ):
        found["pictures"] = f"{encoding}, quality {os.environ.get('LMMS_IMAGE_JPEG_QUALITY', '85')}"
    system, kind = getattr(lm, "system_prompt", None), "simple" if lm.is_simple else "chat"
    if isinstance(system, str) and system and f"{kind}.{name}" not in _UNUSED_SYSTEM_PROMPT:
        found["system_prompt"] = system
    return found


def task_presentation(lm: Any, spec: TaskSpec) -> dict[str, str]:
    """:func:`presentation`, and what becomes of the task's system prompt if the back-end takes
    none.
    """
    in_text = spec.system_template is not None and not takes_system_prompt(lm)
    return {
        **presentation(lm),
        **({SYSTEM_PROMPT: "at the beginning of the text"} if in_text else {}),
    }


def has_unknown_prompts(lm: Any) -> bool:
    """Whether the back-end's answers were made elsewhere, with prompts that need not be ours."""
    return bool(getattr(lm, "has_unknown_prompts", False))


def takes_system_prompt(lm: Any) -> bool:
    """Whether a system turn of a prompt reaches the model. Simple back-ends get none. For others
    the chat template decides, if there is one: some refuse such a turn, others leave it out.
    """
    if lm.is_simple:
        return False
    if isinstance(known := getattr(lm, "takes_system_prompt", None), bool):
        return known
    return all(
        _renders_system_turn(one)
        for one in vars(lm).values()
        if hasattr(one, "apply_chat_template")
    )


def _renders_system_turn(templated: Any) -> bool:
    def rendered(turns: list[dict[str, Any]]) -> str | None:
        try:
            return str(
                templated.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            )
        except Exception:  # templates raise what they like
            return None

    mark = "medtasks-system-prompt"
    for content in (lambda text: [{"type": "text", "text": text}], lambda text: text):
        turns = [
            {"role": "system", "content": content(mark)},
            {"role": "user", "content": content("?")},
        ]
        if rendered(turns[1:]) is not None:  # the template reads content of this form
            return mark in (rendered(turns) or "")
    return True  # its template is elsewhere


# --- the model ---


def run_arguments(model_args: Any) -> Any:
    """The model arguments that change answers."""
    try:
        parsed = _parsed(model_args)
    except ValueError:
        return str(model_args)
    return {name: str(value) for name, value in sorted(parsed.items()) if name not in _NOT_IDENTITY}


def settings(asked: Mapping[str, Any], lm: Any) -> dict[str, Any]:
    """The harness's settings, with secrets redacted and without local paths."""
    from lmms_eval.evaluator import _redact_eval_config_secrets

    kept = ("model", "model_args", "batch_size", "device", "limit", "offset", "gen_kwargs", "system_instruction",
            "apply_chat_template", "num_fewshot", "repeats", "predict_only")  # fmt: skip
    found = {
        **{name: asked.get(name) for name in (*kept, "random_seed")},
        **{
            f"{kind}_seed": asked.get(f"{kind}_random_seed")
            for kind in ("numpy", "torch", "fewshot")
        },
        "model_backend": f"{type(lm).__module__}.{type(lm).__name__} ({'simple' if lm.is_simple else 'chat'})",
    }
    if not isinstance(found["model"], str):
        found["model"] = type(lm).__name__
    if isinstance(found["gen_kwargs"], str):
        found["gen_kwargs"] = _parsed(found["gen_kwargs"])
    redacted: dict[str, Any] = _redact_eval_config_secrets(found)
    return redacted


def described(lm: Any, model_args: Any) -> dict[str, Any]:
    """The description of the model: our back-ends' own, for others the back-end (``model``), its
    ``checkpoint``, the ``fingerprint`` of a local one, and all arguments that change answers.
    Secrets in ``model_args`` are redacted.
    """
    if hasattr(lm, "describe"):
        own: dict[str, Any] = lm.describe()
        return own
    try:
        given = {
            name: value for name, value in _parsed(model_args).items() if name not in _ELSEWHERE
        }
    except ValueError:
        given = {}
    defaults = {}  # of arguments that name a checkpoint; those of subclasses count
    for kind in reversed(type(lm).__mro__):
        for name, parameter in inspect.signature(
            vars(kind).get("__init__", object.__init__)
        ).parameters.items():
            if name in _CHECKPOINT and isinstance(parameter.default, str):
                defaults[name] = parameter.default
    arguments, arranged = {**defaults, **given}, presentation(lm)
    checkpoint = next(
        (str(arguments[name]) for name in _CHECKPOINT if arguments.get(name) not in (None, "")),
        None,
    )
    known = {} if checkpoint is None else {"checkpoint": checkpoint}
    if checkpoint is not None and (Path(checkpoint).expanduser() / "config.json").is_file():
        known |= fingerprint_of(checkpoint)
    return {
        "model": backend_name(lm),
        **known,
        **{
            name: value
            for name, value in sorted(given.items())
            if name not in (*_CHECKPOINT, *arranged)
        },
        **({"presentation": arranged} if arranged else {}),
    }


def _parsed(model_args: Any) -> dict[str, Any]:
    from lmms_eval.utils import simple_parse_args_string

    return (
        simple_parse_args_string(model_args)
        if isinstance(model_args, str)
        else dict(model_args or {})
    )


def fingerprint_of(checkpoint: str) -> dict[str, str]:
    """``fingerprint`` and ``fingerprint_method`` of a checkpoint in a local directory; empty for
    any other.
    """
    directory = Path(checkpoint).expanduser()
    if not directory.is_dir():
        return {}
    total = hashlib.sha256()
    files = {path for pattern in _PATTERNS for path in directory.glob(pattern) if path.is_file()}
    for path in sorted(files, key=lambda path: path.name):
        size, content = path.stat().st_size, hashlib.sha256()
        with path.open("rb") as file:
            if size > _WHOLE:
                content.update(file.read(_ENDS))
                file.seek(size - _ENDS)
            while block := file.read(_ENDS):
                content.update(block)
        total.update(f"{path.name}\0{size}\0{content.hexdigest()}\n".encode())
    return {"fingerprint": total.hexdigest(), "fingerprint_method": METHOD}


def adapter_facts(path: str | None) -> dict[str, str] | None:
    """Path and fingerprint of what changes a checkpoint's weights; None if nothing does."""
    if path is None:
        return None
    return {
        "path": path,
        **{name: value for name, value in fingerprint_of(path).items() if name == "fingerprint"},
    }


# --- what answers every request ---


def load_what_generates(model: str, *, force_simple: bool = False) -> None:
    """Make back-ends that accept any checkpoint load the class that can generate. They look up the
    model's type in tables of transformers that are keyed by configuration, find nothing, and load
    the bare model without its head.
    """
    from lmms_eval.models import MODEL_REGISTRY_V2

    module: Any = sys.modules[
        MODEL_REGISTRY_V2.get_model_class(model, force_simple=force_simple).__module__
    ]
    if {"AutoModel", "AutoModelForImageTextToText"} <= vars(module).keys():
        module.AutoModel = SimpleNamespace(from_pretrained=_generating)


def _generating(name: str, **settings: Any) -> Any:
    """In place of ``AutoModel.from_pretrained``, which those back-ends use for every checkpoint."""
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
    )

    config = AutoConfig.from_pretrained(
        name, trust_remote_code=settings.get("trust_remote_code", False)
    )
    kinds = (AutoModelForImageTextToText, AutoModelForCausalLM)
    kind = next((one for one in kinds if type(config) in one._model_mapping), AutoModel)
    return kind.from_pretrained(name, **settings)


def take_no_media(lm: Any) -> None:
    """Make the processors of ``lm`` treat an empty list of media as no media: back-ends pass
    ``images=[]``, of which processors access the first item, and ``audios=[]``, which those of
    transformers 5 do not accept.
    """
    if hasattr(lm, "describe") or "transformers" not in sys.modules:
        return
    from transformers import ProcessorMixin

    for owner in (lm, *getattr(lm, "_workers", ())):
        for processor in vars(owner).values():
            if isinstance(processor, ProcessorMixin):
                processor.__class__ = _without_empty_media(processor.__class__)


@functools.cache
def _without_empty_media(kind: Any) -> Any:
    @functools.wraps(kind.__call__)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(kwargs)
        for name in ("images", "videos", "audios"):
            if isinstance(kwargs.get(name), (list, tuple)) and not kwargs[name]:
                del given[name]
        return kind.__call__(self, *args, **given)

    return type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})


# --- what is installed ---

_KEY = re.compile(
    r"""^["']?(task|group|tag)["']?[ \t]*:[ \t]*([^#\n]*)[^\n]*((?:\n[ \t]*-[ \t][^\n]*)*)""",
    re.MULTILINE,
)


@functools.cache
def harness_names() -> frozenset[str]:
    """All names of the installed lmms-eval's own tasks, groups and tags; empty if it is not
    installed. A task of that name in another package never runs: ``--tasks NAME`` selects the
    harness's.
    """
    spec = find_spec("lmms_eval")
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    return frozenset(name for folder in folders for name in names_in_folder(Path(folder) / "tasks"))


def names_in_folder(folder: Path) -> frozenset[str]:
    """The names of all tasks, groups and tags that the YAML files in and below ``folder``
    define.
    """
    files = folder.rglob("*yaml")  # shared parts have no dot
    texts = (path.read_text(encoding="utf-8-sig", errors="replace") for path in files)
    return frozenset(name for text in texts for name in _names_in(text))


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
    from lmms_eval.models import MODEL_REGISTRY_V2, list_available_models

    known = list_available_models(include_aliases=True)
    if model not in known:
        return Lack(f"unknown to lmms-eval{suggestion(model, known)}", "choose another --model")
    try:
        MODEL_REGISTRY_V2.get_model_class(model, force_simple=force_simple)
    except ModuleNotFoundError as error:
        return _without(str(error.name), model)
    except (Exception, SystemExit) as error:  # back-end modules may raise anything
        return Lack(f"cannot be imported: {first_line(error)}")
    needed = _AT_USE.get(MODEL_REGISTRY_V2.resolve(model, force_simple=force_simple).model_id)
    return None if needed is None or find_spec(needed) is not None else _without(needed, model)


def lacks(models: Sequence[str]) -> dict[str, Lack | None]:
    """What each of ``models`` lacks; what their imports print is not shown."""
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        return {model: lack_of(model) for model in models}


def _without(module: str, model: str) -> Lack:
    if module.startswith("lmms_eval"):
        return Lack(f"lmms-eval ships no module {module}")
    name = module.partition(".")[0]
    extra = next((family for family in ("qwen", "llava") if model.startswith(family)), name)
    wanted = (
        f'"medtasks[{extra}]"' if name in ("decord", "vllm") else _DISTRIBUTIONS.get(name, name)
    )
    return Lack(f"module {name} is not installed", f"pip install {wanted}")
