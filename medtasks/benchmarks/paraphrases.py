"""Questions that are asked with several paraphrased prompts (``metadata.prompts``): documents, and scores.

Each document carries the name of its template, which `medtasks.benchmarks.documents.prompt_text` renders. A task's rows
are this module's attribute with the task's name, so task files write
``process_docs: !function medtasks.benchmarks.paraphrases.TASK``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from medtasks.benchmarks.base import FAILED, Benchmark, Document, SampleView, Value
from medtasks.benchmarks.documents import Rows, task_rows
from medtasks.benchmarks.rotations import plain_task, selected_option, share
from medtasks.errors import UsageError
from medtasks.metrics.registry import get_metric
from medtasks.metrics.variants import AGREEMENT, BEST, SPREAD, WORST, half_of, prompt_statistics
from medtasks.spec import load_spec
from medtasks.task_model import Metadata, prompt_metric


def __getattr__(name: str) -> Rows:
    """The rows of the task called ``name``, for ``!function`` in its file."""
    if name.startswith("_"):
        raise AttributeError(name)
    return paraphrased_rows(name, load_spec(name).metadata)


def paraphrased_rows(task: str, metadata: Metadata) -> Rows:
    """The rows of ``compare_with``, each with every template of ``metadata.prompts``.

    Left out are questions with several rounds or answers and, in a benchmark with options, those without.

    Raises:
        UsageError: ``compare_with`` is not a task that asks each question once with the first template, or its first
            metric is not a mean of fractions of which more is better.
    """
    plain = plain_task(task, metadata, "prompts")
    if plain.template != metadata.prompts[0]:
        raise UsageError(
            f"{task}: metadata.prompts[0] is {metadata.prompts[0]!r}, expected {plain.template!r}, the template of "
            f"{plain.name}; begin with it."
        )
    metric = get_metric(plain.metrics[0])
    if metric.width != 2 or not metric.higher_is_better or "|scale:" in metric.signature:
        raise UsageError(
            f"{task}: the first metric is {metric.name}, expected a mean of values from 0 to 1, more being better, "
            "whose spread over prompts can be measured; put one first in metric_list."
        )
    rows = task_rows(plain.name)
    return replace(
        rows,
        unusable=functools.partial(_unusable, rows.unusable),
        variants=functools.partial(_paraphrased, metadata.prompts, metric.name),
    )


def _unusable(other: Callable[[Document], str] | None, document: Document) -> str:
    if other is not None and (reason := other(document)):
        return reason
    if (document.get("rounds") or 1) > 1 or document.get("multi_select"):
        return "not_one_answer"
    return "no_options" if "options" in document and not document["options"] else ""


def _paraphrased(templates: Sequence[str], metric: str, document: Document) -> list[Document]:
    name = document["sample_id"]
    # of the cluster's own name, which stripped runs do not have
    facts = {"prompts": len(templates), "prompt_metric": metric, "prompt_half": half_of(document["cluster"])}
    return [
        {
            **document,
            "sample_id": f"{name}~p{number}",
            "prompt_of": name,
            "prompt": number,
            "prompt_template": template,
            **facts,
        }
        for number, template in enumerate(templates, start=1)
    ]


def prompt_scores(
    benchmark: Benchmark, views: Sequence[SampleView], asked: Sequence[Mapping[str, Value]]
) -> dict[str, Value]:
    """The scores of `prompt_metrics` of one question, from the answer under each prompt and the values of each."""
    document = views[0].document
    each = [one[document["prompt_metric"]] for one in asked]
    answered = [view for view in views if view.status != FAILED]
    failed = len(answered) < len(views)
    rows = [one.statistics for one in each if one.statistics is not None]
    over = Value(failed=failed)
    if len(rows) == len(each):
        found = prompt_statistics(rows, document["prompt_half"])
        over = Value(statistics=tuple(found.tolist()))
    values = dict.fromkeys((WORST, BEST, SPREAD), over)
    if benchmark.options or document.get("options"):
        options = {selected_option(benchmark, view) for view in answered}
        values[AGREEMENT] = share(len(options) < 2 and None not in options, failed=failed)
    else:
        values[AGREEMENT] = Value(statistics=(0.0, 0.0))
    return {**values, **{prompt_metric(number): one for number, one in enumerate(each, start=1)}}
