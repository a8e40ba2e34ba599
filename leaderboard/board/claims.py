"""Scores that models' repositories on the hub claim: shown as references, never ranked."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import yaml

from medtasks.core.errors import DataError, MedtasksError, UsageError, first_line, reading
from medtasks.core.extras import needs
from medtasks.core.files import read_regular
from medtasks.core.text import first_names
from medtasks.judge.families import family_of

from ..schema.board import BenchmarkBoard, Board
from ..schema.published_figures import Published
from ..verify.hub_datasets import dataset_of

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

Claim: TypeAlias = "tuple[str, EvalResultEntry]"
"""A model, and a score that its repository claims."""
CLAIMS = ".eval_results"
"""The folder of a model's repository for its scores."""


def read_claims(repositories: Sequence[str]) -> list[Claim]:
    """The claims in copies of models' repositories, each given as ``OWNER/NAME=DIRECTORY``.

    Raises:
        UsageError: one is not given so, or has no file of scores.
        DataError: a file is not in the hub's format.
    """
    claims: list[Claim] = []
    for repository in repositories:
        model, _, directory = repository.partition("=")
        files = sorted((Path(directory) / CLAIMS).glob("*.yaml")) if directory else []
        if not files or model.count("/") != 1:
            expected = f"expected OWNER/NAME=DIRECTORY, a directory with {CLAIMS}/*.yaml"
            raise UsageError(f"--claimed {repository}: {expected}; fix it.")
        for file in files:
            claims += [(model, entry) for entry in _claimed_scores(file)]
    return claims


def _claimed_scores(file: Path) -> list[EvalResultEntry]:
    """The scores in a file of the hub's format; a `DataError` names what is wrong."""
    with needs("hub", "--claimed"):
        # slow to import, and few boards have claims
        from huggingface_hub import parse_eval_result_entries

    with reading(file, "check the path"):
        content = read_regular(file)
    try:
        entries = parse_eval_result_entries(yaml.safe_load(content))
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file}: not scores in the hub's format ({first_line(error)}); restore it."
        ) from error
    for entry in entries:
        if isinstance(entry.value, bool) or not isinstance(entry.value, int | float):
            problem = f"field `value` is {str(entry.value)[:40]!r}"
            raise DataError(f"{file}: {problem}, expected a number; restore it.")
    return entries


def with_claims(board: Board, claims: Sequence[Claim]) -> Board:
    """The board with the claimed scores among its published figures.

    Raises:
        UsageError: a claim is of no column of the board.
    """
    without_column = {f"{entry.task_id} of {entry.dataset_id}" for _, entry in claims}
    benchmarks = []
    for benchmark in board.benchmarks:
        claimed = _claims_of_columns(benchmark, claims)
        figures: dict[tuple[str, str], Published] = {}
        for model, entry in claimed:
            figures[model, entry.task_id] = _claimed_figure(model, entry)
            without_column.discard(f"{entry.task_id} of {entry.dataset_id}")
        published = (*benchmark.published, *figures.values())
        benchmarks.append(benchmark.model_copy(update={"published": published}))
    if without_column:
        raise UsageError(
            f"--claimed: this board has no column for {first_names(sorted(without_column))}; "
            "leave these scores out, or add runs of the benchmark."
        )
    return board.model_copy(update={"benchmarks": tuple(benchmarks)})


def _claims_of_columns(benchmark: BenchmarkBoard, claims: Sequence[Claim]) -> list[Claim]:
    """The claims that are of the benchmark's data set and of a column of its board."""
    dataset = ""
    with contextlib.suppress(MedtasksError):  # the data are not from the hub
        dataset, _ = dataset_of(benchmark.name)
    columns: set[str] = set()
    for table in benchmark.tables:
        columns.update(column.key for column in table.columns)
    claimed = []
    for model, entry in claims:
        if entry.dataset_id == dataset and entry.task_id in columns:
            claimed.append((model, entry))
    return claimed


def _claimed_figure(model: str, entry: EvalResultEntry) -> Published:
    """A claimed score as a published figure that must not be compared."""
    return Published(
        table="Claimed in the models' repositories",
        source=f"{CLAIMS} on the hub",
        paper="claimed",
        label=model,
        model=model,
        family=", ".join(family_of(model)) or "unknown",
        size=None,
        type="unknown",
        trained="unknown",
        judge=None,
        column=entry.task_id,
        printed=None,
        value=float(entry.value),
        rankable=False,
        why="claimed in the model's repository, not re-run and not verified",
        notes=() if entry.notes is None else (entry.notes,),
    )
