"""Kvasir-VQA-x1 (Tables 6 and 7, Figures 1 to 3, the released scores by level), with its
transformed track, which the original is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from medtasks.benchmarks.kvasir_vqa_x1.error_kinds import ERRORS, FINDINGS
from medtasks.benchmarks.layout_parts import (
    error_columns,
    groups,
    kinds_of_error,
    prompt_sensitivity,
    scores,
    tasks,
    with_notes,
)
from medtasks.catalog.board_layout import BoardLayout, Column, LayoutTable, Plot

_KVASIR = "kvasir_vqa_x1"
_TRANSFORMED = "kvasir_vqa_x1_transformed"
_JUDGED = {
    "judged_accuracy": "Judged accuracy",
    "judged_partial": "Partial credit",
    "judged_strict": "All aspects",
}
_TEXT = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "meteor": "METEOR",
    "chrf": "chrF",
    "chrf++": "chrF++",
    "bleu": "BLEU",
    "bleurt": "BLEURT",
    "bertscore": "BERTScore",
    "exact_match": "Exact match",
}
_SHARES = {metric: _TEXT[metric] for metric in ("rouge1", "rouge2", "rougeL", "meteor", "bleu")}
_PAIRED = {"judged_accuracy": "Judged accuracy", **_SHARES}
_LEVELS = {f"{_KVASIR}_level{level}": f"level {level}" for level in (1, 2, 3)}
_IN_LEVELS = ("rougeL", "meteor", "bleu")
"""Text metrics in the table of all levels, beside the judged ones."""
_RELEASED = [metric for metric in _TEXT if metric != "chrf++"]
"""Metrics for which the authors released scores by level."""
_NOT_IN_LEVELS = [metric for metric in _RELEASED if metric not in _IN_LEVELS]
_BY_CLASS = {"judged_accuracy": ("judged", "Judged accuracy"), "rougeL": ("rouge-l", "ROUGE-L")}
_PARAPHRASED, _PARAPHRASED_PLOTS = prompt_sensitivity(f"{_KVASIR}_prompts", 4, "rouge1")
_ERRORS, _ERROR_PLOT = kinds_of_error(
    error_columns(_KVASIR, ERRORS.rates),
    note="Based on the atomic pairs about presence and counts. Answers without a clear statement "
    "are counted separately.",
)
_PER_FINDING = ("missed_finding_rate", "hallucination_rate", "sensitivity", "specificity")
_EVERY = {**_JUDGED, **_TEXT}
_HEADLINE = _JUDGED | {metric: _TEXT[metric] for metric in ("rougeL", "meteor", "chrf", "bleu")}
_BOTH_TRACKS = (
    *scores(_KVASIR, _EVERY, ", original"),
    *scores(_TRANSFORMED, _EVERY, ", transformed"),
)
_CLASS_TABLES = {
    "judged_accuracy": ("judged", "Judged accuracy by question class"),
    "rougeL": ("rouge-l", "ROUGE-L by question class"),
    "judged_accuracy_repeated": (
        "repeated",
        "Judged accuracy by question class, counted as published",
    ),
}
_NOTES = {
    "text": "The column CHRF++ in Table 6 of the paper is chrF with word order 0. "
    "Compare it with chrF here.",
    "levels-text": "ROUGE-L, METEOR and BLEU are in the table above. Compare the column CHRF++ of "
    "the authors' released scores with chrF here.",
    "classes-judged": "An answer to a question with several classes counts for each class; "
    "judges score each class separately.",
    "classes-rouge-l": "A question with several classes counts fully for each.",
    "classes-repeated": "A class that a question names twice is counted twice, as in Table 7 of "
    "the paper. In all other tables it is counted once.",
    "errors-by-finding": "A count above 0 also means that the finding is present.",
    "transformed": "The same questions on images that are slightly cropped, rotated, shifted and "
    "changed in brightness.",
    "mixed": "23 % of the questions show the original image, the others a transformed one "
    "(section 2.3 of the paper).",
    "medico2025": "1,500 rows of the test split, as the MediaEval challenge draws them.",
}


def _level_columns() -> Iterator[Column]:
    """Metrics by complexity level: all levels of a metric side by side."""
    text_metrics = {metric: _TEXT[metric] for metric in _IN_LEVELS}
    for metric, label in {**_JUDGED, **text_metrics}.items():
        for task, level in _LEVELS.items():
            yield Column(task, metric, f"{label}, {level}")


def _released_columns(track: str, metrics: Iterable[str]) -> Iterator[Column]:
    """Text metrics by complexity level, with the authors' released scores."""
    for metric in metrics:
        for level in (1, 2, 3):
            yield Column(f"{track}_level{level}", metric, f"{_TEXT[metric]}, level {level}")


