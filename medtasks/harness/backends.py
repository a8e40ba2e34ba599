"""What back-ends of the harness need so that every request reaches their model, or fails for a reason that is named.

Read off lmms-eval 0.7.3 with transformers 4.57 and 5; ``benchmarks/backends`` tries them all.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from .presentation import backend_name

__all__ = ["cannot_take", "load_what_generates", "one_at_a_time", "take_no_media"]

_MEDIA = ("images", "videos", "audios")
_NEEDS_MEDIA = frozenset({"llava_hf"})
"""Simple back-ends that cannot take a prompt without media: they send what they made of the request before it."""


def load_what_generates(model: str, *, force_simple: bool = False) -> None:
    """Let back-ends for any checkpoint load the class that generates.

    They look a model's type up in tables that transformers keeps by configuration, find none of them there, and load
    the bare model without its head.
    """
    from lmms_eval.models import MODEL_REGISTRY_V2

    module = sys.modules[MODEL_REGISTRY_V2.get_model_class(model, force_simple=force_simple).__module__]
    if {"AutoModel", "AutoModelForImageTextToText"} <= vars(module).keys():
        module.AutoModel = _Generating  # type: ignore[attr-defined]


class _Generating:
    """In the place of ``AutoModel``, in which they end up with every checkpoint."""

    @staticmethod
    def from_pretrained(name: str, **settings: Any) -> Any:
        from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText

        config = AutoConfig.from_pretrained(name, trust_remote_code=settings.get("trust_remote_code", False))
        kinds = (AutoModelForImageTextToText, AutoModelForCausalLM)
        kind = next((one for one in kinds if type(config) in one._model_mapping), AutoModel)
        return kind.from_pretrained(name, **settings)


def take_no_media(lm: Any) -> None:
    """Let the processors of ``lm`` take an empty list of media as none.

    Back-ends give them ``images=[]``, ``videos=[]`` or ``audios=[]`` where a prompt has none of these; processors then
    look for the first one, and those of transformers 5 refuse ``audios`` by its name.
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
        given = {name: value for name, value in kwargs.items() if name not in _MEDIA or not _is_empty(value)}
        return kind.__call__(self, *args, **given)

    return type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})


def _is_empty(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not value


def one_at_a_time(lm: Any) -> bool:
    """Whether the back-end may answer a request with what it made of another one in the same call."""
    return bool(lm.is_simple) and backend_name(lm) in _NEEDS_MEDIA


def cannot_take(lm: Any, request: Any) -> str | None:
    """Why the back-end has no answer to ``request``, which it would leave blank; None where it may have one."""
    if not one_at_a_time(lm):
        return None
    _, _, to_visual, doc_id, task, split = request.args
    if to_visual(lm.task_dict[task][split][doc_id]):
        return None
    return f"the simple interface of {backend_name(lm)} takes no prompt without media: leave out --force_simple"
