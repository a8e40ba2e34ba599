"""Generated releases in the published layouts and sizes, and the ``medtasks prepare`` commands that
read them.

Contents are noise; row counts, file layouts and the number of pictures per row are the releases'.
The same few pictures and videos lie under all names (hard links), so that disk space stays bounded.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from generated_files import jsonl, linked, parquet, picture, served, with_picture

Commands = Mapping[str, list[str]]
"""Arguments of ``medtasks prepare`` by what is prepared."""

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


def kvasir_rows() -> Iterator[dict[str, Any]]:
    pair = {"q": "How many polyps are in the image?", "a": "1"}
    levels: list[int] = []
    for level, count in KVASIR.items():
        levels += [level] * count
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
    """The picture of each image of Kvasir's rows."""
    stock = [picture(number, 720, 576, "JPEG") for number in range(VARIETY)]
    ids = sorted({row["img_id"] for row in kvasir_rows()})
    return dict(zip(ids, cycle(stock), strict=False))


def kvasir(folder: Path) -> Commands:
    write_kvasir(folder)
    command = ["kvasir_vqa_x1", "--source"]
    folder_path, rows, images = f"{folder}/plain", f"{folder}/rows", f"{folder}/images"
    return {
        "kvasir_vqa_x1, JSONL and a folder of pictures": [*command, folder_path],
        "kvasir_vqa_x1, parquet with the pictures' bytes": [*command, f"{folder}/bytes"],
        "kvasir_vqa_x1, parquet with URLs": [*command, f"{folder}/urls"],
        "kvasir_vqa_x1, parquet and the image dataset": [*command, rows, "--images", images],
        "kvasir_vqa_x1, references only": [*command, folder_path, "--references-only"],
    }


def write_kvasir(folder: Path) -> None:
    """The release with its pictures as files, as bytes in the rows, as URLs, and as a data set of
    their own.
    """
    pictures = kvasir_pictures()
    files = (f"{name}.jpg" for name in pictures)
    linked(folder / "plain/images", files, list(pictures.values())[:VARIETY])
    jsonl(folder / "plain/test.jsonl", kvasir_rows())
    test = "data/test-00000-of-00001.parquet"
    parquet(folder / "rows" / test, kvasir_rows())
    with_bytes = (
        with_picture(row, pictures[row["img_id"]], f"{row['img_id']}.jpg") for row in kvasir_rows()
    )
    parquet(folder / "bytes" / test, with_bytes)
    raw = (with_picture({"img_id": name}, data, f"{name}.jpg") for name, data in pictures.items())
    parquet(folder / "images/data/raw-00000-of-00001.parquet", raw)
    address = served(folder / "plain/images")
    urls = (with_picture(row, None, f"{address}/{row['img_id']}.jpg") for row in kvasir_rows())
    parquet(folder / "urls" / test, urls)


def med_cmr(folder: Path) -> Commands:
    stock = [picture(number, 530, 400, "PNG") for number in range(VARIETY)]
    folder.mkdir(parents=True)
    count = 0
    with zipfile.ZipFile(folder / "dataset.zip", "w", zipfile.ZIP_STORED) as archive:
        for name, rows in MED_CMR.items():
            records = []
            for number in range(rows):
                path = f"dataset/imgs/{count:06}.png"
                archive.writestr(path, stock[count % VARIETY])
                records.append(med_cmr_row(number, path, mcq="mcq" in name))
                count += 1
            archive.writestr(name, json.dumps(records), zipfile.ZIP_DEFLATED)
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
    if mcq:
        row |= {letter: f"option {letter}" for letter in "ABCDE"}
    return row


def mi_cxr(folder: Path) -> Commands:
    rows = [mi_cxr_row(q_id) for q_id in range(MI_CXR)]
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row["images"].values()))
    jsonl(folder / "micxr_test.jsonl", iter(rows))
    stock = [picture(number, 1_272, 1_528, "JPEG") for number in range(VARIETY)]
    linked(folder / "jpg", iter(names), stock)
    command = ["mi_cxr", "--rows", f"{folder}/micxr_test.jsonl"]
    return {
        "mi_cxr, rows and the tree of pictures": [*command, "--images", f"{folder}/jpg"],
        "mi_cxr, references only": [*command, "--references-only"],
    }


def mi_cxr_row(q_id: int) -> dict[str, Any]:
    patient, window = divmod(q_id, WINDOWS)
    images = {}
    for number in range(1, 6):
        images[f"T{number}"] = radiograph_path(patient, window + number)
    return {
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


def radiograph_path(patient: int, visit: int) -> str:
    """The file of a visit in MIMIC-CXR's tree; its name is five groups of hex digits."""
    name = f"p{patient:08}"
    file = "-".join([f"{patient * 100 + visit:08x}"] * 5)
    return f"files/{name[:3]}/{name}/s{visit:08}/{file}.jpg"


def medstream(folder: Path) -> Commands:
    folder.mkdir(parents=True)
    clip = time_coded_clip(folder / "clip.mp4")
    records: dict[str, list[str]] = {}
    generator = np.random.default_rng(1)
    for number in range(SINGLE + STREAMING):
        dataset = f"source{number % SOURCES:02}"
        query = round(float(generator.uniform(30, SECONDS - 60)), 2)
        video = video_path(dataset, number // SOURCES % VIDEOS)
        row = medstream_row(f"item{number}", dataset, video, query, streaming=number < STREAMING)
        records.setdefault(dataset, []).append(json.dumps(row, indent=4))
    videos: list[str] = []
    for dataset, texts in records.items():
        path = folder / "records" / f"{dataset}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(texts), encoding="utf-8")
        videos += [video_path(dataset, number) for number in range(VIDEOS)]
    linked(folder / "media", iter(videos), [clip])
    command = ["medstreambench", "--source", f"{folder}/records"]
    return {
        "medstreambench, records and videos": [*command, "--media", f"{folder}/media"],
        "medstreambench, references only": [*command, "--references-only"],
    }


def video_path(dataset: str, number: int) -> str:
    return f"Stream_Bench/{dataset}/{dataset}/videos/{number}.mp4"


def time_coded_clip(path: Path) -> bytes:
    """A video of `SECONDS` whose frames have their time written in them."""
    from fractions import Fraction

    from training.drawings.clips import draw_time_code, encode_clip

    scene = np.random.default_rng(0).integers(0, 255, (240, 640, 3), dtype=np.uint8)
    times = [Fraction(number, 25) for number in range(25 * SECONDS)]

    def frame(number: int, time: Fraction) -> Any:
        left = number % 320
        return draw_time_code(scene[:, left : left + 320], int(time * 1000))

    encode_clip(path, times, frame)
    return path.read_bytes()


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


RELEASES: Mapping[str, Callable[[Path], Commands]] = {
    "kvasir": kvasir,
    "med_cmr": med_cmr,
    "mi_cxr": mi_cxr,
    "medstream": medstream,
}
"""Writes a release into a folder, by benchmark."""
