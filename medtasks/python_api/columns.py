"""Tables of runs with documented columns; every value is computed on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from medtasks.core.errors import UsageError
from medtasks.core.schema import suggestion
from medtasks.leaderboard.view.sample_table import SAMPLES as STORED
from medtasks.scoring.columns import ItemState


@dataclass(frozen=True)
class Table:
    """An Arrow table (``arrow``). Polars, DuckDB, pandas and pyarrow also read the object itself,
    without a copy.
    """

    arrow: Any

    @property
    def columns(self) -> dict[str, str]:
        """What each column holds, with its unit, by name."""
        descriptions = {}
        for field in self.arrow.schema:
            metadata = field.metadata or {}
            descriptions[field.name] = metadata.get(b"description", b"").decode()
        return descriptions

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`."""
        return self.arrow.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __repr__(self) -> str:
        return f"Table of {len(self):,} rows: {', '.join(self.arrow.column_names)}"

    def _repr_html_(self) -> str:
        first_rows = self.arrow.slice(0, 10).to_pandas()
        return f"{first_rows._repr_html_()}<p>{len(self):,} rows</p>"


RUN_COLUMNS: Mapping[str, str] = {
    "run": "path of the run, as opened",
    "model": "name of the model",
}
"""Columns of all tables: which run a row is of."""
_RUN = {**RUN_COLUMNS, "task": "task; in scores, task or group"}
SAMPLES: Mapping[str, str] = {**_RUN, **STORED}
"""Columns of `Run.samples`."""
SCORES: Mapping[str, str] = {
    **_RUN,
    "metric": "name of the metric",
    "breakdown": "name of the breakdown; null for the score over all items",
    "group": "group of the breakdown; null for the score over all items",
    "value": "the score, in `unit`; null if there is none (see `reason`)",
    "low": "lower end of the 95 % confidence interval, in `unit`",
    "high": "upper end of the 95 % confidence interval, in `unit`",
    "interval_method": "how the interval is computed; null if there is none",
    "unit": "fraction (0 to 1), points (0 to 100), seconds or score (another scale)",
    "items": "number of items that the metric applies to",
    "answered": "number of items with a response; null if no request failed",
    "judged": "number of items with a known value; null if no judge is involved",
    "chance": "accuracy of uniform guessing, a fraction; null if undefined",
    "constant": "accuracy of the best constant answer, a fraction; null if undefined",
    "constant_answer": "the best constant answer: the most frequent correct option",
    "least": "the score if all items without a response or verdict were wrong, in `unit`",
    "most": "the score if all items without a response or verdict were right, in `unit`",
    "incomplete": "whether too many items lack a response or a verdict",
    "reason": "why there is no value or no interval",
    "signature": "everything that can change the score; equal signatures are comparable",
}
"""Columns of `Run.scores`."""
ITEMS: Mapping[str, str] = {
    **_RUN,
    "item": "id of the item: a sample, all rounds of a stream, or all rotations of a question",
    "cluster": STORED["cluster"],
    "samples": "ids of its samples",
    "metric": "name of the metric",
    "state": "scored, failed (no response), pending (no verdict), awaiting (no judge was asked) or "
    "absent",
    "value": "the metric's score for this item, in `unit`; null if there is none",
    "unit": SCORES["unit"],
    "statistics": "sufficient statistics: the score of any set of items is computed from their sum",
    "group_": "the groups of a breakdown that the item belongs to",
}
"""Columns of `Run.items`."""

STATES: Mapping[ItemState, str] = {
    ItemState.ABSENT: "absent",
    ItemState.PRESENT: "scored",
    ItemState.FAILED: "failed",
    ItemState.PENDING: "pending",
    ItemState.AWAITING: "awaiting",
}
"""What the column ``state`` of items says."""
TYPES = {
    **dict.fromkeys(("value", "low", "high", "chance", "constant", "least", "most"), pa.float64()),
    **dict.fromkeys(("items", "answered", "judged"), pa.int64()),
    "incomplete": pa.bool_(),
}
"""Types of the columns of scores that are not texts."""


def repeated(size: int, **texts: str) -> dict[str, Any]:
    """Columns with the same text in each row."""
    columns = {}
    for name, text in texts.items():
        columns[name] = pa.repeat(pa.scalar(text), size)
    return columns


def joined(
    parts: Sequence[Any],
    descriptions: Mapping[str, str],
    asked: str | None = None,
    available: Iterable[str] = (),
) -> Table:
    """One table with the rows of several Arrow tables.

    If one of them lacks a column, the column is null in its rows.

    Args:
        parts: the Arrow tables.
        descriptions: what each column is, by its name or by the beginning of its name up to the
            first ``_``, such as ``group_``.
        asked: the task, group or metric that the user asked for, for the error; None for all.
        available: the names that the user could have asked for.

    Raises:
        UsageError: ``parts`` is empty: no run has what was asked for.
    """
    if not parts:
        near = "" if asked is None else suggestion(asked, available)
        lacks = f"{asked or 'the runs'}: no run opened here has it{near}"
        raise UsageError(f"{lacks}; `run.manifest.tasks` lists its tasks.")
    table = pa.concat_tables(parts, promote_options="default")
    fields = []
    for field in table.schema:
        prefix = f"{field.name.partition('_')[0]}_"
        description = descriptions.get(field.name) or descriptions[prefix]
        fields.append(field.with_metadata({"description": description}))
    return Table(table.cast(pa.schema(fields)))
