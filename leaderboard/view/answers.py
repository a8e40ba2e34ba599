"""The answers of all runs to one question, or to the rounds of one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

from medtasks.answers.stages import read_stages
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.runs.samples import Sample

from .library import ViewedRun
from .parquet import SampleTable
from .response_pieces import Piece, response_pieces
from .selection import Selection
from .selection_sql import outcome_of


class ScoredSample(NamedTuple):
    """A sample, and its outcome by the metric of the list."""

    sample: Sample
    outcome: str


class ResponseStage(NamedTuple):
    """A stage of a response, in pieces; the name of the only stage is empty."""

    name: str
    pieces: Sequence[Piece]


class ViewedResponse(NamedTuple):
    """A response, or why it is missing; the answer is read from the last of its stages."""

    failure: str | None
    stages: Sequence[ResponseStage]


@dataclass(frozen=True)
class RunAnswer:
    """The answer of one run to the question, as it is scored here.

    ``unverified`` is what could not be verified of it, and why.
    """

    run: ViewedRun
    outcome: str
    sample: Sample
    replies: Sequence[ViewedResponse]
    unverified: str


def answers_to(selection: Selection, task: str, sample_id: str) -> list[RunAnswer]:
    """The answers to a question, that of the selection's own run first."""
    answers = []
    for run, samples in samples_where(selection, task, "sample_id", sample_id).items():
        if samples:
            sample, outcome = samples[0]
            doubts = run.doubts(sample)
            answers.append(RunAnswer(run, outcome, sample, _responses(sample), doubts))
    return answers


def samples_where(
    selection: Selection, task: str, column: str, value: str
) -> dict[ViewedRun, list[ScoredSample]]:
    """The samples of ``task`` with a value in a column, by run, in the order of rounds.

    The selection's own run is first.
    """
    library = selection.library
    runs = sorted(library.runs_of[task], key=lambda run: run is not selection.run)
    tables: dict[str, SampleTable] = {}
    run_of_file: dict[str, ViewedRun] = {}
    for run in runs:
        for file, table in library.tables(run, task).items():
            tables[file] = table
            run_of_file[file] = run
    is_scored = any(selection.metric in table.metrics for table in tables.values())
    outcome = outcome_of(selection.metric if is_scored else "")
    statement = (
        f"select filename, start, size, {outcome} "
        "from read_parquet($every, filename = true, union_by_name = true) "
        f"where {column} = $value order by round"
    )
    samples: dict[ViewedRun, list[ScoredSample]] = {run: [] for run in runs}
    for file, start, size, reached in library.samples.rows(
        statement, every=list(tables), value=value
    ):
        sample = tables[file].sample(start, size)
        samples[run_of_file[file]].append(ScoredSample(sample, reached))
    return samples


def _responses(sample: Sample) -> list[ViewedResponse]:
    """The sample's responses, with what was read marked in each."""
    spec = load_spec(sample.task)
    document = sample.whole_document()
    failures = sample.failed or (None,) * len(sample.responses)
    readings = [repeat.filtered for repeat in sample.repeats] or [sample.filtered]
    responses = []
    for text, failure, filtered in zip(sample.responses, failures, cycle(readings)):
        stages = []
        if failure is None:
            observations, last = stages_of(spec, text)
            pieces = response_pieces(spec, last, filtered, document)
            if observations:
                stages.append(ResponseStage("Stage 1", [Piece(observations, False)]))
                stages.append(ResponseStage("Stage 2", pieces))
            else:
                stages.append(ResponseStage("", pieces))
        responses.append(ViewedResponse(failure, stages))
    return responses


def stages_of(spec: TaskSpec, response: str) -> tuple[str, str]:
    """The output of the first stage, empty if the task has one stage, and that of the last one."""
    if spec.stage1_template is None:
        return "", response
    return read_stages(response)
