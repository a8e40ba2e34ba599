"""Which samples of a task are shown, and in which order, for the filters in an address: one query in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from medtasks.core.errors import UsageError
from medtasks.metrics.registry import unit_of
from medtasks.runs.samples import Sample

from ..board.numbers import UNIT_LABELS, number
from .library import Library, Notes, Run, layout_of, notes_of
from .parquet import SampleTable, line_at, quoted, sample_at

UNSCORED, WRONG, PARTLY, RIGHT = range(4)
"""Outcomes of a sample by one metric: no value, below half of the full score, at least half of it, the full score."""
_FULL = {"fraction": 1.0, "points": 100.0}
"""The best value of a metric by its unit; other units have none."""
PAGE = 50
OUTCOMES = {"right": RIGHT, "partly": PARTLY, "wrong": WRONG, "none": UNSCORED}
NAMES = {RIGHT: "right", PARTLY: "partly right", WRONG: "wrong", UNSCORED: "no score"}
DISAGREEMENTS = {
    "any": "models disagree",
    "alone-wrong": "only this run is wrong",
    "alone-right": "only this run is right",
}
SORTS = {"id": "by id", "low": "lowest score first", "high": "highest score first", "split": "most disputed first"}
_FILTERS = ("task", "run", "metric", "status", "outcome", "disagree", "verdict", "marked", "words", "sort", "model")
_BREAKDOWN = "by."

_SELECT = """
with every as (select task, sample_id, {outcome} as outcome from read_parquet($every, union_by_name = true)),
     counted as (select task, sample_id, count_if(outcome = 3) as "right", count_if(outcome > 0) as scored
                 from every group by task, sample_id),
     own as (select *, {outcome} as outcome, {score} as score
             from read_parquet($own, filename = true, union_by_name = true))
select own.filename, task, sample_id, own.start, own.size, own.outcome, own.score, "right", scored
from own join counted using (task, sample_id) {other}
where {where} order by {order}, sample_id, task
"""
_OTHER = """join (select task, sample_id, choice, {outcome} as outcome
      from read_parquet(list_concat($own, $other), filename = true, union_by_name = true)
      where list_contains($other, filename)) as other using (task, sample_id)"""
_WHERE = {
    "status": "own.status = $status",
    "outcome": "own.outcome = $outcome",
    "verdict": "list_contains(own.decided, $verdict)",
    "marked": "list_contains($marked, task || '/' || sample_id)",
    "words": "contains(own.words, $words)",
    "any": '"right" > 0 and "right" < scored',
    "alone-wrong": 'own.outcome in (1, 2) and scored > 1 and "right" = scored - 1',
    "alone-right": 'own.outcome = 3 and scored > 1 and "right" = 1',
    "other": "(other.outcome != own.outcome or other.choice != own.choice)",
}
_ORDER = {
    "low": "own.score asc nulls last",
    "high": "own.score desc nulls last",
    "split": 'least("right", scored - "right") desc',
}

Query = Mapping[str, str]
"""The filters in an address; empty ones select everything.

``task`` is a task, or a group for the samples of all its tasks. ``model`` is the slug of a model whose newest run is
meant if there is no ``run``. ``disagree`` is one of `DISAGREEMENTS`, or the key of a run whose outcome or option
differs. ``marked`` selects the bookmarked samples, ``by.BREAKDOWN`` those with a key.
"""


def parsed(given: Mapping[str, str]) -> Query:
    """The query of an address's parameters; others are ignored."""
    query = {name: given.get(name, "").strip() for name in _FILTERS}
    query |= {name: key for name, key in given.items() if name.startswith(_BREAKDOWN) and key}
    return query | {"sort": query["sort"] if query["sort"] in _ORDER else ""}


def address(query: Query, page: str, /, **more: str | int) -> str:
    """The address of a page with these filters; ``more`` are other parameters."""
    given = {name: value for name, value in {**query, **more}.items() if value != "" and name != "model"}
    return f"{page}?{urlencode(given, errors='surrogatepass')}"


def sample_address(query: Query, task: str, sample_id: str, page: str = "sample.html") -> str:
    """The address of a sample's page; only in a group it names the task, too."""
    return address(query, page, id=sample_id, **({} if task == query["task"] else {"of": task}))


class Row(NamedTuple):
    """A sample of a list: the place of its line, its outcome and score; ``right`` of the ``scored`` runs are right."""

    file: str
    task: str
    id: str
    start: int
    size: int
    outcome: int
    score: float | None
    right: int
    scored: int


