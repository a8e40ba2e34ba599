"""How back-ends of the harness present the prompts of our tasks.

Taken from lmms-eval 0.7.3 with transformers 4.57 and 5; ``performance/backends`` tries them all.
Chat back-ends get one user turn, media first, then the text. Simple ones get media and text
separately and choose the order; some of either kind add a system prompt. Those that call a server
send pictures as PNG, or (but ``gemini``) as ``LMMS_IMAGE_ENCODE_FORMAT`` says. This changes scores,
so it is in the protocol hash and in the model's identity.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medtasks.catalog.spec import TaskSpec

_TEXT_FIRST = "text before media"
_MEDIA_FIRST = "media before text"
_SIMPLE_ORDER = {
    "gpt4v": _TEXT_FIRST,
    "openai": _TEXT_FIRST,
    "litellm": _TEXT_FIRST,
    "gemini": _TEXT_FIRST,
    "claude": _MEDIA_FIRST,
    "gemma3": _MEDIA_FIRST,
    "llava_hf": _MEDIA_FIRST,
    "qwen2_5_vl": _MEDIA_FIRST,
    "qwen2_vl": _MEDIA_FIRST,
    "qwen3_vl": _MEDIA_FIRST,
}
_UNUSED_SYSTEM_PROMPT = ("chat.qwen2_5_vl",)
"""Back-ends that have a ``system_prompt``, but do not send it."""
SYSTEM_PROMPT = "task's system prompt"


def backend_name(lm: Any) -> str:
    """The back-end's name in the harness, which is that of its module."""
    return type(lm).__module__.rpartition(".")[2]


def presentation(lm: Any) -> dict[str, str]:
    """How the back-end changes our tasks' prompts; empty if it does not."""
    if hasattr(lm, "describe"):  # ours
        return {}
    changes: dict[str, str] = {}
    name = backend_name(lm)
    if lm.is_simple:
        changes["interface"] = "simple"
        changes["order"] = _order(lm, name)
    if _sends_encoded_pictures(lm, name):
        encoding, quality = picture_encoding()
        if encoding != "PNG":
            changes["pictures"] = f"{encoding}, quality {quality}"
    system_prompt = getattr(lm, "system_prompt", None)
    kind = "simple" if lm.is_simple else "chat"
    is_sent = f"{kind}.{name}" not in _UNUSED_SYSTEM_PROMPT
    if isinstance(system_prompt, str) and system_prompt and is_sent:
        changes["system_prompt"] = system_prompt
    return changes


def _sends_encoded_pictures(lm: Any, name: str) -> bool:
    """Whether pictures are sent in the encoding that the environment names."""
    if name == "claude":  # see `endpoints.clients`
        return True
    return not lm.is_simple and name != "gemini" and hasattr(lm, "client")


def picture_encoding() -> tuple[str, int | None]:
    """The format in which pictures are sent, and the quality of a lossy one."""
    encoding = os.environ.get("LMMS_IMAGE_ENCODE_FORMAT", "PNG").upper()
    if encoding == "PNG":
        return encoding, None
    return encoding, int(os.environ.get("LMMS_IMAGE_JPEG_QUALITY", "85"))


def _order(lm: Any, name: str) -> str:
    """The order of media and text in a simple back-end."""
    if hasattr(lm, "image_first"):
        return _MEDIA_FIRST if lm.image_first else _TEXT_FIRST
    return _SIMPLE_ORDER.get(name, f"as {name} has it")


def task_presentation(lm: Any, spec: TaskSpec) -> dict[str, str]:
    """How the back-end changes the prompts of one task: also the place of its system prompt."""
    changes = presentation(lm)
    if spec.system_template is not None and not takes_system_prompt(lm):
        changes[SYSTEM_PROMPT] = "at the beginning of the text"
    return changes


def has_unknown_prompts(lm: Any) -> bool:
    """Whether the back-end's answers were made elsewhere, with prompts that need not be ours."""
    return bool(getattr(lm, "has_unknown_prompts", False))


def takes_system_prompt(lm: Any) -> bool:
    """Whether a system turn of a prompt reaches the model.

    Simple back-ends get none. For others the chat template decides, if there is one: some refuse
    such a turn, others leave it out.
    """
    if lm.is_simple:
        return False
    statement = getattr(lm, "takes_system_prompt", None)
    if isinstance(statement, bool):
        return statement
    for value in vars(lm).values():
        if hasattr(value, "apply_chat_template") and not _renders_system_turn(value):
            return False
    return True


_MARK = "medtasks-system-prompt"
"""A text that no chat template contains by itself."""


def _renders_system_turn(tokenizer: Any) -> bool:
    """Whether a chat template writes the text of a system turn."""
    as_parts = [_turn("system", _parts(_MARK)), _turn("user", _parts("?"))]
    as_text = [_turn("system", _MARK), _turn("user", "?")]
    for turns in (as_parts, as_text):
        reads_content = _rendered(tokenizer, turns[1:]) is not None
        if reads_content:
            return _MARK in (_rendered(tokenizer, turns) or "")
    return True  # its template is elsewhere


def _turn(role: str, content: Any) -> dict[str, Any]:
    """A chat message."""
    return {"role": role, "content": content}


def _parts(text: str) -> list[dict[str, str]]:
    """The content of a message that consists of a text, as a list of parts."""
    return [{"type": "text", "text": text}]


def _rendered(tokenizer: Any, turns: list[dict[str, Any]]) -> str | None:
    """The prompt that a chat template makes of ``turns``; None if it refuses them."""
    try:
        return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
    except Exception:  # templates may raise anything
        return None
