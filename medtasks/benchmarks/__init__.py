"""What is particular to one benchmark: its records as documents, what a prompt may see, its scoring glue."""

from __future__ import annotations

from medtasks.benchmarks.base import Benchmark
from medtasks.errors import UsageError

__all__ = ["BENCHMARKS", "Benchmark", "get_benchmark"]

BENCHMARKS: tuple[str, ...] = ("kvasir_vqa_x1", "kvasir_vqa_x1_transformed", "mi_cxr", "med_cmr", "medstreambench")
"""Names of the shipped benchmarks, in the order in which tables show them."""


def get_benchmark(name: str) -> Benchmark:
    """The description of the benchmark called ``name``, ours or another package's.

    Raises:
        UsageError: there is no such benchmark.
    """
    from medtasks.builtin import PLUGIN
    from medtasks.plugin import all_benchmarks

    found = next((one for one in PLUGIN.benchmarks if one.name == name), None) or all_benchmarks().get(name)
    if found is None:
        raise UsageError(f"benchmark {name!r} is unknown; choose from {', '.join(all_benchmarks())}.")
    return found
