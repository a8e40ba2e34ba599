"""Preparing Med-CMR: from an archive or a folder the same records, and nothing of the release goes
unreported.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from release_rows import med_cmr_row, zipped

from medtasks.benchmarks.med_cmr import records as med_cmr
from medtasks.benchmarks.med_cmr.records import MedCmrRecord, prepare_med_cmr
from medtasks.core.errors import DataError, UsageError
from medtasks.data.prepared import Prepared

MCQ = [
    med_cmr_row(),
    med_cmr_row(task="LTG", image_path="dataset/imgs/two.png", A="A) Normal study", modality="MRI"),
    med_cmr_row(index="x-9", task="Causal reasoning", subtype=None),
    med_cmr_row(index=8, task="Causal Reasoning", image_path="dataset/imgs/two.png"),
]
OPEN = [med_cmr_row(index=1, answer="A nodule.", **dict.fromkeys("ABCDE"))]


def write(
    folder: Path, mcq: list[dict[str, Any]] = MCQ, open_: list[dict[str, Any]] = OPEN
) -> Path:
    (folder / "dataset" / "imgs").mkdir(parents=True, exist_ok=True)
    for kind, rows in (("mcq", mcq), ("open", open_)):
        (folder / med_cmr.FILES[kind]).write_text(json.dumps(rows), encoding="utf-8")
    for number, name in enumerate(("one", "two")):
        Image.fromarray(np.full((20, 30), number * 90, np.uint8)).save(
            folder / "dataset" / "imgs" / f"{name}.png"
        )
    return folder


def records_of(prepared: Prepared) -> list[MedCmrRecord]:
    return [record for record in prepared.records() if isinstance(record, MedCmrRecord)]


def bytes_of(prepared: Prepared) -> list[bytes]:
    return [(prepared.directory / name).read_bytes() for name in ("records.jsonl", "media.jsonl")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "source")


def test_archive_and_folder_give_the_same_bytes(tmp_path: Path, folder: Path) -> None:
    archive = zipped(folder, tmp_path / "dataset.zip")
    from_zip = prepare_med_cmr(str(archive), tmp_path / "one", allow_other_archive=True)
    from_folder = prepare_med_cmr(str(folder), tmp_path / "two", workers=3)

    assert bytes_of(from_zip) == bytes_of(from_folder)
    assert sorted(path.name for path in (tmp_path / "one" / "media").rglob("*.*")) == [
        "one.png",
        "two.png",
    ]
    assert from_zip.media_path("dataset/imgs/one.png").is_file()
    assert len(str(from_zip.manifest.source.sha256)) == 64


def test_the_hub_gives_the_archive_at_its_revision(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = zipped(folder, tmp_path / "dataset.zip")
    asked: list[Any] = []

    def hub_tree(*arguments: Any, revision: str) -> tuple[Path, str]:
        asked.extend((*arguments, revision))
        return archive.parent, revision

    monkeypatch.setattr("medtasks.data.hub.hub_tree", hub_tree)
    prepared = prepare_med_cmr("hub", tmp_path / "out", allow_other_archive=True)
    assert asked == [
        "aaassddaadf/Med-CMR",
        "dataset.zip",
        "a9b2d6e610c6c5dcf4f3e5aa89c7ec9fd7a05b73",
    ]
    assert (prepared.manifest.source.kind, prepared.manifest.source.revision) == ("hub", asked[2])


def test_odd_rows_are_reported_and_shares_stand_beside_the_published_ones(
    tmp_path: Path, folder: Path
) -> None:
    prepared = prepare_med_cmr(str(folder), tmp_path / "out")
    manifest = prepared.manifest

    assert [record.sample_id for record in records_of(prepared)] == [
        "mcq-7",
        "mcq-7#2",
        "mcq-x-9",
        "mcq-8",
        "open-1",
    ]
    assert manifest.details["oddities"]["rows whose options carry their own letter"] == 1
    assert manifest.details["oddities"]["rows that share their index with an earlier one"] == 1
    assert manifest.details["modality"] == {"CT": 4, "MRI": 1}
    assert manifest.details["subtype"] == {"(none)": 1, "nodule": 4}
    assert manifest.counts.by_kind == {
        "mcq": 4,
        "mcq_cr": 2,
        "mcq_ltg": 1,
        "mcq_sod": 1,
        "open": 1,
        "open_sod": 1,
    }
    assert {
        "mcq: 4 here, 16,655 published",
        "mcq_ltg: 1 (25.0%) here, 11,582 (69.5%) published",
        "mcq_su: 0 (0.0%) here, 371 (2.2%) published",
        "open: 1 here, 3,999 published",
    } <= {*manifest.differences}


def test_all_unmapped_dimensions_are_listed_at_once(tmp_path: Path) -> None:
    rows = [
        med_cmr_row(task=task)
        for task in ("Counting", "Small-object Detection", "Colour", "Counting")
    ]
    write(tmp_path / "source", rows, [med_cmr_row(task="Humour", answer="x")])
    with pytest.raises(DataError) as caught:
        prepare_med_cmr(str(tmp_path / "source"), tmp_path / "out")
    said = str(caught.value)
    assert "3 values name no dimension" in said
    assert "'Counting' (cmed.copy.mcq_cate.cleaned.json, row 1)" in said
    assert "'Humour' (cmed.copy.open_taged.cleaned.json, row 1)" in said


def test_rows_without_pictures_are_left_out_when_allowed(tmp_path: Path, folder: Path) -> None:
    (folder / "dataset" / "imgs" / "two.png").unlink()
    prepared = prepare_med_cmr(str(folder), tmp_path / "out", allow_missing_media=True)
    assert prepared.manifest.excluded_samples == ("mcq-7#2", "mcq-8")


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        UsageError, match=r"has no file dataset/cmed.copy.mcq_cate.cleaned.json; give the"
    ):
        prepare_med_cmr(str(tmp_path / "empty"), tmp_path / "out")
    with pytest.raises(UsageError, match="cannot be read"):
        prepare_med_cmr(str(tmp_path / "nowhere.zip"), tmp_path / "out")
