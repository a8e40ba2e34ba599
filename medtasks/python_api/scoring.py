"""Runs made from Python: predictions scored without a model, and tasks evaluated in this
process.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import UsageError
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.schema import shown
from medtasks.data.sources import SourceRow
from medtasks.importers.imported_run import PredictionFile, score_predictions, score_rows
from medtasks.importers.layouts import predictions_in_rows
from medtasks.importers.prediction_files import recognise
from medtasks.importers.predictions import Prediction
from medtasks.python_api.runs import Run, open
from medtasks.scoring.run_folder import write_run

_NO_FILE = Path("from Python")
"""In place of a file's path, in messages and the manifest."""
Answer = Callable[[list[dict[str, Any]]], str]
"""A model: the text of the answer to a list of chat messages."""


def score(
    predictions: Any,
    task: str,
    *,
    model: str = "unknown",
    columns: Mapping[str, str] | None = None,
    verdicts_of: str | None = None,
    epoch: int | None = None,
    out: str | Path | None = None,
) -> Run:
    """The run made of predictions from elsewhere, scored as by ``medtasks score``; `Run.notes`
    counts what is missing.

    Args:
        predictions: a data frame (pandas, Polars, Arrow), an iterable of mappings, or a prediction
            file. Rows have ``sample_id`` and ``response``; instead of the first they may have
            ``img_id`` and ``question``.
        task: the task or group that the predictions are for, such as the group of a whole
            benchmark.
        model: name of the model that made them.
        columns: other names of the columns, by ours.
        verdicts_of: also import their verdicts, as those of this judge.
        epoch: the epoch that counts, in a log with several responses to a question.
        out: new directory in which the run is saved; by default it is only in memory.

    Raises:
        UsageError: there is no such task, group or column, or ``out`` exists.
        NotPreparedError: the data are not prepared.
        DataError: a row has no column for the response or no id, predictions for a sample differ,
            or none matches a document. A response of None counts as failed, one of NaN, pandas'
            empty cell, as an empty answer.
    """
    columns = columns or {}
    if isinstance(predictions, str | Path):
        path = Path(predictions)
        layout = recognise(path)
        file = PredictionFile(path, layout, task, columns, model, verdicts_of, epoch)
        run = score_predictions(file)
    else:
        file = PredictionFile(_NO_FILE, "python", task, columns, model, verdicts_of, epoch)
        source_rows = _source_rows(predictions, columns.get("response", "response"))
        read = predictions_in_rows(source_rows, columns)
        run = score_rows(read, file, _hash_of(read))
    folder = None if out is None else write_run(Path(out), run)
    name = "" if folder is None else str(folder)
    return Run(name, folder, lambda: run, list(run.notes))


def _hash_of(predictions: Sequence[Prediction]) -> str:
    """Identifies the predictions, as the hash of a file does."""
    content = []
    for prediction in predictions:
        content.append([dict(prediction.keys), *prediction.answer])
    return short_hash(canonical_json(content))


def _source_rows(predictions: Any, response: str) -> Iterator[SourceRow]:
    """The rows of what Python calls predictions; ``response`` is the name of that column.

    pandas reads an empty cell of a CSV file as NaN, so a NaN response is an empty one, as the
    command line reads it. None, and null in Polars and Arrow, means that there is no response.
    """
    rows = _mappings(predictions)
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise UsageError(
            f"predictions are of type {type(rows).__name__}, expected a data frame, an iterable "
            "of mappings with `sample_id` and `response`, or the path of a file."
        )
    for place, row in enumerate(rows, start=1):
        where = Where("predictions", place, unit="row")
        if not isinstance(row, Mapping):
            raise UsageError(
                f"{where}: is of type {type(row).__name__}, expected a mapping with `sample_id` "
                "and `response`."
            )
        if response in row and _is_empty_cell(row[response]):
            row = {**row, response: ""}
        yield SourceRow(where, row)


def _mappings(predictions: Any) -> Any:
    """The rows of a data frame as mappings; anything else as it is."""
    is_pandas = type(predictions).__module__.partition(".")[0] == "pandas"
    if is_pandas and hasattr(predictions, "columns"):
        _require_distinct_columns(predictions.columns)
        return predictions.to_dict("records")
    if not is_pandas and hasattr(predictions, "__arrow_c_stream__"):
        import pyarrow as pa

        rows = pa.table(predictions)
        _require_distinct_columns(rows.column_names)
        return rows.to_pylist()
    return predictions


def _require_distinct_columns(names: Iterable[object]) -> None:
    """Refuse a data frame with two columns of one name, of which rows would have only one."""
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(
                f"predictions: column {shown(name)} is duplicated, expected different names; "
                "rename or drop one."
            )


def _is_empty_cell(value: object) -> bool:
    """Whether pandas has the value for an empty cell: NaN, or NA in its nullable columns."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan or type(value).__name__ == "NAType"


def evaluate(
    model: str | Answer,
    tasks: str | Sequence[str],
    *,
    model_args: Mapping[str, Any] | str = "",
    output_path: str | Path = "results",
    limit: int | None = None,
    batch_size: int = 1,
    gen_kwargs: str | None = None,
) -> Run:
    """The run of a model on some tasks, evaluated by lmms-eval in this process and saved.

    An interrupted call continues when it is repeated, as the command does: finished replies are on
    disk.

    Args:
        model: a back-end of lmms-eval or medtasks, such as ``medtasks_vlm``; or a function that is
            called with the messages of each request (``[{"role": "user", "content": [{"type":
            "image", "url": <PIL image>}, {"type": "text", "text": "…"}]}]``) and returns the
            answer. What it raises is counted as a failed request.
        tasks: tasks or groups.
        model_args: arguments of the back-end.
        output_path: the directory of results.
        limit: only so many documents of each task.
        batch_size: of the back-end.
        gen_kwargs: generation settings that replace those of the tasks, ``key=value`` with commas
            between them.
    """
    from medtasks.harness import run_tasks

    names = [tasks] if isinstance(tasks, str) else list(tasks)
    for name in names:
        load_spec(name)
    backend, arguments = _backend_and_arguments(model, model_args)
    folder = run_tasks(
        backend,
        arguments,
        names,
        Path(output_path),
        limit=limit,
        gen_kwargs=gen_kwargs,
        batch_size=batch_size,
    )
    (run,) = open(folder)
    return run


def _backend_and_arguments(
    model: str | Answer, model_args: Mapping[str, Any] | str
) -> tuple[Any, str]:
    """The back-end, by name or for a function, and its arguments as lmms-eval reads them."""
    arguments = model_args
    if not isinstance(arguments, str):
        arguments = ",".join(f"{key}={value}" for key, value in arguments.items())
    if isinstance(model, str):
        return model, arguments
    from medtasks.adapters.function import MedtasksFunction

    if arguments:
        raise UsageError("model_args are those of a back-end; leave them out for a function.")
    backend = MedtasksFunction(model)
    return backend, backend.arguments
