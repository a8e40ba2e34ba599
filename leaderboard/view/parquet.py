"""Samples as Parquet tables in the cache, one for each task of a run, and SQL over them by DuckDB.

A table has what `medtasks.Run.samples` gives, and what lists filter, sort and search; whole samples
are read line by line from the run's own file, or from a copy with the samples that are scored
otherwise than it claims.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from medtasks.catalog.items import SampleView
from medtasks.catalog.spec import load_spec
from medtasks.core.cache import writable_cache
from medtasks.core.errors import DataError, reading
from medtasks.core.files import canonical_json, file_state
from medtasks.core.replacement import replaced
from medtasks.core.schema import first_problem
from medtasks.core.strict_json import model_from_json
from medtasks.core.text import well_formed
from medtasks.runs.samples import Sample, SampleFile, SampleLines, sample_lines
from medtasks.scoring.amended import samples_as_scored
from medtasks.scoring.run_cache import code_hash
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.verification_outcome import VERIFIED, Verification

SAMPLES: Mapping[str, str] = {
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
    "unverified": "what of the row could not be verified here, and why; empty if all of it was",
    "score_": "the sample's value of a metric, in the metric's unit; null if it has none or is not judged yet",
}
"""Columns of `medtasks.Run.samples`. Responses and verdicts are the run's; all else is worked out
here from the data prepared here, by today's rules.
"""

_COPIED = ("sample_id", "cluster", "prompt", "target", "filtered", "reading", "status")
_LIST = pa.list_(pa.string())
_TYPES = {
    **{name: pa.string() for name in SAMPLES if name != "score_"},
    **dict.fromkeys(("task", "choice", "item", "words"), pa.string()),
    **dict.fromkeys(("media", "responses", "decided"), _LIST),
    **dict.fromkeys(("start", "size", "round"), pa.int64()),
}
"""``start`` and ``size`` are the place of the sample's line, ``choice`` is the extracted option
(empty for open answers), ``item`` the streaming item of which the sample is a ``round``,
``decided`` what judges decided (``rubric,
aspect: score``), ``words`` everything that is searched, casefolded. Further columns are
``score_METRIC``, the sample's own values, and ``group_BREAKDOWN``, the sample's keys.
"""


class SampleTable(NamedTuple):
    """The table ``file`` of the samples in ``samples``, as they are scored here, with the metrics
    and breakdowns that have different values.
    """

    samples: Path
    file: str
    metrics: tuple[str, ...]
    breakdowns: tuple[str, ...]

    def line(self, start: int, size: int) -> bytes:
        """The line of the file that begins at ``start``."""
        with reading(self.samples, "load the page again"), self.samples.open("rb") as stream:
            stream.seek(start)
            return stream.read(size)

    def sample(self, start: int, size: int) -> Sample:
        """The sample in that line; `DataError` if the file has changed since the table was made."""
        try:
            return model_from_json(Sample, self.line(start, size))
        except ValidationError as error:
            raise DataError(
                f"{self.samples}: {first_problem(error)}; load the page again."
            ) from error


class SampleTables:
    """Makes the tables, in the user's cache, and queries them."""

    def __init__(self) -> None:
        self._folder, self._rules = writable_cache() / "view", code_hash(Path(__file__).parents[1])
        with reading(self._folder, "set MEDTASKS_CACHE to a directory that can be written"):
            self._folder.mkdir(
                mode=0o700, parents=True, exist_ok=True
            )  # some texts must not be shared
        self._database = duckdb.connect(config={"autoinstall_known_extensions": False})

    def table(self, folder: Path, run: RunRecord, task: str) -> SampleTable:
        """The table of a task's samples as they are scored here; made now if there is none of the
        file as it is.

        They are in the directory's file, or in a copy in the cache with those that are scored
        otherwise than it claims.
        """
        path, verification = folder / "samples" / f"{task}.jsonl", run.verification[task]
        amended = run.amended.get(task, b"")
        with reading(path, "restore it"):
            parts = (
                self._rules,
                task,
                state_of([path]),
                repr(verification),
                hashlib.sha256(amended).hexdigest(),
            )
            key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        kept = self._folder / f"{key}.parquet"
        if amended:
            path = self._copied(
                self._folder / f"{key}.jsonl", samples_as_scored(SampleFile(path), amended)
            )
        try:
            schema = pq.read_schema(kept)
        except (OSError, pa.ArrowException):  # absent or damaged
            made = table_of(sample_lines(path), task, verification)
            schema = made.schema
            with (
                reading(kept, "free space there, or set MEDTASKS_CACHE"),
                replaced(kept) as partial,
            ):
                pq.write_table(made, partial, compression="zstd")
        groups = tuple(
            name.removeprefix("group_") for name in schema.names if name.startswith("group_")
        )
        return SampleTable(path, str(kept), tuple(json.loads(schema.metadata[b"metrics"])), groups)

    def _copied(self, path: Path, samples: Iterator[Sample]) -> Path:
        """The file of these samples, written unless it is there."""
        if not path.is_file():
            with (
                reading(path, "free space there, or set MEDTASKS_CACHE"),
                replaced(path) as partial,
            ):
                SampleLines(samples, self._folder).write(partial)
        return path

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows that answer a query in SQL with named parameters."""
        used = {name: value for name, value in values.items() if f"${name}" in query}
        return self._database.cursor().execute(query, used).fetchall()  # a cursor for each thread


def state_of(paths: Iterable[Path]) -> str:
    """Paths, sizes, modification times and inodes of the files, as text; `OSError` if one is
    gone.
    """
    return canonical_json([[str(path.resolve()), *file_state(path.stat())] for path in paths])


def quoted(column: str) -> str:
    """The name of a column in SQL."""
    return '"' + column.replace('"', '""') + '"'


def table_of(
    lines: Iterable[tuple[int, int, Sample]], task: str, verification: Verification = VERIFIED
) -> pa.Table:
    """The table of samples of ``task``, each with the place of its line and what could not be
    verified of it.
    """
    benchmark = load_spec(task).benchmark
    rows: list[dict[str, Any]] = []
    for start, size, sample in lines:
        document = sample.document
        question, choices = document.get("question"), document.get("choices")
        options = choices.values() if isinstance(choices, dict) else ()
        words = (
            sample.sample_id,
            sample.target,
            *sample.responses,
            *map(str, (question or sample.prompt, *options)),
        )
        verdicts = "{}"
        if sample.verdicts:
            verdicts = canonical_json(
                sample.model_dump(mode="json", include={"verdicts"})["verdicts"]
            )
        texts = {
            **{name: getattr(sample, name) for name in _COPIED},
            "failed": sample.failure,
            "question": question if isinstance(question, str) else None,
            "response": next(iter(sample.responses), None),
            "document": canonical_json(document),
            "verdicts": verdicts,
            "unverified": verification.doubts(sample.sample_id),
            "choice": sample.filtered if sample.filtered in benchmark.options else "",
            "item": str(document.get("item_id") or ""),
            "words": "\n".join(words).casefold(),
        }
        row = {
            # JSON may have half a surrogate pair
            **{
                name: well_formed(text) if isinstance(text, str) else text
                for name, text in texts.items()
            },
            "task": task,
            "start": start,
            "size": size,
            "media": list(map(well_formed, sample.media)),
            "responses": list(map(well_formed, sample.responses)),
            "round": int(document.get("round") or 0),
            "decided": sorted(set(_decided(sample))),
            **{f"score_{name}": value for name, value in sample.scores.items()},
        }
        # without values, which breakdowns do not read
        view = SampleView(
            sample.sample_id,
            sample.cluster,
            {**document, "target": sample.target},
            sample.filtered,
            sample.status,
        )
        for name, keys_of in benchmark.breakdowns.items():
            try:
                row[f"group_{name}"] = [well_formed(str(key)) for key in keys_of(view)]
            except (
                Exception
            ):  # a stripped document may lack what a breakdown, also of other packages, reads
                row[f"group_{name}"] = []
        rows.append(row)
    further = {
        name: [row.get(name) for row in rows]
        for row in rows[:1]
        for name in row
        if name not in _TYPES
    }
    scores = {name: values for name, values in further.items() if name.startswith("score_")}
    groups = [
        name
        for name in further
        if name not in scores and any(one != further[name][0] for one in further[name])
    ]
    types = {**_TYPES, **dict.fromkeys(scores, pa.float64()), **dict.fromkeys(groups, _LIST)}
    metrics = [
        name.removeprefix("score_")
        for name in scores
        if any(value is not None for value in scores[name])
    ]
    return pa.Table.from_pylist(
        rows, pa.schema(list(types.items()), {"metrics": json.dumps(metrics)})
    )


def _decided(sample: Sample) -> Iterator[str]:
    """What the judges decided: ``rubric, aspect: score``, and whether they differ or could not
    decide.
    """
    for rubric, responses in sample.verdicts.items():
        for response in responses:
            given = {
                one
                for verdict in response.judges.values()
                for one in (verdict.scores or {}).items()
            }
            yield from (f"{rubric}, {aspect}: {score}" for aspect, score in given)
            if len({aspect for aspect, _ in given}) < len(given):
                yield f"{rubric}: judges differ"
            if response.open:
                yield f"{rubric}: undecided"
            elif not response.judges:
                yield f"{rubric}: no judge asked"
