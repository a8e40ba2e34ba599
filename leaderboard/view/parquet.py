"""Samples as Parquet tables in the cache, one for each task of a run, and SQL over them by DuckDB.

A table has what lists filter, sort and search; whole samples are read from the run's own file, line by line.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pydantic import ValidationError

from medtasks.catalog.benchmark import Benchmark, SampleView
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import DataError, first_line, reading
from medtasks.core.files import canonical_json, read_lines, replaced
from medtasks.core.schema import first_problem
from medtasks.runs.samples import Sample

UNDECIDED = "undecided"
NOT_ASKED = "no judge asked"
DIFFER = "judges differ"

_LIST = pa.list_(pa.string())
_COLUMNS = {
    **dict.fromkeys(("id", "task", "status", "choice", "item", "words"), pa.string()),
    **dict.fromkeys(("start", "size", "round"), pa.int64()),
    "verdicts": _LIST,
}
"""``start`` and ``size`` are the place of the sample's line, ``choice`` is the extracted option (empty for open
answers), ``item`` the streaming item of which the sample is a ``round``, ``verdicts`` what judges decided (``rubric,
aspect: score``), ``words`` everything that is searched, casefolded. Further columns are ``score METRIC``, the sample's
own values, and ``group BREAKDOWN``, the sample's keys."""


class SampleTable(NamedTuple):
    """The table ``file`` of the samples in ``samples``, with its metrics and breakdowns in the task's order."""

    samples: Path
    file: str
    metrics: tuple[str, ...]
    breakdowns: tuple[str, ...]


class SampleTables:
    """Makes and queries the tables in ``folder``; ``rules`` is a hash of all that they depend on beside samples."""

    def __init__(self, folder: Path, rules: str) -> None:
        self._folder, self._rules = folder, rules
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # some texts must not be shared
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:  # a cache that cannot be written costs time alone
            self._folder = Path(tempfile.mkdtemp(prefix="medtasks-view-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._database = duckdb.connect(config={"autoinstall_known_extensions": False})

    def table(self, path: Path, task: str) -> SampleTable:
        """The table of ``path``, a run's samples of ``task``; made now if there is none of the file as it is.

        Raises:
            DataError: the file cannot be read, or a line is not a sample.
        """
        with reading(path, "restore it"):
            key = hashlib.sha256(f"{self._rules}\0{task}\0{state_of([path])}".encode()).hexdigest()
        kept = self._folder / f"{key}.parquet"
        with contextlib.suppress(OSError, pa.ArrowException):  # absent or damaged
            return _described(path, kept)
        with reading(kept, "free space there, or set MEDTASKS_CACHE"), replaced(kept) as partial:
            pq.write_table(_table(path, task), partial, compression="zstd")
        return _described(path, kept)

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows that answer a query in SQL with named parameters."""
        used = {name: value for name, value in values.items() if f"${name}" in query}
        return self._database.cursor().execute(query, used).fetchall()  # a cursor for each thread


def state_of(paths: Iterable[Path]) -> str:
    """Paths, sizes, modification times and inodes of the files, as text.

    Raises:
        OSError: a file is gone.
    """
    found = [(str(path.resolve()), path.stat()) for path in paths]
    return canonical_json([[name, one.st_size, one.st_mtime_ns, one.st_ino] for name, one in found])


def quoted(column: str) -> str:
    """The name of a column in SQL."""
    return '"' + column.replace('"', '""') + '"'


def read_at(path: Path, start: int, size: int) -> bytes:
    """The line of ``path`` that begins at ``start``."""
    with reading(path, "load the page again"), path.open("rb") as stream:
        stream.seek(start)
        return stream.read(size)


def as_sample(path: Path, line: bytes) -> Sample:
    """The sample in a line of ``path``.

    Raises:
        DataError: the line is not a sample, because the file has changed since the table was made.
    """
    try:
        return Sample.model_validate_json(line)
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; load the page again.") from error


def _described(samples: Path, kept: Path) -> SampleTable:
    names = pq.read_schema(kept).names
    metrics, breakdowns = (
        tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix)) for prefix in ("score ", "group ")
    )
    return SampleTable(samples, str(kept), metrics, breakdowns)


def _table(path: Path, task: str) -> pa.Table:
    benchmark = load_spec(task).benchmark
    rows: list[dict[str, Any]] = []
    offset = 0
    with reading(path, "restore it"):
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip():
                try:
                    rows.append({"task": task, "start": offset, "size": len(line)} | _row(json.loads(line), benchmark))
                except (ValueError, TypeError, LookupError, AttributeError) as error:
                    why = first_line(error)
                    raise DataError(f"{path}, line {number}: not a sample ({why}); restore it.") from error
            offset += len(line)
    columns = dict(_COLUMNS)
    for name in dict.fromkeys(name for row in rows for name in row if name not in _COLUMNS):
        values = [row.get(name) for row in rows]
        if name.startswith("score ") and any(value is not None for value in values):
            columns[name] = pa.float64()
        elif name.startswith("group ") and any(value != values[0] for value in values):
            columns[name] = _LIST
    return pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items())))


def _row(sample: Mapping[str, Any], benchmark: Benchmark) -> dict[str, Any]:
    document, filtered = {**sample["document"], "target": sample["target"]}, sample["filtered"]
    view = SampleView(sample["sample_id"], sample["cluster"], document, filtered, sample["status"])
    choices = document.get("choices")
    options = choices.values() if isinstance(choices, dict) else ()
    question = document.get("question") or sample["prompt"]
    texts = (sample["sample_id"], sample["target"], *sample["responses"], *map(str, (question, *options)))
    scores = {f"score {name}": None if value is None else float(value) for name, value in sample["scores"].items()}
    groups = {f"group {name}": list(map(str, of(view))) for name, of in benchmark.breakdowns.items()}
    return {
        "id": sample["sample_id"],
        "status": sample["status"],
        "choice": filtered if filtered in benchmark.options else "",
        "item": str(document.get("item_id") or ""),
        "round": int(document.get("round") or 0),
        "verdicts": sorted(set(_verdicts(sample["verdicts"]))),
        # JSON may have half a surrogate pair
        "words": "\n".join(texts).casefold().encode("utf-8", "replace").decode(),
        **scores,
        **groups,
    }


def _verdicts(verdicts: Mapping[str, Any]) -> Iterator[str]:
    """What the judges decided: ``rubric, aspect: score``, and whether they differ or could not decide."""
    for rubric, responses in verdicts.items():
        for response in responses:
            given: dict[str, set[int]] = {}
            for entry in response["judges"].values():
                for aspect, score in (entry.get("scores") or {}).items():
                    given.setdefault(aspect, set()).add(int(score))
            for aspect, values in given.items():
                yield from (f"{rubric}, {aspect}: {score}" for score in values)
            if any(len(values) > 1 for values in given.values()):
                yield f"{rubric}: {DIFFER}"
            if response["open"]:
                yield f"{rubric}: {UNDECIDED}"
            elif not response["judges"]:
                yield f"{rubric}: {NOT_ASKED}"
