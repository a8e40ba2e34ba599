"""The prompts of MedStreamBench state what section 5.4 of arXiv 2607.01751 lists, for videos and
pictures alike.
"""

from __future__ import annotations

from typing import Any

import pytest

from medtasks.benchmarks.documents import prompt_text, task_documents

TEMPLATES = [f"medstreambench/window{suffix}.j2" for suffix in ("", "_2", "_3", "_verbalised")]
SEQUENCE, PICTURE, VIDEO = "mini_seq07_before", "mini_612_polyp", "a video"


def documents() -> dict[str, dict[str, Any]]:
    """A closed question about a sequence, one picture and a video; the sequence's window is before
    the question.
    """
    asked = {
        document["sample_id"]: document for document in task_documents("medstreambench_present")
    }
    video = next(
        document
        for document in asked.values()
        if document["medium"] == "video" and document["options"]
    )
    return {SEQUENCE: asked[SEQUENCE], PICTURE: asked[PICTURE], VIDEO: video}


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("kind", [SEQUENCE, PICTURE, VIDEO])
def test_the_prompt_states_modes_query_time_and_input_range(kind: str, template: str) -> None:
    document = {**documents()[kind], "query_time": 12.25, "window_start": 1.0, "window_end": 4.5}
    text = prompt_text(document, template)
    line = next(line for line in text.splitlines() if "12.25" in line)
    unit = "{} s" if kind == VIDEO else "frame {}"
    for moment in ("1", "4.5", "12.25"):
        assert unit.format(moment) in line
    assert "Task mode: single turn" in text
    assert "Temporal mode: present" in text


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_frame_number_of_a_single_picture_is_stated(template: str) -> None:
    document = {**documents()[SEQUENCE], "times": [4.0]}
    assert "frame number is 4" in prompt_text(
        document, template
    ) or "frame number 4" in prompt_text(document, template)
