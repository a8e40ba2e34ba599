"""Can a judge be asked about a task's documents: do they have the fields that its prompt shows, can it be rendered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medtasks.benchmarks.base import Benchmark
from medtasks.errors import MedtasksError, first_line
from medtasks.judge.rubric import judge_prompt, load_rubric, rubric_names
from medtasks.judge.scales import Rubric
from medtasks.schema import shown, suggestion
from medtasks.task_model import TaskFile
from medtasks.task_source import Place, TaskSource
from medtasks.validation.findings import Finding, Tally
from medtasks.validation.templates import read_template

_NOT_SHOWN = frozenset({"cluster", "media"})
"""Document fields that samples keep separately, where no rubric sees them."""

_RESPONSE = "There is nothing of note."


def check_judged(
    task: TaskSource, file: TaskFile, documents: Sequence[Mapping[str, Any]], benchmark: Benchmark
) -> Iterator[Finding]:
    """Findings about the rubrics of a task, and the prompts that they make of ``documents``."""
    for number, name in enumerate(file.metadata.rubrics):
        try:
            rubric = load_rubric(name) if name in rubric_names() else None
        except MedtasksError:  # which the check of the names reports
            continue
        if rubric is not None:
            at = task.place("metadata", "rubrics", number)
            tally = Tally(task.name, len(documents), at)
            _of_rubric(rubric, documents, benchmark, tally, at)
            yield from tally.findings()


def _of_rubric(
    rubric: Rubric, documents: Sequence[Mapping[str, Any]], benchmark: Benchmark, tally: Tally, at: Place
) -> None:
    places = read_template(rubric.template, at).variables
    asks = benchmark.to_judge.get(rubric.name)
    for document in documents:
        fields = {key: value for key, value in document.items() if key not in _NOT_SHOWN}
        try:
            asked = asks is None or asks(fields, _RESPONSE)
            lacking = [field for field in rubric.sees if field not in fields]
            for field in lacking:
                message = f"there is no {shown(field)}{suggestion(field, fields)}, which rubric {rubric.name} shows"
                fix = "let `documents` add it, or remove it from the rubric"
                tally.add("MT217", document, message, fix, field, places.get(field))
            if asked and not lacking:
                judge_prompt(rubric, fields, _RESPONSE)
        except Exception as error:  # `to_judge` and template may be another package's
            message = f"rubric {rubric.name}: {first_line(error)[:300]}"
            tally.add("MT218", document, message, "fix rubric, template or document", rubric.name)
