"""Findings as table rows and JSON, whatever stands in names and messages."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.core.findings import COLUMNS, RULES, Finding, Place, as_rows, failed, finding, summary

TEXTS = st.text(max_size=30)
FINDINGS = st.builds(
    Finding,
    severity=st.sampled_from(["error", "warning", "note"]),
    check=TEXTS,
    where=TEXTS,
    message=TEXTS,
    code=st.sampled_from([*RULES, "MT999"]),
    file=TEXTS,
    line=st.none() | st.integers(1, 10_000),
    field=TEXTS,
)


UNKNOWN = "the key 'tsak' is unknown; correct or remove it."


def _some(root: Path) -> list[Finding]:
    return [
        finding("MT313", "my_task", "options A and B are nearly equal", None, "choices"),
        finding("MT107", "my_task", "the key 'tsak' is unknown", Place(root / "tasks" / "a b.yaml", 7), "tsak"),
        finding("MT404", "my_task", "12 rows, published are 13", Place(Path("/elsewhere/x.yaml"), 1)),
    ]


def test_rows_name_the_worst_first_and_files_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = as_rows(_some(tmp_path))
    assert [row[0] for row in rows] == ["error", "warning", "note"]
    assert rows[0] == (
        "error",
        "MT107",
        "my_task",
        "tasks/a b.yaml:7",
        "the key 'tsak' is unknown; correct or remove it.",
    )
    assert all(len(row) == len(COLUMNS) for row in rows)


def test_the_summary_counts_each_severity(tmp_path: Path) -> None:
    assert summary(_some(tmp_path)) == "1 error, 1 warning, 1 note"
    assert summary([]) == "0 errors, 0 warnings, 0 notes"


def test_warnings_fail_only_where_strict(tmp_path: Path) -> None:
    warning = _some(tmp_path)[:1]
    assert not failed(warning)
    assert failed(warning, strict=True)
    assert failed(_some(tmp_path))
    assert not failed(_some(tmp_path)[2:], strict=True)


def test_a_finding_has_a_code_and_a_place(tmp_path: Path) -> None:
    entry = asdict(_some(tmp_path)[1])
    assert entry == {
        "severity": "error",
        "check": RULES["MT107"].title,
        "where": "my_task",
        "message": UNKNOWN,
        "code": "MT107",
        "file": str(tmp_path / "tasks" / "a b.yaml"),
        "line": 7,
        "field": "tsak",
    }


@given(st.lists(FINDINGS, max_size=4))
def test_any_finding_can_be_reported(findings: list[Finding]) -> None:
    for row in as_rows(findings):
        assert all(cell.isprintable() for cell in row)


def test_codes_are_in_order_and_have_titles() -> None:
    assert list(RULES) == sorted(RULES)
    assert all(rule.title and rule.title[-1] != "." for rule in RULES.values())
