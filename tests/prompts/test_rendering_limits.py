"""Limits: of the numbers, text and memory of templates that anybody may have written, and of our
tasks' responses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from medtasks.catalog.contents import owner_of
from medtasks.catalog.prompts import render
from medtasks.catalog.spec import load_specs
from medtasks.core.errors import MedtasksError

LONG = "{% for a in range(90000) %}" + 100 * "long " + "{% endfor %}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% for a in range(100001) %}{% endfor %}", "Range too big"),
        (LONG, "longer than 4,000,000 characters"),
        ("{{ range(1000) | random }}", "'random'"),
        ("{{ lipsum() }}", "'lipsum'"),
        ("{{ 'x' * 99999999999 }}", "MemoryError"),
    ],
    ids=["range", "length", "random", "lipsum", "memory"],
)
def test_what_a_template_may_not_do_is_an_error_of_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    (tmp_path / "wrong.j2").write_text(text)
    (tmp_path / "sound.j2").write_text("Where is {{ what }}?")
    with pytest.raises(MedtasksError, match=said):
        render("wrong.j2")
    assert render("sound.j2", what="it") == "Where is it?"


def test_a_task_leaves_room_to_reason_and_has_no_stop_strings() -> None:
    for spec in load_specs().values():
        if spec.kind == "task":
            assert owner_of(spec.path).ours
            assert (spec.generation["max_new_tokens"], spec.generation["until"]) == (4096, []), (
                spec.name
            )
