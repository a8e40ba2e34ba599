"""The miniature MI-CXR: every option is checked against the timelines, independently of the generator."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from medtasks.benchmarks.mi_cxr.records import QTYPES, MiCxrRecord
from medtasks.data.store import open_prepared
from training.drawings.mi_cxr import (
    FINDINGS,
    HEART,
    LEFT,
    OPACITY,
    RIGHT,
    ROW_FILES,
    TIMELINES,
    draw_radiograph,
    image_path,
)


def load() -> list[MiCxrRecord]:
    return [record for record in open_prepared("mi_cxr").records() if isinstance(record, MiCxrRecord)]


def severities(record: MiCxrRecord, finding: str) -> list[int]:
    """Severities at T1 to T5, found by looking the five paths up."""
    levels = TIMELINES[record.cluster].get(finding)
    visits = [next(visit for visit in range(7) if image_path(record.cluster, visit) == path) for path in record.media]
    return [levels[visit] if levels else 0 for visit in visits]


def happened(before: int, after: int) -> str:
    if before == after:
        return "is unchanged" if before else "remains absent"
    if before == 0:
        return "newly appears"
    return "resolves" if after == 0 else ("worsens" if after > before else "improves")


def finding_in(text: str) -> str:
    (found,) = {finding for finding in FINDINGS if finding in text}
    return found


CHANGE = "(newly appears|resolves|worsens|improves|is unchanged|remains absent)"


def statement_is_true(record: MiCxrRecord, text: str) -> bool:
    """Whether every change that ``text`` claims of its finding holds."""
    levels = severities(record, finding_in(text))
    if match := re.fullmatch(rf"Between T(\d) and T\d, the .*? {CHANGE}\.", text):
        claims = [(match[2], int(match[1]))]
    else:
        claims = [(change, int(start)) for change, start in re.findall(rf"{CHANGE} from T(\d)", text)]
        assert len(claims) == 4
    return all(happened(levels[start - 1], levels[start]) == change for change, start in claims)


def events(levels: list[int], kind: str) -> list[int]:
    wanted = {"emergence": "newly appears", "resolution": "resolves"}[kind]
    return [i for i in range(4) if happened(levels[i], levels[i + 1]) == wanted]


def true_letters(record: MiCxrRecord) -> set[str]:
    """Letters of all options but E that are true of the timeline."""
    options = {letter: text for letter, text in record.choices.items() if letter != "E"}
    if record.qtype in ("icr_multi_abn",) or record.qtype.endswith("summary"):
        return {letter for letter, text in options.items() if statement_is_true(record, text)}
    levels = severities(record, finding_in(record.question))
    if record.qtype.startswith("icr_variant"):
        start = int(re.findall(r"T(\d)", record.question)[0])
        return {letter for letter, text in options.items() if happened(levels[start - 1], levels[start]) in text}
    if "_to_" in record.qtype:
        first, second = record.qtype.split("_to_")
        starts = events(levels, first)
        ends = [i for i in events(levels, second) if starts and i > starts[0]]
        pair = f"T{starts[0] + 2}, T{ends[0] + 2}" if starts and ends else None
        return {letter for letter, text in options.items() if text == pair}
    _, kind, *number = record.qtype.split("_")
    found = events(levels, kind)
    place = int(number[0]) - 1 if number else 0
    if not number:
        assert len(found) <= 1
    interval = f"T{found[place] + 1} → T{found[place] + 2}" if len(found) > place else None
    return {letter for letter, text in options.items() if text == interval}


def test_the_gold_option_is_the_only_true_one() -> None:
    for record in load():
        assert true_letters(record) == ({record.answer} - {"E"}), record


def test_every_question_type_occurs() -> None:
    found = {record.qtype for record in load()}
    assert {qtype for qtype in found if not qtype.startswith("icr_variant")} == set(QTYPES)
    assert any(qtype.startswith("icr_variant") for qtype in found)


def test_the_null_option_is_right_somewhere_in_each_family() -> None:
    assert {record.group_type for record in load() if record.answer == "E"} == {"TEL", "ICR", "GTS"}


def test_null_options_are_worded_differently() -> None:
    wordings = {record.choices["E"].split()[0] for record in load()}
    assert {"None", "There"} <= wordings


def test_some_rows_say_qid_and_counts_do_not_divide() -> None:
    main, variant = (file.read_text().splitlines() for file in ROW_FILES)
    assert any('"qid"' in row for row in main)
    assert all(len(rows) % 2 and len(rows) % 3 for rows in (main, variant))


def test_windows_of_one_patient_overlap() -> None:
    windows = defaultdict(set)
    for record in load():
        windows[record.cluster].add(record.media)
    assert any(
        len(set(one) & set(other)) == 4
        for found in windows.values()
        for one in found
        for other in found
        if one != other
    )


def test_no_id_can_be_taken_for_a_real_one() -> None:
    assert all(int(record.cluster[1:]) < 100 for record in load())
    assert all(Path(path).name.startswith("00000000-") for record in load() for path in record.media)


REGIONS = {
    LEFT: (190, 180, 265, 245),
    RIGHT: (55, 180, 130, 245),
    OPACITY: (75, 80, 125, 130),
    HEART: (212, 175, 254, 200),
}
"""Left, top, right, bottom of the part of the picture in which a finding shows."""


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_is_brighter_the_worse_it_is(finding: str) -> None:
    box = REGIONS[finding]
    brightness = [
        float(np.asarray(draw_radiograph("p00000001", 0, {finding: level}).crop(box)).mean()) for level in range(4)
    ]
    assert all(after > before + 3 for before, after in pairwise(brightness)), brightness


def test_a_patients_anatomy_stays_and_the_visit_shows() -> None:
    first, again = (np.asarray(draw_radiograph("p00000001", visit, {})).astype(int) for visit in (0, 1))
    other = np.asarray(draw_radiograph("p00000002", 0, {})).astype(int)
    assert 0 < np.abs(first - again).mean() < np.abs(first - other).mean()
