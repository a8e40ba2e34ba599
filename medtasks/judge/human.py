"""Human annotations from a CSV file, checked as strictly as a judge's verdicts.

Long form: a row per label with ``sample_id, aspect, score``. Wide form: a row per sample with ``sample_id`` and a
column per aspect. Both may have the columns ``rater`` and ``task``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from medtasks.catalog.records import Where
from medtasks.catalog.rubric import aspects_of
from medtasks.catalog.scales import Aspect, Rubric
from medtasks.core.errors import DataError
from medtasks.core.text import first_names
from medtasks.data.sources import read_csv_rows

HUMAN = "human"
"""The rater of rows without one."""

SHOWN = 60
_KEYS = ("sample_id", "rater", "task")
_LONG = ("aspect", "score")
# spreadsheets write a column of whole numbers with gaps as 1.0
_NUMBER = re.compile(r"\s*([0-9]{1,4})(?:\.0{1,4})?\s*")


Unit = tuple[str, str]
"""Task and sample id: two tasks may ask about one sample."""


@dataclass(frozen=True)
class HumanLabels:
    """Rater to unit to aspect to score.

    ``unmatched`` are the sample ids that no document has, sorted; their labels are not in ``ratings``.
    """

    ratings: dict[str, dict[Unit, dict[str, int]]]
    unmatched: tuple[str, ...]


class _Label(NamedTuple):
    """One cell with a score, or a blank one, and the names of the columns with its aspect and its score."""

    where: Where
    rater: str
    task: str
    sample_id: str
    aspect: str
    score: str
    aspect_column: str
    score_column: str


def read_labels(path: Path, rubric: Rubric, documents: Mapping[Unit, Mapping[str, Any]]) -> HumanLabels:
    """The labels in ``path``, every one an aspect of ``rubric`` and a whole number within its scale.

    Args:
        path: CSV with a header, in UTF-8.
        rubric: what was judged.
        documents: by task and sample id; each defines its sample's aspects. A row without a task refers to the only
            task with the sample.

    Raises:
        DataError: the file cannot be read, lacks a column, or has a label that is invalid, duplicated, or about a
            sample of several tasks without naming one; the message names file, line and column.
    """
    labels = [one for one in _labels(path, rubric) if one.score.strip()]
    if not labels:
        raise DataError(f"{path}: found no score, expected at least one; fill in the scores.")
    tasks: dict[str, list[str]] = {}
    for task, sample_id in documents:
        tasks.setdefault(sample_id, []).append(task)
    ratings: dict[str, dict[Unit, dict[str, int]]] = {}
    first: dict[tuple[str, Unit, str], _Label] = {}
    unmatched: set[str] = set()
    for label in labels:
        unit = (_task(label, tasks.get(label.sample_id, [])), label.sample_id)
        document = documents.get(unit)
        score = _score(label, _aspect(label, rubric, document))
        before = first.setdefault((label.rater, unit, label.aspect), label)
        if before is not label:
            raise DataError(
                f"{label.where}: column {label.aspect_column!r}: rater {label.rater[:SHOWN]!r} already labelled "
                f"aspect {label.aspect[:SHOWN]!r} of sample {label.sample_id[:SHOWN]!r} in line {before.where.line}, "
                "expected one label; remove one."
            )
        if document is None:
            unmatched.add(label.sample_id)
        else:
            ratings.setdefault(label.rater, {}).setdefault(unit, {})[label.aspect] = score
    return HumanLabels(ratings, tuple(sorted(unmatched)))


def _task(label: _Label, tasks: Sequence[str]) -> str:
    """The task of a label; if no task of the run has the sample, the one in the row."""
    if label.task or not tasks:
        return label.task
    if len(tasks) > 1:
        raise DataError(
            f"{label.where}: sample {label.sample_id[:SHOWN]!r} is in the tasks {_list(sorted(tasks))}, expected the "
            "row to name one; add a column `task`."
        )
    return tasks[0]


def _labels(path: Path, rubric: Rubric) -> Iterator[_Label]:
    """Every cell for a score, including blank ones."""
    rows = read_csv_rows(path)
    names = list(rows[0][1])
    if "" in names:
        raise DataError(f"{Where(path.name, 1)}: a column has no name, expected a name for each; name or remove it.")
    long = any(name in names for name in _LONG)
    missing = [name for name in ("sample_id", *(_LONG if long else ())) if name not in names]
    columns = [name for name in names if name not in _KEYS]
    if missing or not columns:
        raise DataError(
            f"{Where(path.name, 1)}: the header has {_list(names)}, expected `sample_id` with `aspect` and `score`, or "
            "`sample_id` with a column per aspect; rename or add the columns."
        )
    known = {aspect.name for aspect in rubric.aspects}
    for name in columns if known and not long else ():
        if name not in known:
            raise DataError(
                f"{Where(path.name, 1)}: column {name[:SHOWN]!r} is not an aspect of rubric {rubric.name}, expected "
                f"some of {_list(sorted(known))}; rename or remove it."
            )
    for where, row in rows:
        if not any(cell.strip() for cell in row.values()):
            continue
        sample_id = row["sample_id"].strip()
        if not sample_id:
            raise DataError(f"{where}: column `sample_id` is empty, expected the id of a sample; fill it in.")
        rater, task = row.get("rater", "").strip() or HUMAN, row.get("task", "").strip()
        if long:
            yield _Label(where, rater, task, sample_id, row["aspect"].strip(), row["score"], *_LONG)
        else:
            for name in columns:
                yield _Label(where, rater, task, sample_id, name, row[name], name[:SHOWN], name[:SHOWN])


def _aspect(label: _Label, rubric: Rubric, document: Mapping[str, Any] | None) -> Aspect:
    """The aspect of a label, according to the sample's document, or else to the rubric."""
    if document is not None:
        aspects = aspects_of(rubric, document)
        owner = f"sample {label.sample_id[:SHOWN]}"
    elif rubric.aspects_from is None:
        aspects, owner = rubric.aspects, f"rubric {rubric.name}"
    else:  # the sample would name the aspects, but it is not known
        aspects, owner = ((Aspect(name=label.aspect),) if label.aspect else ()), f"rubric {rubric.name}"
    for aspect in aspects:
        if aspect.name == label.aspect:
            return aspect
    expected = _list([aspect.name for aspect in aspects]) if aspects else "a name"
    raise DataError(
        f"{label.where}: column {label.aspect_column!r}: {label.aspect[:SHOWN]!r} is not an aspect of {owner}, "
        f"expected {expected}; fix the row."
    )


def _score(label: _Label, aspect: Aspect) -> int:
    written = _NUMBER.fullmatch(label.score)
    if written is None or int(written[1]) not in aspect.scale:
        raise DataError(
            f"{label.where}: column {label.score_column!r} is {label.score[:SHOWN]!r}, expected a whole number from "
            f"{aspect.minimum} to {aspect.maximum}; fix the row."
        )
    return int(written[1])


def _list(names: Iterable[str]) -> str:
    return first_names((repr(name[:SHOWN]) for name in names), 12)
