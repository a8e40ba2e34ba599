"""Valid rows of Med-CMR and MedStreamBench as released, for tests that change them, and Med-CMR as
an archive.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from medtasks.catalog.registry import get_benchmark


def write_mini(benchmark: str, folder: Path) -> None:
    """The miniature of a benchmark in the layout of its release."""
    folder.mkdir(parents=True, exist_ok=True)
    mini = get_benchmark(benchmark).data.mini
    assert mini is not None
    mini(folder)


def write_med_cmr_archive(path: Path) -> None:
    """The miniature Med-CMR as an archive."""
    folder = path.with_name(f"{path.stem}_source")
    write_mini("med_cmr", folder)
    zipped(folder, path)


def zipped(folder: Path, path: Path) -> Path:
    """A folder as an archive, with left-over files of macOS and an editor, as in the released
    one.
    """
    files = [
        (str(file.relative_to(folder)), file.read_bytes()) for file in sorted(folder.rglob("*.*"))
    ]
    left_over = (
        ("__MACOSX/dataset/imgs/._one.png", b"fork"),
        ("dataset/cmed.copy.mcq_cate.cleaned.json.bak", b"[]"),
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (*files, *left_over):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return path


def med_cmr_row(**changes: Any) -> dict[str, Any]:
    """A valid multiple-choice row of Med-CMR; a change to None removes the field."""
    row = {
        "index": 7,
        "question": "Where is the nodule?",
        "image_path": "dataset/imgs/one.png",
        "answer": "B",
        "visual_description": "A bright nodule in the left upper part.",
        "task": "Small-object Detection",
        "subtype": "nodule",
        "question type": "location",
        "modality": "CT",
        "organ system": "Respiratory",
        **{letter: f"option {letter}" for letter in "ABCDE"},
        **{key.replace("__", " "): value for key, value in changes.items()},
    }
    return {key: value for key, value in row.items() if value is not None}


def single_turn_row(**changes: Any) -> dict[str, Any]:
    """A valid single-turn object of MedStreamBench; a change to None removes the field."""
    row = {
        "sample_id": "s1",
        "dataset": "cholec80",
        "video_id": "v1",
        "media_path": "Stream_Bench/cholec80/cholec80/v1.mp4",
        "task": "phase_mcq",
        "task_mode": "single_turn",
        "temporal_mode": "retrospective",
        "question_type": "closed",
        "question": "Which phase is shown?\n\nResponse protocol: Answer, or respond exactly: unanswerable.",
        "query_time": 6.0,
        "context_window_sec": 4.0,
        "input_range": [2.0, 6.0],
        "evidence": "The label says dissection.",
        "label_source": "original_annotation",
        "choices": ["preparation", "dissection", "closure"],
        "answer": "dissection",
        "response_protocol": "unanswerable | answer",
        **changes,
    }
    return {key: value for key, value in row.items() if value is not None}


def streaming_row(mode: str = "future", **changes: Any) -> dict[str, Any]:
    """A valid streaming object of four rounds, answerable from the third on; a change to None
    removes the field.
    """
    silent, said = (
        ("unanswerable", "closure") if mode == "future" else ("no_alert", "alert: bleeding")
    )
    rounds = [
        {
            "current_time": time,
            "input_range": [2.0, time],
            "expected_output": said if time >= 8 else silent,
            "answerable": time >= 8,
        }
        for time in (4.0, 6.0, 8.0, 10.0)
    ]
    changed = {
        "task_mode": "streaming",
        "temporal_mode": mode,
        "query_time": 2.0,
        "context_window_sec": None,
        "input_range": None,
        "answer": "closure" if mode == "future" else None,
        "choices": ["preparation", "dissection", "closure"] if mode == "future" else None,
        "rounds": rounds,
        **changes,
    }
    return single_turn_row(**changed)
