"""Filters of templates: one module for each output format has all of them, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from boards import board
from jinja2 import Environment
from medtasks.leaderboard.exports.export_templates import export_environment
from medtasks.leaderboard.exports.latex_filters import LATEX_FILTERS
from medtasks.leaderboard.exports.markdown_filters import MARKDOWN_FILTERS
from medtasks.leaderboard.site.html_filters import HTML_FILTERS
from medtasks.leaderboard.view.environment import view_environment

FORMATS = {"html": HTML_FILTERS, "latex": LATEX_FILTERS, "markdown": MARKDOWN_FILTERS}


@pytest.mark.parametrize("filters", FORMATS.values(), ids=FORMATS)
def test_templates_name_a_filter_as_its_function_is_called(
    filters: Mapping[str, Callable[..., Any]],
) -> None:
    assert {name: function.__name__ for name, function in filters.items()} == {
        name: name for name in filters
    }
    assert [name for name, function in filters.items() if not function.__doc__] == []


@pytest.mark.parametrize("filters", FORMATS.values(), ids=FORMATS)
def test_every_filter_of_the_leaderboard_has_an_example(
    filters: Mapping[str, Callable[..., Any]],
) -> None:
    own = [
        function
        for function in filters.values()
        if function.__module__.startswith("medtasks.leaderboard.")
    ]
    assert own
    assert [function.__name__ for function in own if ">>> " not in str(function.__doc__)] == []


@pytest.mark.parametrize(
    "environment",
    [
        export_environment({**LATEX_FILTERS, **MARKDOWN_FILTERS}),
        view_environment(board()),
    ],
    ids=["exports", "pages"],
)
def test_templates_use_registered_filters_alone(environment: Environment) -> None:
    names = environment.list_templates(extensions=["j2"])
    assert names
    for name in names:
        environment.get_template(name)
