"""Peculiarities of the harness's back-ends: how they present a prompt, and what they need to answer every request.

Taken from lmms-eval 0.7.3 with transformers 4.57 and 5; ``benchmarks/backends`` tries them all.

Chat back-ends get one user turn, media first, then the text. Simple back-ends get media and text separately and
choose the order; some of either kind add a system prompt. Chat back-ends that call a server send pictures as PNG, or
as ``LMMS_IMAGE_ENCODE_FORMAT`` says. This changes scores, so it is in the protocol hash and in the model's identity.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medtasks.catalog.spec import TaskSpec

_TEXT_FIRST = "text before media"
_MEDIA_FIRST = "media before text"
_SIMPLE_ORDER = {
    "claude": _MEDIA_FIRST,
    "gemma3": _MEDIA_FIRST,
    "gpt4v": _TEXT_FIRST,
    "llava_hf": _MEDIA_FIRST,
    "openai": _TEXT_FIRST,
    "qwen2_5_vl": _MEDIA_FIRST,
    "qwen2_vl": _MEDIA_FIRST,
    "qwen3_vl": _MEDIA_FIRST,
}
_UNUSED_SYSTEM_PROMPT = frozenset({"chat.qwen2_5_vl"})
"""Back-ends that have a ``system_prompt`` but do not send it."""

_MEDIA = ("images", "videos", "audios")


def presentation(lm: Any) -> dict[str, str]:
    """How the back-end changes our tasks' prompts; empty if it does not."""
    if hasattr(lm, "describe"):  # ours
        return {}
    found = {}
    name = backend_name(lm)
    if lm.is_simple:
        order = _SIMPLE_ORDER.get(name, f"as {name} has it")
        if hasattr(lm, "image_first"):
            order = _MEDIA_FIRST if lm.image_first else _TEXT_FIRST
        found = {"interface": "simple", "order": order}
    elif hasattr(lm, "client") and (encoding := os.environ.get("LMMS_IMAGE_ENCODE_FORMAT", "PNG").upper()) != "PNG":
        found["pictures"] = f"{encoding}, quality {os.environ.get('LMMS_IMAGE_JPEG_QUALITY', '85')}"
    system = getattr(lm, "system_prompt", None)
    kind = "simple" if lm.is_simple else "chat"
    if isinstance(system, str) and system and f"{kind}.{name}" not in _UNUSED_SYSTEM_PROMPT:
        found["system_prompt"] = system
    return found


SYSTEM_PROMPT = "task's system prompt"
IN_TEXT = "at the beginning of the text"


def task_presentation(lm: Any, spec: TaskSpec) -> dict[str, str]:
    """:func:`presentation`, and what becomes of the task's system prompt if the back-end takes none."""
    in_text = spec.system_template is not None and not takes_system_prompt(lm)
    return {**presentation(lm), **({SYSTEM_PROMPT: IN_TEXT} if in_text else {})}


def takes_system_prompt(lm: Any) -> bool:
    """Whether a system turn of a prompt reaches the model.

    Simple back-ends get none. For others the chat template decides, if there is one: some refuse such a turn, others
    leave it out.
    """
    if lm.is_simple:
        return False
    if isinstance(known := getattr(lm, "takes_system_prompt", None), bool):
        return known
    return all(_renders_system_turn(one) for one in vars(lm).values() if hasattr(one, "apply_chat_template"))


def _renders_system_turn(templated: Any) -> bool:
    mark = "medtasks-system-prompt"
    for content in (lambda text: [{"type": "text", "text": text}], lambda text: text):
        turns = [{"role": "system", "content": content(mark)}, {"role": "user", "content": content("?")}]
        if _rendered(templated, turns[1:]) is not None:  # the template reads content of this form
            return mark in (_rendered(templated, turns) or "")
    return True  # its template is elsewhere


def _rendered(templated: Any, turns: list[dict[str, Any]]) -> str | None:
    try:
        return str(templated.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
    except Exception:  # templates raise what they like
        return None


def backend_name(lm: Any) -> str:
    """The back-end's name in the harness, which is that of its module."""
    return type(lm).__module__.rpartition(".")[2]


def load_what_generates(model: str, *, force_simple: bool = False) -> None:
    """Make back-ends that accept any checkpoint load the class that can generate.

    They look up the model's type in tables of transformers that are keyed by configuration, find nothing, and load the
    bare model without its head.
    """
    from lmms_eval.models import MODEL_REGISTRY_V2

    module = sys.modules[MODEL_REGISTRY_V2.get_model_class(model, force_simple=force_simple).__module__]
    if {"AutoModel", "AutoModelForImageTextToText"} <= vars(module).keys():
        module.AutoModel = _Generating  # type: ignore[attr-defined]


class _Generating:
    """Replaces ``AutoModel``, which those back-ends use for every checkpoint."""

    @staticmethod
    def from_pretrained(name: str, **settings: Any) -> Any:
        from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText

        config = AutoConfig.from_pretrained(name, trust_remote_code=settings.get("trust_remote_code", False))
        kinds = (AutoModelForImageTextToText, AutoModelForCausalLM)
        kind = next((one for one in kinds if type(config) in one._model_mapping), AutoModel)
        return kind.from_pretrained(name, **settings)


def take_no_media(lm: Any) -> None:
    """Make the processors of ``lm`` treat an empty list of media as no media.

    Back-ends pass ``images=[]``, ``videos=[]`` or ``audios=[]`` if a prompt has none; processors then access the
    first item, and those of transformers 5 do not accept ``audios``.
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
        media = {name: kwargs[name] for name in _MEDIA if name in kwargs}
        empty = [name for name, value in media.items() if isinstance(value, (list, tuple)) and not value]
        given = {name: value for name, value in kwargs.items() if name not in empty}
        return kind.__call__(self, *args, **given)

    return type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})
