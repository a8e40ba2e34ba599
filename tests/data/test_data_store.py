"""Opening prepared data, and what ``prepare`` will not touch."""

from __future__ import annotations

from pathlib import Path

import pytest
from data_sources import kvasir_row, write_kvasir

from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.catalog.registry import all_benchmarks, get_benchmark
from medtasks.core.errors import DataError, NotPreparedError, UsageError
from medtasks.data.prepared import open_directory
from medtasks.data.store import open_prepared

ROWS = [kvasir_row(img_id=f"img{number}") for number in range(4)]


def test_a_folder_of_other_things_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    source = str(write_kvasir(tmp_path / "source", ROWS))
    with pytest.raises(UsageError, match="does not contain prepared data"):
        prepare_kvasir(source, tmp_path / "home")
    assert (tmp_path / "home" / "thesis.tex").read_text() == "years of work"


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert prepare_kvasir(str(write_kvasir(tmp_path / "source", ROWS)), tmp_path / "out").manifest.counts.rows == 4


def test_a_file_in_the_way_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError):
        prepare_kvasir(str(write_kvasir(tmp_path / "source", ROWS)), tmp_path / "out" / "deeper")


def test_another_source_shows_without_a_new_process(tmp_path: Path) -> None:
    first = prepare_kvasir(str(write_kvasir(tmp_path / "source", ROWS)), tmp_path / "out")
    assert len(first.records()) == 4
    write_kvasir(tmp_path / "source", ROWS[:2])
    prepare_kvasir(str(tmp_path / "source"), tmp_path / "out")
    assert len(open_directory(tmp_path / "out").records()) == 2


@pytest.mark.parametrize("name", ["records.jsonl", "media.jsonl"])
def test_data_changed_by_hand_do_not_keep_their_fingerprint(tmp_path: Path, name: str) -> None:
    prepared = prepare_kvasir(str(write_kvasir(tmp_path / "source", ROWS)), tmp_path / "out")
    path = prepared.directory / name
    path.write_text(path.read_text(encoding="utf-8").replace("img1", "img2"), encoding="utf-8")
    with pytest.raises(DataError, match="changed since they were prepared"):
        open_directory(tmp_path / "out").records()


def test_a_broken_manifest_is_one_sentence(tmp_path: Path) -> None:
    prepared = prepare_kvasir(str(write_kvasir(tmp_path / "source", ROWS)), tmp_path / "out")
    (prepared.directory / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="not a manifest of prepared data"):
        open_directory(tmp_path / "out")


def test_a_torn_progress_file_costs_a_second_look_and_nothing_else(tmp_path: Path) -> None:
    source = str(write_kvasir(tmp_path / "source", ROWS))
    expected = prepare_kvasir(source, tmp_path / "other").manifest.fingerprint

    def killed(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_kvasir(source, tmp_path / "out", progress=killed)
    log = tmp_path / ".out.partial" / "media.progress.jsonl"
    log.write_bytes(log.read_bytes()[:-20] + b"\xe2\x86")
    assert prepare_kvasir(source, tmp_path / "out").manifest.fingerprint == expected


@pytest.mark.parametrize("benchmark", all_benchmarks())
def test_data_that_are_not_prepared_name_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmark: str
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    with pytest.raises(NotPreparedError) as caught:
        open_prepared(benchmark)
    assert get_benchmark(benchmark).prepare in str(caught.value)


def test_an_unknown_benchmark_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="choose from kvasir_vqa_x1, kvasir_vqa_x1_transformed, mi_cxr"):
        open_prepared("weather")
