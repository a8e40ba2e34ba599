"""Defects of records and documents: name, code of the finding, what is changed, and the task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seeded_bench import Change, Documents

MCQ, KVASIR, OPEN = "mi_cxr_tel_single", "kvasir_vqa_x1_level1", "med_cmr_open_su"
PRESENT, PROACTIVE = "medstreambench_present", "medstreambench_proactive"
LONG = "the cardiomegaly has become worse"


def _first(**changed: Any) -> Change:
    """The first row gets other values."""

    def change(rows: Documents) -> None:
        rows[0].update(changed)

    return change


def _without(field: str) -> Change:
    def change(rows: Documents) -> None:
        del rows[0][field]

    return change


def _choices(**changed: str) -> Change:
    def change(rows: Documents) -> None:
        rows[0]["choices"] = {**rows[0]["choices"], **changed}

    return change


def _second_like_first(*but: str) -> Change:
    """The second row becomes the first but for its id and the fields ``but``."""

    def change(rows: Documents) -> None:
        rows[1].update({key: value for key, value in rows[0].items() if key not in ("sample_id", *but)})

    return change


def _many(make: Callable[[Any, int], None], number: int = 60) -> Change:
    """``number`` copies of the first row, each made different."""

    def change(rows: Documents) -> Documents:
        copies = []
        for position in range(number):
            row = {**rows[0], "choices": dict(rows[0].get("choices", {})), "sample_id": f"row-{position}"}
            row["question"] = f"{row['question']} (case {position})"
            make(row, position)
            copies.append(row)
        return copies

    return change


def _always_a(row: dict[str, Any], position: int) -> None:
    del position
    row["target"] = "A"


def _longest_is_right(row: dict[str, Any], position: int) -> None:
    row["target"] = "ABCDE"[position % 5]
    row["choices"] = {letter: f"finding {letter}" for letter in "ABCDE"}
    row["choices"][row["target"]] += ", with all that belongs to it"


def _same_ids(rows: Documents) -> None:
    rows[1]["sample_id"] = rows[0]["sample_id"]


def _question_with_answer(rows: Documents) -> None:
    rows[0]["question"] = f"Is it true that {rows[0]['target']}"


def _every_question_with_its_answer(rows: Documents) -> None:
    for row in rows:
        row["question"] += f" ({row['choices'][row['target']]})"


def _every_question_with_its_letter(rows: Documents) -> None:
    for row in rows:
        row["question"] += f" [gold {row['target']}]"


def _late_frame(rows: Documents) -> None:
    rows[0]["times"] = [*rows[0]["times"][:-1], rows[0]["window_end"] + 1]


def _frames_out_of_order(rows: Documents) -> None:
    row = next(row for row in rows if len(row["times"]) > 1)
    row["times"] = row["times"][::-1]


def _option_nobody_has(rows: Documents) -> None:
    row = next(row for row in rows if row["options"])
    row["target"] = "something else"


RECORD_DEFECTS: list[tuple[str, str, Change, str]] = [
    ("answer outside the options", "MT301", _first(answer="F"), MCQ),
    ("field missing", "MT301", _without("qtype"), MCQ),
    ("field nobody knows", "MT301", _first(hint="the left one"), MCQ),
    ("no record of the subtask", "MT303", lambda rows: [row for row in rows if row["qtype"] == "icr_multi_abn"], MCQ),
    ("blank answer", "MT308", _first(answer=""), KVASIR),
]

DOCUMENT_DEFECTS: list[tuple[str, str, Change, str]] = [
    ("no sample id", "MT304", _without("sample_id"), MCQ),
    ("sample id is a number", "MT304", _first(sample_id=7), MCQ),
    ("media are one text", "MT304", _first(media="a.jpg"), MCQ),
    ("no cluster", "MT309", _without("cluster"), MCQ),
    ("blank cluster", "MT309", _first(cluster=""), MCQ),
    ("id twice", "MT305", _same_ids, OPEN),
    ("document twice", "MT306", _second_like_first(), KVASIR),
    ("right option left out", "MT307", _first(choices={"A": "one", "B": "two", "C": "three", "D": "four"}), MCQ),
    ("target is an option's text", "MT307", _first(target="T1 → T2"), MCQ),
    ("target of a list of options", "MT307", _option_nobody_has, PRESENT),
    ("blank target", "MT308", _first(target="  "), MCQ),
    ("question is nothing", "MT310", _first(question=None), KVASIR),
    ("blank question", "MT310", _first(question=" "), MCQ),
    ("no options", "MT311", _first(choices={}), MCQ),
    ("only one option", "MT311", _first(choices={"E": "none"}), MCQ),
    ("all options equal", "MT312", _first(choices=dict.fromkeys("ABCDE", "no change")), MCQ),
    ("options differ in case", "MT313", _choices(A="Left lung", B="left  lung"), MCQ),
    ("option misspelt", "MT313", _choices(A=LONG, B=LONG.replace("gal", "ggal")), MCQ),
    ("right answer is always A", "MT314", _many(_always_a), MCQ),
    ("right answer is the longest", "MT315", _many(_longest_is_right), MCQ),
    ("blank option", "MT316", _choices(B=" "), MCQ),
    ("no media", "MT317", _first(media=[]), MCQ),
    ("option too many", "MT318", _choices(F="none"), MCQ),
    ("two answers to one question", "MT319", _second_like_first("target"), KVASIR),
    ("document of another benchmark", "MT320", _first(benchmark="med_cmr"), MCQ),
    ("not a number", "MT321", _first(weight=float("nan")), MCQ),
    ("half a surrogate pair", "MT321", _first(note="\ud800"), MCQ),
    ("number and text", "MT322", lambda rows: [{**rows[0], "age": 7}, {**rows[1], "age": "7"}], MCQ),
    ("question holds its answer", "MT323", _question_with_answer, KVASIR),
    ("every question holds the answer", "MT219", _every_question_with_its_answer, MCQ),
    ("every question holds the letter", "MT219", _every_question_with_its_letter, MCQ),
    (
        "reference denies what was annotated",
        "MT325",
        _first(target="No text is visible.", original=[{"q": "Is there text?", "a": "Yes"}]),
        KVASIR,
    ),
    ("visible field is missing", "MT208", _without("question"), KVASIR),
    ("frame after the window's end", "MT330", _late_frame, PRESENT),
    ("frames out of order", "MT330", _frames_out_of_order, PROACTIVE),
]
