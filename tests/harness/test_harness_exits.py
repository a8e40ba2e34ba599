"""Under the harness every error is one sentence and exit code 1, not a traceback and exit code 0."""

from __future__ import annotations

from pathlib import Path

import pytest
from release_rows import write_mini

from medtasks.benchmarks.documents import doc_to_messages, task_documents
from medtasks.benchmarks.mi_cxr import tel_single
from medtasks.benchmarks.mi_cxr.records import prepare_mi_cxr
from medtasks.core.errors import MediaError


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prepared copy of the miniature MI-CXR whose source can be damaged."""
    write_mini("mi_cxr", tmp_path / "source")
    prepare_mi_cxr([tmp_path / "source" / "micxr_test.jsonl"], tmp_path / "source", tmp_path / "data" / "mi_cxr")
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    return tmp_path / "source"


def test_a_picture_that_vanished_stops_before_inference(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = source / task_documents("mi_cxr_tel_single")[0]["media"][0]
    gone.unlink()
    with pytest.raises(SystemExit) as stopped:
        tel_single(None)  # type: ignore[arg-type]
    assert stopped.value.code == 1
    said = capsys.readouterr().err
    assert str(gone) in said
    assert "medtasks prepare mi_cxr" in said


def test_a_picture_that_was_cut_meanwhile_is_not_shown(source: Path) -> None:
    document = task_documents("mi_cxr_icr")[0]
    path = source / document["media"][4]
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(MediaError, match=f"{path}: not a complete image"):
        doc_to_messages(document, {"template": "mi_cxr/mcq.j2"})


def test_a_subtask_without_rows_says_so(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from medtasks.benchmarks.mi_cxr import icr_variant

    assert source.is_dir()  # prepared without the variant's file
    with pytest.raises(SystemExit):
        icr_variant(None)  # type: ignore[arg-type]
    assert "have no rows for this task" in capsys.readouterr().err
