"""One miniature document for each shipped rubric."""

from __future__ import annotations

import functools
from typing import Any

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric

TASKS = {
    "kvasir_aspects": ("kvasir_vqa_x1_level2", "mini0003-415c7d22"),
    "med_cmr_open": ("med_cmr_open_sod", "open-0"),
    "med_cmr_medreason": ("med_cmr_open_sod", "open-0"),
    "medstream_rubric": ("medstreambench_future", "mini_endovis11_next"),
    "medstream_closed_fallback": ("medstreambench_retrospective", "mini_suturing06_tools"),
}


def case(name: str) -> tuple[Rubric, dict[str, Any]]:
    """The rubric and the document that its tests judge."""
    return load_rubric(name), dict(_document(*TASKS[name]))


@functools.cache
def _document(task: str, sample_id: str) -> dict[str, Any]:
    (document,) = (found for found in task_documents(task) if found["sample_id"] == sample_id)
    return document


def best(rubric: Rubric, document: dict[str, Any]) -> dict[str, Any]:
    """The verdict with the highest scores, in the form that the schema asks for."""
    return {
        one.name: {"reason": "It fits.", "score": one.maximum}
        for one in aspects_of(rubric, document)
    }
