"""Releases in the layouts of the hub's datasets, made of the miniature data."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from medtasks.benchmarks.kvasir_vqa_x1.prepare import HUB, HUB_PICTURES

MINI = Path(__file__).parent.parent / "medtasks" / "benchmarks" / "kvasir_vqa_x1" / "mini"
ROWS = "test.jsonl"
PICTURES = "data/raw-00000-of-00001.parquet"


def parquet(rows: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), stream)
    return stream.getvalue()


def kvasir_release() -> dict[str, dict[str, bytes]]:
    """The datasets of rows and pictures of Kvasir-VQA-x1, with files that nobody needs."""
    pictures = []
    for path in sorted((MINI / "images").iterdir()):
        picture = {"bytes": path.read_bytes(), "path": None}
        pictures.append({"img_id": path.stem, "image": picture})
    return {
        HUB: {ROWS: (MINI / ROWS).read_bytes(), "train.jsonl": b"not needed"},
        HUB_PICTURES: {PICTURES: parquet(pictures), "README.md": b"not needed"},
    }