@dataclass(frozen=True)
class Selection:
    """The chosen samples of one run's answers to a task or group, in order."""

    library: Library
    query: Query
    run: Run
    tables: Mapping[str, SampleTable]
    metrics: Sequence[str]
    metric: str
    rows: Sequence[Row]
    notes: Notes

    @property
    def breakdowns(self) -> list[str]:
        return list(dict.fromkeys(name for table in self.tables.values() for name in table.breakdowns))

    def score(self, row: Row) -> str:
        """The sample's value with its unit; empty without one."""
        unit = unit_of(self.metric) if self.metric else "score"
        return "" if row.score is None else f"{number(row.score, unit)} {UNIT_LABELS[unit]}"

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.rows) // PAGE))

    def lines(self, rows: Iterable[Row]) -> list[bytes]:
        """The lines of these samples, as they are in the run's files."""
        return [line_at(self.tables[row.file].samples, row.start, row.size) for row in rows]

    def samples(self, rows: Sequence[Row]) -> list[tuple[Row, Sample]]:
        return [(row, sample_at(self.tables[row.file].samples, row.start, row.size)) for row in rows]

    def counts(self, column: str) -> list[tuple[str, str]]:
        """The values of a column among all samples of the run, labelled with their numbers."""
        name = quoted(column)
        value = name if column == "status" else f"unnest({name})"
        keys = f"select {value} as key from read_parquet($own, union_by_name = true)"
        query = f"select key, count(*) from ({keys}) group by key order by key"
        return [(key, f"{key} ({count:,})") for key, count in self.library.samples.rows(query, own=list(self.tables))]

    @property
    def total(self) -> int:
        """Number of samples without filters."""
        return int(self.library.samples.rows("select count(*) from read_parquet($own)", own=list(self.tables))[0][0])


def select(library: Library, query: Query) -> Selection:
    """The samples that ``query`` asks for.

    Raises:
        UsageError: it names a run or a task that is not here.
    """
    task, disagree = query["task"], query.get("disagree", "")
    run = library.run(query.get("run", ""), task, query.get("model", ""))
    tables = {table.file: table for table in library.tables(run, task)}
    runs = {one.key: library.tables(one, task) for one in library.asked[task]}
    if disagree and disagree not in (*DISAGREEMENTS, *runs):
        raise UsageError(f"{disagree}: no such run has samples of {task}; choose another.")
    metrics = list(dict.fromkeys(name for table in tables.values() for name in table.metrics))
    ranked = [column.metric for column in layout_of(task).headline]
    usual = next((name for name in (*ranked, *metrics) if name in metrics), "")
    metric = query["metric"] if query.get("metric") in metrics else usual
    notes = notes_of(run)
    values: dict[str, Any] = {
        "status": query.get("status"),
        "outcome": OUTCOMES.get(query.get("outcome", "")),
        "verdict": query.get("verdict"),
        "marked": [f"{task}/{name}" for task, name in notes] if query.get("marked") else None,
        "words": query.get("words", "").casefold(),
    }
    where = [_WHERE[name] for name, value in values.items() if value not in (None, "")]
    if disagree:
        where.append(_WHERE[disagree if disagree in DISAGREEMENTS else "other"])
    known = {f"{_BREAKDOWN}{name}": f"group_{name}" for table in tables.values() for name in table.breakdowns}
    for place, name in enumerate(name for name in query if name in known):
        where.append(f"list_contains(own.{quoted(known[name])}, $group{place})")
        values[f"group{place}"] = query[name]
    statement = _SELECT.format(
        outcome=outcome(metric),
        other=_OTHER.format(outcome=outcome(metric)) if disagree in runs else "",
        score=quoted(f"score_{metric}") if metric else "null::double",
        where=" and ".join(where) or "true",
        order=_ORDER.get(query.get("sort", ""), "sample_id"),
    )
    every = [table.file for several in runs.values() for table in several]
    other = [table.file for table in runs.get(disagree, ())]
    found = library.samples.rows(statement, every=every, own=list(tables), other=other, **values)
    rows = [Row(*row) for row in found]
    return Selection(library, {**query, "run": run.key}, run, tables, metrics, metric, rows, notes)


def outcome(metric: str) -> str:
    """The outcome of a sample by ``metric`` in SQL."""
    full = _FULL.get(unit_of(metric)) if metric else None
    if full is None:
        return str(UNSCORED)
    score = quoted(f"score_{metric}")
    ends = f"when {score} >= {full * (1 - 1e-9)} then {RIGHT} when {score} >= {full / 2} then {PARTLY}"
    return f"case when {score} is null then {UNSCORED} {ends} else {WRONG} end"
