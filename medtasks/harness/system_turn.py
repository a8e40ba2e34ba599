"""``--system_instruction``: sent to the model as a system turn before each prompt of our tasks.

The harness itself puts the instruction into the text that it logs, but chat back-ends send the
task's messages, which do not contain it. Here both have it, or the run is refused.
"""

from __future__ import annotations

import hashlib
from typing import Any

from medtasks.catalog.spec import TaskSpec
from medtasks.core.errors import UsageError

from . import backends

PRESENTED = "system_instruction"
"""Key of ``presentation`` in a task's facts, which are part of the protocol hash."""


def refuse_system_turn(lm: Any, spec: TaskSpec) -> None:
    """Raises :class:`UsageError` if the instruction cannot be the only system turn of a prompt."""
    name = backends.backend_name(lm)
    described = lm.describe() if hasattr(lm, "describe") else backends.presentation(lm)
    if spec.system_template is not None:
        reason = f"{spec.name} has a system prompt of its own; run the task without one, or leave the option out"
    elif hasattr(lm, "describe") and not lm.runs_model:
        reason = f"{name} asks no model; leave the option out"
    elif described.get("system_prompt"):
        reason = f"{name} sends a system prompt of its own; leave out the option, or system_prompt in --model_args"
    elif lm.is_simple:
        reason = f"{name} is a simple back-end, which takes no system turn; choose a chat back-end"
    elif not backends.takes_system_prompt(lm):
        reason = f"the model's chat template takes no system turn; give {name} another model, or leave the option out"
    else:
        return
    raise UsageError(f"--system_instruction cannot be sent: {reason}.")


def presented(instruction: str) -> dict[str, str]:
    """How the instruction is sent, for a task's facts: its hash, because pages may show facts."""
    digest = hashlib.sha256(instruction.encode("utf-8", "surrogatepass")).hexdigest()
    return {PRESENTED: f"as a system turn (sha256 {digest[:16]})"}


def add_system_turn(task: Any, instruction: str) -> None:
    """Have a task of the harness begin its messages, in every round, with ``instruction``, and its
    logged prompt, too."""
    context_of, messages_of = task.fewshot_context, task.doc_to_messages
    turn = {"role": "system", "content": [{"type": "text", "text": instruction}]}

    def fewshot_context(doc: Any, num_fewshot: int = 0, *others: Any, **named: Any) -> str:
        named.pop("system_instruction", None)
        text = context_of(doc, num_fewshot, None, *others[1:], **named)  # without the instruction
        return f"{instruction}\n\n{text}"

    def doc_to_messages(doc: Any, **round_so_far: Any) -> Any:
        made = messages_of(doc, **round_so_far)
        if not isinstance(made, tuple):
            return [turn, *made]
        messages, *outcome = made  # of a later round; none after the last
        return (messages if messages is None else [turn, *messages], *outcome)

    task.fewshot_context, task.doc_to_messages = fewshot_context, doc_to_messages
