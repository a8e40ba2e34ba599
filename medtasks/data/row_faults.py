"""What is wrong with a row of a benchmark folder, and its cells, whose faults are collected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.catalog.records import Where
from medtasks.core.schema import Keys, shown
from medtasks.data.folder_cells import CellError, cell_text


@dataclass(frozen=True)
class RowFault:
    """What is wrong with a row, or with a column of all rows.

    Attributes:
        code: the rule of ``medtasks validate`` that is broken.
        where: the row; None if the fault is in ``benchmark.yaml``, at ``keys``.
        keys: the keys of ``benchmark.yaml`` that name the column.
        message: what was found and expected.
        fix: what to do.
    """

    code: str
    where: Where | None
    keys: Keys
    message: str
    fix: str = "fix the row"

    def __str__(self) -> str:
        place = "benchmark.yaml" if self.where is None else str(self.where)
        return f"{place}: {self.message}; {self.fix}."


@dataclass(frozen=True)
class RowCells:
    """The cells of one row; whatever is wrong with one is added to ``faults``."""

    row: Mapping[str, Any]
    where: Where
    faults: list[RowFault]

    def text(self, column: str, *keys: str | int) -> str:
        """The text of a cell; empty if it is empty or, which is a fault, no text."""
        return self.converted(column, keys, lambda value, _: cell_text(value)) or ""

    def required(self, column: str, *keys: str | int) -> str:
        """The text of a cell that must not be empty."""
        text = self.text(column, *keys)
        if not text and not self.is_faulty(keys):
            self.refuse("MT304", keys, f"column {shown(column)} is empty", "fill the cell")
        return text

    def converted(self, column: str, keys: Keys, convert: Any, code: str = "MT304") -> Any:
        """What ``convert`` makes of a cell; None, which is a fault, if it raises `CellError`."""
        try:
            return convert(self.row.get(column), self.where)
        except CellError as error:
            message = f"column {shown(column)} {error}"
            self.refuse(code, keys, message, error.fix)
            return None

    def refuse(self, code: str, keys: Keys, message: str, fix: str = "fix the row") -> None:
        """Add a fault of this row."""
        self.faults.append(RowFault(code, self.where, keys, message, fix))

    def is_faulty(self, keys: Keys) -> bool:
        """Whether this row has a fault at or below ``keys``."""
        length = len(keys)
        return any(
            fault.where is self.where and fault.keys[:length] == keys for fault in self.faults[-8:]
        )
