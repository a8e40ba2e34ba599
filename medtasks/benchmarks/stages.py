"""Stage-wise inference: what changed first, then which option, without the images (arXiv 2605.15574, section 4.3.2).

Stage 1 shows the images and the question, and asks what changed in each interval; options are withheld. Stage 2 shows
the question, the options and the text of stage 1, and no image. Both use the harness's multi-round protocol: after each
response it calls :func:`stage_text` (or :func:`stage_messages`, for chat back-ends).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.answers.option_letter import join_stages
from medtasks.benchmarks.documents import doc_to_text, prompt_text, user_turn
from medtasks.catalog.prompts import render
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import TaskSpec

WITHHELD = frozenset({"choices", "options"})
"""Fields that no template of stage 1 may use, although prompts may."""

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
        return first_prompt(doc, lmms_eval_specific_kwargs["stage1_template"])
    outputs = list(previous_output or ())
    if round_idx == 1:
        text = prompt_text(doc, lmms_eval_specific_kwargs["template"], observations=outputs[0].strip())
        return [], text, False, outputs, None
    return None, None, True, [join_stages(outputs)], None


def stage_messages(
    doc: Mapping[str, Any],
    lmms_eval_specific_kwargs: Mapping[str, Any],
    round_idx: int | None = None,
    previous_output: Sequence[str] | None = None,
    previous_round_info: object = None,  # noqa: ARG001  (the harness passes it)
) -> list[dict[str, Any]] | NextMessages:
    """As :func:`stage_text`, for chat back-ends: one user turn a stage, images only in the first."""
    stage = stage_text(doc, lmms_eval_specific_kwargs, previous_output, round_idx)
    if isinstance(stage, str):
        return [user_turn(doc, stage)]
    _, text, last, outputs, _ = stage
    turns = None if text is None else [{"role": "user", "content": [{"type": "text", "text": text}]}]
    return turns, last, outputs, None


def first_prompt(doc: Mapping[str, Any], template: str) -> str:
    """The prompt of stage 1: ``template`` with the benchmark's visible fields, the options withheld."""
    visible = get_benchmark(doc["benchmark"]).visible_fields - WITHHELD
    return render(template, **{key: doc[key] for key in sorted(visible) if key in doc})


def asked_prompt(spec: TaskSpec, doc: Mapping[str, Any]) -> str:
    """The text with which a task asks about ``doc``, as samples log it: of two stages the first."""
    if spec.stage1_template is not None:
        return first_prompt(doc, spec.stage1_template)
    return doc_to_text(doc, {"template": spec.template, "system_template": spec.system_template})
