"""Acme dots: multiple-choice questions about pictures, as tasks of medtasks."""

from __future__ import annotations

from acme_bench.benchmark import BENCHMARK, ERRORS
from medtasks.api import Plugin

PLUGIN = Plugin(benchmarks=(BENCHMARK,), metrics=ERRORS.rates)
