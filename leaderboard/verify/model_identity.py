"""The model of a run by its manifest: its name, and a slug that identifies it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtasks.core.files import canonical_json, short_hash
from medtasks.core.redaction import is_secret, shown
from medtasks.runs.manifest import RunManifest
from medtasks.runs.our_back_ends import BACK_ENDS

CHECKPOINT_NAMES = (
    "checkpoint",
    "pretrained",
    "model_name",
    "model_id",
    "model_version",
    "model",
    "path",
    "engine",
)
"""Facts that name the model itself; beside ``checkpoint``, ``model`` is the back-end."""
NO_IDENTITY = frozenset(
    {
        # where and how fast it ran
        "processes", "num_processes", "cluster", "device",
        "device_map", "batch_size", "max_batch_size", "num_concurrent",
        "concurrency", "timeout", "max_retries", "retries", "tensor_parallel_size",
        "data_parallel_size", "threads", "gpu_memory_utilization", "max_num_seqs",
        "nproc_per_node", "use_cache", "attn_implementation", "base_url",
        "api_key_env", "predictions", "layout", "epoch",
        # counted or derived while it ran
        "ignored_generation_settings", "fingerprint_method", "generation_defaults", "parameters",
        "architecture", "torch", "transformers", "rows", "identical_repeats", "unmatched",
        "answered", "missing",
        # the same model, run without media
        "blind",
        # the weights identify the model, not how they were made
        "medtasks_training",
    }
)  # fmt: skip
"""Facts that do not identify a model."""
_POLICY_SETTINGS = ("accuracy", "answer", "seed")
"""Settings of a baseline that its name states."""
LONGEST = 48
"""Maximum length of the name's part of a slug."""


def model_name(manifest: RunManifest) -> str:
    """The model's name: a hub id or the last part of a path.

    A baseline is named by its policy with the settings, predictions without a name by their file.
    """
    facts = model_arguments(manifest)
    if facts.get("policy"):
        return _policy_name(facts)
    if manifest.model.get("model") == "medtasks_replay" and facts.get("file"):
        return Path(shown(facts["file"])).stem
    if manifest.is_imported and facts.get("model") == "unknown" and facts["layout"] != "python":
        return Path(shown(facts["predictions"])).stem
    name = shown(_checkpoint_name(facts))
    adapter = facts.get("peft")
    if isinstance(adapter, Mapping):
        adapter = adapter.get("path")
    return f"{name} + {shown(adapter)}" if adapter else name


def _policy_name(facts: Mapping[str, Any]) -> str:
    """``frequent (seed 0)``: a baseline's policy and its settings."""
    settings = [f"{key} {facts[key]}" for key in _POLICY_SETTINGS if facts.get(key) is not None]
    if not settings:
        return str(facts["policy"])
    return f"{facts['policy']} ({', '.join(settings)})"


def _checkpoint_name(facts: Mapping[str, Any]) -> str:
    """The first fact that names the model; ``unknown`` without any."""
    for key in CHECKPOINT_NAMES:
        name = facts.get(key)
        if isinstance(name, str) and name.strip():
            return name
    return "unknown"


def model_key(manifest: RunManifest) -> str:
    """The model's slug, safe in URLs and file names: the end of its name, and a hash.

    The hash covers the facts that identify the model. It does not cover `NO_IDENTITY`, seeds
    (except a baseline's), or the directories of local paths.
    """
    identity = _identifying_facts(manifest)
    name = model_name(manifest).rpartition("/")[2]
    return f"{_slug(name) or 'model'}-{short_hash(canonical_json(identity))[:8]}"


def _slug(name: str) -> str:
    """The name in lower case, with a hyphen for everything but letters, digits and inner dots."""
    not_in_slugs = r"[^a-z0-9.]+"
    outer_dot = r"\.(?![a-z0-9])|(?<![a-z0-9])\."
    hyphenated = re.sub(f"{not_in_slugs}|{outer_dot}", "-", name.casefold())
    return re.sub(r"-+", "-", hyphenated)[:LONGEST].strip("-.")


def _identifying_facts(manifest: RunManifest) -> dict[str, str]:
    """The facts of a model that its slug's hash is made of."""
    facts = model_arguments(manifest)
    identity: dict[str, str] = {}
    for key, value in facts.items():
        if value in (None, "") or key in NO_IDENTITY or is_secret(key):
            continue
        # adapters, like weights, are identified by their fingerprint if they have one
        if isinstance(value, Mapping) and value.get("fingerprint"):
            value = value["fingerprint"]
        identity[key] = shown(value)
    if not facts.get("policy"):
        identity.pop("seed", None)
    if "fingerprint" in identity:
        # weights in another directory are the same weights
        identity.pop("pretrained", None)
        identity.pop("checkpoint", None)
    if manifest.model.get("layout") and manifest.model.get("model") != "unknown":
        # the model of these predictions is identified by its name
        identity.pop("sha256", None)
    return identity


def model_arguments(manifest: RunManifest) -> dict[str, Any]:
    """The manifest's facts about the model; with its arguments if they only name the back-end."""
    facts = dict(manifest.model)
    back_end = BACK_ENDS.get(str(facts.get("model")))
    is_identified = "checkpoint" in facts or (back_end is not None and back_end.identifies_model)
    if is_identified and "layout" not in facts:
        return facts
    arguments = _parsed_arguments(manifest.settings.get("model_args"))
    merged = {**facts, **arguments}
    if "model" in arguments:
        merged["backend"] = facts.get("model")
    return merged


def _parsed_arguments(arguments: Any) -> Mapping[str, Any]:
    """lmms-eval's ``--model_args``: a mapping, or a text such as ``pretrained=a,dtype=b``."""
    if isinstance(arguments, Mapping):
        return arguments
    parsed: dict[str, Any] = {}
    for assignment in str(arguments or "").split(","):
        key, _, value = assignment.partition("=")
        if key.strip():
            parsed[key.strip()] = value
    return parsed
