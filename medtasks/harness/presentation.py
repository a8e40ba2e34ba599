"""How a back-end of the harness puts a prompt before its model, where that is not what our tasks ask for.

Chat back-ends are given one user turn, media first, then the text. Simple back-ends are given media and text apart and
join them in an order of their own; some of either kind add a system prompt. Both move scores, so both count in the
protocol hash and in the model's identity. Read off lmms-eval 0.7.3.
"""

from __future__ import annotations

from typing import Any

__all__ = ["backend_name", "presentation"]

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
"""Back-ends that have a ``system_prompt`` and do not send it."""


def presentation(lm: Any) -> dict[str, str]:
    """What the back-end does otherwise than our tasks ask; empty for one that does what they ask."""
    if hasattr(lm, "describe"):  # ours
        return {}
    found = {}
    name = backend_name(lm)
    if lm.is_simple:
        order = _SIMPLE_ORDER.get(name, f"as {name} has it")
        if hasattr(lm, "image_first"):
            order = _MEDIA_FIRST if lm.image_first else _TEXT_FIRST
        found = {"interface": "simple", "order": order}
    system = getattr(lm, "system_prompt", None)
    kind = "simple" if lm.is_simple else "chat"
    if isinstance(system, str) and system and f"{kind}.{name}" not in _UNUSED_SYSTEM_PROMPT:
        found["system_prompt"] = system
    return found


def backend_name(lm: Any) -> str:
    """The back-end's name in the harness: its module's."""
    return type(lm).__module__.rpartition(".")[2]
