"""Defects of records and documents, each with the code of the finding that must name it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seeded_bench import Documents, InDocuments, InRecords

MCQ, KVASIR, OPEN = "mi_cxr_tel_single", "kvasir_vqa_x1_level1", "med_cmr_open_su"
TEMPLATES = {
    MCQ: "mi_cxr/mcq.j2",
    KVASIR: "kvasir_vqa_x1/answer.j2",
    OPEN: "med_cmr/open.j2",
    "medstreambench_present": "medstreambench/window.j2",
    "medstreambench_proactive": "medstreambench/window.j2",
}


def _first(**changed: Any) -> Callable[[Documents], None]:
    """The first row gets other values."""

    def change(rows: Documents) -> None:
        rows[0].update(changed)

    return change


def _without(field: str) -> Callable[[Documents], None]:
    def change(rows: Documents) -> None:
        del rows[0][field]

    return change


def _choices(**changed: str) -> Callable[[Documents], None]:
    def change(rows: Documents) -> None:
        rows[0]["choices"] = {**rows[0]["choices"], **changed}

    return change


def _second_like_first(*but: str) -> Callable[[Documents], None]:
    """The second row becomes the first but for its id and the fields ``but``."""

    def change(rows: Documents) -> None:
        rows[1].update({key: value for key, value in rows[0].items() if key not in ("sample_id", *but)})

    return change


def _many(make: Callable[[Any, int], None], number: int = 60) -> Callable[[Documents], Documents]:
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


def _record(name: str, code: str, change: Callable[[Documents], Documents | None], task: str = MCQ) -> InRecords:
    benchmark = next(one for one in ("kvasir_vqa_x1", "mi_cxr", "med_cmr", "medstreambench") if task.startswith(one))
    return InRecords(name, code, benchmark, task, change)


def _document(name: str, code: str, change: Callable[[Documents], Documents | None], task: str = MCQ) -> InDocuments:
    return InDocuments(name, code, task, TEMPLATES[task], change)


RECORD_DEFECTS = [
    _record("answer outside the options", "MT301", _first(answer="F")),
    _record("field missing", "MT301", _without("qtype")),
    _record("field nobody knows", "MT301", _first(hint="the left one")),
    _record("no record of the subtask", "MT303", lambda rows: [row for row in rows if row["qtype"] == "icr_multi_abn"]),
    _record("blank question", "MT310", _first(question=" ")),
    _record("blank answer", "MT308", _first(answer=""), KVASIR),
    _record("blank cluster", "MT309", _first(cluster="")),
    _record("no media", "MT317", _first(media=[])),
    _record("id twice", "MT305", _same_ids, KVASIR),
    _record("record twice", "MT306", _second_like_first(), KVASIR),
    _record("two answers to one question", "MT319", _second_like_first("answer"), KVASIR),
    _record("option too many", "MT318", _choices(F="none")),
    _record("only one option", "MT311", _first(choices={"E": "none"})),
    _record("right option left out", "MT307", _first(choices={"A": "one", "B": "two", "C": "three", "D": "four"})),
    _record("blank option", "MT316", _choices(B=" ")),
    _record("all options equal", "MT312", _first(choices=dict.fromkeys("ABCDE", "no change"))),
    _record("options differ in case", "MT313", _choices(A="Left lung", B="left  lung")),
    _record(
        "option misspelt",
        "MT313",
        _choices(A="the cardiomegaly has become worse", B="the cardiomegally has become worse"),
    ),
]

DOCUMENT_DEFECTS = [
    _document("no sample id", "MT304", _without("sample_id")),
    _document("sample id is a number", "MT304", _first(sample_id=7)),
    _document("no target", "MT304", _without("target")),
    _document("media are one text", "MT304", _first(media="a.jpg")),
    _document("no cluster", "MT309", _without("cluster")),
    _document("id twice", "MT305", _same_ids, OPEN),
    _document("target is an option's text", "MT307", _first(target="T1 → T2")),
    _document("target of a list of options", "MT307", _option_nobody_has, "medstreambench_present"),
    _document("blank target", "MT308", _first(target="  ")),
    _document("question is nothing", "MT310", _first(question=None), KVASIR),
    _document("right answer is always A", "MT314", _many(_always_a)),
    _document("right answer is the longest", "MT315", _many(_longest_is_right)),
    _document("no options", "MT311", _first(choices={})),
    _document("document of another benchmark", "MT320", _first(benchmark="med_cmr")),
    _document("not a number", "MT321", _first(weight=float("nan"))),
    _document("half a surrogate pair", "MT321", _first(note="\ud800")),
    _document("number and text", "MT322", lambda rows: [{**rows[0], "age": 7}, {**rows[1], "age": "7"}]),
    _document("question holds its answer", "MT323", _question_with_answer, KVASIR),
    _document("every question holds the answer", "MT219", _every_question_with_its_answer),
    _document("every question holds the letter", "MT219", _every_question_with_its_letter),
    _document(
        "reference denies what was annotated",
        "MT325",
        _first(target="No text is visible.", original=[{"q": "Is there text?", "a": "Yes"}]),
        KVASIR,
    ),
    _document("visible field is missing", "MT208", _without("question"), KVASIR),
    _document("frame after the window's end", "MT330", _late_frame, "medstreambench_present"),
    _document("frames out of order", "MT330", _frames_out_of_order, "medstreambench_proactive"),
]
