"""Which samples of a task are shown, and in which order, for the filters in an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from medtasks.errors import UsageError

from ..columns import unit_of
from ..numbers import UNIT_LABELS, number
from .index import ABSENT, PARTLY, RIGHT, UNSCORED, WRONG, SampleIndex
from .library import Library, Run, card_of

Rows = npt.NDArray[np.int64]
Outcomes = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]

PAGE = 50
OUTCOMES = {"right": RIGHT, "partly": PARTLY, "wrong": WRONG, "none": UNSCORED}
NAMES = {RIGHT: "right", PARTLY: "partly right", WRONG: "wrong", UNSCORED: "no score", ABSENT: "not asked"}
DISAGREEMENTS = {
    "any": "models disagree",
    "alone-wrong": "only this run is wrong",
    "alone-right": "only this run is right",
}
SORTS = {"id": "by id", "low": "lowest score first", "high": "highest score first", "split": "most disputed first"}
_FILTERS = ("task", "run", "metric", "status", "outcome", "disagree", "verdict", "words")
_BREAKDOWN = "by."


@dataclass(frozen=True)
class Query:
    """The filters in an address; empty ones select everything.

    ``model`` is the slug of a model whose newest run is meant if there is no ``run``. ``disagree`` is one of
    `DISAGREEMENTS`, or the key of a run whose outcome or option differs. ``groups`` are keys by breakdown.
    """

    task: str
    run: str = ""
    model: str = ""
    metric: str = ""
    status: str = ""
    outcome: str = ""
    disagree: str = ""
    verdict: str = ""
    words: str = ""
    sort: str = "id"
    groups: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parsed(cls, given: Mapping[str, str]) -> Query:
        """The query of an address's parameters; others are ignored."""
        groups = {name.removeprefix(_BREAKDOWN): key for name, key in given.items() if name.startswith(_BREAKDOWN)}
        sort = given.get("sort", "id")
        return cls(
            **{name: given.get(name, "").strip() for name in (*_FILTERS, "model")},
            sort=sort if sort in SORTS else "id",
            groups={name: key for name, key in groups.items() if key},
        )

    def address(self, page: str, /, **more: str | int) -> str:
        own = {name: getattr(self, name) for name in _FILTERS} | {"sort": "" if self.sort == "id" else self.sort}
        groups = {f"{_BREAKDOWN}{name}": key for name, key in self.groups.items()}
        given = {name: value for name, value in {**own, **groups, **more}.items() if value != ""}
        return f"{page}?{urlencode(given, errors='surrogatepass')}"


@dataclass(frozen=True)
class Selection:
    """The chosen rows of one run's samples of a task, in order, and the outcomes of all runs on each of its samples."""

    query: Query
    run: Run
    index: SampleIndex
    metric: str
    rows: Rows
    outcomes: Mapping[str, Outcomes]

    @property
    def own(self) -> Outcomes:
        return self.outcomes[self.run.key]

    def right(self, row: int) -> tuple[int, int]:
        """How many runs are right on the sample in ``row``, of those with a score."""
        values = [int(outcomes[row]) for outcomes in self.outcomes.values()]
        return sum(value == RIGHT for value in values), sum(value > UNSCORED for value in values)

    def score(self, row: int) -> str:
        """The sample's value with its unit; empty without one."""
        value = self.index.scores(self.metric)[row] if self.metric else np.nan
        unit = unit_of(self.metric)
        return "" if np.isnan(value) else f"{number(value, unit)} {UNIT_LABELS[unit]}"

    def page(self, number: int) -> Rows:
        """The rows of one page, counted from 1."""
        return self.rows[(number - 1) * PAGE : number * PAGE]

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.rows) // PAGE))

    def neighbours(self, sample_id: str) -> tuple[str | None, str | None, str | None]:
        """The ids of the previous, the next, and the next sample that is not right, in this order of samples.

        A sample that the filters leave out has the neighbours that it would have without filters.
        """
        here = self.index.rows[sample_id]
        rows = self.rows.tolist()
        if here not in rows:
            rows = list(range(len(self.index.ids)))
        place = rows.index(here)
        ids, own = self.index.ids, self.own
        wrong = next((row for row in rows[place + 1 :] if own[row] in (WRONG, PARTLY)), None)
        return (
            ids[rows[place - 1]] if place else None,
            ids[rows[place + 1]] if place + 1 < len(rows) else None,
            None if wrong is None else ids[wrong],
        )


