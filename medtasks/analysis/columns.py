"""Tables of runs, with documented columns: samples as they are stored, scores and items as they are computed here."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

import medtasks
from medtasks.catalog.spec import leaf_tasks
from medtasks.core.cache import cache_root
from medtasks.core.errors import DataError, UsageError, first_line, reading
from medtasks.core.files import file_state, replaced
from medtasks.core.tables import TextTable
from medtasks.leaderboard.board.rows import part_signature
from medtasks.leaderboard.verify.scored_run import Entry, ScoredRun
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.runs.manifest import RunManifest
from medtasks.runs.record import RunRecord
from medtasks.runs.samples import write_samples
from medtasks.runs.scores import Scores
from medtasks.runs.table import ABSENT, AWAITING, FAILED, PENDING, PRESENT, ItemTable

SHOWN = 10
"""Rows shown by a notebook."""


@dataclass(frozen=True)
class Table:
    """An Arrow table (``arrow``). Polars, DuckDB, pandas and pyarrow also read the object itself, without a copy."""

    arrow: Any

    @property
    def columns(self) -> dict[str, str]:
        """What each column holds, with its unit, by name."""
        return {field.name: (field.metadata or {}).get(b"description", b"").decode() for field in self.arrow.schema}

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            return self.arrow.to_pandas()
        except ImportError as error:
            raise UsageError("pandas is not installed; install it: pip install pandas") from error

    def to_polars(self) -> Any:
        """The table as a `polars.DataFrame`.

        Raises:
            UsageError: Polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            raise UsageError('Polars is not installed; install it: pip install "medtasks[polars]"') from error
        return polars.from_arrow(self.arrow)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __repr__(self) -> str:
        return f"Table of {len(self):,} rows: {', '.join(self.arrow.column_names)}"

    def _repr_html_(self) -> str:
        rows = [[_text(value) for value in row.values()] for row in self.arrow.slice(0, SHOWN).to_pylist()]
        notes = [f"{len(self):,} rows"] if len(self) > SHOWN else []
        return TextTable(self.arrow.column_names, rows, notes=notes)._repr_html_()


class Run(Protocol):
    """What tables need of a `medtasks.Run`, whose module imports this one."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def manifest(self) -> RunManifest: ...
    @property
    def scored(self) -> ScoredRun: ...
    @property
    def _record(self) -> RunRecord | None: ...


_RUN = {
    "run": "path of the run, as it was opened",
    "model": "name of the model",
    "task": "task (of scores: or group)",
}
SAMPLES: Mapping[str, str] = {
    **_RUN,
    "sample_id": "id of the sample, unique within a task",
    "cluster": "patient, image or video: samples of one cluster are not independent",
    "media": "names of its pictures or videos",
    "question": "the question, if the document has one",
    "prompt": "text of the prompt",
    "target": "reference answer",
    "response": "the (first) response; empty if the request failed",
    "responses": "all responses, one for each repeat",
    "filtered": "what was extracted from the response",
    "reading": "how an option was named: letter, text or named; empty for other answers",
    "status": "ok, or why there is no answer",
    "failed": "why the request has no response; null if it has one",
    "document": "the document as JSON text",
    "verdicts": "the judges' verdicts by rubric, as JSON text",
    "score_": "the sample's value of a metric, in the metric's unit; null if it has none or is not judged yet",
}
"""Columns of `Run.samples`. They are what the run stored: scores are those of the rules at that time."""
SCORES: Mapping[str, str] = {
    **_RUN,
    "metric": "name of the metric",
    "breakdown": "name of the breakdown; null for the score over all items",
    "group": "group of the breakdown; null for the score over all items",
    "value": "the score, in `unit`; null if there is none (see `reason`)",
    "low": "lower end of the 95 % cluster-bootstrap interval, in `unit`",
    "high": "upper end of the 95 % cluster-bootstrap interval, in `unit`",
    "unit": "fraction (0 to 1), points (0 to 100), seconds or score (a scale of its own)",
    "items": "number of items that the metric applies to",
    "answered": "number of them with a response; null if no request failed",
    "judged": "number of them whose value is known; null if no judge is involved",
    "chance": "accuracy of uniform guessing, a fraction; null if it is not defined",
    "least": "the score if all items without a response or verdict were wrong, in `unit`",
    "most": "the score if all items without a response or verdict were right, in `unit`",
    "incomplete": "whether too many items lack a response or a verdict",
    "reason": "why there is no value or no interval",
    "signature": "everything that could move the score; equal signatures are comparable",
}
"""Columns of `Run.scores`."""
ITEMS: Mapping[str, str] = {
    **_RUN,
    "item": "id of the item: a sample, or all rounds of a streaming item, or all rotations of a question",
    "cluster": SAMPLES["cluster"],
    "samples": "ids of its samples",
    "metric": "name of the metric",
    "state": "scored, failed (no response), pending (no verdict), awaiting (no judge was asked) or absent",
    "value": "the metric's score of this item alone, in `unit`; null without one, or if it does not apply",
    "unit": SCORES["unit"],
    "statistics": "sufficient statistics: the score of any set of items is computed from their sum",
    "group_": "the groups of a breakdown that the item belongs to",
}
"""Columns of `Run.items`."""

_STATES = {ABSENT: "absent", PRESENT: "scored", FAILED: "failed", PENDING: "pending", AWAITING: "awaiting"}
_STORED = {
    **dict.fromkeys(("sample_id", "cluster", "prompt", "target", "filtered", "reading", "status"), "VARCHAR"),
    **dict.fromkeys(("media", "responses", "failed"), "VARCHAR[]"),
    **dict.fromkeys(("document", "verdicts", "scores"), "JSON"),
}
_SELECT = """
select sample_id, cluster, media, document->>'question' as question,
       prompt, target, responses[1] as response, responses, filtered, coalesce(reading, '') as reading, status,
       list_filter(failed, lambda one: one is not null)[1] as failed, document::varchar as document,
       verdicts::varchar as verdicts{scores}
