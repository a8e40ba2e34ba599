"""The benchmark: what a model sees of a question, and how its answer is scored."""

from __future__ import annotations

from collections.abc import Iterator

from acme_bench.mini import NUMBERS, mini
from acme_bench.records import OPTIONS, Question, read
from medtasks.api import (
    Benchmark,
    Case,
    DataSource,
    ErrorRate,
    Errors,
    Item,
    Publication,
    Rows,
    ScoringRules,
    by_fields,
    scored_by,
)

NAME = "acme_dots"

process_results = scored_by("accuracy")

TOO_HIGH = ErrorRate("acme_bench_too_high", "Count too high", cases="counts", harms=True)
TOO_LOW = ErrorRate("acme_bench_too_low", "Count too low", cases="counts", harms=True)


def cases(item: Item) -> Iterator[Case]:
    """The errors that could occur in a question, and whether they did; others than these have no direction."""
    for view in item.samples:
        numbers = {
            letter: NUMBERS.index(text)
            for letter, text in view.document["choices"].items()
            if text in NUMBERS
        }
        if len(numbers) == len(OPTIONS):
            correct = numbers[view.document["target"]]
            chosen = numbers.get(view.filtered, correct)  # a marker such as [none] is neither
            yield Case(TOO_HIGH.name, chosen > correct)
            yield Case(TOO_LOW.name, chosen < correct)


ERRORS = Errors((TOO_HIGH, TOO_LOW), cases)

shape = Rows(NAME, lambda row: row["topic"] == "shape")
number = Rows(NAME, lambda row: row["topic"] == "number")

BENCHMARK = Benchmark(
    name=NAME,
    title="Acme dots",
    publication=Publication(
        paper="not published",
        source="drawn by this package",
        licence="CC0-1.0",
        language="en",
        intended_use="research",
    ),
    data=DataSource(
        prepare=f"medtasks prepare package {NAME} --source DIR",
        record=Question,
        read=read,
        mini=mini,
        version="1",  # raise it when the miniature data change
    ),
    cluster="patient",
    visible_fields=frozenset({"question", "choices"}),  # the only fields that a prompt can show
    breakdowns=by_fields("topic"),
    options=OPTIONS,  # the letters that a response can select; any other is [out_of_range]
    scoring=ScoringRules(
        errors=ERRORS,  # named in the group's `pooled`
    ),
)
