"""A miniature Kvasir-VQA-x1: twelve drawn images, 53 rows in the release's format, every oddity of the card."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.benchmarks.kvasir_vqa_x1.mini.endoscopy import Lesion, Scene, draw_scene
from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.benchmarks.kvasir_vqa_x1.transformed import prepare_transformed
from medtasks.benchmarks.kvasir_vqa_x1.vocabulary import ATOMIC_QUESTIONS
from medtasks.data.prepared import Prepared

__all__ = ["SCENES", "answer_to", "kvasir_rows", "prepare_mini", "prepare_mini_transformed", "write_kvasir_source"]

ROWS_PER_LEVEL = {1: 25, 2: 17, 3: 11}

SCENES = (
    Scene("mini0001", "colonoscopy", (Lesion("polyp", "pink", "5-10mm", "center"),)),
    Scene("mini0002", "colonoscopy", (Lesion("polyp", "red", "11-20mm", "upper-left"),), instrument="polyp snare"),
    Scene(
        "mini0003",
        "colonoscopy",
        (Lesion("polyp", "white", "<5mm", "center-left"), Lesion("polyp", "white", "5-10mm", "upper-right")),
        box="green",
    ),
    Scene("mini0004", "gastroscopy", landmark="z-line", text=True),
    Scene("mini0005", "gastroscopy", (Lesion("ulcer", "white", "11-20mm", "lower-center"),), box="black"),
    Scene("mini0006", "colonoscopy", landmark="cecum", landmark_cell="center", instrument="biopsy forceps"),
    Scene(
        "mini0007",
        "colonoscopy",
        (
            Lesion("polyp", "red", "<5mm", "upper-center"),
            Lesion("polyp", "red", "<5mm", "center-left"),
            Lesion("polyp", "red", "5-10mm", "lower-center"),
        ),
        text=True,
    ),
    Scene("mini0008", "colonoscopy", removed=True, box="green", instrument="polyp snare"),
    Scene("mini0009", "gastroscopy", (Lesion("ulcer", "red", "5-10mm", "center-right"),), text=True),
    Scene("mini0010", "gastroscopy", landmark="z-line", landmark_cell="center-left", instrument="biopsy forceps"),
    Scene("mini0011", "colonoscopy", (Lesion("polyp", "pink", "11-20mm", "center-right"),), box="black", text=True),
    Scene("mini0012", "colonoscopy"),
)


@dataclass(frozen=True)
class _Topic:
    """One question class: how it is asked, the short answer, and the answer in a sentence's clause."""

    ask: str
    short: Callable[[Scene], str]
    say: Callable[[Scene], str]


def _polyps(scene: Scene) -> list[Lesion]:
    return [lesion for lesion in scene.lesions if lesion.kind == "polyp"]


def _listed(values: list[str]) -> str:
    return "; ".join(dict.fromkeys(values)) or "none"


def _joined(values: list[str]) -> str:
    return " and ".join(dict.fromkeys(values))


def _kind_of_polyp(scene: Scene) -> str:
    sizes = {lesion.size for lesion in _polyps(scene)}
    if not sizes:
        return "none"
    return "pedunculated" if "11-20mm" in sizes else "sessile"


def _counted(number: int, noun: str) -> str:
    words = {0: "no", 1: "one", 2: "two", 3: "three"}
    return f"{words[number]} {noun}{'' if number == 1 else 's'}"


_LANDMARK_COLOR = {"z-line": "pink", "cecum": "dark red"}

