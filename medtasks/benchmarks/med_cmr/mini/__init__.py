"""A miniature Med-CMR: twenty drawn pictures and their rows, as a directory or as an archive like the released one."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from medtasks.benchmarks.med_cmr.mini.drawing import draw_picture
from medtasks.benchmarks.med_cmr.mini.pictures import PICTURES
from medtasks.benchmarks.med_cmr.prepare import FILES, prepare_med_cmr
from medtasks.data.prepared import Prepared


def write_med_cmr_source(folder: Path) -> None:
    """Write ``dataset/`` with the two row files and ``imgs/``, as the released archive unpacks."""
    for name, data in _files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_med_cmr_archive(path: Path) -> None:
    """Write the same as an archive, with left-over files of macOS and an editor, which the released one has, too."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (*_files(), ("__MACOSX/dataset/._imgs", b"fork"), ("dataset/cmed.copy.json.bak", b"[]")):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def _files() -> Iterator[tuple[str, bytes]]:
    for name in FILES.values():
        yield name, (Path(__file__).parent / name).read_bytes()
    for name, picture in PICTURES.items():
        stream = io.BytesIO()
        draw_picture(picture).save(stream, format="PNG")
        yield f"dataset/imgs/{name}.png", stream.getvalue()


def prepare_mini(source: Path, out: Path) -> Prepared:
    """Prepare what :func:`write_med_cmr_source` wrote."""
    return prepare_med_cmr(str(source), out, mini=True)
