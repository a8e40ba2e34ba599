"""Human annotations of a rubric's aspects, from a CSV file.

A row is a label: columns ``sample_id``, ``aspect`` and ``score``, and perhaps ``rater``, ``task``,
``run``, ``probability`` and ``stratum``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.records import Where, wrong
from medtasks.catalog.rubric import Aspect, Rubric
from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.csv_rows import read_csv_rows
from medtasks.judge.labels import HumanLabel, HumanLabels, LabelledRun, Unit

HUMAN = "human"
"""The rater of rows without one."""


class _LabelPlace(NamedTuple):
    """What one label is about, and who gave it."""

    rater: str
    unit: Unit
    aspect: str


@dataclass
class _LabelledUnit:
    """The scores of one rater for one sample, with what the rows state of how it was drawn."""

    rater: str
    unit: Unit
    where: Where
    stratum: str
    probability: float | None
    scores: dict[str, int] = field(default_factory=dict)


def read_csv_labels(path: Path, rubric: Rubric, run: LabelledRun) -> HumanLabels:
    """The labels in the CSV file ``path``.

    Each label is on an aspect of ``rubric`` within its scale; those of samples that the run does
    not have are left out. Rows without a score are skipped, as are those that name another run. A
    row without a task refers to the only task of the run with the sample.

    Raises:
        DataError: the file cannot be read, lacks a column, or has a label that is invalid,
            duplicated, or about a sample of several tasks without naming one; the message names
            file, line and column.
    """
    rows = read_csv_rows(path)
    _require_columns(path, rows[0].row)
    labels = _RowLabels(rubric, run, _tasks_of_samples(run))
    has_scores = False
    for where, row in rows:
        cells = {name: cell.strip() for name, cell in row.items()}
        if not cells["score"]:
            continue
        has_scores = True
        if cells.get("run", "") in ("", run.identity):
            labels.add(cells, where)
    if not has_scores:
        raise DataError(f"{path}: found no score, expected at least one; fill in the scores.")
    return _weighted([*labels.units.values()], labels.absent)


@dataclass
class _RowLabels:
    """The labels of the rows so far.

    ``units`` are the scores by rater and unit, ``labelled`` the row of each label, and ``absent``
    the ids of labelled samples that the run does not have.
    """

    rubric: Rubric
    run: LabelledRun
    tasks_of_sample: Mapping[str, list[str]]
    units: dict[tuple[str, Unit], _LabelledUnit] = field(default_factory=dict)
    labelled: dict[_LabelPlace, Where] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    def add(self, cells: Mapping[str, str], where: Where) -> None:
        """Add the label in a row with a score.

        Raises:
            DataError: a cell is invalid, or contradicts an earlier row.
        """
        unit = _unit_of(cells, self.tasks_of_sample, where)
        document = self.run.documents.get(unit)
        aspect = _aspect_named(cells["aspect"], self.rubric, document, where)
        score = _score_on(aspect, cells["score"], where)
        place = _LabelPlace(cells.get("rater") or HUMAN, unit, aspect.name)
        _require_first(place, where, self.labelled)
        if document is None:
            self.absent.add(cells["sample_id"])
            return
        rated = _rated_unit(cells, place, where)
        first = self.units.setdefault((place.rater, unit), rated)
        _require_same_draw(first, rated)
        first.scores[aspect.name] = score


def _rated_unit(cells: Mapping[str, str], place: _LabelPlace, where: Where) -> _LabelledUnit:
    """What a row states of its sample, without the score."""
    stratum = cells.get("stratum", "")
    probability = _probability(cells.get("probability", ""), where)
    return _LabelledUnit(place.rater, place.unit, where, stratum, probability)


def _probability(cell: str, where: Where) -> float | None:
    """The probability in a cell; None for a blank one."""
    if not cell:
        return None
    try:
        probability = float(cell)
    except ValueError:
        probability = 0.0
    if not 0 < probability <= 1:
        raise wrong(where, "probability", cell, "a number above 0 and at most 1")
    return probability


def _require_same_draw(first: _LabelledUnit, row: _LabelledUnit) -> None:
    """Refuse rows of one rater and sample with different strata or probabilities."""
    for column in ("stratum", "probability"):
        value, expected = getattr(row, column), getattr(first, column)
        if value != expected:
            raise wrong(row.where, column, value, f"{expected!r} as in line {first.where.line}")


def _weighted(units: list[_LabelledUnit], absent: set[str]) -> HumanLabels:
    """The labels with their weights, if the rows state how the samples were drawn."""
    probabilities, why_unweighted = _probabilities(units)
    labels = []
    for unit in units:
        weight = None
        if not why_unweighted:
            weight = 1 / probabilities[unit.rater, unit.unit]
        label = HumanLabel(unit.rater, unit.unit, unit.scores, unit.stratum, weight)
        labels.append(label)
    return HumanLabels(tuple(labels), tuple(sorted(absent)), why_unweighted=why_unweighted)


def _probabilities(units: list[_LabelledUnit]) -> tuple[dict[tuple[str, Unit], float], str]:
    """The expected number of ratings of each sample by all raters, or why it is not known.

    It is the sum of the raters' probabilities. Those of raters who did not rate the sample are
    known from their other samples of its stratum.
    """
    probabilities: dict[tuple[str, Unit], float] = {}
    by_stratum: dict[str, dict[str, float]] = {}
    for unit in units:
        if unit.probability is None:
            return {}, (
                "the labels are no probability sample: the CSV file does not state the "
                "`probability` of every label; rate a sample that `medtasks rate` draws"
            )
        of_stratum = by_stratum.setdefault(unit.stratum, {})
        probability = of_stratum.setdefault(unit.rater, unit.probability)
        if unit.stratum and probability != unit.probability:
            raise wrong(
                unit.where, "probability", unit.probability, f"{probability} as in its stratum"
            )
        probabilities[unit.rater, unit.unit] = unit.probability
    if len({unit.rater for unit in units}) < 2:
        return probabilities, ""
    if "" in by_stratum:
        return {}, (
            "the probabilities of several raters cannot be added up: the CSV file does not state "
            "the `stratum` of every label"
        )
    for unit in units:
        probabilities[unit.rater, unit.unit] = sum(by_stratum[unit.stratum].values())
    return probabilities, ""


def _tasks_of_samples(run: LabelledRun) -> dict[str, list[str]]:
    """The tasks of the run that each sample is in, by its id."""
    tasks_of_sample: dict[str, list[str]] = {}
    for task, sample_id in run.documents:
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
