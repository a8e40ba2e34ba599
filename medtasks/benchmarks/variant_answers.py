"""How a question with variants may be answered, what was selected, and if all variants agree."""

from __future__ import annotations

from medtasks.catalog.benchmark import Benchmark, Document
from medtasks.catalog.items import SampleView, Value
from medtasks.metrics.closed_answer import closed_answer_matches


def has_several_answers(document: Document) -> bool:
    """Whether the question has several rounds, or several of its options are right."""
    return (document.get("rounds") or 1) > 1 or bool(document.get("multi_select"))


def selected_option(benchmark: Benchmark, sample: SampleView) -> str | None:
    """The letter of the one selected option, or its text in a list without letters.

    None unless exactly one option is selected.
    """
    if sample.status != "ok":
        return None
    texts = options_without_letters(benchmark, sample)
    if texts is None:
        return sample.filtered
    selected = [text for text in texts if closed_answer_matches(sample.filtered, [text], texts)]
    return selected[0] if len(selected) == 1 else None


def options_without_letters(benchmark: Benchmark, sample: SampleView) -> list[str] | None:
    """The options as shown if they are a list, whose target is a text; None with letters."""
    if benchmark.options:
        return None
    return sample.document.get("options") or None


def value_for_all(holds: bool, *, failed: bool) -> Value:
    """1 if something ``holds`` for every variant that was answered, else 0.

    The value is open between 0 and this if a variant ``failed``.
    """
    statistics = (float(holds), 1.0)
    if failed:
        return Value(low=(0.0, 1.0), high=statistics, failed=True)
    return Value(statistics=statistics)
