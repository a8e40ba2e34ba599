"""An Arrow table with documented columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from medtasks.core.errors import UsageError
from medtasks.core.tables import TextTable

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
