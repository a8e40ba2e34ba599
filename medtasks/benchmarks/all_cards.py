"""The board layout of every benchmark that has a page of its own."""

from __future__ import annotations

import sys

from medtasks.benchmarks.card import Card
from medtasks.benchmarks.card_check import card_columns, check_card
from medtasks.benchmarks.default_card import default_card
from medtasks.errors import MedtasksError
from medtasks.packages import LeftOut
from medtasks.registry import all_benchmarks, benchmark_owner, loaded_cards
from medtasks.spec import load_specs


def all_cards() -> dict[str, Card]:
    """The board layout of every benchmark that has a page of its own, by the benchmark's name, ours first.

    A benchmark without a layout gets a plain one with the metrics of its tasks, unless another layout of its package
    has them (a track beside the original). A layout of another package that cannot be shown is replaced by the plain
    one. A benchmark that cannot be shown at all is left out, with one sentence on standard error.
    """
    brought = loaded_cards()
    beside = {(benchmark_owner(card.benchmark), name) for card in brought.values() for name in _benchmarks_on(card)}
    found: dict[str, Card] = {}
    for name in all_benchmarks():
        card = brought.get(name)
        if card is None and (benchmark_owner(name), name) in beside:
            continue
        try:
            found[name] = default_card(name) if card is None else _checked(card)
        except MedtasksError as error:
            print(f"medtasks: no leaderboard page: {error}", file=sys.stderr, flush=True)
    return found


def _benchmarks_on(card: Card) -> set[str]:
    """The benchmarks whose tasks the layout names; `check_card` reports unknown tasks."""
    specs = load_specs()
    return {specs[column.task].metadata.benchmark for column in card_columns(card) if column.task in specs}


def _checked(card: Card) -> Card:
    """The layout, or the plain one if it is another package's and cannot be shown; our tests check ours."""
    owner = benchmark_owner(card.benchmark)
    if owner.ours:
        return card
    try:
        check_card(card)
    except (MedtasksError, AttributeError, TypeError) as error:  # its fields may hold anything
        LeftOut(owner.owner, f"board layout of {card.benchmark}", str(error)).warn()
        return default_card(card.benchmark)
    return card
