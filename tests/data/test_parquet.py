"""Parquet files: rows in order, and nothing that expands beyond bounds."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medtasks.core.errors import DataError
from medtasks.data import parquet
from medtasks.data.parquet import read_parquet

# two rows, [1] and []; one bit of the footer differs, for which pyarrow's metadata of a column ends the process
DAMAGED_FOOTER = (
    "UEFSMRUAFSoVKiwVBBUAFQYVBhwAAAACAAAABAADAAAAAwcAAQAAAAAAAAAVBBlMNQAYBnNjaGVtYRUCADUDGAFhFQIVBkw8AAAA"
    "NQQYBGxpc3QVAgAVBCUCGAdlbGVtZW50ABYEGRwZHCYAHBUEGSUGABk4AWEEbGlzdAdlbGVtZW50FQAWBBZQFlAmCEkcFQAVABUC"
    "ADwpJgQAGUYAAgACAAAAFlAWBCYIFlAAKCBwYXJxdWV0LWNwcC1hcnJvdyB2ZXJzaW9uIDI2LjAuMRkcHAAAAKoAAABQQVIx"
)


def written(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, compression="zstd", **options)
    return path


def test_rows_come_in_order_with_their_numbers(tmp_path: Path) -> None:
    rows = [
        {"id": number, "image": {"bytes": bytes([number]) * 9, "path": None}}
        for number in range(200)
    ]
    read = list(read_parquet(written(tmp_path / "t.parquet", rows, row_group_size=70)))
    assert [one.row for one in read] == rows
    assert str(read[150].where) == "t.parquet, row 151"


def test_a_cell_that_expands_without_bound_is_refused_before_it_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(
        tmp_path / "bomb.parquet",
        [{"question": f"{'q' * 2_000_000}{number}"} for number in range(4)],
    )
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(parquet, "MAX_PICTURE_BYTES", 4_000_000)
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("it was expanded")
    )
    with pytest.raises(
        DataError,
        match=r"column question expands from [\d,]+ to 8,0\d\d,\d{3} bytes, 2,\d+,\d+ a cell",
    ):
        next(read_parquet(path))


def test_a_cell_larger_than_a_picture_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(
        tmp_path / "t.parquet", [{"image": os.urandom(300_000)}]
    )  # which does not compress
    monkeypatch.setattr(parquet, "MAX_PICTURE_BYTES", 200_000)
    with pytest.raises(
        DataError, match=r"column image expands from 300,\d{3} to 300,\d{3} bytes, 300,\d{3} a cell"
    ):
        next(read_parquet(path))


def test_many_rows_in_a_few_bytes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_SOME_ROWS", 1000)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": pa.array([1] * 100_000)}), path)
    with pytest.raises(DataError, match=r"bytes expand to 100,000 rows; do not use it"):
        next(read_parquet(path))


def test_a_large_cell_that_many_rows_share_is_expanded_for_a_few_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "t.parquet", [{"text": "x" * 900_000} for _ in range(100)])
    sizes = []
    real = pq.ParquetFile.iter_batches

    def counted(file: pq.ParquetFile, batch_size: int) -> Any:
        sizes.append(batch_size)
        return real(file, batch_size=batch_size)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    assert len(list(read_parquet(path))) == 100
    monkeypatch.setattr(parquet, "_BATCH_BYTES", 10_000_000)
    assert len(list(read_parquet(path))) == 100
    assert sizes[0] == 64
    assert 1 <= sizes[1] <= 11


def test_text_that_compresses_well_is_read(tmp_path: Path) -> None:
    rows = [{"answer": f"No polyp is seen in image {number}. " * 2000} for number in range(50)]
    path = written(tmp_path / "t.parquet", rows)
    assert path.stat().st_size * 100 < sum(len(row["answer"]) for row in rows)
    assert [one.row for one in read_parquet(path)] == rows


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"no table"])
def test_what_is_no_table_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    with pytest.raises(
        DataError, match=r"t\.parquet: not a readable parquet file \(.*\); fetch it again"
    ) as refusal:
        next(read_parquet(path))
    assert "\n" not in str(refusal.value)


def test_a_damaged_footer_is_one_sentence_and_does_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(base64.b64decode(DAMAGED_FOOTER))
    with pytest.raises(
        DataError, match=r"t\.parquet: not a readable parquet file \(.*\); fetch it again"
    ):
        list(read_parquet(path))


def test_a_damaged_page_with_a_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"answer": ["a polyp", "no polyp"]})
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, path, write_page_checksum=True, **options)
    path.write_bytes(path.read_bytes().replace(b"no polyp", b"no Polyp"))
    with pytest.raises(DataError, match="CRC checksum verification failed"):
        list(read_parquet(path))


def test_a_path_with_characters_of_patterns(tmp_path: Path) -> None:
    path = tmp_path / "rows [1]*?.parquet"
    written(tmp_path / "rows 1.parquet", [{"id": 2}, {"id": 3}])
    assert [row.row for row in read_parquet(written(path, [{"id": 1}]))] == [{"id": 1}]
