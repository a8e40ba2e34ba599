"""A rubric whose YAML is wrong is refused in one sentence with file, line, column and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtasks.catalog.rubric_files import read_rubric
from medtasks.core.errors import MedtasksError

RUBRIC = """# closed answers
name: closed
version: 1
sees: [question, options]
aspects:
  - name: same_answer
    anchors:
      0: another answer
      1: the same answer
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "options]",
            "optionsa",
            r"line 5, column 8: not valid YAML \(.*',' or '\]'.*flow sequence that begins in line 4\); fix it",
        ),
        ("  - name", "\t- name", r"line 6, column 1: not valid YAML \(.*\); fix it"),
        ("version: 1", "version: 2020-13-45", r"line 3, column 10: not valid YAML \('2020-13-45' cannot be read"),
        ("version: 1", "version: [", r"line \d+, column \d+: not valid YAML"),
        ("version: 1", "version: *one", r"line 3, column 10: not valid YAML \(.*alias.*\); fix it"),
        ("version: 1", "version: !new 1", r"line 3, column 10: not valid YAML \(.*tag.*\); fix it"),
        ("version: 1", "version: 1\nname: other", r"line 4, column 1: .*the key 'name' is repeated, first in line 2"),
        ("      1: the", "      0: the", r"line 9, column 7: .* \(the key '0' is repeated, first in line 8"),
        ("another", "an\x07other", r"line 8: not valid YAML \(.*\); remove the character|line 8, column"),
        ("version: 1", "version: " + "[" * 5000, "nested too deeply; write it flat|not valid YAML"),
    ],
)  # fmt: skip
def test_wrong_yaml_is_one_sentence_with_its_place(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "closed.yaml"
    path.write_text(RUBRIC.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(MedtasksError, match=message) as refusal:
        read_rubric(path)
    assert str(refusal.value).startswith(str(path))
    assert "\n" not in str(refusal.value)


def test_bytes_that_are_not_utf_8_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "closed.yaml"
    path.write_bytes(RUBRIC.replace("another", "an\xf6ther").encode("latin-1"))
    with pytest.raises(
        MedtasksError, match="line 8: byte 0xf6 is not UTF-8; save the file as UTF-8"
    ):
        read_rubric(path)


def test_a_missing_rubric_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        MedtasksError,
        match=r"closed\.yaml: cannot be read \(No such file or directory\); restore it",
    ):
        read_rubric(tmp_path / "closed.yaml")
