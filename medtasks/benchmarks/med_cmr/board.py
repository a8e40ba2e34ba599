"""Med-CMR (main results by dimension, MCQ and open-ended)."""

from __future__ import annotations

from collections.abc import Iterator

from medtasks.benchmarks.layout_parts import (
    error_columns,
    groups,
    kinds_of_error,
    option_order,
    prompt_sensitivity,
    scores,
    tasks,
    with_notes,
)
from medtasks.benchmarks.med_cmr.error_kinds import ERRORS
from medtasks.catalog.board_layout import BoardLayout, Column, LayoutTable, Plot

_MCQ = "med_cmr_mcq"
_OPEN = "med_cmr_open"
_DIMENSIONS = ("sod", "fdd", "su", "tp", "cr", "ltg", "msi")
_ROTATED, _ROTATED_PLOTS = option_order(
    f"{_MCQ}_circular", {f"{_MCQ}_{name}_circular": name.upper() for name in _DIMENSIONS}
)
_PARAPHRASED, _PARAPHRASED_PLOTS = prompt_sensitivity(f"{_MCQ}_prompts", 4)
_ERRORS, _ERROR_PLOT = kinds_of_error(
    error_columns(_MCQ, ERRORS.rates),
    note="Over- and under-calls are computed only if the options show which is more abnormal: by "
    "severity, stage, size or number, or normal versus abnormal.",
)
_MCQ_AXES = tasks({f"{_MCQ}_{name}": name.upper() for name in _DIMENSIONS}, "accuracy")
_OPEN_AXES = tasks({f"{_OPEN}_{name}": name.upper() for name in _DIMENSIONS}, "open_total")
_MCQ_WHOLE = scores(
    _MCQ, {"accuracy": "MCQ, all rows", "accuracy_dimension_mean": "MCQ, mean of dimensions"}
)
_OPEN_WHOLE = scores(_OPEN, {"open_total": "Open-ended, all rows"})
_ASPECTS = {
    "open_consistency": "Consistency",
    "open_coherence": "Coherence",
    "open_visual_accuracy": "Visual accuracy",
    "open_ground_truth_correctness": "Correctness",
}
_MEDREASON = {
    "medreason_total": "Total",
    "medreason_ground_truth": "Ground truth",
    "medreason_visual": "Visual",
    "medreason_faithfulness": "Faithfulness",
}
_NOTES = {
    "mcq": "70 % of all rows are LTG. Dimensions: small objects (SOD), fine detail (FDD), "
    "spatial (SU), temporal prediction (TP), causal reasoning (CR), long tail (LTG), several "
    "sources (MSI).",
    "medreason": "Another published rubric for the same rows; its scores are not comparable with "
    "those of other rubrics.",
    "ability-mcq": "By the release's labels: vision is SOD, FDD and SU; reasoning is TP, CR, LTG "
    "and MSI. In the paper, the columns SU and MSI are swapped, which also affects vision and "
    "reasoning averages computed from its table.",
}


def _breakdown_tables(form: str, task: str, metric: str, title: str) -> Iterator[LayoutTable]:
    """A table per breakdown of the questions of one format."""
    for breakdown, name, label in (
        ("modality", "modality", "modality"),
        ("organ_system", "organ", "organ system"),
        ("question_type", "question-type", "question type"),
        ("ability", "ability", "ability"),
    ):
        columns = groups(task, metric, breakdown)
        note = _NOTES.get(f"{name}-{form}", "")
        yield LayoutTable(f"{name}-{form}", f"{title} by {label}", columns, note)


_BREAKDOWN_TABLES = (
    *_breakdown_tables("mcq", _MCQ, "accuracy", "Multiple choice"),
    *_breakdown_tables("open", _OPEN, "open_total", "Open-ended"),
)


def _breakdown_plots() -> Iterator[Plot]:
    """Figures of these tables, but for question types, which are too many."""
    for table in _BREAKDOWN_TABLES:
        if "question-type" not in table.name:
            yield Plot(
                table.name,
                table.title,
                "bars" if "ability" in table.name else "heatmap",
                table.columns,
                chance=table.name == "ability-mcq",
            )


MED_CMR = BoardLayout(
    benchmark="med_cmr",
    headline=(*_MCQ_WHOLE, *_OPEN_WHOLE),
    tables=with_notes(
        _NOTES,
        LayoutTable("mcq", "Multiple choice by dimension", (*_MCQ_AXES, *_MCQ_WHOLE)),
        LayoutTable("open", "Open-ended by dimension", (*_OPEN_AXES, *_OPEN_WHOLE)),
        LayoutTable("open-aspects", "Open-ended by aspect", scores(_OPEN, _ASPECTS)),
        LayoutTable(
            "medreason", "Open-ended under the MedReason rubric", scores(_OPEN, _MEDREASON)
        ),
        *_BREAKDOWN_TABLES,
        _ERRORS,
        LayoutTable("right-letters", "By correct letter", groups(_MCQ, "accuracy", "gold_option")),
        _ROTATED,
        _PARAPHRASED,
    ),
    plots=(
        Plot("radar-mcq", "Multiple choice by dimension", "radar", _MCQ_AXES),
        Plot("radar-open", "Open-ended by dimension", "radar", _OPEN_AXES),
        Plot(
            "formats",
            "Multiple choice versus open-ended",
            "paired",
            (*_MCQ_AXES, Column(_MCQ, "accuracy", "All rows")),
            against=(*_OPEN_AXES, Column(_OPEN, "open_total", "All rows")),
            note="Accuracy in percent, and the judge's total out of 100. "
            "The scales differ, so compare models, not bars.",
        ),
        *_breakdown_plots(),
        Plot(
            "letters",
            "Letters chosen and correct",
            "letters",
            (Column(_MCQ, "accuracy", "Multiple choice"),),
        ),
        _ERROR_PLOT,
        *_ROTATED_PLOTS,
        *_PARAPHRASED_PLOTS,
    ),
    shows="text",
    why="The release is Apache-2.0 but does not state where its images come from, so they are not "
    "copied.",
)
