"""Findings as table rows and JSON, whatever stands in names and messages."""

from __future__ import annotations

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


def test_rows_and_summary_name_the_worst_first_and_files_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "tasks" / "a b.yaml", 7)
    warning = finding("MT313", "my_task", "options A and B are nearly equal", None, "choices")
    error = finding("MT107", "my_task", "the key 'tsak' is unknown", place, "tsak")
    note = finding("MT404", "my_task", "12 rows, published are 13", Place(Path("/elsewhere/x.yaml"), 1))
    text = "the key 'tsak' is unknown; correct or remove it."
    assert (error.check, error.file, error.line) == (RULES["MT107"].title, str(place.file), 7)
    monkeypatch.chdir(tmp_path)
    rows = as_rows([warning, error, note])
    assert [row[0] for row in rows] == ["error", "warning", "note"]
    assert rows[0] == ("error", "MT107", "my_task", "tasks/a b.yaml:7", text)
    assert all(len(row) == len(COLUMNS) for row in rows)
    assert summary([warning, error, note]) == "1 error, 1 warning, 1 note"
    assert summary([]) == "0 errors, 0 warnings, 0 notes"
    assert failed([warning, error, note])
    assert not failed([warning])
    assert failed([warning], strict=True)
    assert not failed([note], strict=True)


@given(st.lists(FINDINGS, max_size=4))
def test_any_finding_can_be_reported(findings: list[Finding]) -> None:
    for row in as_rows(findings):
        assert all(cell.isprintable() for cell in row)


def test_codes_are_in_order_and_have_titles() -> None:
    assert list(RULES) == sorted(RULES)
    assert all(rule.title and rule.title[-1] != "." for rule in RULES.values())