def _finding_columns() -> Iterator[Column]:
    """Rates of kinds of error for each class of findings."""
    rates = [rate for rate in ERRORS.rates if rate.name in _PER_FINDING]
    for name in FINDINGS:
        suffix = f", {name.replace('_', ' ')}"
        yield from error_columns(_KVASIR, rates, suffix, breakdown="question_class", group=name)


def _class_tables() -> Iterator[LayoutTable]:
    """Class × level, as Table 7 has it; all levels first."""
    for metric, (name, title) in _CLASS_TABLES.items():
        for task, label in {_KVASIR: "all levels", **_LEVELS}.items():
            suffix = "" if task == _KVASIR else f"-{label.replace(' ', '-')}"
            columns = (*groups(task, metric, "question_class"), Column(task, metric, "All classes"))
            yield LayoutTable(
                f"classes-{name}{suffix}", f"{title}, {label}", columns, _NOTES[f"classes-{name}"]
            )


def _class_plots() -> Iterator[Plot]:
    """Figures of the metrics by question class and by complexity level."""
    note = (
        "(rank - 1) / (models - 1): 0 is the best model, ties share their mean rank (paper, "
        "Figure 1)."
    )
    for metric, (name, title) in _BY_CLASS.items():
        classes = groups(_KVASIR, metric, "question_class")
        ranks = f"Ranks by question class: {title}"
        yield Plot(f"class-ranks-{name}", ranks, "heatmap", classes, ranks=True, note=note)
        yield Plot(f"class-radar-{name}", f"{title} by question class", "radar", classes)
        yield Plot(f"levels-{name}", f"{title} by complexity level", "bars", tasks(_LEVELS, metric))
        for task, level in _LEVELS.items():
            columns = groups(task, metric, "question_class")
            number = level.replace(" ", "-")
            yield Plot(
                f"class-{name}-{number}", f"{title} by question class, {level}", "heatmap", columns
            )


KVASIR_VQA_X1 = BoardLayout(
    benchmark=_KVASIR,
    headline=scores(_KVASIR, _HEADLINE),
    tables=with_notes(
        _NOTES,
        LayoutTable("text", "Text metrics", scores(_KVASIR, _TEXT)),
        LayoutTable("levels", "By complexity level", tuple(_level_columns())),
        LayoutTable(
            "levels-text",
            "More text metrics by complexity level",
            tuple(_released_columns(_KVASIR, _NOT_IN_LEVELS)),
        ),
        *_class_tables(),
        _ERRORS,
        LayoutTable("errors-by-finding", "Kinds of error by finding", tuple(_finding_columns())),
        LayoutTable("transformed", "Original and transformed images", _BOTH_TRACKS),
        LayoutTable(
            "transformed-levels",
            "Text metrics by complexity level, transformed images",
            tuple(_released_columns(_TRANSFORMED, _RELEASED)),
        ),
        LayoutTable("mixed", "Mixed images", scores("kvasir_vqa_x1_mixed", _EVERY)),
        _PARAPHRASED,
        LayoutTable(
            "medico2025", "Medico 2025 public subset", scores(f"{_KVASIR}_medico2025", _SHARES)
        ),
    ),
    plots=(
        *_class_plots(),
        *_PARAPHRASED_PLOTS,
        _ERROR_PLOT,
        Plot(
            "transformed",
            "Original against transformed images",
            "paired",
            scores(_KVASIR, _PAIRED),
            against=scores(_TRANSFORMED, _PAIRED),
            note="Each metric on the original images and on the transformed ones.",
        ),
    ),
    shows="text",
    why="Questions and answers are CC BY-NC 4.0; the images are a dataset of their own and are not "
    "copied.",
)
