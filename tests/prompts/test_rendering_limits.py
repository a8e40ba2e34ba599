"""Templates that anybody may have written: numbers, text, time and memory have limits, and the next one is rendered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from medtasks import rendering
from medtasks.errors import MedtasksError
from medtasks.prompts import isolated_rendering, render, template_variables

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


NESTED = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
LONG = "{% for a in range(90000) %}" + 100 * "long " + "{% endfor %}"


@pytest.mark.parametrize(
    ("text", "said"),
    [(NESTED, "its ranges produce more than 100,000 numbers"), (LONG, "longer than 4,000,000 characters")],
)
def test_numbers_and_text_are_limited_wherever_a_prompt_is_rendered(written: Write, text: str, said: str) -> None:
    with pytest.raises(MedtasksError, match=said):
        render(written(text))


def test_the_limit_on_numbers_is_of_one_prompt(written: Write) -> None:
    name = written("{% for a in range(60000) %}{% endfor %}done")
    assert [render(name) for _ in range(3)] == 3 * ["done"]


@pytest.mark.parametrize("text", ["{{ range(1000) | random }}", "{{ lipsum() }}"])
def test_a_template_cannot_draw_at_random(written: Write, text: str) -> None:
    with pytest.raises(MedtasksError, match=r"'random'|'lipsum'"):
        render(written(text))


MEMORY = "{{ 'x' * 99999999999 }}"
ENDLESS = "{% if 7 ** (10 ** 9) %}{% endif %}"


@pytest.mark.parametrize(("text", "said"), [(MEMORY, "too much memory"), (ENDLESS, "takes more than 1 s")])
def test_a_template_that_exhausts_its_process_is_ended_and_the_next_one_rendered(
    written: Write, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(rendering, "SECONDS", 1.0)
    fatal, sound = written(text), written("Where is {{ what }}?")
    with isolated_rendering():
        assert render(sound, what="it") == "Where is it?"
        for _ in range(2):
            with pytest.raises(MedtasksError, match=said):
                render(fatal)
        assert render(sound, what="she") == "Where is she?"


def test_an_isolated_prompt_is_the_same_and_so_is_what_is_wrong_with_it(written: Write) -> None:
    name = written("{{ lines | join('; ') }} {{ where.organ }}")
    variables = {"lines": ["a", "β"], "where": {"organ": "肝"}}
    with isolated_rendering():
        assert render(name, **variables) == "a; β 肝"
        with pytest.raises(MedtasksError, match="'where' is undefined"):
            render(name, lines=[])
    assert render(name, **variables) == "a; β 肝"


def test_reading_a_template_computes_no_constant_of_it(written: Write) -> None:
    name = written("{{ 9 ** (9 ** 9) }}{{ question }}")
    assert template_variables(name) == {"question"}