from read_json($file, format = 'newline_delimited', columns = {columns})
"""


def samples_table(runs: Sequence[Run], asked: str | None) -> Table:
    """The samples of all tasks of some runs, or of the one ``asked``, parsed by DuckDB without an object for each.

    What is parsed of a result directory is kept in the user's cache and mapped into memory the next time.

    Raises:
        UsageError: no run has the task.
        DataError: a file cannot be read.
    """
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as database:
        parts = [_samples_of(database, run, *one) for run in runs for one in _files(run, asked)]
    return _checked(parts, SAMPLES, asked)


def _files(run: Run, asked: str | None) -> Iterator[tuple[str, Path, bool]]:
    """The sample files by task, and whether they stay: a run without a directory of its own writes them now."""
    known = run.manifest.tasks
    tasks = list(known) if asked is None else [name for name in leaf_tasks(asked) if name in known]
    if run._record is None:
        assert run.path is not None
        files = {file.stem: file for file in (run.path / "samples").glob("*.jsonl")}
        if lacking := [name for name in tasks if name not in files]:
            raise DataError(f"{run.path}: samples/{lacking[0]}.jsonl is missing; restore it.")
        yield from ((name, files[name], True) for name in tasks)
        return
    with tempfile.TemporaryDirectory(prefix="medtasks-") as folder:
        for number, name in enumerate(tasks):
            file = Path(folder) / f"{number}.jsonl"
            write_samples(file, run._record.samples[name])
            yield name, file, False


def _samples_of(database: duckdb.DuckDBPyConnection, run: Run, task: str, file: Path, keep: bool) -> Any:
    with _reported(file):
        state = f"{medtasks.__version__} {_SELECT} {file.resolve()} {file_state(file.stat())}"
        kept = cache_root() / "samples" / f"{hashlib.sha256(state.encode()).hexdigest()}.arrow"
        found = None
        with contextlib.suppress(OSError, pa.ArrowException):  # absent or damaged
            found = pa.ipc.open_file(pa.memory_map(str(kept))).read_all() if keep else None
        if found is None:
            found = _parsed(database, file)
            with contextlib.suppress(OSError):  # a cache that cannot be written costs time alone
                if keep:
                    _write(found, kept)
    named = {"run": run.name, "model": run.model, "task": task}
    columns = {name: _repeated(text, found.num_rows) for name, text in named.items()}
    return pa.table({**columns, **dict(zip(found.column_names, found.columns, strict=True))})


def _parsed(database: duckdb.DuckDBPyConnection, file: Path) -> Any:
    with file.open("rb") as stream:
        metrics = list(json.loads(stream.readline() or b'{"scores": {}}')["scores"])
    scores = "".join(f", cast(scores->>{_quoted(name)} as double) as s{place}" for place, name in enumerate(metrics))
    query = _SELECT.format(scores=scores, columns=_STORED)
    found = database.sql(query, params={"file": str(file)}).to_arrow_table()
    fixed = found.column_names[: found.num_columns - len(metrics)]
    return found.rename_columns([*fixed, *(f"score_{name}" for name in metrics)])


def _write(table: Any, path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # some texts must not be shared
    with replaced(path) as partial, pa.ipc.new_file(str(partial), table.schema) as writer:
        writer.write_table(table)


def _quoted(metric: str) -> str:
    """The path of a metric in the JSON object of scores, as a text in SQL."""
    return "'" + f"$.{json.dumps(metric)}".replace("'", "''") + "'"


@contextlib.contextmanager
def _reported(file: Path) -> Iterator[None]:
    try:
        with reading(file, "restore it"):
            yield
    except (duckdb.Error, ValueError, LookupError, TypeError) as error:
        raise DataError(f"{file}: not samples ({first_line(error)}); restore it.") from error


def scores_table(runs: Sequence[Run]) -> Table:
    """All scores of the tasks and groups of some runs."""
    rows = [
        {"run": run.name, "model": run.model, "task": entry.name, **row}
        for run in runs
        for entry in run.scored.entries.values()
        for row in _score_rows(entry)
    ]
    counts = ("items", "answered", "judged")
    kinds = {
        **dict.fromkeys(("value", "low", "high", "chance", "least", "most"), pa.float64()),
        **dict.fromkeys(counts, pa.int64()),
        "incomplete": pa.bool_(),
    }
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in SCORES])
    return joined([pa.Table.from_pylist(rows, schema=schema)], SCORES)


def _score_rows(entry: Entry) -> Iterator[dict[str, Any]]:
    parts: list[tuple[str | None, str | None, Scores]] = [(None, None, entry.scores)]
    parts += [(name, key, one) for name, groups in entry.scores.breakdowns.items() for key, one in groups.items()]
    for breakdown, group, scores in parts:
        for metric, score in scores.metrics.items():
            low, high = score.interval or (None, None)
            least, most = score.bounds or (None, None)
            yield {
                **score.model_dump(include={"value", "answered", "judged", "chance", "incomplete", "reason"}),
                "metric": metric,
                "breakdown": breakdown,
                "group": group,
                "unit": unit_of(metric),
                "low": low,
                "high": high,
                "least": least,
                "most": most,
                "items": score.samples,
                "signature": part_signature(entry.signatures[metric], breakdown, group),
            }


def items_table(runs: Sequence[Run], asked: str | None, metric: str | None) -> Table:
    """The items of all tasks of some runs, or of the task or group ``asked``, for all metrics or one.

    Raises:
        UsageError: no run has the task or the metric.
    """
    parts: list[Any] = []
    for run in runs:
        entries = run.scored.entries
        for name in run.manifest.tasks if asked is None else [asked]:
            if name in entries:
                parts += _item_parts(run, entries[name].table, metric)
    return _checked(parts, ITEMS, asked if metric is None else metric)


def _item_parts(run: Run, table: ItemTable, metric: str | None) -> Iterator[Any]:
    """A table for each metric."""
    size = len(table.items)
    for name in [one for one in table.metrics if metric in (None, one)]:
        column = table.columns[name]
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.asarray(get_metric(name).score(column.statistics), dtype=np.float64)
        flat = pa.array(np.ascontiguousarray(column.statistics).ravel())
        codes = pa.array(column.state.astype(np.int8))
        offsets = pa.array(np.arange(size + 1, dtype=np.int32) * column.statistics.shape[1])
        yield pa.table(
            {
                "run": _repeated(run.name, size),
                "model": _repeated(run.model, size),
                "task": list(table.tasks),
                "item": list(table.items),
                "cluster": list(table.clusters),
                "samples": pa.array(table.samples, pa.list_(pa.string())),
                "metric": _repeated(name, size),
                "state": pa.DictionaryArray.from_arrays(codes, [_STATES[code] for code in range(len(_STATES))]).cast(
                    pa.string()
                ),
                "value": pa.array(values, mask=~np.isfinite(values)),
                "unit": _repeated(unit_of(name), size),
                "statistics": pa.ListArray.from_arrays(offsets, flat),
                **{f"group_{key}": pa.array(keys, pa.list_(pa.string())) for key, keys in table.groups.items()},
            }
        )


def _repeated(text: str, size: int) -> Any:
    return pa.repeat(pa.scalar(text), size)


def _checked(parts: Sequence[Any], columns: Mapping[str, str], asked: str | None) -> Table:
    if not parts:
        raise UsageError(f"{asked or 'the runs'}: no run opened here has it; `run.manifest.tasks` lists its tasks.")
    return joined(parts, columns)


def joined(parts: Iterable[Any], descriptions: Mapping[str, str]) -> Table:
    """The rows of several Arrow tables; a column that one of them lacks is null there.

    ``descriptions`` are those of columns by name, or by the beginning of their names if it ends with ``_``.
    """
    found = pa.concat_tables(parts, promote_options="default")
    prefixes = {name: text for name, text in descriptions.items() if name.endswith("_")}

    def described(field: Any) -> Any:
        prefix = next((text for start, text in prefixes.items() if field.name.startswith(start)), "")
        return field.with_metadata({"description": descriptions.get(field.name, prefix)})

    return Table(found.cast(pa.schema(map(described, found.schema))))


def _text(value: object) -> str:
    text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
