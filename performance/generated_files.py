"""Files of generated releases: pictures that compress about as well as photographs, hard links to
them, rows, and a server.
"""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np


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


def served(folder: Path) -> str:
    """The address of a server of a folder's files, which ends with this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *_: Any) -> None:
        pass
