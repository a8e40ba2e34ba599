"""Stage-wise inference: what changed first, then which option, without the images (arXiv 2605.15574, section 4.3.2).

Stage 1 shows the images and asks what changed in each interval; question and options are withheld. Stage 2 shows the
question, the options and the text of stage 1, and no image. Both use the harness's multi-round protocol: after each
response it calls :func:`stage_text` (or :func:`stage_messages`, for chat back-ends).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.benchmarks.documents import pictures, prompt_text
from medtasks.filters.option_letter import join_stages
from medtasks.prompts import render

NextText = tuple[list[Any] | None, str | None, bool, list[str] | None, None]
NextMessages = tuple[list[dict[str, Any]] | None, bool, list[str] | None, None]


def stage_text(
    doc: Mapping[str, Any],
    lmms_eval_specific_kwargs: Mapping[str, Any],
    previous_output: Sequence[str] | None = None,
    round_idx: int | None = None,
    previous_round_info: object = None,  # noqa: ARG001  (the harness passes it)
) -> str | NextText:
    """The prompt of stage 1 or, once there are responses, what the harness needs for the next round.

    Returns:
        A text; or media (none), text, whether this was the last round, the outputs so far, and no state.
    """
    if not round_idx:
        return _first_text(lmms_eval_specific_kwargs)
    outputs = list(previous_output or ())
    if round_idx == 1:
        return [], _second_text(doc, lmms_eval_specific_kwargs, outputs[0]), False, outputs, None
    return None, None, True, [join_stages(outputs)], None


def stage_messages(
    doc: Mapping[str, Any],
    lmms_eval_specific_kwargs: Mapping[str, Any],
    round_idx: int | None = None,
    previous_output: Sequence[str] | None = None,
    previous_round_info: object = None,  # noqa: ARG001  (the harness passes it)
) -> list[dict[str, Any]] | NextMessages:
    """As :func:`stage_text`, for chat back-ends: one user turn a stage, images only in the first."""
    if not round_idx:
        content: list[dict[str, Any]] = [{"type": "image", "url": picture} for picture in pictures(doc)]
        return _turn([*content, {"type": "text", "text": _first_text(lmms_eval_specific_kwargs)}])
    outputs = list(previous_output or ())
    if round_idx == 1:
        text = _second_text(doc, lmms_eval_specific_kwargs, outputs[0])
        return _turn([{"type": "text", "text": text}]), False, outputs, None
    return None, True, [join_stages(outputs)], None


def _turn(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


def _first_text(settings: Mapping[str, Any]) -> str:
    return render(settings["stage1_template"])  # no fields, so that none can leak


def _second_text(doc: Mapping[str, Any], settings: Mapping[str, Any], observations: str) -> str:
    return prompt_text(doc, settings["template"], observations=observations.strip())
