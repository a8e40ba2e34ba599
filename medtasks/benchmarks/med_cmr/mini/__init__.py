"""A miniature Med-CMR: twenty drawn pictures and their rows, as a folder or as an archive like the released one."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from medtasks.benchmarks.med_cmr.mini.modalities import draw_picture
from medtasks.benchmarks.med_cmr.mini.pictures import PICTURES
from medtasks.benchmarks.med_cmr.mini.rows import med_cmr_rows
from medtasks.benchmarks.med_cmr.prepare import prepare_med_cmr
from medtasks.data.prepared import Prepared

__all__ = ["med_cmr_rows", "prepare_mini", "write_med_cmr_archive", "write_med_cmr_source"]


def write_med_cmr_source(folder: Path) -> None:
    """Write ``dataset/`` with the two row files and ``imgs/``, as the released archive unpacks."""
    for name, data in _files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_med_cmr_archive(path: Path) -> None:
    """Write the same as an archive, with the leavings of a Mac and of an editor that the released one holds, too."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (*_files(), ("__MACOSX/dataset/._imgs", b"fork"), ("dataset/cmed.copy.json.bak", b"[]")):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def _files() -> Iterator[tuple[str, bytes]]:
    mcq, rows = med_cmr_rows()
    yield "dataset/cmed.copy.mcq_cate.cleaned.json", _json(mcq)
    yield "dataset/cmed.copy.open_taged.cleaned.json", _json(rows)
    for name, picture in PICTURES.items():
        stream = io.BytesIO()
        draw_picture(picture).save(stream, format="PNG")
        yield f"dataset/imgs/{name}.png", stream.getvalue()


def _json(rows: list[dict[str, object]]) -> bytes:
    return json.dumps(rows, indent=2, ensure_ascii=False).encode()


def prepare_mini(source: Path, out: Path) -> Prepared:
    """Prepare what :func:`write_med_cmr_source` wrote."""
    return prepare_med_cmr(str(source), out, relative=True, mini=True)
