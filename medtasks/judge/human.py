"""Human annotations from a CSV file, checked as strictly as a judge's verdicts.

A row is a label: columns ``sample_id``, ``aspect`` and ``score``, and perhaps ``rater`` and ``task``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where, wrong
from medtasks.catalog.rubric import aspects_of
from medtasks.catalog.scales import Aspect, Rubric
from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.sources import read_csv_rows

HUMAN = "human"
"""The rater of rows without one."""

# spreadsheets write a column of whole numbers with gaps as 1.0
_NUMBER = re.compile(r"([0-9]{1,4})(?:\.0{1,4})?")

Unit = tuple[str, str]
"""Task and sample id: two tasks may ask about one sample."""


@dataclass(frozen=True)
class HumanLabels:
    """Rater to unit to aspect to score.

    ``unmatched`` are the sample ids that no document has, sorted; their labels are not in ``ratings``.
    """

    ratings: dict[str, dict[Unit, dict[str, int]]]
    unmatched: tuple[str, ...]


def read_labels(path: Path, rubric: Rubric, documents: Mapping[Unit, Mapping[str, Any]]) -> HumanLabels:
    """The labels in ``path``, every one an aspect of ``rubric`` and a whole number within its scale.

    Args:
        path: CSV with a header, in UTF-8; rows without a score are skipped.
        rubric: what was judged.
        documents: by task and sample id; each defines its sample's aspects. A row without a task refers to the only
            task with the sample.

    Raises:
        DataError: the file cannot be read, lacks a column, or has a label that is invalid, duplicated, or about a
            sample of several tasks without naming one; the message names file, line and column.
    """
    rows = read_csv_rows(path)
    if not {"sample_id", "aspect", "score"} <= rows[0].row.keys():
        raise DataError(
            f"{Where(path.name, 1)}: the header has {first_names(map(shown, rows[0].row), 12)}, expected `sample_id`, "
            "`aspect` and `score`; rename or add the columns."
        )
    tasks_of: dict[str, list[str]] = {}
    for task, sample_id in documents:
        tasks_of.setdefault(sample_id, []).append(task)
    ratings: dict[str, dict[Unit, dict[str, int]]] = {}
    first: dict[tuple[str, Unit, str], Where] = {}
    unmatched: set[str] = set()
    for where, row in rows:
        label = {name: cell.strip() for name, cell in row.items()}
        sample_id, written = label["sample_id"], label["score"]
        if not written:
            continue
        if not sample_id:
            raise wrong(where, "sample_id", None, "the id of a sample")
        tasks = tasks_of.get(sample_id, [""])
        if not label.get("task") and len(tasks) > 1:
            raise DataError(
                f"{where}: sample {shown(sample_id)} is in the tasks {', '.join(map(repr, sorted(tasks)))}, expected "
                "the row to name one; add a column `task`."
            )
        unit = label.get("task") or tasks[0], sample_id
        document = documents.get(unit)
        aspect = _aspect(label["aspect"], where, rubric, document)
        number = _NUMBER.fullmatch(written)
        if number is None or int(number[1]) not in aspect.scale:
            raise wrong(where, "score", written, f"a whole number from {aspect.minimum} to {aspect.maximum}")
        rater = label.get("rater") or HUMAN
        before = first.setdefault((rater, unit, aspect.name), where)
        if before is not where:
            raise DataError(
                f"{where}: rater {shown(rater)} already labelled aspect {shown(aspect.name)} of sample "
                f"{shown(sample_id)} in line {before.line}, expected one label; remove one."
            )
        if document is None:
            unmatched.add(sample_id)
        else:
            ratings.setdefault(rater, {}).setdefault(unit, {})[aspect.name] = int(number[1])
    if not first:
        raise DataError(f"{path}: found no score, expected at least one; fill in the scores.")
    return HumanLabels(ratings, tuple(sorted(unmatched)))


def _aspect(name: str, where: Where, rubric: Rubric, document: Mapping[str, Any] | None) -> Aspect:
    """The aspect of a label, according to the sample's document, or else to the rubric."""
    if document is not None:
        aspects = aspects_of(rubric, document)
    elif rubric.aspects_from is None:
        aspects = rubric.aspects
    else:  # the sample would name the aspects, but it is not known
        aspects = (Aspect(name=name),) if name else ()
    for aspect in aspects:
        if aspect.name == name:
            return aspect
    expected = first_names((repr(one.name) for one in aspects), 12) or "a name"
    raise wrong(where, "aspect", name, f"an aspect of rubric {rubric.name}: {expected}")
