"""The team file: what is wrong in it is named, with what was expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import TEAM, Command
from medtasks.api import DataError

from medtasks_challenges.team import read_team


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"Country": None}, "field `Country` is None, expected a text;"),
        ({"Country": False}, "expected a text (YAML reads NO as false: quote it);"),
        ({"Contact_emails": []}, "`Contact_emails` is [], expected a list of one or more texts;"),
        ({"Contact_emails": "a@b"}, "`Contact_emails` is 'a@b', expected a list of one or more"),
        ({"Participant_Names": ["Ada"]}, "`Participant_Names` is ['Ada'], expected a text;"),
        ({"Teamname": "x"}, "field `Teamname` is 'x', expected no fields but Participant_Names,"),
        ({"measured": {"gpu": "x"}}, "`measured.gpu` is 'x', expected no fields but total_time,"),
        ({"measured": {"total_time": -1}}, "`measured.total_time` is -1, expected a number of s"),
        ({"measured": {"total_time": "8"}}, "`measured.total_time` is '8', expected a number"),
        ({"measured": {"total_time": True}}, "`measured.total_time` is True, expected a number"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    file = tmp_path / "team.json"
    file.write_text(json.dumps({**TEAM, **change}), encoding="utf-8")
    with pytest.raises(DataError) as refused:
        read_team(file)
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "contains None, expected the fields Participant_Names"),
        (b"- Ada", "contains ['Ada'], expected the fields Participant_Names"),
        (b"Country: Norge\nTeam_Name: x\nCountry: Norway", "line 3 repeats the field Country"),
        (b"Team_Name: \xe9", "is not valid YAML"),
        (b"Team_Name: [x", "is not valid YAML"),
        (b"? [a]\n: b", "is not valid YAML"),
    ],
)
def test_a_file_of_another_form_is_refused(content: bytes, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "team.yaml"
    file.write_bytes(content)
    with pytest.raises(DataError) as refused:
        read_team(file)
    assert expected in str(refused.value)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "team.yaml"
    file.write_text(yaml.safe_dump(TEAM, allow_unicode=True), encoding="utf-8-sig")
    assert read_team(file).submission_info == TEAM


def test_the_team_file_is_read_before_the_run(command: Command, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"team\.yaml: cannot be read .*; check the path\."):
        command("medico-2026-1", tmp_path, "--team", tmp_path / "team.yaml", "-o", tmp_path / "o")