TOPICS: Mapping[str, _Topic] = {
    "polyp_type": _Topic(
        "which type of polyp is shown",
        _kind_of_polyp,
        lambda s: f"the polyp type is {_kind_of_polyp(s)}" if _polyps(s) else "there is no polyp to classify",
    ),
    "polyp_removal_status": _Topic(
        "have all polyps been taken out",
        lambda s: "not relevant" if not _polyps(s) and not s.removed else ("yes" if s.removed else "no"),
        lambda s: (
            "all polyps have been removed"
            if s.removed
            else ("polyp tissue is still in place" if _polyps(s) else "polyp removal does not apply")
        ),
    ),
    "text_presence": _Topic(
        "is any text printed on the frame",
        lambda s: "yes" if s.text else "no",
        lambda s: "text is printed on the frame" if s.text else "no text is printed on the frame",
    ),
    "box_artifact_presence": _Topic(
        "does a green or black box cover part of the frame",
        lambda s: "yes" if s.box else "no",
        lambda s: f"a {s.box} box covers the lower left corner" if s.box else "no box artefact is present",
    ),
    "landmark_presence": _Topic(
        "which anatomical landmark can be seen",
        lambda s: s.landmark or "none",
        lambda s: f"the {s.landmark} is visible" if s.landmark else "no anatomical landmark is visible",
    ),
    "abnormality_color": _Topic(
        "what colour is the abnormality",
        lambda s: _listed([lesion.color for lesion in s.lesions]),
        lambda s: (
            f"the abnormality is {_joined([lesion.color for lesion in s.lesions])}"
            if s.lesions
            else "there is no abnormality whose colour could be named"
        ),
    ),
    "polyp_count": _Topic(
        "how many polyps are there",
        lambda s: str(len(_polyps(s))),
        lambda s: f"{_counted(len(_polyps(s)), 'polyp')} can be counted",
    ),
    "instrument_location": _Topic(
        "where does the instrument lie",
        lambda s: s.instrument_cell if s.instrument else "none",
        lambda s: f"the instrument lies {s.instrument_cell}" if s.instrument else "no instrument has a location here",
    ),
    "procedure_type": _Topic(
        "which procedure does the frame come from",
        lambda s: s.procedure,
        lambda s: f"the frame comes from a {s.procedure}",
    ),
    "instrument_presence": _Topic(
        "which instruments are in view",
        lambda s: s.instrument or "none",
        lambda s: f"a {s.instrument} is in view" if s.instrument else "no instrument is in view",
    ),
    "abnormality_presence": _Topic(
        "which abnormalities are visible",
        lambda s: _listed([lesion.kind for lesion in s.lesions]),
        lambda s: (
            f"evidence of {_joined([lesion.kind for lesion in s.lesions])} is seen"
            if s.lesions
            else "no abnormality is seen"
        ),
    ),
    "finding_presence": _Topic(
        "is there any finding at all",
        lambda s: "yes" if s.lesions or s.landmark else "no",
        lambda s: "the frame contains a finding" if s.lesions or s.landmark else "the frame contains no finding",
    ),
    "finding_count": _Topic(
        "how many findings are there",
        lambda s: str(len(s.lesions)),
        lambda s: f"{_counted(len(s.lesions), 'finding')} can be identified",
    ),
    "instrument_count": _Topic(
        "how many instruments are there",
        lambda s: str(int(bool(s.instrument))),
        lambda s: f"{_counted(int(bool(s.instrument)), 'instrument')} can be counted",
    ),
    "abnormality_location": _Topic(
        "where is the abnormality",
        lambda s: _listed([lesion.cell for lesion in s.lesions]),
        lambda s: (
            f"the abnormality is {_joined([lesion.cell for lesion in s.lesions])}"
            if s.lesions
            else "there is no abnormality to locate"
        ),
    ),
    "landmark_color": _Topic(
        "what colour is the anatomical landmark",
        lambda s: _LANDMARK_COLOR[s.landmark] if s.landmark else "none",
        lambda s: (
            f"the landmark is {_LANDMARK_COLOR[s.landmark]}" if s.landmark else "there is no landmark with a colour"
        ),
    ),
    "landmark_location": _Topic(
        "where is the anatomical landmark",
        lambda s: s.landmark_cell if s.landmark else "none",
        lambda s: f"the landmark is {s.landmark_cell}" if s.landmark else "there is no landmark to locate",
    ),
    "polyp_size": _Topic(
        "how large is the polyp",
        lambda s: _listed([lesion.size for lesion in _polyps(s)]),
        lambda s: (
            f"the polyp measures {_joined([lesion.size for lesion in _polyps(s)])}"
            if _polyps(s)
            else "there is no polyp to measure"
        ),
    ),
}
_QUESTION_OF = {name: question for question, name in ATOMIC_QUESTIONS.items()}


def answer_to(scene: Scene, question_class: str) -> str:
    """Short answer to the atomic question of ``question_class``, as the scene decides it."""
    return TOPICS[question_class].short(scene)


def kvasir_rows(seed: int = 0) -> list[dict[str, Any]]:
    """The rows, in the release's format. ``finding_presence`` stands at level 1 only."""
    generator = np.random.default_rng(seed)
    singles = list(TOPICS)
    merged = [name for name in singles if name != "finding_presence"]
    rows = []
    for level, number in ROWS_PER_LEVEL.items():
        for index in range(number):
            scene = SCENES[(index * 5 + level) % len(SCENES)]
            if level == 1:
                classes = [singles[index % len(singles)]]
            elif index == 0:  # the card: a row can name one class twice
                classes = ["polyp_count"] * 2 if level == 2 else ["polyp_count", "polyp_count", "procedure_type"]
            else:
                classes = [merged[place] for place in generator.choice(len(merged), level, replace=False)]
            rows.append(_row(scene, level, classes, with_classes=index % 5 != 4))
    return rows


def _row(scene: Scene, level: int, classes: list[str], with_classes: bool) -> dict[str, Any]:
    asked = [TOPICS[name].ask for name in dict.fromkeys(classes)]
    said = [TOPICS[name].say(scene) for name in dict.fromkeys(classes)]
    original = [{"q": _QUESTION_OF[name], "a": answer_to(scene, name)} for name in classes]
    row: dict[str, Any] = {
        "img_id": scene.img_id,
        "complexity": level,
        "question": _sentence(asked, "?"),
        "answer": _sentence(said, "."),
        "original": json.dumps(original),
    }
    if with_classes:
        row["question_class"] = classes
    return row


def _sentence(clauses: list[str], end: str) -> str:
    text = clauses[0] if len(clauses) == 1 else ", ".join(clauses[:-1]) + f", and {clauses[-1]}"
    return text[0].upper() + text[1:] + end


def write_kvasir_source(directory: Path, seed: int = 0) -> None:
    """Write ``test.jsonl`` and ``images/<img_id>.jpg`` in the release's layout; the same bytes for the same seed."""
    (directory / "images").mkdir(parents=True)
    for number, scene in enumerate(SCENES):
        picture = draw_scene(scene, seed * 1000 + number)
        picture.save(directory / "images" / f"{scene.img_id}.jpg", quality=90)
    lines = [json.dumps(row, ensure_ascii=False) for row in kvasir_rows(seed)]
    (directory / "test.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def prepare_mini(source: Path, out: Path) -> Prepared:
    """Prepare what :func:`write_kvasir_source` wrote."""
    return prepare_kvasir(str(source), out, images=source / "images", relative=True, mini=True)


def prepare_mini_transformed(source: Path, out: Path) -> Prepared:
    """The transformed track of what :func:`write_kvasir_source` wrote, with two variants of each picture."""
    original = prepare_mini(source, out.with_name("original"))
    return prepare_transformed(out, original=original, variants=2, mini=True)
