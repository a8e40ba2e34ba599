"""Med-CMR (main results by dimension, MCQ and open-ended)."""

from __future__ import annotations

from medtasks.benchmarks.card import Card, CardTable, Column, Plot
from medtasks.benchmarks.columns import groups, scores, tasks

_MCQ = "med_cmr_mcq"
_OPEN = "med_cmr_open"
_DIMENSIONS = ("sod", "fdd", "su", "tp", "cr", "ltg", "msi")
_MCQ_AXES = tasks({f"{_MCQ}_{name}": name.upper() for name in _DIMENSIONS}, "accuracy")
_OPEN_AXES = tasks({f"{_OPEN}_{name}": name.upper() for name in _DIMENSIONS}, "open_total")
_MCQ_WHOLE = scores(_MCQ, {"accuracy": "MCQ, all rows", "accuracy_dimension_mean": "MCQ, mean of dimensions"})
_OPEN_WHOLE = scores(_OPEN, {"open_total": "Open-ended, all rows"})
_PARTS = {
    "modality": ("modality", "modality"),
    "organ_system": ("organ", "organ system"),
    "question_type": ("question-type", "question type"),
    "ability": ("ability", "ability"),
}
_FORMATS = {"mcq": (_MCQ, "accuracy", "Multiple choice"), "open": (_OPEN, "open_total", "Open-ended")}

MED_CMR = Card(
    benchmark="med_cmr",
    headline=(*_MCQ_WHOLE, *_OPEN_WHOLE),
    tables=(
        CardTable(
            name="mcq",
            title="Multiple choice by dimension",
            columns=(*_MCQ_AXES, *_MCQ_WHOLE),
            note="All rows: seven in ten are LTG. Dimensions: small objects (SOD), fine detail (FDD), spatial (SU), "
            "temporal prediction (TP), causal reasoning (CR), long tail (LTG), several sources (MSI).",
        ),
        CardTable(name="open", title="Open-ended by dimension", columns=(*_OPEN_AXES, *_OPEN_WHOLE)),
        CardTable(
            name="open-aspects",
            title="Open-ended by aspect",
            columns=scores(
                _OPEN,
                {
                    "open_consistency": "Consistency",
                    "open_coherence": "Coherence",
                    "open_visual_accuracy": "Visual accuracy",
                    "open_ground_truth_correctness": "Correctness",
                },
            ),
        ),
        CardTable(
            name="medreason",
            title="Open-ended under the MedReason rubric",
            columns=scores(
                _OPEN,
                {
                    "medreason_total": "Total",
                    "medreason_ground_truth": "Ground truth",
                    "medreason_visual": "Visual",
                    "medreason_faithfulness": "Faithfulness",
                },
            ),
            note="Another published rubric on the same rows; its scores belong beside no others.",
        ),
        *(
            CardTable(name=f"{part}-{form}", title=f"{title} by {said}", columns=groups(task, metric, breakdown))
            for form, (task, metric, title) in _FORMATS.items()
            for breakdown, (part, said) in _PARTS.items()
        ),
        CardTable(name="right-letters", title="By right letter", columns=groups(_MCQ, "accuracy", "gold_option")),
    ),
    plots=(
        Plot(name="radar-mcq", title="Multiple choice by dimension", kind="radar", columns=_MCQ_AXES),
        Plot(name="radar-open", title="Open-ended by dimension", kind="radar", columns=_OPEN_AXES),
        Plot(
            name="formats",
            title="Multiple choice against open-ended",
            kind="paired",
            columns=(*_MCQ_AXES, Column(_MCQ, "accuracy", "All rows")),
            against=(*_OPEN_AXES, Column(_OPEN, "open_total", "All rows")),
            note="Accuracy in percent beside the judge's total of 100: two scales, so compare models, not bars.",
        ),
        *(
            Plot(
                name=f"{part}-{form}",
                title=f"{title} by {said}",
                kind="bars" if part == "ability" else "heatmap",
                columns=groups(task, metric, breakdown),
                chance=part == "ability" and form == "mcq",
            )
            for form, (task, metric, title) in _FORMATS.items()
            for breakdown, (part, said) in _PARTS.items()
            if part != "question-type"
        ),
        Plot(
            name="letters",
            title="Letters chosen and right",
            kind="letters",
            columns=(Column(_MCQ, "accuracy", "Multiple choice"),),
        ),
    ),
    shows="text",
    why="The release is Apache-2.0, but says nothing of where its images are from; they are not copied.",
)
