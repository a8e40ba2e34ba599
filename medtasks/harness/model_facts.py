"""Which model a back-end runs: its arguments, its checkpoint, and the harness's settings."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtasks.runs import training_record

from .endpoints import leaves_out_temperature
from .presentation import backend_name, presentation

_NOT_IDENTITY = frozenset(
    {
        "batch_size",
        "max_batch_size",
        "share_prefix",
        "device",
        "device_map",
        "api_key",
        "timeout",
        "max_retries",
        "retry_backoff_s",
        "num_concurrent",
        "num_cpus",
        "replicas",
        "gpus",
        "cpus",
        "address",
        "unit_tokens",
    }
)
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
_SETTINGS = (
    "model",
    "model_args",
    "batch_size",
    "device",
    "limit",
    "offset",
    "gen_kwargs",
    "system_instruction",
    "apply_chat_template",
    "num_fewshot",
    "repeats",
    "predict_only",
    "random_seed",
)
"""Arguments of ``simple_evaluate`` that the manifest states."""

_PATTERNS = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors", "*.bin", "*.py")
_WHOLE = 64 * 2**20
"""Bytes of a file up to which it is hashed whole."""
_ENDS = 2**20
"""Bytes at either end of a larger file that are hashed."""
METHOD = (
    "sha256 over name, size and bytes of configuration, tokenizer and weight files; "
    "of files over 64 MiB the first and last MiB stand for the bytes"
)


def run_arguments(model_args: Any) -> Any:
    """The model arguments that change answers."""
    try:
        arguments = _parsed(model_args)
    except ValueError:
        return str(model_args)
    kept = sorted(arguments.keys() - _NOT_IDENTITY)
    return {name: str(arguments[name]) for name in kept}


def settings(asked: Mapping[str, Any], lm: Any) -> dict[str, Any]:
    """The harness's settings, with secrets redacted and without local paths."""
    from lmms_eval.evaluator import _redact_eval_config_secrets

    values = {name: asked.get(name) for name in _SETTINGS}
    for kind in ("numpy", "torch", "fewshot"):
        values[f"{kind}_seed"] = asked.get(f"{kind}_random_seed")
    interface = "simple" if lm.is_simple else "chat"
    values["model_backend"] = f"{type(lm).__module__}.{type(lm).__name__} ({interface})"
    if not isinstance(values["model"], str):
        values["model"] = type(lm).__name__
    if isinstance(values["gen_kwargs"], str):
        values["gen_kwargs"] = _parsed(values["gen_kwargs"])
    redacted: dict[str, Any] = _redact_eval_config_secrets(values)
    return redacted


def described(lm: Any, model_args: Any) -> dict[str, Any]:
    """The description of the model.

    Our back-ends describe theirs. For others it is the back-end (``model``), its ``checkpoint``,
    the ``fingerprint`` of a local one, and all arguments that change answers, except secrets.
    """
    if hasattr(lm, "describe"):
        own: dict[str, Any] = lm.describe()
        return own
    try:
        arguments = _parsed(model_args)
    except ValueError:
        arguments = {}
    arguments = {name: value for name, value in arguments.items() if name not in _ELSEWHERE}
    changes = presentation(lm)
    description: dict[str, Any] = {"model": backend_name(lm)}
    checkpoint = _checkpoint({**_default_checkpoints(type(lm)), **arguments})
    if checkpoint is not None:
        description["checkpoint"] = checkpoint
        if (Path(checkpoint).expanduser() / "config.json").is_file():
            description |= fingerprint_of(checkpoint)
        description |= training_facts(checkpoint, arguments.get("peft"))
    for name, value in sorted(arguments.items()):
        if name not in _CHECKPOINT and name not in changes:
            description[name] = value
    if changes:
        description["presentation"] = changes
    if leaves_out_temperature(lm):
        description["temperature"] = "not sent"
    return description


def _default_checkpoints(kind: type) -> dict[str, str]:
    """Defaults of the arguments that name a checkpoint; those of subclasses have precedence."""
    defaults: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        initializer = vars(base).get("__init__", object.__init__)
        for name, parameter in inspect.signature(initializer).parameters.items():
            if name in _CHECKPOINT and isinstance(parameter.default, str):
                defaults[name] = parameter.default
    return defaults


def _checkpoint(arguments: Mapping[str, Any]) -> str | None:
    """The checkpoint, or the model of a server, that the arguments name; None if they name none."""
    for name in _CHECKPOINT:
        if arguments.get(name) not in (None, ""):
            return str(arguments[name])
    return None


def _parsed(model_args: Any) -> dict[str, Any]:
    """The model arguments by name, given as the harness's text or as a dictionary."""
    from lmms_eval.utils import simple_parse_args_string

    if isinstance(model_args, str):
        parsed: dict[str, Any] = simple_parse_args_string(model_args)
        return parsed
    return dict(model_args or {})


def fingerprint_of(checkpoint: str) -> dict[str, str]:
    """``fingerprint`` and ``fingerprint_method`` of a local checkpoint; empty for any other."""
    directory = Path(checkpoint).expanduser()
    if not directory.is_dir():
        return {}
    files: set[Path] = set()
    for pattern in _PATTERNS:
        files.update(path for path in directory.glob(pattern) if path.is_file())
    # it says how the weights were made: with and without it, they are the same model
    files.discard(directory / training_record.FILE)
    total = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        total.update(f"{path.name}\0{path.stat().st_size}\0{_content_hash(path)}\n".encode())
    return {"fingerprint": total.hexdigest(), "fingerprint_method": METHOD}


def _content_hash(path: Path) -> str:
    """SHA-256 of a file; of a large one, of its ends."""
    size = path.stat().st_size
    content = hashlib.sha256()
    with path.open("rb") as file:
        if size > _WHOLE:
            content.update(file.read(_ENDS))
            file.seek(size - _ENDS)
        while block := file.read(_ENDS):
            content.update(block)
    return content.hexdigest()


def training_facts(*folders: object) -> dict[str, Any]:
    """What a checkpoint and its adapter were trained on, if records beside their weights say so.

    Raises:
        DataError: the record is damaged.
    """
    merged: training_record.TrainingRecord | None = None
    for folder in folders:
        if not isinstance(folder, str):
            continue
        record = training_record.read_training_record(Path(folder).expanduser())
        if record is not None:
            merged = record.merged(merged)
    return {} if merged is None else {training_record.FACT: merged.model_dump(mode="json")}


def adapter_facts(path: str | None) -> dict[str, str] | None:
    """Path and fingerprint of an adapter of a checkpoint's weights; None if there is none."""
    if path is None:
        return None
    facts = {"path": path}
    fingerprint = fingerprint_of(path).get("fingerprint")
    if fingerprint is not None:
        facts["fingerprint"] = fingerprint
    return facts
