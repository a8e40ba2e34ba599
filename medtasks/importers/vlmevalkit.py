"""VLMEvalKit's prediction files: `prediction` beside the dataset's columns, as a workbook, TSV or CSV."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath

from medtasks.catalog.records import Where, wrong
from medtasks.core.errors import DataError
from medtasks.core.files import MAX_JSON_BYTES
from medtasks.data.sources import content_of, read_csv_rows
from medtasks.importers.rows import Prediction, identifying


def read_vlmevalkit(path: Path) -> list[Prediction]:
    """The predictions in an ``.xlsx``, ``.tsv`` or ``.csv`` file; the format is detected from its content.

    ``index`` is the tool's sample id; ``sample_id``, ``img_id`` and ``image_path`` identify the sample better, if the
    dataset has such a column. An empty cell of ``prediction`` is an empty response.

    Raises:
        DataError: the file cannot be read, or a row lacks ``prediction`` or does not identify its sample.
    """
    data = content_of(path)
    rows = list(_sheet(path, data)) if data.startswith(b"PK") else read_csv_rows(path)
    return [_parsed(row, where) for where, row in rows]


def _parsed(row: Mapping[str, str], where: Where) -> Prediction:
    if "prediction" not in row:
        raise wrong(where, "prediction", None, f"it among {', '.join(map(repr, sorted(row)[:12]))}")
    keys = identifying(row)
    sample_id = keys.pop("sample_id", None)
    path = row.get("image_path", "").strip()
    if path and "img_id" not in keys and not path.startswith("["):
        keys["img_id"] = PureWindowsPath(path).stem
    for key, column in (("id", "index"), ("target", "answer")):
        if row.get(column, "").strip():
            keys[key] = row[column].strip()
    if sample_id is None and not {"id", "question"} & keys.keys():
        raise wrong(where, "index", None, "it, or `sample_id`")
    return Prediction(where, sample_id, keys, row["prediction"])


def _sheet(path: Path, data: bytes) -> Iterator[tuple[Where, dict[str, str]]]:
    """The rows of a workbook's first sheet, by the names in its first row; ``line`` counts the sheet's rows."""
    from openpyxl import load_workbook  # type: ignore[import-untyped]

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > MAX_JSON_BYTES:
            raise DataError(f"{path}: has {unpacked:,} bytes unpacked, more than the limit of {MAX_JSON_BYTES:,}.")
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        rows = book.worksheets[0].iter_rows(values_only=True)
        names = [str(cell or "").strip() for cell in next(rows, ())]
        cells = []
        for row in rows:  # which may be 16,384 cells wide
            given = zip(names, row, strict=False)
            cells.append({name: str(cell) for name, cell in given if name and cell is not None})
    except DataError:
        raise
    except Exception as error:  # zipfile, XML or openpyxl may raise anything
        raise DataError(f"{path}: not a readable workbook ({error}); save it again, or as .tsv.") from error
    if not any(cells):
        raise DataError(f"{path}: its first sheet has no row below the header; write or fetch it again.")
    empty = dict.fromkeys(filter(None, names), "")
    for number, filled in enumerate(cells, start=2):
        if filled:
            yield Where(path.name, number, unit="row"), {**empty, **filled}
