"""No future leakage (design, R4): every frame shows its own time, and none is later than the
window's end.

The pictures are taken from the messages that an adapter gets, after preparing, expanding rounds and
thinning; what they show is read from the pixels, so nothing that we wrote down is trusted.
"""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from release_rows import single_turn_row, streaming_row
from time_coded import shown, write_video

from medtasks.benchmarks.documents import doc_to_messages, doc_to_visual
from medtasks.benchmarks.medstreambench import documents
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.benchmarks.medstreambench.records import MedStreamRecord
from medtasks.catalog.task_source import TaskSource
from medtasks.core.findings import Finding
from medtasks.data.prepared import fingerprint
from medtasks.data.store import open_prepared
from medtasks.validate.prepared_data import MediaCheck
from medtasks.validate.report import TaskReport

TEMPLATE = "medstreambench/window.j2"
VIDEOS = {
    "constant.mp4": list(range(0, 30_000, 40)),
    "slow.mkv": list(range(0, 30_000, 1000)),
    "variable.mp4": [
        *range(0, 3000, 700),
        *range(3000, 3400, 10),
        *range(9000, 26_000, 333),
        29_999,
    ],
    "one.mp4": [0],
    "plain.avi": list(range(0, 20_000, 100)),
}


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    for name, times in VIDEOS.items():
        write_video(folder / name, times, codec="mpeg4" if name.endswith("avi") else None)
    return folder


def prepared_documents(media: Path, out: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shutil.rmtree(out, ignore_errors=True)
    (out / "records").mkdir(parents=True)
    (out / "records" / "x.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    prepared = prepare_medstream(str(out / "records"), media, out / "medstreambench")
    records = [record for record in prepared.records() if isinstance(record, MedStreamRecord)]
    return [
        {"benchmark": "medstreambench", **doc} for record in records for doc in documents(record)
    ]


def media_findings(made: list[dict[str, Any]], *, decode: bool) -> list[Finding]:
    check = MediaCheck(open_prepared("medstreambench"), decode)
    report = TaskReport(TaskSource(Path("task.yaml")), len(made))
    for document in made:
        check(document, TEMPLATE, report)
    return report.findings()


def milliseconds(seconds: float) -> Fraction:
    return Fraction(repr(seconds)) * 1000


windows = st.tuples(st.integers(0, 31_000), st.integers(0, 40_000)).map(
    lambda pair: (pair[0] / 1000, (pair[0] + pair[1]) / 1000)
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    video=st.sampled_from(sorted(VIDEOS)),
    window=windows,
    lengths=st.lists(st.integers(1, 9000), min_size=1, max_size=5),
    cap=st.none() | st.integers(1, 6),
)
def test_no_frame_is_later_than_the_end_of_its_window(
    media: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    video: str,
    window: tuple[float, float],
    lengths: list[int],
    cap: int | None,
) -> None:
    start, end = window
    times = VIDEOS[video]
    ends = [round(start * 1000) + sum(lengths[: number + 1]) for number in range(len(lengths))]
    rounds = [
        {"current_time": time / 1000, "expected_output": "closure", "answerable": True}
        for time in ends
    ]
    rows = [
        single_turn_row(
            sample_id="single",
            media_path=video,
            query_time=end,
            input_range=[start, end],
            context_window_sec=None,
        ),
        streaming_row(sample_id="stream", media_path=video, query_time=start, rounds=rounds),
        single_turn_row(
            sample_id="always",
            media_path=video,
            query_time=0.0,
            input_range=[0, 0],
            context_window_sec=0,
        ),
    ]
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    monkeypatch.setenv("MEDTASKS_MAX_FRAMES", "" if cap is None else str(cap))
    made = prepared_documents(media, tmp_path, rows)

    beyond = start * 1000 > times[-1] + 2000
    assert len(made) == 1 + (0 if beyond else 1 + len(lengths))
    for document in made:
        *parts, _ = doc_to_messages(document, {"template": TEMPLATE})[0]["content"]
        seen = [shown(part["url"]) for part in parts]
        last = max(time for time in times if time <= milliseconds(document["window_end"]))
        assert seen == sorted(set(seen))
        assert seen[-1] == last  # the end of the window is shown, and nothing after it
        assert seen[0] >= max(
            time for time in times if time <= milliseconds(document["window_start"])
        )
        assert [part["time"] * 1000 for part in parts] == pytest.approx(seen, abs=1e-6)
        assert cap is None or len(seen) <= cap
        assert [
            shown(picture) for picture in doc_to_visual(document)
        ] == seen  # back-ends without chat get the same
    if cap is None:
        assert media_findings(made, decode=True) == []


def test_the_validator_sees_a_frame_that_was_tampered_with(
    media: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    prepared_documents(media, tmp_path, [streaming_row(media_path="constant.mp4")])
    directory = tmp_path / "medstreambench"
    lines = (directory / "records.jsonl").read_text()
    record = json.loads(lines)
    late = record["rounds"][3]["frames"][-1]
    record["rounds"][0]["frames"][-1] = (
        late  # the last round's last frame, under the first round's last time
    )
    (directory / "records.jsonl").write_text(json.dumps(record) + "\n")
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest["fingerprint"] = fingerprint(directory)
    (directory / "manifest.json").write_text(json.dumps(manifest))
    changed = [doc for one in open_prepared("medstreambench").records() for doc in documents(one)]
    (error,) = media_findings(
        [{"benchmark": "medstreambench", **doc} for doc in changed], decode=False
    )
    assert error.message.startswith(
        "1 of 4 documents, first 's1@1': the frame of 10 s is after the window's end (4 s)"
    )


def test_a_frame_cap_is_recorded_with_the_document(
    media: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    row = single_turn_row(
        media_path="constant.mp4",
        query_time=20.0,
        input_range=[0.001, 20.0],
        context_window_sec=19.999,
    )
    whole = prepared_documents(media, tmp_path, [row])[0]
    monkeypatch.setenv("MEDTASKS_MAX_FRAMES", "4")
    (record,) = open_prepared("medstreambench").records()
    assert isinstance(record, MedStreamRecord)
    thinned = documents(record)[0]

    assert (whole["max_frames"], thinned["max_frames"]) == (None, 4)
    assert len(whole["times"]) == 11
    assert thinned["times"] == [whole["times"][position] for position in (0, 3, 7, 10)]
