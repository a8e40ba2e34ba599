"""Every `medtasks prepare` path on generated content in the published layouts and sizes: time, CPU,
peak memory.

Contents are noise; row counts, file layouts and the number of pictures per row are the releases'.
The same few pictures and videos lie under all names (hard links), so that disk space stays bounded;
each is read and decoded under each name all the same. One path after the other, each in a process
of its own; with `--paths`, some of them.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

KVASIR = {1: 5_548, 2: 5_261, 3: 5_213}
PER_IMAGE = 24
MED_CMR = {
    "dataset/cmed.copy.mcq_cate.cleaned.json": 16_655,
    "dataset/cmed.copy.open_taged.cleaned.json": 3_999,
}
MI_CXR, WINDOWS = 5_311, 5  # windows of a patient overlap by all but one visit
STREAMING, SINGLE, ROUNDS, SOURCES, VIDEOS = 756, 4_663, 4, 22, 10
SECONDS = 180
VARIETY = 16


def picture(number: int, width: int, height: int, kind: str) -> bytes:
    """A smooth field with grain: compresses about as well as a photograph."""
    from PIL import Image

    generator = np.random.default_rng(number)
    coarse = Image.fromarray(generator.integers(0, 255, (9, 12, 3), dtype=np.uint8)).resize(
        (width, height)
    )
    grain = generator.integers(-6, 7, (height, width, 1), dtype=np.int16)
    stream = io.BytesIO()
    pixels = np.clip(np.asarray(coarse, dtype=np.int16) + grain, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(stream, kind, quality=90)
    return stream.getvalue()


def linked(folder: Path, names: Iterator[str], contents: list[bytes]) -> None:
    """Files called ``names`` below ``folder``, each a hard link to one of ``contents``."""
    stock = [folder / ".stock" / str(number) for number in range(len(contents))]
    (folder / ".stock").mkdir(parents=True, exist_ok=True)
    for path, data in zip(stock, contents, strict=True):
        path.write_bytes(data)
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(stock[number % len(stock)], folder / name)


def kvasir_rows() -> Iterator[dict[str, Any]]:
    pair = {"q": "How many polyps are in the image?", "a": "1"}
    levels = [level for level, count in KVASIR.items() for _ in range(count)]
    for number, level in enumerate(levels):
        yield {
            "img_id": f"img{number // PER_IMAGE:05}",
            "complexity": level,
            "question": f"How many polyps are seen, counted in way {number}?",
            "answer": "One polyp is seen.",
            "original": json.dumps([pair] * level),
            "question_class": ["polyp_count"] * level,
        }


def kvasir_pictures() -> dict[str, bytes]:
    stock = [picture(number, 720, 576, "JPEG") for number in range(VARIETY)]
    ids = sorted({row["img_id"] for row in kvasir_rows()})
    return {img_id: stock[number % VARIETY] for number, img_id in enumerate(ids)}


def jsonl(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def parquet(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    path.parent.mkdir(parents=True, exist_ok=True)
    batch: list[dict[str, Any]] = []
    writer = None
    for row in [*rows, None]:
        if row is not None:
            batch.append(row)
        if batch and (row is None or len(batch) == 1_000):
            table = pa.Table.from_pylist(batch)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
            batch = []
    if writer is not None:
        writer.close()


def with_picture(row: dict[str, Any], data: bytes | None, path: str) -> dict[str, Any]:
    return {**row, "image": {"bytes": data, "path": path}}


def kvasir(folder: Path) -> dict[str, list[str]]:
    pictures = kvasir_pictures()
    linked(
        folder / "plain/images",
        iter(f"{name}.jpg" for name in pictures),
        list(pictures.values())[:VARIETY],
    )
    jsonl(folder / "plain/test.jsonl", kvasir_rows())
    parquet(
        folder / "bytes/data/test-00000-of-00001.parquet",
        (
            with_picture(row, pictures[row["img_id"]], f"{row['img_id']}.jpg")
            for row in kvasir_rows()
        ),
    )
    parquet(folder / "rows/data/test-00000-of-00001.parquet", kvasir_rows())
    raw = (
        {"img_id": name, "image": {"bytes": data, "path": f"{name}.jpg"}}
        for name, data in pictures.items()
    )
    parquet(folder / "images/data/raw-00000-of-00001.parquet", raw)
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder / "plain/images"))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    urls = (with_picture(row, None, f"{address}/{row['img_id']}.jpg") for row in kvasir_rows())
    parquet(folder / "urls/data/test-00000-of-00001.parquet", urls)
    command = ["kvasir_vqa_x1", "--source"]
    return {
        "kvasir_vqa_x1, JSONL and a folder of pictures": [*command, f"{folder}/plain"],
        "kvasir_vqa_x1, parquet with the pictures' bytes": [*command, f"{folder}/bytes"],
        "kvasir_vqa_x1, parquet with URLs": [*command, f"{folder}/urls"],
        "kvasir_vqa_x1, parquet and the image dataset": [
            *command,
            f"{folder}/rows",
            "--images",
            f"{folder}/images",
        ],
        "kvasir_vqa_x1, references only": [*command, f"{folder}/plain", "--references-only"],
    }


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *_: Any) -> None:
        pass


def med_cmr(folder: Path) -> dict[str, list[str]]:
    stock = [picture(number, 530, 400, "PNG") for number in range(VARIETY)]
    folder.mkdir(parents=True)
    count = 0
    with zipfile.ZipFile(folder / "dataset.zip", "w", zipfile.ZIP_STORED) as archive:
        for name, rows in MED_CMR.items():
            made = []
            for number in range(rows):
                path = f"dataset/imgs/{count:06}.png"
                archive.writestr(path, stock[count % VARIETY])
                made.append(med_cmr_row(number, path, mcq="mcq" in name))
                count += 1
            archive.writestr(name, json.dumps(made), zipfile.ZIP_DEFLATED)
    command = ["med_cmr", "--source", f"{folder}/dataset.zip", "--allow-other-archive"]
    return {
        "med_cmr, dataset.zip": command,
        "med_cmr, references only": [*command, "--references-only"],
    }


def med_cmr_row(number: int, path: str, *, mcq: bool) -> dict[str, Any]:
    row = {
        "index": number,
        "question": f"What does finding {number} suggest?",
        "image_path": path,
        "answer": "B" if mcq else "A nodule.",
        "visual_description": "A bright nodule.",
        "task": "Causal Reasoning",
        "subtype": "nodule",
        "question type": "location",
        "modality": "CT",
        "organ system": "Respiratory",
    }
    return row | ({letter: f"option {letter}" for letter in "ABCDE"} if mcq else {})


def mi_cxr(folder: Path) -> dict[str, list[str]]:
    def visit(patient: int, number: int) -> str:
        name = f"p{patient:08}"
        return f"files/{name[:3]}/{name}/s{number:08}/" + "-".join(
            f"{patient * 100 + number:08x}" for _ in "12345"
        )

    rows, names = [], {}
    for q_id in range(MI_CXR):
        patient, window = divmod(q_id, WINDOWS)
        images = {f"T{number}": f"{visit(patient, window + number)}.jpg" for number in range(1, 6)}
        names.update(dict.fromkeys(images.values()))
        rows.append(
            {
                "q_id": q_id,
                "group_type": "TEL",
                "qtype": "single_emergence",
                "images": images,
                "question": "When does it appear?",
                "choices": {
                    "A": "T1 → T2",
                    "B": "T2 → T3",
                    "C": "T3 → T4",
                    "D": "T4 → T5",
                    "E": "None of these",
                },
                "answer": "B",
            }
        )
    jsonl(folder / "micxr_test.jsonl", iter(rows))
    linked(
        folder / "jpg",
        iter(names),
        [picture(number, 1_272, 1_528, "JPEG") for number in range(VARIETY)],
    )
    command = ["mi_cxr", "--rows", f"{folder}/micxr_test.jsonl"]
    return {
        "mi_cxr, rows and the tree of pictures": [*command, "--images", f"{folder}/jpg"],
        "mi_cxr, references only": [*command, "--references-only"],
    }


def medstream(folder: Path) -> dict[str, list[str]]:
    from fractions import Fraction

    from training.drawings.clips import draw_time_code, encode_clip

    folder.mkdir(parents=True)
    scene = np.random.default_rng(0).integers(0, 255, (240, 640, 3), dtype=np.uint8)
    times = [Fraction(number, 25) for number in range(25 * SECONDS)]

    def frame(number: int, time: Fraction) -> Any:
        left = number % 320
        return draw_time_code(scene[:, left : left + 320], int(time * 1000))

    encode_clip(folder / "clip.mp4", times, frame)
    clip = (folder / "clip.mp4").read_bytes()
    records: dict[str, list[str]] = {}
    generator = np.random.default_rng(1)
    for number in range(SINGLE + STREAMING):
        dataset = f"source{number % SOURCES:02}"
        query = round(float(generator.uniform(30, SECONDS - 60)), 2)
        video = f"Stream_Bench/{dataset}/{dataset}/videos/{number // SOURCES % VIDEOS}.mp4"
        row = medstream_row(f"item{number}", dataset, video, query, streaming=number < STREAMING)
        records.setdefault(dataset, []).append(json.dumps(row, indent=4))
    for dataset, texts in records.items():
        path = folder / "records" / f"{dataset}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(texts), encoding="utf-8")
    videos = (
        f"Stream_Bench/{name}/{name}/videos/{number}.mp4"
        for name in records
        for number in range(VIDEOS)
    )
    linked(folder / "media", videos, [clip])
    command = ["medstreambench", "--source", f"{folder}/records"]
    return {
        "medstreambench, records and videos": [*command, "--media", f"{folder}/media"],
        "medstreambench, references only": [*command, "--references-only"],
    }


def medstream_row(
    name: str, dataset: str, video: str, query: float, *, streaming: bool
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "sample_id": name,
        "dataset": dataset,
        "video_id": Path(video).stem,
        "media_path": video,
        "task": "phase_mcq",
        "task_mode": "streaming" if streaming else "single_turn",
        "temporal_mode": "future" if streaming else "retrospective",
        "question_type": "closed",
        "question": "Which phase is shown?\n\nResponse protocol: Answer, or respond exactly: "
        "unanswerable.",
        "query_time": query,
        "evidence": "The label says dissection.",
        "label_source": "original_annotation",
        "choices": ["preparation", "dissection", "closure"],
        "answer": "dissection",
        "response_protocol": "unanswerable | answer",
    }
    if not streaming:
        return row | {"context_window_sec": 30.0, "input_range": [round(query - 30, 2), query]}
    ends = [round(query + 10 * (number + 1), 2) for number in range(ROUNDS)]
    return row | {
        "rounds": [
            {
                "current_time": end,
                "input_range": [query, end],
                "expected_output": "dissection" if end == ends[-1] else "unanswerable",
                "answerable": end == ends[-1],
            }
            for end in ends
        ]
    }


PROBE = """
import atexit, re
from medtasks.cli.app import main
atexit.register(lambda: print(re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]))
main()
"""
"""The command, with its own peak of resident memory in KiB as the last line: the kernel's count for
children includes what this process had before it started them.
"""


def measured(arguments: list[str], out: Path) -> tuple[int, float, float, float]:
    """Exit code, seconds, CPU seconds and peak memory in MiB of one `medtasks prepare`."""
    command = [sys.executable, "-c", PROBE, "prepare", *arguments, "--out", str(out)]
    started = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    peak = int(printed.split()[-1]) / 1024
    return child.returncode, time.monotonic() - started, used.ru_utime + used.ru_stime, peak


MAKERS: dict[str, Callable[[Path], dict[str, list[str]]]] = {
    "kvasir": kvasir,
    "med_cmr": med_cmr,
    "mi_cxr": mi_cxr,
    "medstream": medstream,
}


def main() -> None:
    """Print a row for every path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", nargs="+", choices=MAKERS, default=list(MAKERS))
    chosen = parser.parse_args().paths
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors\n")
    print("| path | seconds | CPU seconds | peak memory, MiB |\n|---|---|---|---|")
    for name in chosen:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
            for number, (path, arguments) in enumerate(
                MAKERS[name](Path(folder) / "release").items()
            ):
                code, wall, cpu, memory = measured(arguments, Path(folder) / f"out{number}")
                print(
                    f"| {path}{'' if code == 0 else f' (exit code {code})'} | {wall:.1f} | "
                    f"{cpu:.1f} | {memory:,.0f} |"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
