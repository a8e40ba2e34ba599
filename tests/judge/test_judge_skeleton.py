"""What is rendered once for all samples gives the prompts that rendering each would give."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rubric_cases import case

from medtasks.judge.quoting import delimited, neutral_fields
from medtasks.judge.rubric import _form, _skeleton, judge_prompt, load_rubric
from medtasks.judge.skeleton import Skeleton, has_slots
from medtasks.prompts import OVERLAY, render

TEXTS = st.text(max_size=40) | st.sampled_from(["{{ target }}", "\0target\0", "\0", "  \n", "{% raw %}"])


@pytest.mark.parametrize("name", ["med_cmr_open", "med_cmr_medreason"])
@settings(deadline=None)
@given(texts=st.lists(TEXTS, min_size=8, max_size=8))
def test_a_filled_skeleton_is_the_rendered_prompt(name: str, texts: list[str]) -> None:
    rubric = load_rubric(name)
    assert _skeleton(rubric) is not None
    document = {**case(name)[1], **dict(zip(rubric.sees, texts, strict=False))}
    seen = neutral_fields({field: document[field] for field in rubric.sees})
    block = delimited(texts[-1])
    whole = render(rubric.template, **seen, aspects=rubric.shown, form=_form(rubric, rubric.aspects), response=block)
    assert judge_prompt(rubric, document, texts[-1]) == whole


@pytest.mark.parametrize("name", ["kvasir_aspects", "medstream_rubric", "medstream_closed_fallback"])
def test_prompts_that_differ_in_more_than_texts_have_none(name: str) -> None:
    assert _skeleton(load_rubric(name)) is None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(OVERLAY, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("source", "usable"),
    [
        ("{{ a }} and {{ fixed }}", True),
        ("{% if fixed %}{{ a }}{% endif %}{{ a }}", True),
        ("{{ fixed | upper }}{% for x in fixed %}{{ x }}{{ a }}{% endfor %}", True),
        ("{{ a | upper }}", False),
        ("{{ a ~ fixed }}", False),
        ("{{ a[0] }}", False),
        ("{% if a %}{{ a }}{% endif %}", False),
        ("{% for a in fixed %}{{ a }}{% endfor %}", False),
        ("{% set a = fixed %}{{ a }}", False),
        ("{% set b %}{{ a }}{% endset %}{{ b | upper }}", False),
        ("{% filter upper %}{{ a }}{% endfilter %}", False),
        ("{% macro m(a) %}{{ a }}{% endmacro %}{{ m(fixed) }}", False),
        ("{% include fixed %}{{ a }}", False),
        ("{% include 'part.j2' %}", False),
    ],
)
def test_slots_are_what_is_shown_as_it_is(folder: Path, source: str, usable: bool) -> None:
    (folder / "part.j2").write_text("{{ a | upper }}")
    (folder / "whole.j2").write_text(source)
    assert has_slots("whole.j2", {"a"}) is usable


def test_a_text_that_ends_a_prompt_loses_its_blanks_as_ever(folder: Path) -> None:
    (folder / "last.j2").write_text("{{ fixed }}: {{ a }}\n")
    assert Skeleton("last.j2", {"a"}, {"fixed": "x"}).filled({"a": "y \n"}) == "x: y"
    assert render("last.j2", fixed="x", a="y \n") == "x: y"
