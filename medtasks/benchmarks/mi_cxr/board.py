"""MI-CXR (Tables 1, 2 and 15 to 20, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping

from medtasks.benchmarks.card import Card, CardTable, Column, Plot
from medtasks.benchmarks.columns import groups, labelled, scores, tasks

_CXR = "mi_cxr"
_FAMILIES = {_CXR: "Overall", "mi_cxr_tel": "TEL", "mi_cxr_icr": "ICR", "mi_cxr_gts": "GTS"}
_SUBTYPES = {
    "mi_cxr_tel_single": "TEL, single",
    "mi_cxr_tel_multiple": "TEL, multiple",
    "mi_cxr_tel_ordered": "TEL, ordered",
    "mi_cxr_icr": "ICR",
    "mi_cxr_gts_single": "GTS, single",
    "mi_cxr_gts_multi": "GTS, multiple",
    "mi_cxr_icr_variant": "ICR, interval given",
}
_STAGEWISE = {f"mi_cxr_stagewise{task.removeprefix(_CXR)}": label for task, label in _FAMILIES.items()}
_PROMPTED = {"cot": "step by step", "1shot": "one example", "sampled": "three answers at temperature 0.7"}
_DIRECT = tasks(_FAMILIES, "accuracy")


def _prompted(tasks: Mapping[str, str], variant: str) -> dict[str, str]:
    return {f"{task}_{variant}": label for task, label in tasks.items()}


MI_CXR = Card(
    benchmark=_CXR,
    headline=_DIRECT,
    tables=(
        CardTable(name="subtypes", title="By subtype", columns=tasks(_SUBTYPES, "accuracy")),
        CardTable(name="question-types", title="By question type", columns=groups(_CXR, "accuracy", "qtype")),
        CardTable(
            name="stage-wise",
            title="Direct and stage-wise",
            columns=(
                *labelled(_DIRECT, ", direct"),
                *labelled(tasks(_STAGEWISE, "accuracy"), ", stage-wise"),
            ),
            note="Stage-wise: first what changed in each interval, then the option, without the images.",
        ),
        CardTable(
            name="prompting",
            title="Prompting variants",
            columns=(
                *labelled(_DIRECT, ", plain"),
                *(
                    column
                    for variant, said in _PROMPTED.items()
                    for column in labelled(tasks(_prompted(_FAMILIES, variant), "accuracy"), f", {said}")
                ),
            ),
        ),
        *(
            CardTable(
                name=f"subtypes-{variant}",
                title=f"By subtype, {said}",
                columns=tasks(_prompted({_CXR: "Overall", **_SUBTYPES}, variant), "accuracy"),
            )
            for variant, said in _PROMPTED.items()
        ),
        CardTable(
            name="right-letters",
            title="By right letter",
            columns=groups(_CXR, "accuracy", "gold_option"),
            note="Equal but for chance where a model has no favourite letter.",
        ),
        CardTable(
            name="null-option",
            title="Null option",
            columns=groups(_CXR, "accuracy", "null_option"),
            note="The last option says that none applies; it may be the right one.",
        ),
        CardTable(
            name="report",
            title="Interval summaries in free text",
            columns=scores("mi_cxr_report", {"rougeL": "ROUGE-L", "meteor": "METEOR", "cider": "CIDEr"}),
            note="GTS rows whose right option is the null option have no reference and are left out.",
        ),
    ),
    plots=(
        Plot(name="families", title="Accuracy by family", kind="bars", columns=_DIRECT, chance=True),
        Plot(
            name="subtypes",
            title="Accuracy by subtype",
            kind="bars",
            columns=tasks(_SUBTYPES, "accuracy"),
            chance=True,
        ),
        Plot(
            name="stage-wise",
            title="Direct against stage-wise",
            kind="paired",
            columns=_DIRECT,
            against=tasks(_STAGEWISE, "accuracy"),
        ),
        *(
            Plot(
                name=f"prompting-{variant}",
                title=f"Plain prompt against {said}",
                kind="paired",
                columns=_DIRECT,
                against=tasks(_prompted(_FAMILIES, variant), "accuracy"),
            )
            for variant, said in _PROMPTED.items()
        ),
        Plot(
            name="letters",
            title="Letters chosen and right",
            kind="letters",
            columns=(Column(_CXR, "accuracy", "Overall"),),
        ),
        Plot(
            name="null-option",
            title="Accuracy where the null option is right, and where another is",
            kind="bars",
            columns=groups(_CXR, "accuracy", "null_option"),
            chance=True,
        ),
    ),
    shows="nothing",
    why="The rows derive from MIMIC-CXR, whose PhysioNet agreement forbids sharing them with others.",
)
