"""An index of one file of samples: what its filters need, and where each line is, so that few lines are ever parsed.

It is cached as Parquet under a hash of the file's state and of our code, and has ids, scores and groups, but no texts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pydantic import ValidationError

from medtasks.benchmarks.base import SampleView
from medtasks.errors import DataError, first_line, reading
from medtasks.files import read_lines, replaced
from medtasks.results.samples import Sample
from medtasks.schema import first_problem
from medtasks.spec import load_spec

from ..columns import unit_of
from ..digest_cache import state_of

_MASKS = npt.NDArray[np.bool_]

UNDECIDED = "undecided"
NOT_ASKED = "no judge asked"
DIFFER = "judges differ"

ABSENT, UNSCORED, WRONG, PARTLY, RIGHT = range(-1, 4)
"""Outcomes of a sample by one metric: of another run that lacks it, without a value, below half of the full score, at
least half of it, the full score."""
FULL = {"fraction": 1.0, "points": 100.0}
"""The best value of a metric by its unit; other units have none."""


@dataclass(frozen=True)
class SampleIndex:
    """The samples of one task of one run, sorted by id.

    ``choices`` are extracted options (empty for open answers), ``items`` the streaming items that samples are rounds
    of. ``verdicts`` lists what judges decided (``rubric, aspect: score``), ``groups`` the keys by breakdown. ``scores``
    are the samples' own values by metric, NaN without one.
    """

    path: Path
    table: pa.Table

    @cached_property
    def ids(self) -> list[str]:
        return self._texts("id")

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row numbers by sample id."""
        return {name: row for row, name in enumerate(self.ids)}

    @cached_property
    def statuses(self) -> npt.NDArray[np.object_]:
        return np.array(self._texts("status"), dtype=object)

    @cached_property
    def choices(self) -> npt.NDArray[np.object_]:
        return np.array(self._texts("choice"), dtype=object)

    @property
    def metrics(self) -> list[str]:
        """The metrics of which some sample has a value of its own, in the task's order."""
        return list(json.loads(self.table.schema.metadata[b"metrics"]))

    @property
    def breakdowns(self) -> list[str]:
        """The benchmark's breakdowns that distinguish samples of this task."""
        return list(json.loads(self.table.schema.metadata[b"breakdowns"]))

    def scores(self, metric: str) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = self.table[f"score {metric}"].to_numpy()
        return found

    def lists(self, column: str) -> list[list[str]]:
        """The column ``verdicts`` or ``group NAME``: several keys per sample."""
        found: list[list[str]] = self.table[column].to_pylist()
        return found

    def outcomes(self, metric: str) -> npt.NDArray[np.int8]:
        """The outcome of each sample by ``metric`` (:data:`RIGHT`, :data:`PARTLY`, :data:`WRONG`, …)."""
        full = FULL.get(unit_of(metric)) if metric in self.metrics else None
        found = np.full(len(self.ids), UNSCORED, dtype=np.int8)
        if full is None:
            return found
        scores = self.scores(metric)
        known = ~np.isnan(scores)
        found[known] = WRONG
        found[known & (scores >= full / 2)] = PARTLY
        found[known & (scores >= full * (1 - 1e-9))] = RIGHT
        return found

    def of_item(self, item: str) -> list[int]:
        """The rows of one streaming item's rounds, in the order of their times."""
        names, rounds = self._texts("item"), self.table["round"].to_pylist()
        return sorted((row for row, name in enumerate(names) if name == item), key=lambda row: int(rounds[row]))

    def read(self, rows: Iterable[int]) -> list[Sample]:
        """The samples in these rows.

        Raises:
            DataError: the file has changed since, or a line is not a sample.
        """
        offsets, lengths = self.table["offset"], self.table["length"]
        found = []
        try:
            with reading(self.path, "load the page again"), self.path.open("rb") as stream:
                for row in rows:
                    stream.seek(offsets[row].as_py())
                    found.append(Sample.model_validate_json(stream.read(lengths[row].as_py())))
        except ValidationError as error:
            raise DataError(f"{self.path}: {first_problem(error)}; load the page again.") from error
        return found

    def containing(self, words: str) -> _MASKS:
        """The samples whose id, question, options, gold answer or responses contain ``words``, in any case."""
        wanted = words.casefold()
        # ASCII text is in the file as it is, so most lines need no parsing
        needle = json.dumps(wanted)[1:-1].encode() if wanted.isascii() else b""
        found = np.zeros(len(self.ids), dtype=bool)
        row_at = {offset: row for row, offset in enumerate(self.table["offset"].to_pylist())}
        for offset, line in _lines(self.path):
            row = row_at.get(offset)
            if row is not None and needle in line.lower():
                found[row] = any(wanted in text.casefold() for text in _texts(json.loads(line)))
        return found

    def _texts(self, column: str) -> list[str]:
        found: list[str] = self.table[column].to_pylist()
        return found


