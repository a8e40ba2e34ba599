"""``--system_instruction``: sent to the model as a system turn before each prompt of our tasks.

The harness itself puts the instruction into the text that it logs, but chat back-ends send the
task's messages, which do not contain it. Here both have it, or the run is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

from medtasks.catalog.spec import TaskSpec
from medtasks.core.errors import UsageError

from .presentation import backend_name, presentation, takes_system_prompt

PRESENTED = "system_instruction"
"""Key of ``presentation`` in a task's facts, which are part of the protocol hash."""


def refuse_system_turn(lm: Any, spec: TaskSpec) -> None:
    """Raise :class:`UsageError` if the instruction cannot be the only system turn of a prompt."""
    reason = _reason_against_system_turn(lm, spec)
    if reason is not None:
        raise UsageError(f"--system_instruction cannot be sent: {reason}.")


def _reason_against_system_turn(lm: Any, spec: TaskSpec) -> str | None:
    """Why the instruction cannot be the only system turn, and the fix; None if it can be."""
    if spec.system_template is not None:
        return (
            f"{spec.name} has a system prompt of its own; run the task without one, or leave the "
            "option out"
        )
    return _reason_of_back_end(lm)


def _reason_of_back_end(lm: Any) -> str | None:
    """Why a back-end cannot send the instruction, and the fix; None if it can."""
    name = backend_name(lm)
    is_ours = hasattr(lm, "describe")
    if is_ours and not lm.runs_model:
        return f"{name} asks no model; leave the option out"
    description = lm.describe() if is_ours else presentation(lm)
    if description.get("system_prompt"):
        return (
            f"{name} sends a system prompt of its own; leave out the option, or system_prompt in "
            "--model_args"
        )
    if lm.is_simple:
        return f"{name} is a simple back-end, which takes no system turn; choose a chat back-end"
    if not takes_system_prompt(lm):
        return (
            f"the model's chat template takes no system turn; give {name} another model, or leave "
            "the option out"
        )
    return None


def presented(instruction: str) -> dict[str, str]:
    """How the instruction is sent, for a task's facts: its hash, because pages may show facts."""
    digest = hashlib.sha256(instruction.encode("utf-8", "surrogatepass")).hexdigest()
    return {PRESENTED: f"as a system turn (sha256 {digest[:16]})"}


def add_system_turn(task: Any, instruction: str) -> None:
    """Have the messages of a harness task, and its logged prompt, begin with ``instruction``."""
    turn = {"role": "system", "content": [{"type": "text", "text": instruction}]}
    task.fewshot_context = partial(_context_with_instruction, task.fewshot_context, instruction)
    task.doc_to_messages = partial(_messages_with_turn, task.doc_to_messages, turn)


def _context_with_instruction(
    fewshot_context: Callable[..., str],
    instruction: str,
    doc: Any,
    num_fewshot: int = 0,
    *args: Any,
    **kwargs: Any,
) -> str:
    """The logged prompt of a document, after the instruction."""
    # the first of the other arguments is the instruction, which the harness would add by itself
    kwargs.pop("system_instruction", None)
    text = fewshot_context(doc, num_fewshot, None, *args[1:], **kwargs)
    return f"{instruction}\n\n{text}"


def _messages_with_turn(
    doc_to_messages: Callable[..., Any], turn: dict[str, Any], doc: Any, **round_so_far: Any
) -> Any:
    """The messages of a document, or of a later round with its outcome, after the system turn."""
    result = doc_to_messages(doc, **round_so_far)
    if not isinstance(result, tuple):
        return [turn, *result]
    messages, *outcome = result
    if messages is not None:  # there are none after the last round
        messages = [turn, *messages]
    return (messages, *outcome)
