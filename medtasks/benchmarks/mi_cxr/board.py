"""MI-CXR (Tables 1, 2 and 15 to 20, Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from medtasks.benchmarks.mi_cxr.error_kinds import ERRORS, FAILURES
from medtasks.catalog.board_layout import BoardLayout, Column, LayoutTable, Plot

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
_STAGEWISE = {
    f"mi_cxr_stagewise{task.removeprefix(_CXR)}": label for task, label in _FAMILIES.items()
}
_PROMPTED = {
    "cot": "step by step",
    "1shot": "one example",
    "1draw": "one answer at temperature 0.7",
    "sampled": "three answers at temperature 0.7",
}
_ROTATED, _ROTATED_PLOTS = option_order(
    f"{_CXR}_circular",
    {f"{task}_circular": label for task, label in _FAMILIES.items() if task != _CXR},
)
_PARAPHRASED, _PARAPHRASED_PLOTS = prompt_sensitivity(f"{_CXR}_prompts", 4)
_FAMILY_NAMES = ("TEL", "ICR", "GTS")


def _changes_by_family() -> list[Column]:
    """Missed and invented changes in the questions of each family."""
    columns: list[Column] = []
    for family in _FAMILY_NAMES:
        suffix = f", {family}"
        columns += error_columns(_CXR, ERRORS.rates[:2], suffix, breakdown="family", group=family)
    return columns


_ERRORS, _ERROR_PLOT = kinds_of_error(
    error_columns(_CXR, [rate for rate in ERRORS.rates if rate.name not in FAILURES]),
    _changes_by_family(),
    note="Missed: the null option is chosen, although another is correct. Invented: "
    "another option is chosen, although the null option is correct.",
)
_FAILED = scores(_CXR, FAILURES)
_IMPOSSIBLE = {
    ("TEL", "integration_failure_rate"),
    ("GTS", "exclusivity_failure_rate"),
    ("ICR", "exclusivity_failure_rate"),
    ("ICR", "integration_failure_rate"),
}


def _failures_by_family() -> Iterator[Column]:
    """The failures that are possible in the questions of each family."""
    for family in _FAMILY_NAMES:
        for name, label in FAILURES.items():
            if (family, name) not in _IMPOSSIBLE:
                yield Column(_CXR, name, f"{label}, {family}", "family", family)


_DIRECT, _STAGED, _BY_SUBTYPE = (
    tasks(names, "accuracy") for names in (_FAMILIES, _STAGEWISE, _SUBTYPES)
)
_NULL = groups(_CXR, "accuracy", "null_option")


def _prompted(names: Mapping[str, str], variant: str, suffix: str = "") -> tuple[Column, ...]:
    return tasks({f"{task}_{variant}": label for task, label in names.items()}, "accuracy", suffix)


_PLAIN = tasks(_FAMILIES, "accuracy", ", plain")
_BY_PROMPT: list[Column] = []
for _name, _label in _PROMPTED.items():
    _BY_PROMPT += _prompted(_FAMILIES, _name, f", {_label}")
_BY_STAGES = (
    *tasks(_FAMILIES, "accuracy", ", direct"),
    *tasks(_STAGEWISE, "accuracy", ", stage-wise"),
)
_TEXT = scores("mi_cxr_report", {"rougeL": "ROUGE-L", "meteor": "METEOR", "cider": "CIDEr"})
_NULL_TITLE = "Accuracy if the null option is correct, and if another is"
_NOTES = {
    "stage-wise": "Stage-wise: the model first describes what changed in each interval, then "
    "chooses an option without the images.",
    "reasoning-failures": "Shares of all questions. Together with the correct answers and those "
    "without a single option, they add up to 1. These are the paper's four failures (Figures 25 to "
    "27) as far as gold answers can distinguish them, in our interpretation.",
    "right-letters": "Without a letter preference, these are equal up to chance.",
    "null-option": "The last option states that none of the others applies, and can be correct.",
    "report": "GTS rows whose correct option is the null option have no reference and are "
    "excluded.",
}


def _subtype_tables() -> Iterator[LayoutTable]:
    """The scores by subtype under each way of prompting."""
    for name, label in _PROMPTED.items():
        columns = _prompted({_CXR: "Overall", **_SUBTYPES}, name)
        yield LayoutTable(f"subtypes-{name}", f"By subtype, {label}", columns)


MI_CXR = BoardLayout(
    benchmark=_CXR,
    headline=_DIRECT,
    tables=with_notes(
        _NOTES,
        LayoutTable("subtypes", "By subtype", _BY_SUBTYPE),
        LayoutTable("question-types", "By question type", groups(_CXR, "accuracy", "qtype")),
        LayoutTable("stage-wise", "Direct and stage-wise", _BY_STAGES),
        LayoutTable("prompting", "Prompting variants", (*_PLAIN, *_BY_PROMPT)),
        *_subtype_tables(),
        _ERRORS,
        LayoutTable("reasoning-failures", "Reasoning failures", (*_FAILED, *_failures_by_family())),
        _ROTATED,
        _PARAPHRASED,
        LayoutTable("right-letters", "By correct letter", groups(_CXR, "accuracy", "gold_option")),
        LayoutTable("null-option", "Null option", _NULL),
        LayoutTable("report", "Interval summaries in free text", _TEXT),
    ),
    plots=(
        Plot("families", "Accuracy by family", "bars", _DIRECT, chance=True),
        Plot("subtypes", "Accuracy by subtype", "bars", _BY_SUBTYPE, chance=True),
        Plot("stage-wise", "Direct against stage-wise", "paired", _DIRECT, _STAGED),
        *(
            Plot(
                f"prompting-{name}",
                f"Plain prompt against {label}",
                "paired",
                _DIRECT,
                _prompted(_FAMILIES, name),
            )
            for name, label in _PROMPTED.items()
        ),
        Plot(
            "letters",
            "Letters chosen and correct",
            "letters",
            (Column(_CXR, "accuracy", "Overall"),),
        ),
        _ERROR_PLOT,
        Plot(
            "reasoning-failures",
            "Reasoning failures",
            "bars",
            _FAILED,
            note="Shares of all questions.",
        ),
        *_ROTATED_PLOTS,
        *_PARAPHRASED_PLOTS,
        Plot("null-option", _NULL_TITLE, "bars", _NULL, chance=True),
    ),
    shows="nothing",
    why="The rows derive from MIMIC-CXR, whose PhysioNet agreement forbids sharing them.",
)
