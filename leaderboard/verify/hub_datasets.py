"""Benchmarks as datasets on the hub."""

from __future__ import annotations

from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.data.store import open_prepared


def dataset_of(benchmark: str, fingerprint: str = "") -> tuple[str, str | None]:
    """The dataset on the hub that a benchmark is from, and its revision.

    The revision is None unless the data prepared here have this ``fingerprint``.

    Raises:
        UsageError: the benchmark's source is not a dataset on the hub.
    """
    declared = get_benchmark(benchmark)
    if declared.data.hub:
        name = declared.data.hub[0]
    else:
        name, _, _ = declared.publication.source.partition(",")
    if name.count("/") != 1 or " " in name:
        raise UsageError(
            f"{benchmark}: its source is not a dataset on the hub ({name}), "
            "so no page could show scores."
        )
    try:
        prepared = open_prepared(benchmark).manifest
    except MedtasksError:  # the revision is then unknown
        return name, None
    if prepared.fingerprint != fingerprint or prepared.source.kind != "hub":
        return name, None
    return name, prepared.source.revision
