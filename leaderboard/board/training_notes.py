"""Notes below tables that name the models trained on a benchmark's data."""

from __future__ import annotations

from collections.abc import Mapping

from ..schema.board import BoardModel
from ..schema.score_tables import BoardTable


def with_training_note(
    table: BoardTable, benchmark: str, models: Mapping[str, BoardModel]
) -> BoardTable:
    """The table, whose note says what the records of its models' training state."""
    sentences: list[str] = []
    for slug in dict.fromkeys(row.model for row in table.every_row):
        sentence = models[slug].trained_on.get(benchmark)
        if sentence is not None:
            sentences.append(f"{models[slug].name}: {sentence}.")
    if not sentences:
        return table
    parts = filter(None, (table.note, *sentences))
    return table.model_copy(update={"note": " ".join(parts)})