def select(library: Library, query: Query) -> Selection:
    run = library.run(query.run, query.task, query.model)
    query = replace(query, run=run.key)
    index = library.index(run, query.task)
    metric = query.metric if query.metric in index.metrics else _main_metric(query.task, index)
    outcomes = {run.key: index.outcomes(metric), **_aligned(library, query, run, index, metric)}
    kept = np.ones(len(index.ids), dtype=bool)
    if query.status:
        kept &= index.statuses == query.status
    if query.outcome in OUTCOMES:
        kept &= outcomes[run.key] == OUTCOMES[query.outcome]
    if query.verdict:
        kept &= np.array([query.verdict in told for told in index.lists("verdicts")], dtype=bool)
    for name, key in query.groups.items():
        if name in index.breakdowns:
            kept &= np.array([key in keys for keys in index.lists(f"group {name}")], dtype=bool)
    if query.disagree:
        kept &= _disputed(library, query, index, outcomes)
    if query.words:
        kept &= index.containing(query.words)
    rows = np.flatnonzero(kept)
    return Selection(query, run, index, metric, _sorted(rows, query, index, metric, outcomes), outcomes)


def _main_metric(task: str, index: SampleIndex) -> str:
    """The metric by which the board ranks, if samples have values of it; else the first that they have."""
    ranked = [column.metric for column in card_of(task).headline]
    return next((name for name in (*ranked, *index.metrics) if name in index.metrics), "")


def _aligned(library: Library, query: Query, run: Run, index: SampleIndex, metric: str) -> dict[str, Outcomes]:
    """The outcomes of the other runs, in the order of ``index``."""
    found: dict[str, Outcomes] = {}
    for other in library.tasks[query.task]:
        if other.key != run.key:
            theirs = library.index(other, query.task)
            found[other.key] = _in_order(theirs.outcomes(metric), theirs, index, np.int8(ABSENT))
    return found


def _in_order(values: npt.NDArray[Any], theirs: SampleIndex, ours: SampleIndex, absent: object) -> npt.NDArray[Any]:
    if theirs.ids == ours.ids:
        return values
    rows = [theirs.rows.get(name) for name in ours.ids]
    return np.array([absent if row is None else values[row] for row in rows], dtype=values.dtype)


def _disputed(library: Library, query: Query, index: SampleIndex, outcomes: Mapping[str, Outcomes]) -> Mask:
    own = outcomes[query.run]
    others = [values for key, values in outcomes.items() if key != query.run]
    if query.disagree in DISAGREEMENTS:
        if not others:
            return np.zeros(len(own), dtype=bool)
        matrix = np.stack(others)
        scored = matrix > UNSCORED
        right = matrix == RIGHT
        found: Mask
        if query.disagree == "alone-wrong":
            found = (own > UNSCORED) & (own != RIGHT) & scored.any(axis=0) & (right | ~scored).all(axis=0)
        elif query.disagree == "alone-right":
            found = (own == RIGHT) & scored.any(axis=0) & ~right.any(axis=0)
        else:
            anyone = right.any(axis=0) | (own == RIGHT)
            found = anyone & ((scored & ~right).any(axis=0) | ((own > UNSCORED) & (own != RIGHT)))
        return found
    other = next((one for one in library.tasks[query.task] if one.key == query.disagree), None)
    if other is None:
        raise UsageError(f"{query.disagree}: no such run has samples of {query.task}; choose another.")
    theirs = library.index(other, query.task)
    there = outcomes.get(query.disagree, own)
    chosen = _in_order(theirs.choices, theirs, index, "")
    different: Mask = (there != ABSENT) & ((there != own) | (chosen != index.choices))
    return different


def _sorted(rows: Rows, query: Query, index: SampleIndex, metric: str, outcomes: Mapping[str, Outcomes]) -> Rows:
    if query.sort in ("low", "high") and metric:
        scores = index.scores(metric)[rows]
        # samples without a score come last
        return rows[np.argsort(scores if query.sort == "low" else -scores, kind="stable")]
    if query.sort == "split":
        right = sum((values[rows] == RIGHT).astype(np.int64) for values in outcomes.values())
        scored = sum((values[rows] > UNSCORED).astype(np.int64) for values in outcomes.values())
        return rows[np.argsort(-np.minimum(right, scored - right), kind="stable")]
    return rows
