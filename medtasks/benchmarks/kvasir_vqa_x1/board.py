"""Kvasir-VQA-x1 (Tables 6 and 7, Figures 1 to 3), with its transformed track, which the original is compared with."""

from __future__ import annotations

from medtasks.benchmarks.card import Card, CardTable, Column, Plot
from medtasks.benchmarks.columns import groups, scores, tasks

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
_BY_CLASS = {"judged_accuracy": ("judged", "Judged accuracy"), "rougeL": ("rouge-l", "ROUGE-L")}
_ASPECTS = "An answer to a question of several classes counts for each of them; judges decide each class apart."


def _class_tables() -> tuple[CardTable, ...]:
    """Class × level, as Table 7 has it; all levels first."""
    tasks = {_KVASIR: "all levels", **_LEVELS}
    return tuple(
        CardTable(
            name=f"classes-{name}{label.removeprefix('all levels').replace('level ', '-level-')}",
            title=f"{title} by question class, {label}",
            columns=(*groups(task, metric, "question_class"), Column(task, metric, "All classes")),
            note=_ASPECTS if metric == "judged_accuracy" else "A question of several classes counts whole for each.",
        )
        for metric, (name, title) in _BY_CLASS.items()
        for task, label in tasks.items()
    )


def _class_plots() -> tuple[Plot, ...]:
    made = []
    for metric, (name, title) in _BY_CLASS.items():
        classes = groups(_KVASIR, metric, "question_class")
        made += [
            Plot(
                name=f"class-ranks-{name}",
                title=f"Ranks by question class: {title}",
                kind="heatmap",
                columns=classes,
                ranks=True,
                note="(rank - 1) / (models - 1): 0 is the best model, ties share their mean rank (paper, Figure 1).",
            ),
            Plot(name=f"class-radar-{name}", title=f"{title} by question class", kind="radar", columns=classes),
            Plot(
                name=f"levels-{name}",
                title=f"{title} by complexity level",
                kind="bars",
                columns=tasks(_LEVELS, metric),
            ),
        ]
        made += [
            Plot(
                name=f"class-{name}-{label.replace(' ', '-')}",
                title=f"{title} by question class, {label}",
                kind="heatmap",
                columns=groups(task, metric, "question_class"),
            )
            for task, label in _LEVELS.items()
        ]
    return tuple(made)


KVASIR_VQA_X1 = Card(
    benchmark=_KVASIR,
    headline=(*scores(_KVASIR, _JUDGED), *scores(_KVASIR, _RANKED_TEXT)),
    tables=(
        CardTable(
            name="text",
            title="Text metrics",
            columns=scores(_KVASIR, _TEXT),
            note="The column CHRF++ of the paper's Table 6 is chrF with word order 0: it belongs beside chrF here.",
        ),
        CardTable(
            name="levels",
            title="By complexity level",
            columns=tuple(
                Column(task, metric, f"{label}, {level}")
                for metric, label in ({**_JUDGED, "rougeL": "ROUGE-L", "meteor": "METEOR", "bleu": "BLEU"}).items()
                for task, level in _LEVELS.items()
            ),
        ),
        *_class_tables(),
        CardTable(
            name="transformed",
            title="Original and transformed images",
            columns=(
                *scores(_KVASIR, {**_JUDGED, **_TEXT}, ", original"),
                *scores(_TRANSFORMED, {**_JUDGED, **_TEXT}, ", transformed"),
            ),
            note="The same questions over slightly cropped, turned, shifted and re-lit images.",
        ),
        CardTable(
            name="medico2025",
            title="Medico 2025 public subset",
            columns=scores(f"{_KVASIR}_medico2025", _SHARES),
            note="1,500 rows of the test split, as the MediaEval challenge draws them.",
        ),
    ),
    plots=(
        *_class_plots(),
        Plot(
            name="transformed",
            title="Original against transformed images",
            kind="paired",
            columns=scores(_KVASIR, {"judged_accuracy": "Judged accuracy", **_SHARES}),
            against=scores(_TRANSFORMED, {"judged_accuracy": "Judged accuracy", **_SHARES}),
            note="Each metric on original images beside the same on transformed ones.",
        ),
    ),
    shows="text",
    why="Questions and answers are CC BY-NC 4.0; the images belong to their own data set and are not copied.",
)
