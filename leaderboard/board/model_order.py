"""The order of a benchmark's models in its tables and figures."""

from __future__ import annotations

from ..schema.board import BenchmarkBoard


def model_order(benchmark: BenchmarkBoard) -> dict[str, int]:
    """The place of each model: by the first ranking that ranks any, then by slug."""
    models: list[str] = []
    for ranking in benchmark.rankings:
        if ranking.ranked:
            models = [place.model for place in ranking.ranked]
            break
    in_tables: set[str] = set()
    for table in benchmark.tables:
        in_tables.update(row.model for row in table.every_row)
    models += sorted(in_tables - set(models))
    return {model: place for place, model in enumerate(models)}
