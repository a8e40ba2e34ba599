"""The miniature Kvasir-VQA-x1: every oddity of the card, and pictures that show what the answers say."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from medtasks.benchmarks.kvasir_vqa_x1.records import ATOMIC_QUESTIONS, QUESTION_CLASSES, KvasirRecord
from medtasks.data.store import open_prepared
from training.drawings.kvasir import (
    COLORS,
    ROW_FILE,
    SCENES,
    Lesion,
    Scene,
    cell_center,
)


@pytest.fixture(scope="module")
def records() -> list[KvasirRecord]:
    return [record for record in open_prepared("kvasir_vqa_x1").records() if isinstance(record, KvasirRecord)]


def pixels(img_id: str) -> np.ndarray:
    return np.asarray(Image.open(open_prepared("kvasir_vqa_x1").media_path(f"{img_id}.jpg")).convert("RGB")).astype(int)


def test_counts_do_not_divide_by_two_or_three(records: list[KvasirRecord]) -> None:
    levels = Counter(record.complexity for record in records)
    assert all(count % 2 and count % 3 for count in (len(records), *levels.values()))


def test_every_class_occurs_and_finding_presence_at_level_one_only(records: list[KvasirRecord]) -> None:
    level_one = {name for record in records if record.complexity == 1 for name in record.question_class}
    merged = {name for record in records if record.complexity > 1 for name in record.question_class}
    assert level_one == QUESTION_CLASSES
    assert "finding_presence" not in merged


def test_the_oddities_of_the_card_are_there(records: list[KvasirRecord]) -> None:
    rows = ROW_FILE.read_text().splitlines()
    assert any("question_class" not in row for row in rows)
    assert any("instrumnets" in row for row in rows)
    assert {
        record.complexity for record in records if len(set(record.question_class)) < len(record.question_class)
    } == {
        2,
        3,
    }


LESIONS = [(scene.img_id, lesion) for scene in SCENES for lesion in scene.lesions]


@pytest.mark.parametrize(("img_id", "lesion"), LESIONS, ids=repr)
def test_a_lesion_has_its_colour_at_its_place(img_id: str, lesion: Lesion) -> None:
    x, y = cell_center(lesion.cell)
    seen = pixels(img_id)[y - 2 : y + 3, x - 2 : x + 3].reshape(-1, 3).mean(axis=0)
    distances = {name: float(np.abs(seen - color).sum()) for name, color in COLORS.items()}
    assert min(distances, key=distances.__getitem__) == lesion.color


@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene.lesions], ids=lambda scene: scene.img_id)
def test_as_many_lesions_can_be_counted_as_the_scene_has(scene: Scene) -> None:
    color = np.array(COLORS[scene.lesions[0].color])
    close = np.abs(pixels(scene.img_id) - color).sum(axis=2) < 60
    _, blobs = ndimage.label(ndimage.binary_opening(close, iterations=4))
    assert blobs == len(scene.lesions)


def listed(values: list[str]) -> str:
    return "; ".join(dict.fromkeys(values)) or "none"


def expected(scene: Scene) -> dict[str, str]:
    """What the scene says to the questions whose answers can be read from it."""
    polyps = [lesion for lesion in scene.lesions if lesion.kind == "polyp"]
    return {
        "polyp_count": str(len(polyps)),
        "polyp_size": listed([lesion.size for lesion in polyps]),
        "finding_count": str(len(scene.lesions)),
        "abnormality_presence": listed([lesion.kind for lesion in scene.lesions]),
        "abnormality_color": listed([lesion.color for lesion in scene.lesions]),
        "abnormality_location": listed([lesion.cell for lesion in scene.lesions]),
        "finding_presence": "yes" if scene.lesions or scene.landmark else "no",
        "instrument_presence": scene.instrument or "none",
        "instrument_count": str(int(bool(scene.instrument))),
        "instrument_location": "lower-right" if scene.instrument else "none",
        "landmark_presence": scene.landmark or "none",
        "landmark_location": scene.landmark_cell if scene.landmark else "none",
        "box_artifact_presence": "yes" if scene.box else "no",
        "text_presence": "yes" if scene.text else "no",
        "procedure_type": scene.procedure,
    }


def test_every_short_answer_is_what_the_scene_shows() -> None:
    scenes = {scene.img_id: scene for scene in SCENES}
    checked = set()
    for row in map(json.loads, ROW_FILE.read_text().splitlines()):
        for pair in json.loads(row["original"]):
            name = ATOMIC_QUESTIONS[pair["q"]]
            assert pair["a"] == expected(scenes[row["img_id"]]).get(name, pair["a"]), row
            checked.add(name)
    assert checked == QUESTION_CLASSES


def test_image_ids_cannot_be_taken_for_real_ones(records: list[KvasirRecord]) -> None:
    assert all(record.img_id.startswith("mini") for record in records)
