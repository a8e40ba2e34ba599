"""Kvasir-VQA-x1 (Tables 6 and 7, Figures 1 to 3), with its transformed track, which the original is compared with."""

from __future__ import annotations

from medtasks.benchmarks.kvasir_vqa_x1.errors import ERRORS, FINDINGS
from medtasks.benchmarks.layouts import error_columns, groups, kinds_of_error, prompt_sensitivity, scores, tasks
from medtasks.catalog.board_layout import BoardLayout, Column, LayoutTable, Plot

_KVASIR = "kvasir_vqa_x1"
_TRANSFORMED = "kvasir_vqa_x1_transformed"
_JUDGED = {"judged_accuracy": "Judged accuracy", "judged_partial": "Partial credit", "judged_strict": "All aspects"}
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
_RANKED_TEXT = {metric: _TEXT[metric] for metric in ("rougeL", "meteor", "chrf", "bleu")}
_SHARES = {metric: _TEXT[metric] for metric in ("rouge1", "rouge2", "rougeL", "meteor", "bleu")}
_LEVELS = {f"{_KVASIR}_level{level}": f"level {level}" for level in (1, 2, 3)}
_PARAPHRASED, _PARAPHRASED_PLOTS = prompt_sensitivity(f"{_KVASIR}_prompts", 4, "rouge1")
_BY_CLASS = {"judged_accuracy": ("judged", "Judged accuracy"), "rougeL": ("rouge-l", "ROUGE-L")}
_ASPECTS = "An answer to a question with several classes counts for each of them; judges score each class separately."
_SEVERAL = "A question with several classes counts fully for each."
_REPEATED = "judged_accuracy_repeated"
_AS_PUBLISHED = "A class that a question names twice counts twice, as in the paper's Table 7; elsewhere it counts once."


_ERRORS, _ERROR_PLOT = kinds_of_error(
    error_columns(_KVASIR, ERRORS.rates),
    note="From the atomic pairs about presence and counts; answers that state neither are counted apart.",
)
_PER_FINDING = ("missed_finding_rate", "hallucination_rate", "sensitivity", "specificity")


def _class_tables(metric: str, name: str, title: str, note: str) -> tuple[LayoutTable, ...]:
    """Class × level, as Table 7 has it; all levels first."""
    tasks = {_KVASIR: "all levels", **_LEVELS}
    return tuple(
        LayoutTable(
            f"classes-{name}{label.removeprefix('all levels').replace('level ', '-level-')}",
            f"{title}, {label}",
            (*groups(task, metric, "question_class"), Column(task, metric, "All classes")),
            note=note,
        )
        for task, label in tasks.items()
    )


def _class_plots() -> tuple[Plot, ...]:
    made = []
    for metric, (name, title) in _BY_CLASS.items():
        classes = groups(_KVASIR, metric, "question_class")
        made += [
            Plot(
                f"class-ranks-{name}",
                f"Ranks by question class: {title}",
                "heatmap",
                classes,
                ranks=True,
                note="(rank - 1) / (models - 1): 0 is the best model, ties share their mean rank (paper, Figure 1).",
            ),
            Plot(f"class-radar-{name}", f"{title} by question class", "radar", classes),
            Plot(f"levels-{name}", f"{title} by complexity level", "bars", tasks(_LEVELS, metric)),
        ]
        made += [
            Plot(
                f"class-{name}-{label.replace(' ', '-')}",
                f"{title} by question class, {label}",
                "heatmap",
                groups(task, metric, "question_class"),
            )
            for task, label in _LEVELS.items()
        ]
    return tuple(made)


KVASIR_VQA_X1 = BoardLayout(
    benchmark=_KVASIR,
    headline=(*scores(_KVASIR, _JUDGED), *scores(_KVASIR, _RANKED_TEXT)),
    tables=(
        LayoutTable(
            "text",
            "Text metrics",
            scores(_KVASIR, _TEXT),
            note="The column CHRF++ of the paper's Table 6 is chrF with word order 0: compare it with chrF here.",
        ),
        LayoutTable(
            "levels",
            "By complexity level",
            tuple(
                Column(task, metric, f"{label}, {level}")
                for metric, label in ({**_JUDGED, "rougeL": "ROUGE-L", "meteor": "METEOR", "bleu": "BLEU"}).items()
                for task, level in _LEVELS.items()
            ),
        ),
        *_class_tables("judged_accuracy", "judged", "Judged accuracy by question class", _ASPECTS),
        *_class_tables("rougeL", "rouge-l", "ROUGE-L by question class", _SEVERAL),
        *_class_tables(_REPEATED, "repeated", "Judged accuracy by question class, counted as published", _AS_PUBLISHED),
        _ERRORS,
        LayoutTable(
            "errors-by-finding",
            "Kinds of error by finding",
            tuple(
                column
                for name in FINDINGS
                for column in error_columns(
                    _KVASIR,
                    [rate for rate in ERRORS.rates if rate.name in _PER_FINDING],
                    f", {name.replace('_', ' ')}",
                    breakdown="question_class",
                    group=name,
                )
            ),
            note="A count above 0 also says that the finding is present.",
        ),
        LayoutTable(
            "transformed",
            "Original and transformed images",
            (
                *scores(_KVASIR, {**_JUDGED, **_TEXT}, ", original"),
                *scores(_TRANSFORMED, {**_JUDGED, **_TEXT}, ", transformed"),
            ),
            note="The same questions on slightly cropped, rotated, shifted and re-lit images.",
        ),
        LayoutTable(
            "mixed",
            "Mixed images",
            scores("kvasir_vqa_x1_mixed", {**_JUDGED, **_TEXT}),
            note="23 % of the questions show the original image, the others a transformed one (paper, section 2.3).",
        ),
        _PARAPHRASED,
        LayoutTable(
            "medico2025",
            "Medico 2025 public subset",
            scores(f"{_KVASIR}_medico2025", _SHARES),
            note="1,500 rows of the test split, as the MediaEval challenge draws them.",
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
            scores(_KVASIR, {"judged_accuracy": "Judged accuracy", **_SHARES}),
            against=scores(_TRANSFORMED, {"judged_accuracy": "Judged accuracy", **_SHARES}),
            note="Each metric on the original images and on the transformed ones.",
        ),
    ),
    shows="text",
    why="Questions and answers are CC BY-NC 4.0; the images are a dataset of their own and are not copied.",
)
