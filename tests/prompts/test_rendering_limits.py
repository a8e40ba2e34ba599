"""Limits: of the numbers, text and memory of templates that anybody may have written, and of our tasks' responses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from medtasks.catalog.contents import owner_of
from medtasks.catalog.prompts import render
from medtasks.catalog.spec import load_specs
from medtasks.core.errors import MedtasksError

Write = Callable[[str], str]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a template of somebody else, and give its name."""
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))

    def write(text: str) -> str:
        name = f"{len(list(tmp_path.iterdir()))}.j2"
        (tmp_path / name).write_text(text)
        return name

    return write


MANY = "{% for a in range(100001) %}{% endfor %}"
LONG = "{% for a in range(90000) %}" + 100 * "long " + "{% endfor %}"


@pytest.mark.parametrize(
    ("text", "said"),
    [(MANY, "Range too big"), (LONG, "longer than 4,000,000 characters")],
)
def test_numbers_and_text_are_limited_wherever_a_prompt_is_rendered(written: Write, text: str, said: str) -> None:
    with pytest.raises(MedtasksError, match=said):
        render(written(text))


@pytest.mark.parametrize("text", ["{{ range(1000) | random }}", "{{ lipsum() }}"])
def test_a_template_cannot_draw_at_random(written: Write, text: str) -> None:
    with pytest.raises(MedtasksError, match=r"'random'|'lipsum'"):
        render(written(text))


def test_too_much_memory_is_an_error_of_the_template_alone(written: Write) -> None:
    fatal, sound = written("{{ 'x' * 99999999999 }}"), written("Where is {{ what }}?")
    with pytest.raises(MedtasksError, match="MemoryError"):
        render(fatal)
    assert render(sound, what="it") == "Where is it?"


def test_a_task_leaves_room_to_reason_and_has_no_stop_strings() -> None:
    for spec in load_specs().values():
        if spec.kind == "task":
            assert owner_of(spec.path).ours
            assert (spec.generation["max_new_tokens"], spec.generation["until"]) == (4096, []), spec.name
