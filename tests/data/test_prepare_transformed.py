"""The transformed track: the same pictures whatever the order, the number of workers or the interruptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.kvasir_vqa_x1.documents import mixed
from medtasks.benchmarks.kvasir_vqa_x1.perturb import SEED, perturbed_png
from medtasks.benchmarks.kvasir_vqa_x1.transformed import prepare_transformed
from medtasks.core.errors import MediaError, UsageError
from medtasks.data.prepared import Prepared, open_directory
from medtasks.data.store import open_prepared


@pytest.fixture(scope="module")
def original() -> Prepared:
    return open_prepared("kvasir_vqa_x1")


def bytes_of(prepared: Prepared) -> dict[str, bytes]:
    files = [path for path in prepared.directory.rglob("*") if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(prepared.directory)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_the_number_of_workers_changes_no_byte(tmp_path: Path, original: Prepared) -> None:
    one = prepare_transformed(tmp_path / "one", original=original, variants=2, workers=1)
    five = prepare_transformed(tmp_path / "five", original=original, variants=2, workers=5)
    assert bytes_of(one) == bytes_of(five)
    assert one.manifest.fingerprint == open_prepared("kvasir_vqa_x1_transformed").manifest.fingerprint


def test_each_picture_can_be_made_alone(original: Prepared) -> None:
    made = open_prepared("kvasir_vqa_x1_transformed")
    for record in original.records()[::9]:
        source = original.media_path(record.media[0])
        for variant in (0, 1):
            alone = perturbed_png(source.read_bytes(), source.name, SEED, record.cluster, variant)
            assert made.media_path(f"variant{variant}/{record.cluster}.png").read_bytes() == alone


def test_questions_stay_and_are_asked_about_variant_0(original: Prepared) -> None:
    made = open_prepared("kvasir_vqa_x1_transformed")
    assert [record.sample_id for record in made.records()] == [record.sample_id for record in original.records()]
    assert {record.media for record in made.records()} == {
        (f"variant0/{one.cluster}.png",) for one in original.records()
    }
    assert len(made.media) == (2 + 1) * len(original.media)  # two variants and the original
    assert made.manifest.source.revision == original.manifest.fingerprint
    assert made.manifest.details["perturbation"] == {"seed": 42, "variants": 2, "version": 1}


def test_the_mixed_track_shows_the_originals_of_some_questions_and_transformed_pictures_of_the_others(
    original: Prepared,
) -> None:
    made = open_prepared("kvasir_vqa_x1_transformed")
    sources = {record.cluster: original.media_path(record.media[0]) for record in original.records()}
    of_originals = 0
    asked = [one for level in (1, 2, 3) for one in task_documents(f"kvasir_vqa_x1_mixed_level{level}")]
    for document in asked:
        (name,) = document["media"]
        if not name.startswith("original/"):
            assert name == f"variant0/{document['img_id']}.png"
            continue
        of_originals += 1
        assert made.media_path(name).read_bytes() == sources[document["img_id"]].read_bytes()
    assert len(asked) == len(original.records())
    assert 0.1 < of_originals / len(asked) < 0.4


def test_the_mixed_track_has_the_published_shares() -> None:
    rows = [{"sample_id": f"image-{number:08x}", "img_id": "image", "media": ["other"]} for number in range(20_000)]
    shares = [one["media"] == ["original/image"] for one in mixed(rows)]
    assert sum(shares) / len(rows) == pytest.approx(0.23, abs=0.01)  # arXiv 2506.09958, section 2.3
    assert [one["media"] == ["original/image"] for one in mixed(rows[5:9])] == shares[5:9]


def test_an_interrupted_call_goes_on(tmp_path: Path, original: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = perturbed_png

    def counted(data: bytes, name: str, seed: int, img_id: str, variant: int) -> bytes:
        made.append(img_id)
        return real(data, name, seed, img_id, variant)

    monkeypatch.setattr("medtasks.benchmarks.kvasir_vqa_x1.transformed.perturbed_png", counted)

    def stop(done: int, total: int) -> None:
        if done == 5 < total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_transformed(tmp_path / "out", original=original, workers=1, progress=stop)
    assert not (tmp_path / "out").exists()
    before = len(made)
    finished = prepare_transformed(tmp_path / "out", original=original, workers=1)
    assert 5 <= before < 24
    assert len(made) <= 24 + (before - 5)
    whole = prepare_transformed(tmp_path / "whole", original=original)
    assert bytes_of(finished) == bytes_of(whole)


def test_wrong_numbers_of_variants_are_refused(tmp_path: Path, original: Prepared) -> None:
    for variants in (0, 11):
        with pytest.raises(UsageError, match=f"--variants is {variants}, expected 1 to 10"):
            prepare_transformed(tmp_path, original=original, variants=variants)


def test_an_original_that_is_gone_is_named(tmp_path: Path, original: Prepared) -> None:
    import shutil

    shutil.copytree(original.directory.parent, tmp_path / "copy")
    copy = open_directory(tmp_path / "copy" / "prepared")
    copy.media_path("mini0003.jpg").unlink()
    with pytest.raises(MediaError, match=r"mini0003\.jpg: cannot be read"):
        prepare_transformed(tmp_path / "out", original=copy)
