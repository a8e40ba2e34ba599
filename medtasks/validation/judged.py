"""Can a judge be asked about a task's documents: do they have the fields that its prompt shows, can it be rendered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medtasks.benchmarks.base import Benchmark
from medtasks.errors import MedtasksError, first_line
from medtasks.judge.rubric import Rubric, judge_prompt, load_rubric, rubric_names
from medtasks.validation.codes import shown, suggestion
from medtasks.validation.findings import Finding
from medtasks.validation.tally import Tally
from medtasks.validation.task_text import TaskText
from medtasks.validation.templates import read_template

__all__ = ["check_judged"]

_NOT_SHOWN = frozenset({"cluster", "media"})
"""Fields of a document that samples hold apart, where no rubric sees them."""

_RESPONSE = "There is nothing of note."


def check_judged(task: TaskText, documents: Sequence[Mapping[str, Any]], benchmark: Benchmark) -> Iterator[Finding]:
    """Findings about the rubrics that the metadata name, and the prompts that they make of ``documents``."""
    names = task.block("metadata").get("rubrics")
    for number, name in enumerate(names if isinstance(names, list) else []):
        if name not in rubric_names():
            continue
        try:
            rubric = load_rubric(name)
        except MedtasksError:  # which the check of the names reports
            continue
        yield from _of_rubric(task, number, rubric, documents, benchmark)


def _of_rubric(
    task: TaskText, number: int, rubric: Rubric, documents: Sequence[Mapping[str, Any]], benchmark: Benchmark
) -> Iterator[Finding]:
    at = task.place("metadata", "rubrics", number)
    places = read_template(rubric.template, at).variables
    tally = Tally(task.name, len(documents), at)
    asks = benchmark.to_judge.get(rubric.name)
    for document in documents:
        fields = {key: value for key, value in document.items() if key not in _NOT_SHOWN}
        try:
            asked = asks is None or asks(fields, _RESPONSE)
            lacking = [field for field in rubric.sees if field not in fields]
            for field in lacking:
                message = f"there is no {shown(field)}{suggestion(field, fields)}, which rubric {rubric.name} shows"
                fix = "let `documents` add it, or take it out of the rubric"
                tally.add("MT217", document, message, fix, field, places.get(field))
            if asked and not lacking:
                judge_prompt(rubric, fields, _RESPONSE)
        except Exception as error:  # `to_judge` and template may be another package's
            message = f"rubric {rubric.name}: {first_line(error)[:300]}"
            tally.add("MT218", document, message, "fix rubric, template or document", rubric.name)
    yield from tally.findings()
