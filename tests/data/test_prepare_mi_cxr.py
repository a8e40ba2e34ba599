"""``prepare mi_cxr``: where rows come from; pictures are always local."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_sources import mi_cxr_row, write_mi_cxr

from medtasks.benchmarks.mi_cxr import records as mi_cxr
from medtasks.benchmarks.mi_cxr.records import prepare_mi_cxr
from medtasks.core.errors import DataError, UsageError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
VARIANT = mi_cxr_row(group_type="ICR", qtype="icr_variant")


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def hub_of(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The hub's dataset is a local directory."""
    monkeypatch.setattr(mi_cxr, "HUB", str(folder))


@pytest.mark.parametrize(
    "name", ["micxr_test.jsonl", "data/test-00000-of-00001.parquet", "rows.jsonl"]
)
def test_rows_of_the_hub_meet_local_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    own = write_mi_cxr(tmp_path / "images", [mi_cxr_row()])
    write_rows(tmp_path / "hub" / name, [mi_cxr_row()])
    hub_of(monkeypatch, tmp_path / "hub")
    from_hub = prepare_mi_cxr([Path("hub")], tmp_path / "images", tmp_path / "one")
    from_file = prepare_mi_cxr([own], tmp_path / "images", tmp_path / "two")
    assert from_hub.manifest.fingerprint == from_file.manifest.fingerprint
    assert from_hub.manifest.counts.media == 5
    assert from_hub.manifest.source.kind == "hub"


def test_the_manifest_names_the_commit_and_every_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "hub" / "micxr_test.jsonl", [mi_cxr_row()])
    variant = write_rows(tmp_path / "variant.jsonl", [VARIANT])
    monkeypatch.setattr(
        "medtasks.data.hub.hub_tree",
        lambda *_, revision: (tmp_path / "hub", revision or COMMIT),
    )
    alone = prepare_mi_cxr([Path("hub")], None, tmp_path / "out", references_only=True)
    assert (alone.manifest.source.name, alone.manifest.source.revision) == (
        "steve9712/MI-CXR",
        COMMIT,
    )
    both = prepare_mi_cxr([Path("hub"), variant], None, tmp_path / "out", references_only=True)
    assert both.manifest.source.name == f"steve9712/MI-CXR@{COMMIT}+variant.jsonl"
    assert both.manifest.counts.rows == 2


def test_another_layout_on_the_hub_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dataset's files were not seen: what does not fit must say file, line and field."""
    hub_of(monkeypatch, tmp_path / "hub")
    write_rows(tmp_path / "hub" / "test.jsonl", [mi_cxr_row(images=None, image_paths=["a.jpg"])])
    with pytest.raises(DataError, match=r"test\.jsonl, line 1: field `images`"):
        prepare_mi_cxr([Path("hub")], None, tmp_path / "out", references_only=True)
    (tmp_path / "hub" / "test.jsonl").rename(tmp_path / "hub" / "README.md")
    with pytest.raises(UsageError, match=r"has no file micxr_test\.jsonl or "):
        prepare_mi_cxr([Path("hub")], None, tmp_path / "out", references_only=True)
