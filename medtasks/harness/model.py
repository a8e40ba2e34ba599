"""The identity of a run's model: back-end, checkpoint, and every argument that changes its answers."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .backends import backend_name, presentation

_NOT_IDENTITY = frozenset(
    {"batch_size", "max_batch_size", "share_prefix", "device", "device_map", "api_key", "timeout",
     "max_retries", "retry_backoff_s", "num_concurrent", "num_cpus",
     "replicas", "gpus", "cpus", "address", "unit_tokens"}
)  # fmt: skip
"""Model arguments that do not change answers: a resumed run may change them."""

_ELSEWHERE = _NOT_IDENTITY | {"base_url", "azure_endpoint", "work_dir", "httpx_trust_env"}
"""The same, and server addresses: a server's model is the same at every address."""

_CHECKPOINT = ("pretrained", "model", "model_version", "model_name", "model_id", "model_path", "engine")
"""Names of the argument that selects the checkpoint, or the model of a server."""


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
        **{f"{kind}_seed": asked.get(f"{kind}_random_seed") for kind in ("numpy", "torch", "fewshot")},
        "model_backend": f"{type(lm).__module__}.{type(lm).__name__} ({'simple' if lm.is_simple else 'chat'})",
    }
    if not isinstance(found["model"], str):
        found["model"] = type(lm).__name__
    if isinstance(found["gen_kwargs"], str):
        found["gen_kwargs"] = _parsed(found["gen_kwargs"])
    redacted: dict[str, Any] = _redact_eval_config_secrets(found)
    return redacted


def described(lm: Any, model_args: Any) -> dict[str, Any]:
    """The description of the model: our back-ends provide their own, for others it is made from the arguments.

    In the latter case, ``model`` is the back-end, ``checkpoint`` the model that it loads or that its server runs, and
    ``fingerprint`` that of a local checkpoint; all other arguments that change answers keep their names. Secrets in
    ``model_args`` are redacted.
    """
    if hasattr(lm, "describe"):
        own: dict[str, Any] = lm.describe()
        return own
    try:
        given = {name: value for name, value in _parsed(model_args).items() if name not in _ELSEWHERE}
    except ValueError:
        given = {}
    defaults = {}  # of arguments that name a checkpoint; those of subclasses count
    for kind in reversed(type(lm).__mro__):
        for name, parameter in inspect.signature(vars(kind).get("__init__", object.__init__)).parameters.items():
            if name in _CHECKPOINT and isinstance(parameter.default, str):
                defaults[name] = parameter.default
    arguments = {**defaults, **given}
    checkpoint = next((str(arguments[name]) for name in _CHECKPOINT if arguments.get(name) not in (None, "")), None)
    arranged = presentation(lm)
    named_elsewhere = {*_CHECKPOINT, *arranged}
    known = {} if checkpoint is None else {"checkpoint": checkpoint}
    if checkpoint is not None and (Path(checkpoint).expanduser() / "config.json").is_file():
        known |= fingerprint_of(checkpoint)
    return {
        "model": backend_name(lm),
        **known,
        **{name: value for name, value in sorted(given.items()) if name not in named_elsewhere},
        **({"presentation": arranged} if arranged else {}),
    }


def _parsed(model_args: Any) -> dict[str, Any]:
    from lmms_eval.utils import simple_parse_args_string

    return simple_parse_args_string(model_args) if isinstance(model_args, str) else dict(model_args or {})


_PATTERNS = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors", "*.bin", "*.py")
_WHOLE = 64 * 2**20
_ENDS = 2**20
METHOD = (
    "sha256 over name, size and bytes of configuration, tokenizer and weight files; "
    "of files over 64 MiB the first and last MiB stand for the bytes"
)


def fingerprint_of(checkpoint: str) -> dict[str, str]:
    """``fingerprint`` and ``fingerprint_method`` of a checkpoint in a local directory; empty for any other."""
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
    known = fingerprint_of(path or "")
    return None if path is None else {"path": path, **({"fingerprint": known["fingerprint"]} if known else {})}
