"""The table of judged scores corrected by people, beside the judged ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from medtasks.core.text import first_names, p_text
from medtasks.judge.corrected_differences import CorrectedPair, corrected_pair, with_holm
from medtasks.judge.corrected_scores import CorrectedRun, CorrectedScore
from medtasks.metrics.facts import Unit

from ..intake.corrected_runs import CorrectedRuns
from ..rank.comparability import ComparabilityGroups
from ..rank.rankings import LEVEL
from ..schema.board import BoardModel
from ..schema.score_tables import BoardColumn, BoardTable, Cell
from ..verify.scored_run import ScoredRun
from .cells import FilledCell, cell_of
from .floors import NO_FLOORS
from .tables import made_table

CORRECTED = "corrected"
_TITLE = "Judged scores corrected by people"
_BY_PEOPLE = "corrected"
"""The end of the keys of columns with corrected scores."""
_NOTE = (
    "Corrected: what people would give to all answers, estimated by prediction-powered inference "
    "from their labels of a random sample, with 95 % intervals. Judged scores stay the headline. "
    "Effective labels: how many labels would give an interval as narrow without the judge."
)


@dataclass(frozen=True)
class _CorrectedModel:
    """A model's run in one column, and its corrected score."""

    model: str
    run: ScoredRun
    corrected: CorrectedRun
    score: CorrectedScore
    value: float
    """The estimate of ``score``, which there is: models without one are ``lacking``."""


@dataclass(frozen=True)
class _CorrectedColumn:
    """A column in which a model has a corrected score; ``lacking`` are the other ranked models."""

    column: BoardColumn
    models: Sequence[_CorrectedModel]
    lacking: Sequence[str]


def corrected_tables(
    headline: Sequence[BoardColumn],
    further: Iterable[BoardColumn],
    groups: ComparabilityGroups,
    corrected: Mapping[str, CorrectedRun],
    models: Mapping[str, BoardModel],
) -> list[BoardTable]:
    """The table of all columns in which a comparable run has a corrected score; empty without any.

    Args:
        headline: the headline columns; models are ranked by their corrected scores, too, and the
            labels are counted.
        further: further columns; those of breakdowns are not corrected.
        groups: the comparable runs.
        corrected: the corrected scores by the digest of the run.
        models: the models by slug.
    """
    by_score: dict[tuple[str, str], BoardColumn] = {}
    for column in (*headline, *further):
        if column.breakdown is None:
            by_score.setdefault((column.task, column.metric), column)
    cells: list[FilledCell] = []
    notes = [_NOTE]
    label_notes: dict[str, tuple[str, ...]] = {}
    for column in by_score.values():
        corrected_column = _corrected_column(column, groups, corrected)
        if not corrected_column.models:
            continue
        for model in corrected_column.models:
            label_notes[model.model] = model.corrected.notes
        cells += _score_cells(corrected_column)
        if column in headline:
            cells += _detail_cells(corrected_column)
            notes += _notes(corrected_column, _pairs(corrected_column), models)
    if not cells:
        return []
    notes += _label_notes(label_notes, models)
    keys = dict.fromkeys(cell.column.key for cell in cells)
    column_of = {cell.column.key: cell.column for cell in cells}
    ordered_columns = [column_of[key] for key in keys]
    return [made_table(CORRECTED, _TITLE, " ".join(notes), _by_model(cells), ordered_columns)]


def _by_model(cells: Sequence[FilledCell]) -> list[FilledCell]:
    """The cells with the models in the order of the first corrected column, best first."""
    by_people = [cell for cell in cells if cell.column.key.endswith(f".{_BY_PEOPLE}")]
    values: dict[str, float] = {}
    for cell in by_people:
        if cell.column.key == by_people[0].column.key and cell.cell.value is not None:
            sign = -1 if cell.column.higher_is_better else 1
            values[cell.model] = sign * cell.cell.value
    return sorted(cells, key=lambda cell: (values.get(cell.model, np.inf), cell.model))


def _corrected_column(
    column: BoardColumn, groups: ComparabilityGroups, corrected: Mapping[str, CorrectedRun]
) -> _CorrectedColumn:
    """The models with a corrected score in a column, best first, and those without."""
    models: list[_CorrectedModel] = []
    lacking: list[str] = []
    for model, run in groups.of(column.task, column.metric).ranked.items():
        corrected_scores = corrected.get(run.digest)
        score = None
        if corrected_scores is not None:
            score = corrected_scores.scores.get(column.task, {}).get(column.metric)
        if corrected_scores is None or score is None or score.value is None:
            lacking.append(model)
        else:
            models.append(_CorrectedModel(model, run, corrected_scores, score, score.value))
    sign = -1 if column.higher_is_better else 1
    models.sort(key=lambda model: (sign * model.value, model.model))
    return _CorrectedColumn(column, models, sorted(lacking))


def _score_cells(corrected_column: _CorrectedColumn) -> Iterator[FilledCell]:
    """The judged score of each model, and its corrected one."""
    column = corrected_column.column
    by_people = _derived(column, _BY_PEOPLE, f"{column.label}, corrected", column.unit)
    for model in corrected_column.models:
        runs = (model.run.public.key,)
        judged_cell = cell_of(model.run, column)
        if judged_cell is not None:
            yield FilledCell(model.model, column, judged_cell, runs)
        yield FilledCell(model.model, by_people, _corrected_cell(model.score), runs)


