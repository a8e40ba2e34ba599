"""The public API for task packages. Names are stable; changes are announced in CHANGELOG.md.

A package registers a module under the entry-point group ``medtasks.tasks``. Next to that module are
``tasks/`` and, optionally, ``templates/`` and ``rubrics/``. The module may define ``PLUGIN``, a
:class:`Plugin` with benchmarks, filters, metrics and board layouts. Our own benchmarks are built
the same way.
"""

from __future__ import annotations

from medtasks.answers import FILTER_VERSIONS, OptionLetterFilter
from medtasks.answers.base import Reading, ResponseFilter
from medtasks.answers.markup import answer_text
from medtasks.answers.option_letter import option_status
from medtasks.answers.presence import count_of, said_of
from medtasks.answers.thoughts import strip_thinking
from medtasks.benchmarks.aggregations import pending_value, sample_value, scored_by
from medtasks.benchmarks.documents import doc_to_messages, doc_to_text, doc_to_visual
from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.benchmarks.folder_benchmark import benchmark_in_folder
from medtasks.benchmarks.layout_parts import error_columns, kinds_of_error
from medtasks.benchmarks.rows import Rows
from medtasks.catalog.benchmark import (
    AutomaticPreparation,
    Benchmark,
    DataSource,
    Document,
    HubFiles,
    PrepareCommand,
    Publication,
    RecordCounts,
    ScoringRules,
    StreamRules,
)
from medtasks.catalog.board_layout import ALL_GROUPS, BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.items import (
    Item,
    Joined,
    SampleView,
    Turn,
    Value,
    by_fields,
    round_items,
    sample_items,
)
from medtasks.catalog.records import Record, Where, build, distinct, text_field, texts_by_key, wrong
from medtasks.catalog.registry import FilterInfo, Plugin
from medtasks.catalog.rubric import Aspect, Rubric
from medtasks.core.errors import DataError, MediaError, MedtasksError, UsageError
from medtasks.data.release import Release
from medtasks.data.sources import read_jsonl
from medtasks.metrics.base import (
    MeanMetric,
    Metric,
    MetricUnavailableError,
    package_version,
    sign,
)
from medtasks.metrics.facts import MetricFacts
from medtasks.metrics.item_metrics import NO_OPTION, ErrorRate
from medtasks.metrics.learned.checkpoints import Checkpoint, find_checkpoint
from medtasks.metrics.learned.learned_metric import LearnedMetric
from medtasks.metrics.learned.pair_statistics import Pair, PairStatistics
from medtasks.metrics.stream_values import round_values

__all__ = [
    "ALL_GROUPS",
    "FILTER_VERSIONS",
    "NO_OPTION",
    "Aspect",
    "AutomaticPreparation",
    "Benchmark",
    "BoardLayout",
    "Case",
    "Checkpoint",
    "Column",
    "DataError",
    "DataSource",
    "Document",
    "ErrorRate",
    "Errors",
    "FilterInfo",
    "HubFiles",
    "Item",
    "Joined",
    "LayoutTable",
    "LearnedMetric",
    "MeanMetric",
    "MediaError",
    "MedtasksError",
    "Metric",
    "MetricFacts",
    "MetricUnavailableError",
    "OptionLetterFilter",
    "Pair",
    "PairStatistics",
    "Plot",
    "Plugin",
    "PrepareCommand",
    "Publication",
    "Reading",
    "Record",
    "RecordCounts",
    "Release",
    "ResponseFilter",
    "Rows",
    "Rubric",
    "SampleView",
    "ScoringRules",
    "StreamRules",
    "Turn",
    "UsageError",
    "Value",
    "Where",
    "answer_text",
    "benchmark_in_folder",
    "build",
    "by_fields",
    "count_of",
    "distinct",
    "doc_to_messages",
    "doc_to_text",
    "doc_to_visual",
    "error_columns",
    "find_checkpoint",
    "kinds_of_error",
    "option_status",
    "package_version",
    "pending_value",
    "read_jsonl",
    "round_items",
    "round_values",
    "said_of",
    "sample_items",
    "sample_value",
    "scored_by",
    "sign",
    "strip_thinking",
    "text_field",
    "texts_by_key",
    "wrong",
]
