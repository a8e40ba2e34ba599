"""Human annotations of a rubric's aspects, from a CSV file.

A row is a label: columns ``sample_id``, ``aspect`` and ``score``, and perhaps ``rater`` and
``task``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.records import Where, wrong
from medtasks.catalog.rubric import Aspect, Rubric
from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.csv_rows import read_csv_rows

HUMAN = "human"
"""The rater of rows without one."""

Unit = tuple[str, str]
"""Task and sample id: two tasks may ask about one sample."""
Documents = Mapping[Unit, Mapping[str, Any]]
Labels = dict[str, dict[Unit, dict[str, int]]]
"""Scores by rater, unit and aspect."""


class _LabelPlace(NamedTuple):
    """What one label is about, and who gave it."""

    rater: str
    unit: Unit
    aspect: str


def read_labels(path: Path, rubric: Rubric, documents: Documents) -> tuple[Labels, list[str]]:
    """The labels in the CSV file ``path``, and the sample ids without a document.

    Each label is on an aspect of ``rubric`` within its scale; those of samples without a document
    are left out. Rows without a score are skipped. A row without a task refers to the only task
    with the sample among ``documents``.

    Raises:
        DataError: the file cannot be read, lacks a column, or has a label that is invalid,
            duplicated, or about a sample of several tasks without naming one; the message names
            file, line and column.
    """
    rows = read_csv_rows(path)
    _require_columns(path, rows[0].row)
    tasks_of_sample = _tasks_of_samples(documents)
    labels: Labels = {}
    labelled: dict[_LabelPlace, Where] = {}
    unmatched: set[str] = set()
    for where, row in rows:
        cells = {name: cell.strip() for name, cell in row.items()}
        if not cells["score"]:
            continue
        unit = _unit_of(cells, tasks_of_sample, where)
        document = documents.get(unit)
        aspect = _aspect_named(cells["aspect"], rubric, document, where)
        score = _score_on(aspect, cells["score"], where)
        place = _LabelPlace(cells.get("rater") or HUMAN, unit, aspect.name)
        _require_first(place, where, labelled)
        if document is None:
            unmatched.add(cells["sample_id"])
        else:
            labels_of_rater = labels.setdefault(place.rater, {})
            labels_of_rater.setdefault(unit, {})[aspect.name] = score
    if not labelled:
        raise DataError(f"{path}: found no score, expected at least one; fill in the scores.")
    return labels, sorted(unmatched)


def _tasks_of_samples(documents: Documents) -> dict[str, list[str]]:
    """The tasks that each sample is in, by its id."""
    tasks_of_sample: dict[str, list[str]] = {}
    for task, sample_id in documents:
        tasks_of_sample.setdefault(sample_id, []).append(task)
    return tasks_of_sample


def _score_on(aspect: Aspect, cell: str, where: Where) -> int:
    """The score in a cell, which is on the aspect's scale."""
    score = aspect.score_of(cell)
    if score is None:
        scale = f"a whole number from {aspect.minimum} to {aspect.maximum}"
        raise wrong(where, "score", cell, scale)
    return score


def _require_columns(path: Path, header: Mapping[str, str]) -> None:
    """Refuse a file without the columns that every label needs."""
    if not {"sample_id", "aspect", "score"} <= header.keys():
        names = first_names([shown(name) for name in header], 12)
        raise DataError(
            f"{Where(path.name, 1)}: the header has {names}, expected `sample_id`, `aspect` and "
            "`score`; rename or add the columns."
        )


def _unit_of(
    cells: Mapping[str, str], tasks_of_sample: Mapping[str, list[str]], where: Where
) -> Unit:
    """The task and sample that a row refers to."""
    sample_id = cells["sample_id"]
    if not sample_id:
        raise wrong(where, "sample_id", None, "the id of a sample")
    if cells.get("task"):
        return cells["task"], sample_id
    tasks = tasks_of_sample.get(sample_id, [""])
    if len(tasks) > 1:
        names = ", ".join(repr(task) for task in sorted(tasks))
        raise DataError(
            f"{where}: sample {shown(sample_id)} is in the tasks {names}, expected the row to name "
            "one; add a column `task`."
        )
    return tasks[0], sample_id


def _aspect_named(
    name: str, rubric: Rubric, document: Mapping[str, Any] | None, where: Where
) -> Aspect:
    """The aspect with this name that the rubric has for the document."""
    aspects: tuple[Aspect, ...] = ()
    if document is not None:
        aspects = aspects_of(rubric, document)
    elif rubric.aspects_from is None:
        aspects = rubric.aspects
    elif name:  # the sample would name the aspects, but has no document
        aspects = (Aspect(name=name),)
    for aspect in aspects:
        if aspect.name == name:
            return aspect
    expected = first_names([repr(aspect.name) for aspect in aspects], 12) or "a name"
    raise wrong(where, "aspect", name, f"an aspect of rubric {rubric.name}: {expected}")


def _require_first(place: _LabelPlace, where: Where, labelled: dict[_LabelPlace, Where]) -> None:
    """Refuse a second label of the same rater, and note this one."""
    if place in labelled:
        raise DataError(
            f"{where}: rater {shown(place.rater)} already labelled aspect {shown(place.aspect)} of "
            f"sample {shown(place.unit[1])} in line {labelled[place].line}, expected one label; "
            "remove one."
        )
    labelled[place] = where