def read_index(path: Path, task: str, cache: Path, rules: str) -> SampleIndex:
    """The index of ``path``, a run's samples of ``task``, from the directory ``cache`` or made now.

    ``rules`` is a hash of everything else that an index depends on.

    Raises:
        DataError: the file cannot be read, or a line is not a sample.
    """
    with reading(path, "restore it"):
        key = hashlib.sha256(f"{rules}\0{task}\0{state_of([path])}".encode()).hexdigest()
    kept = cache / f"{key}.parquet"
    with contextlib.suppress(OSError, pa.ArrowException):  # absent or damaged
        return SampleIndex(path, pq.read_table(kept))
    index = SampleIndex(path, _table(path, task))
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time alone
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replaced(kept) as partial:
            pq.write_table(index.table, partial, compression="zstd")
    return index


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    offset = 0
    with reading(path, "restore it"):
        for line in read_lines(path):
            if line.strip():
                yield offset, line
            offset += len(line)


def _table(path: Path, task: str) -> pa.Table:
    benchmark = load_spec(task).benchmark
    columns: dict[str, list[Any]] = {
        name: [] for name in ("id", "offset", "length", "status", "choice", "item", "round", "verdicts")
    }
    groups: dict[str, list[list[str]]] = {name: [] for name in benchmark.breakdowns}
    scores: list[Mapping[str, float | None]] = []
    options = set(benchmark.options)
    for number, (offset, line) in enumerate(_lines(path), start=1):
        try:
            sample = json.loads(line)
            document = {**sample["document"], "target": sample["target"]}
            name, filtered, status = sample["sample_id"], sample["filtered"], sample["status"]
            view = SampleView(name, sample["cluster"], document, filtered, status)
            for breakdown, keys in groups.items():
                keys.append([str(key) for key in benchmark.breakdowns[breakdown](view)])
            scores.append(sample["scores"])
            verdicts = sorted(set(_verdicts(sample["verdicts"])))
            item, place = str(document.get("item_id") or ""), int(document.get("round") or 0)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise DataError(f"{path}, line {number}: not a sample ({first_line(error)}); restore it.") from error
        row = (name, offset, len(line), status, filtered if filtered in options else "", item, place, verdicts)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    order = sorted(range(len(scores)), key=lambda row: columns["id"][row])
    metrics = [name for name in (scores[0] if scores else {}) if any(one.get(name) is not None for one in scores)]
    told = [name for name, keys in groups.items() if len({tuple(one) for one in keys}) > 1]
    arrays = {
        **{name: pa.array(values) for name, values in columns.items() if name != "verdicts"},
        "verdicts": pa.array(columns["verdicts"], pa.list_(pa.string())),
        **{f"group {name}": pa.array(groups[name], pa.list_(pa.string())) for name in told},
        **{f"score {name}": pa.array(_values(scores, name)) for name in metrics},
    }
    facts = {"metrics": json.dumps(metrics), "breakdowns": json.dumps(told)}
    return pa.table(arrays).take(pa.array(order, pa.int64())).replace_schema_metadata(facts)


def _values(scores: Sequence[Mapping[str, float | None]], name: str) -> npt.NDArray[np.float64]:
    values = (one.get(name) for one in scores)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


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


def _texts(sample: Mapping[str, Any]) -> Iterator[str]:
    document = sample["document"]
    yield from (sample["sample_id"], sample["target"], *sample["responses"])
    yield str(document.get("question") or sample["prompt"])
    choices = document.get("choices")
    yield from map(str, choices.values() if isinstance(choices, dict) else ())