def _detail_cells(corrected_column: _CorrectedColumn) -> Iterator[FilledCell]:
    """The rank of each model by its corrected score, if all have one, and the labels behind it."""
    column = corrected_column.column
    rank = _derived(column, "corrected-rank", "rank, corrected", "rank", higher_is_better=False)
    labels = _derived(column, "labels", "labelled answers", "count")
    cannot_tell = _derived(column, "cannot-tell", "cannot tell", "count")
    worth = _derived(column, "worth", "effective labels", "count")
    is_ranked = len(corrected_column.models) > 1 and not corrected_column.lacking
    for model in corrected_column.models:
        score = model.score
        numbers: list[tuple[BoardColumn, float]] = []
        if is_ranked:
            numbers.append((rank, _rank(corrected_column, model.value)))
        numbers.append((labels, score.labels))
        numbers.append((cannot_tell, score.cannot_tell))
        if score.effective_labels is not None:
            numbers.append((worth, score.effective_labels))
        for number_column, number in numbers:
            cell = Cell(value=number, items=score.answers, signature=score.signature)
            yield FilledCell(model.model, number_column, cell, (model.run.public.key,))


def _rank(corrected_column: _CorrectedColumn, value: float) -> int:
    """The rank of a corrected score in its column; ties share it."""
    sign = 1 if corrected_column.column.higher_is_better else -1
    better = [model for model in corrected_column.models if sign * (model.value - value) > 0]
    return 1 + len(better)


def _derived(
    column: BoardColumn, name: str, label: str, unit: Unit, *, higher_is_better: bool | None = None
) -> BoardColumn:
    """A column beside the judged one."""
    better = column.higher_is_better if higher_is_better is None else higher_is_better
    update = {
        "key": f"{column.key}.{name}",
        "metric": f"{column.metric}.{name}",
        "label": label,
        "unit": unit,
        "higher_is_better": better,
        **NO_FLOORS,
    }
    return column.model_copy(update=update)


def _corrected_cell(score: CorrectedScore) -> Cell:
    """A corrected score with its interval."""
    low, high = score.interval or (None, None)
    return Cell(
        value=score.value,
        low=low,
        high=high,
        interval_method=score.interval_method,
        items=score.answers,
        signature=score.signature,
    )


def _pairs(corrected_column: _CorrectedColumn) -> dict[tuple[str, str], CorrectedPair]:
    """The corrected differences of all pairs of models, with Holm's correction."""
    column = corrected_column.column
    models = list(combinations(corrected_column.models, 2))
    pairs = []
    for first, second in models:
        pair = corrected_pair(first.corrected, second.corrected, column.task, column.metric)
        pairs.append(pair)
    names = [(first.model, second.model) for first, second in models]
    return dict(zip(names, with_holm(pairs), strict=True))


def _notes(
    corrected_column: _CorrectedColumn,
    pairs: Mapping[tuple[str, str], CorrectedPair],
    models: Mapping[str, BoardModel],
) -> Iterator[str]:
    """Which models differ by corrected scores, and which have none."""
    label = corrected_column.column.label
    if corrected_column.lacking:
        names = first_names([models[model].name for model in corrected_column.lacking], 8)
        yield f"No ranks by the corrected “{label}”: no corrected score of {names}."
    different = []
    for (first, second), pair in pairs.items():
        if pair.p_holm is not None and pair.p_holm <= LEVEL:
            p_value = p_text(pair.p_holm)
            different.append(f"{models[first].name} and {models[second].name} (p = {p_value})")
    if different:
        yield f"Significant differences in the corrected “{label}” (Holm): {', '.join(different)}."
    elif len(corrected_column.models) > 1:
        yield f"No two models differ significantly in the corrected “{label}” (Holm)."


def _label_notes(
    label_notes: Mapping[str, Sequence[str]], models: Mapping[str, BoardModel]
) -> Iterator[str]:
    """By model, which of its labels are not used, and which answers are in no estimate."""
    for model, notes in sorted(label_notes.items()):
        if notes:
            yield f"{models[model].name}: {'; '.join(notes)}."


def corrected_notes(corrected: CorrectedRuns, digest: str) -> Iterator[str]:
    """What a reader must know of the labels of a run: why they correct nothing, which were not
    used, and how far the judges agree with them.
    """
    if digest in corrected.reasons:
        yield f"not corrected by people: {corrected.reasons[digest]}"
    run = corrected.by_digest.get(digest)
    if run is None:
        return
    yield from run.notes
    for rubric, report in run.agreement.items():
        alphas = []
        for measure in report.measures:
            if measure.is_alpha and measure.value is not None:
                alphas.append(f"{measure.aspect or 'all aspects'} {measure.value:.2f}")
        if alphas:
            raters = first_names(report.raters, 5)
            yield f"{rubric}: Krippendorff's alpha of {raters}: {first_names(alphas, 8)}"
