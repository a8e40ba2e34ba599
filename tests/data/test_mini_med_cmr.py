"""The miniature Med-CMR: every oddity of the card, and pictures that show what the answers say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from release_rows import write_med_cmr_archive

from medtasks.benchmarks.med_cmr.prepare import prepare_med_cmr
from medtasks.benchmarks.med_cmr.records import DIMENSIONS, MedCmrRecord
from medtasks.data.store import open_prepared
from training.drawings.med_cmr import PICTURES, Mark, Picture, draw_picture


@pytest.fixture(scope="module")
def records() -> list[MedCmrRecord]:
    return [record for record in open_prepared("med_cmr").records() if isinstance(record, MedCmrRecord)]


def test_the_archive_prepares_to_what_the_folder_does(tmp_path: Path) -> None:
    write_med_cmr_archive(tmp_path / "dataset.zip")
    prepared = prepare_med_cmr(str(tmp_path / "dataset.zip"), tmp_path / "out", allow_other_archive=True)
    assert prepared.manifest.fingerprint == open_prepared("med_cmr").manifest.fingerprint


def test_counts_do_not_divide_and_long_tail_is_the_largest_dimension(records: list[MedCmrRecord]) -> None:
    formats = Counter(record.format for record in records)
    dimensions = Counter(record.dimension for record in records if record.format == "mcq")

    assert (formats["mcq"], formats["open"]) == (43, 28)
    assert all(dimensions[name] >= 3 for name in DIMENSIONS)
    assert dimensions.most_common(1)[0][0] == "ltg"
    assert {record.dimension for record in records if record.format == "open"} == set(DIMENSIONS)


def test_no_letter_is_right_more_often_than_another(records: list[MedCmrRecord]) -> None:
    gold = Counter(record.answer for record in records if record.format == "mcq")
    assert set(gold) == set("ABCDE")
    assert max(gold.values()) - min(gold.values()) <= 2


def test_the_oddities_of_the_card_are_there(records: list[MedCmrRecord]) -> None:
    details = open_prepared("med_cmr").manifest.details

    assert details["oddities"]["rows whose options carry their own letter"] == 2
    assert details["oddities"]["rows that share their index with an earlier one"] == 1
    assert details["subtype"]["(none)"] == 2
    assert {record.index.isdecimal() for record in records} == {True, False}
    assert any(record.task == "Small object detection" for record in records)
    assert any("“" in text or "(" in text for record in records for text in record.choices.values())
    assert all(not text.startswith(("A)", "A.", "B)")) for record in records for text in record.choices.values())


def test_the_right_option_stands_at_the_gold_letter(records: list[MedCmrRecord]) -> None:
    right = {record.question: record.choices[record.answer] for record in records if record.format == "mcq"}
    assert right["Where is the small round opacity in the picture?"] == "upper left"
    assert right["How many polyps can be seen?"] == "two"
    assert right["What does the large pale cell hold?"] == "a star with thin rays"


MARKS = [
    (name, number, mark)
    for name, one in PICTURES.items()
    for number, panel in enumerate(one.panels)
    for mark in panel.marks
]


@pytest.mark.parametrize(("name", "panel", "mark"), MARKS)
def test_every_mark_is_drawn_in_its_box_and_nowhere_else(name: str, panel: int, mark: Mark) -> None:
    picture = PICTURES[name]
    kept = [tuple(one for one in other.marks if one.name != mark.name) for other in picture.panels]
    panels = tuple(other._replace(marks=marks) for other, marks in zip(picture.panels, kept, strict=True))
    whole, without = (np.asarray(draw_picture(one)).astype(int) for one in (picture, replace(picture, panels=panels)))
    changed = np.abs(whole - without).sum(axis=2) > 0
    left, top, right, bottom = picture.box(mark, panel)
    assert changed[top:bottom, left:right].any()
    for number, one in enumerate(picture.panels):
        for other in one.marks:
            if other.name == mark.name:
                left, top, right, bottom = picture.box(other, number)
                changed[max(0, top - 1) : bottom + 2, max(0, left - 1) : right + 2] = False
    assert not changed.any()


def box_of(picture: Picture, name: str, panel: int = 0) -> tuple[int, int, int, int]:
    (mark,) = (mark for mark in picture.panels[panel].marks if mark.name == name)
    return picture.box(mark, panel)


PLACES = [
    ("mini_cxr_nodule", "nodule", "upper left"),
    ("mini_ct_nodule", "nodule", "lower right"),
    ("mini_rare_histo", "cell", "lower right"),
]


@pytest.mark.parametrize(("name", "mark", "place"), PLACES)
def test_a_target_lies_where_the_answer_says(name: str, mark: str, place: str) -> None:
    left, top, right, bottom = box_of(PICTURES[name], mark)
    middle = PICTURES[name].side / 2
    assert (
        place
        == f"{'upper' if (top + bottom) / 2 < middle else 'lower'} {'left' if (left + right) / 2 < middle else 'right'}"
    )


def test_temporal_strips_change_the_way_the_answers_say() -> None:
    def widths(name: str, mark: str) -> list[int]:
        return [box_of(PICTURES[name], mark, day)[2] - box_of(PICTURES[name], mark, day)[0] for day in range(3)]

    assert widths("mini_strip_cxr", "opacity") == sorted(widths("mini_strip_cxr", "opacity"), reverse=True)
    assert widths("mini_strip_derm", "patch") == sorted(widths("mini_strip_derm", "patch"))


def test_image_names_cannot_be_taken_for_real_ones(records: list[MedCmrRecord]) -> None:
    assert all(record.cluster.startswith("dataset/imgs/mini_") for record in records)
