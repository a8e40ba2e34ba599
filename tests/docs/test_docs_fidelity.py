"""The page on fidelity: every row has a status, and the numbers of ours that it names are those in
force.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import load_spec

PAGE = Path(__file__).parent.parent.parent / "docs" / "fidelity.md"
STATUS = ("follows", "our reading", "differs, because ")
_CHECK = re.compile(r"<!-- check: (?P<kind>\w+) (?P<name>\S+) (?P<path>\S+) = (?P<value>.*?) -->")


class Row(NamedTuple):
    section: str
    source: str
    paper: str
    ours: str
    status: str

    @property
    def checks(self) -> list[re.Match[str]]:
        return list(_CHECK.finditer(self.ours + self.status))


def rows() -> Iterator[Row]:
    section = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if line.startswith("|") and not line.startswith(("| Source", "|---")):
            yield Row(section, *(cell.strip() for cell in line.strip("|").split("|")))


ROWS = list(rows())
CHECKS = [check for row in ROWS for check in row.checks]
PLACES = {
    "benchmark": get_benchmark,
    "rubric": load_rubric,
    "task": lambda name: load_spec(name).resolved,
    "module": import_module,
}


def value_at(place: Any, path: str) -> Any:
    """The value at a path of attributes, keys and positions; ``length`` at its end is the number of
    members.
    """
    for part in path.split("."):
        if part == "length":
            place = len(place)
        elif isinstance(place, Mapping):
            place = place[part]
        else:
            place = place[int(part)] if part.isdigit() else getattr(place, part)
    return list(place) if isinstance(place, tuple) else place


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check['name']}-{check['path']}")
def test_a_number_on_the_page_is_the_one_in_force(check: re.Match[str]) -> None:
    assert value_at(PLACES[check["kind"]](check["name"]), check["path"]) == yaml.safe_load(
        check["value"]
    )


def test_every_row_has_a_source_and_a_status() -> None:
    assert [row for row in ROWS if not row.source or not row.status.startswith(STATUS)] == []
    written = PAGE.read_text(encoding="utf-8").count("<!-- check")
    assert len(CHECKS) == written  # none is misspelt


@pytest.mark.parametrize("section", dict.fromkeys(row.section for row in ROWS))
def test_every_benchmark_has_numbers_that_are_compared(section: str) -> None:
    assert sum(len(row.checks) for row in ROWS if row.section == section) >= 5
