"""Changes to the harness's back-ends, without which they do not answer every request."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any


def load_what_generates(model: str, *, force_simple: bool = False) -> None:
    """Make back-ends that accept any checkpoint load the class that can generate.

    They look up the model's type in tables of transformers that are keyed by configuration, find
    nothing, and load the bare model without its head.
    """
    from lmms_eval.models import MODEL_REGISTRY_V2

    backend = MODEL_REGISTRY_V2.get_model_class(model, force_simple=force_simple)
    module: Any = import_module(backend.__module__)
    if {"AutoModel", "AutoModelForImageTextToText"} <= vars(module).keys():
        module.AutoModel = SimpleNamespace(from_pretrained=_load_generating_model)


def _load_generating_model(name: str, **settings: Any) -> Any:
    """Replaces ``AutoModel.from_pretrained``, which those back-ends use for every checkpoint."""
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
    )

    trust_remote_code = settings.get("trust_remote_code", False)
    config = AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code)
    for kind in (AutoModelForImageTextToText, AutoModelForCausalLM):
        if type(config) in kind._model_mapping:
            return kind.from_pretrained(name, **settings)
    return AutoModel.from_pretrained(name, **settings)


def take_no_media(lm: Any) -> None:
    """Make the processors of ``lm`` treat an empty list of media as no media.

    Back-ends pass ``images=[]``, of which processors access the first item, and ``audios=[]``,
    which those of transformers 5 do not accept.
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
    """A subclass that is called without empty lists of media."""

    @functools.wraps(kind.__call__)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = dict(kwargs)
        for name in ("images", "videos", "audios"):
            media = kwargs.get(name)
            if isinstance(media, (list, tuple)) and not media:
                del arguments[name]
        return kind.__call__(self, *args, **arguments)

    return type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})
