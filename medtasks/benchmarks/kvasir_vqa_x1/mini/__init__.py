"""A miniature Kvasir-VQA-x1: 24 drawn images, 79 rows in the release's format (``test.jsonl``)."""

from __future__ import annotations

import shutil
from pathlib import Path

from medtasks.benchmarks.kvasir_vqa_x1.mini.endoscopy import SCENES, draw_scene
from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.benchmarks.kvasir_vqa_x1.transformed import prepare_transformed
from medtasks.data.prepared import Prepared

ROW_FILE = Path(__file__).with_name("test.jsonl")


def write_kvasir_source(directory: Path) -> None:
    """Write ``test.jsonl`` and ``images/<img_id>.jpg`` in the release's layout; same bytes every time."""
    (directory / "images").mkdir(parents=True)
    for scene in SCENES:
        draw_scene(scene).save(directory / "images" / f"{scene.img_id}.jpg", quality=90)
    shutil.copyfile(ROW_FILE, directory / ROW_FILE.name)


def prepare_mini(source: Path, out: Path) -> Prepared:
    """Prepare what :func:`write_kvasir_source` wrote."""
    return prepare_kvasir(str(source), out, images=source / "images", mini=True)


def prepare_mini_transformed(source: Path, out: Path) -> Prepared:
    """The transformed track of what :func:`write_kvasir_source` wrote, with two variants of each picture."""
    original = prepare_mini(source, out.with_name("original"))
    return prepare_transformed(out, original=original, variants=2, mini=True)
