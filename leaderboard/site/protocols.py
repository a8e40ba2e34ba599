"""The protocol page: which hashes runs share, and what a signature says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from medtasks.errors import UsageError
from medtasks.results.signature import parse_signature

from ..board import Board, RunFacts
from .tables import ColumnView, column_view

__all__ = ["ProtocolSet", "RankingSignature", "protocol_sets", "ranking_signatures"]

_MEANINGS = {
    "metric": "what is computed",
    "task": "the task",
    "group": "the group, whose items are pooled; the parts of its tasks are combined by hash",
    "version": "version of the task",
    "filters": "how answers are taken from responses, with versions",
    "prompt": "hash of the prompt's template",
    "protocol": "hash of task file, metrics, generation settings and frames",
    "data": "fingerprint of the prepared data",
    "items": "how many samples were scored, and a hash of their ids",
    "blind": "asked without media",
    "harness": "options of the harness that change what is asked",
    "judge": "hash of rubric, judges, their settings and how verdicts are combined",
}


@dataclass(frozen=True)
class ProtocolSet:
    """Protocol and prompt hashes by task, and the runs that have exactly these. ``number`` names it on the page."""

    number: int
    tasks: tuple[tuple[str, str, str], ...]
    runs: tuple[RunFacts, ...]


@dataclass(frozen=True)
class RankingSignature:
    """The signature that all rows of a ranking share; ``parts`` are its keys, values, and what they mean."""

    benchmark: str
    column: ColumnView
    signature: str
    parts: tuple[tuple[str, str, str], ...]


def protocol_sets(board: Board) -> tuple[ProtocolSet, ...]:
    """The distinct sets of protocols, the most used first, so that a hundred equal runs list their hashes once."""
    found: dict[tuple[tuple[str, str, str], ...], list[RunFacts]] = {}
    for run in sorted(board.runs.values(), key=lambda one: one.key):
        names = sorted({*run.protocols, *run.prompts})
        tasks = tuple((name, _of(run.protocols, name), _of(run.prompts, name)) for name in names)
        found.setdefault(tasks, []).append(run)
    ordered = sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))
    return tuple(ProtocolSet(number, tasks, tuple(runs)) for number, (tasks, runs) in enumerate(ordered, 1))


def _of(hashes: Mapping[str, str], task: str) -> str:
    return hashes.get(task, "none")


def ranking_signatures(board: Board) -> tuple[RankingSignature, ...]:
    """The signatures of all rankings."""
    return tuple(
        RankingSignature(benchmark.title, column_view(ranking.column), ranking.signature, _parts(ranking.signature))
        for benchmark in board.benchmarks
        for ranking in benchmark.rankings
    )


def _parts(signature: str) -> tuple[tuple[str, str, str], ...]:
    """Keys, values and meanings; nothing where the text is no signature."""
    try:
        parts = parse_signature(signature)
    except UsageError:
        return ()
    return tuple((key, value or "yes", _MEANINGS.get(key, "a setting of the metric")) for key, value in parts.items())
