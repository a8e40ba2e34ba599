"""Scores that a model's repository on the hub claims, as references on a board: never ranked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import yaml

from medtasks.core.errors import DataError, MedtasksError, UsageError, first_line, reading
from medtasks.core.files import read_regular
from medtasks.core.text import first_names
from medtasks.judge.ensemble import family_of

from ..exports.publishable import dataset_of
from .board import BenchmarkBoard, Board, Published, PublishedCell

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

FOLDER = ".eval_results"
WHY = "claimed in the model's repository, not re-run and not verified"


Claim: TypeAlias = "tuple[str, EvalResultEntry]"
"""A model, and a score that its repository claims."""


def read_claims(given: Sequence[str]) -> list[Claim]:
    """The claims in copies of models' repositories, each given as ``OWNER/NAME=DIRECTORY``.

    Raises:
        UsageError: one is not given so, or has no file of scores.
        DataError: a file is not in the hub's format.
    """
    if not given:
        return []
    from huggingface_hub import parse_eval_result_entries  # slow to import, and few boards have claims

    claims: list[Claim] = []
    for one in given:
        model, _, directory = one.partition("=")
        files = sorted((Path(directory) / FOLDER).glob("*.yaml")) if directory else []
        if not files or model.count("/") != 1:
            expected = f"expected OWNER/NAME=DIRECTORY, a directory with {FOLDER}/*.yaml"
            raise UsageError(f"--claimed {one}: {expected}; fix it.")
        for file in files:
            with reading(file, "check the path"):
                content = read_regular(file)
            try:
                entries = parse_eval_result_entries(yaml.safe_load(content))
            except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
                raise DataError(f"{file}: not scores in the hub's format ({first_line(error)}); restore it.") from error
            for entry in entries:
                if isinstance(entry.value, bool) or not isinstance(entry.value, int | float):
                    found = f"field `value` is {str(entry.value)[:40]!r}"
                    raise DataError(f"{file}: {found}, expected a number; restore it.")
                claims.append((model, entry))
    return claims


def with_claims(board: Board, claims: Sequence[Claim]) -> Board:
    """The board with a row of claimed scores for each model and benchmark.

    Raises:
        UsageError: a claim is of no column of the board.
    """
    if not claims:
        return board
    shown: set[str] = set()
    benchmarks = tuple(
        one.model_copy(update={"published": (*one.published, *_rows(one, claims, shown))}) for one in board.benchmarks
    )
    if unknown := {f"{entry.task_id} of {entry.dataset_id}" for _, entry in claims} - shown:
        raise UsageError(
            f"--claimed: this board has no column for {first_names(sorted(unknown))}; leave these scores out, or add "
            "runs of the benchmark."
        )
    return board.model_copy(update={"benchmarks": benchmarks})


def _rows(benchmark: BenchmarkBoard, claims: Sequence[Claim], shown: set[str]) -> list[Published]:
    try:
        dataset, _ = dataset_of(benchmark.name)
    except MedtasksError:
        return []
    columns = {column.key for table in benchmark.tables for column in table.columns}
    by_model: dict[str, dict[str, EvalResultEntry]] = {}
    for model, entry in claims:
        if entry.dataset_id == dataset and entry.task_id in columns:
            by_model.setdefault(model, {})[entry.task_id] = entry
            shown.add(f"{entry.task_id} of {dataset}")
    return [
        Published(
            table="Claimed in the models' repositories",
            source=f"{FOLDER} on the hub",
            paper="claimed",
            label=model,
            model=model,
            family=", ".join(family_of(model)) or "unknown",
            size=None,
            type="unknown",
            trained="unknown",
            judge=None,
            cells=tuple(
                PublishedCell(
                    column=key,
                    printed=None,
                    value=float(entry.value),
                    rankable=False,
                    why=WHY,
                    notes=() if entry.notes is None else (entry.notes,),
                )
                for key, entry in entries.items()
            ),
            notes=(),
        )
        for model, entries in by_model.items()
    ]
