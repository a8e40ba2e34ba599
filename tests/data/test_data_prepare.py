"""``prepare``: the same bytes every time, resumable, and never at the cost of what was prepared
before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from data_sources import interrupted_at, kvasir_row, mi_cxr_row, picture, write_kvasir, write_mi_cxr

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.benchmarks.med_cmr.records import prepare_med_cmr
from medtasks.benchmarks.mi_cxr.records import prepare_mi_cxr
from medtasks.catalog.registry import all_benchmarks
from medtasks.core.errors import DataError, MediaError, MedtasksError, NotPreparedError, UsageError
from medtasks.data.prepared import open_directory
from medtasks.data.store import open_prepared
from medtasks.validate.prepared_data import check_data

ROWS = [
    kvasir_row(img_id=f"img{number}", question=f"How many polyps in {number}?")
    for number in range(7)
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_kvasir(tmp_path / "source", ROWS)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("records.jsonl", "media.jsonl")}


def test_workers_and_repetition_change_no_byte_and_another_pixel_does(
    tmp_path: Path, source: Path
) -> None:
    one = prepare_kvasir(str(source), tmp_path / "one", workers=1)
    four = prepare_kvasir(str(source), tmp_path / "four", workers=4)
    again = prepare_kvasir(str(source), tmp_path / "one", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "four")
    assert one.manifest.fingerprint == four.manifest.fingerprint == again.manifest.fingerprint
    picture(source / "images" / "img3.jpg", 250)
    assert (
        prepare_kvasir(str(source), tmp_path / "one").manifest.fingerprint
        != one.manifest.fingerprint
    )


def test_an_interrupted_preparation_goes_on_and_the_old_data_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_kvasir(tmp_path / "source", ROWS[:3])
    prepare_kvasir(str(source), tmp_path / "out")
    write_kvasir(tmp_path / "source", ROWS)
    with pytest.raises(KeyboardInterrupt):
        prepare_kvasir(str(source), tmp_path / "out", workers=1, progress=interrupted_at(4))
    assert open_directory(tmp_path / "out").manifest.counts.rows == 3
    read: list[Path] = []
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.append(path), original(path))[1])
    assert prepare_kvasir(str(source), tmp_path / "out", workers=1).manifest.counts.rows == 7
    assert len([path for path in read if path.suffix == ".jpg"]) == 3


def test_the_old_data_outlive_a_crash_at_the_very_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_kvasir(tmp_path / "source", ROWS[:3])
    prepare_kvasir(str(source), tmp_path / "out")
    rename = Path.rename

    def crash(path: Path, target: Path) -> Path:
        if path.name.endswith(".partial"):
            raise OSError("power cut")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", crash)
        patch.setattr("sys.platform", "other")  # whose kernel cannot exchange directories
        with pytest.raises(OSError, match="power cut"):
            prepare_kvasir(str(write_kvasir(tmp_path / "source", ROWS)), tmp_path / "out")
    with pytest.raises(
        MedtasksError
    ):  # any next command puts the old data back, even one that fails
        prepare_kvasir(str(tmp_path / "source" / "images"), tmp_path / "out")
    (source / "test.jsonl").write_text("")
    with pytest.raises(DataError):
        prepare_kvasir(str(source), tmp_path / "out")
    assert open_directory(tmp_path / "out").manifest.counts.rows == 3


def test_missing_pictures_are_excluded_and_counted_when_allowed(
    tmp_path: Path, source: Path
) -> None:
    (source / "images" / "img2.jpg").unlink()
    (source / "images" / "img4.jpg").write_bytes(b"\xff\xd8\xff cut")
    said = r"2 of the pictures cannot be used \(rows 3, 5\): .*img2\.jpg.*img4\.jpg.*--allow-missing-media"
    with pytest.raises(MediaError, match=said):
        prepare_kvasir(str(source), tmp_path / "out")
    manifest = prepare_kvasir(str(source), tmp_path / "out", allow_missing_media=True).manifest
    assert manifest.counts.rows == 5
    assert manifest.excluded == {"missing_image": 1, "unreadable_image": 1}
    assert len(manifest.excluded_samples) == 2


def test_an_exact_repeat_gets_a_number_and_is_counted(tmp_path: Path) -> None:
    row = kvasir_row()
    source = tmp_path / "test.jsonl"
    source.write_text(
        "".join(json.dumps(one) + "\n" for one in (row, row, kvasir_row(answer="Two."), row))
    )
    prepared = prepare_kvasir(str(source), tmp_path / "out", references_only=True)
    first, *others = (record.sample_id for record in prepared.records())
    assert [name for name in others if name.startswith(first)] == [f"{first}#2", f"{first}#3"]
    assert prepared.manifest.details["oddities"] == {"records that only repeat an earlier one": 2}


def test_two_questions_of_one_id_are_refused(tmp_path: Path) -> None:
    rows = write_mi_cxr(tmp_path / "source", [mi_cxr_row(), mi_cxr_row(question="Another?")])
    with pytest.raises(
        DataError, match=r"line 2: field `q_id` is 0, already used by rows.jsonl, line 1"
    ):
        prepare_mi_cxr([rows], tmp_path / "source", tmp_path / "out")


def test_the_variant_file_stands_beside_the_main_one(tmp_path: Path) -> None:
    main = write_mi_cxr(tmp_path / "main", [mi_cxr_row()])
    extra = write_mi_cxr(tmp_path / "extra", [mi_cxr_row(group_type="ICR", qtype="icr_variant")])
    prepared = prepare_mi_cxr([main, extra], tmp_path / "main", tmp_path / "out")
    assert [record.sample_id for record in prepared.records()] == ["tel-0", "icr_variant-0"]
    assert "rows: 1 here, 5,311 published" in prepared.manifest.differences


def test_a_vanished_or_changed_picture_is_noticed(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    prepared = prepare_kvasir(str(source), tmp_path / "data" / "kvasir_vqa_x1")
    assert prepared.missing_media() == prepared.changed_media() == []
    picture = source / "images" / "img0.jpg"
    data = bytearray(picture.read_bytes())
    data[-3] ^= 1  # of the same size
    picture.write_bytes(data)
    assert prepared.missing_media() == []
    assert prepared.changed_media() == ["img0.jpg"]
    (found,) = check_data(prepared, decode=True)
    assert (found.code, found.where) == ("MT402", str(picture))
    with pytest.raises(
        MediaError, match=r"img0\.jpg: missing or changed since the data were prepared"
    ):
        task_documents("kvasir_vqa_x1_level1")
    (source / "images" / "img1.jpg").unlink()
    (source / "images" / "img5.jpg").write_bytes(b"short")
    assert prepared.missing_media() == ["img1.jpg", "img5.jpg"]


@pytest.mark.parametrize("prepare", [prepare_kvasir, prepare_med_cmr])
def test_without_the_hub_one_sentence_says_how_to_go_on(
    prepare: Callable[..., object], tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="copy the dataset here and give it with --source"):
        prepare("hub", tmp_path / "out")


def test_only_prepared_data_and_empty_folders_are_replaced(tmp_path: Path, source: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="does not contain prepared data"):
        prepare_kvasir(str(source), tmp_path / "home")
    assert (tmp_path / "home" / "thesis.tex").read_text() == "years of work"
    with pytest.raises(UsageError):
        prepare_kvasir(str(source), tmp_path / "home" / "thesis.tex" / "deeper")
    (tmp_path / "out").mkdir()
    first = prepare_kvasir(str(source), tmp_path / "out")
    assert len(first.records()) == 7
    write_kvasir(tmp_path / "source", ROWS[:2])
    prepare_kvasir(str(source), tmp_path / "out")
    assert len(open_directory(tmp_path / "out").records()) == 2  # without a new process


@pytest.mark.parametrize("name", ["records.jsonl", "media.jsonl", "manifest.json"])
def test_data_changed_by_hand_are_refused(tmp_path: Path, source: Path, name: str) -> None:
    path = prepare_kvasir(str(source), tmp_path / "out").directory / name
    path.write_text("{" if name == "manifest.json" else path.read_text().replace("img1", "img2"))
    with pytest.raises(
        DataError, match=r"not a manifest of prepared data|changed since they were prepared"
    ):
        open_directory(tmp_path / "out").records()


def test_a_torn_progress_file_costs_a_second_look_and_nothing_else(
    tmp_path: Path, source: Path
) -> None:
    expected = prepare_kvasir(str(source), tmp_path / "other").manifest.fingerprint
    with pytest.raises(KeyboardInterrupt):
        prepare_kvasir(str(source), tmp_path / "out", progress=interrupted_at(3))
    log = tmp_path / ".out.partial" / "media.progress.jsonl"
    log.write_bytes(log.read_bytes()[:-20] + b"\xe2\x86")
    assert prepare_kvasir(str(source), tmp_path / "out").manifest.fingerprint == expected


def test_data_that_are_not_prepared_name_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    for name, benchmark in all_benchmarks().items():
        with pytest.raises(NotPreparedError, match=re.escape(benchmark.data.prepare)):
            open_prepared(name)
    with pytest.raises(
        UsageError, match="choose from kvasir_vqa_x1, kvasir_vqa_x1_transformed, mi_cxr"
    ):
        open_prepared("weather")
