"""Questions that are asked several times, with rotated options or paraphrased prompts: documents,
items and scores.

In rotation r (``metadata.options``) the letter at position i shows the option that was at position
i + r, modulo the number of options: the circular shifts of MMBench (arXiv 2307.06281). A paraphrase
(``metadata.prompts``) carries the name of its template. All variants of a question are one item. A
task's rows are this module's attribute with the task's name, for ``process_docs: !function
medtasks.benchmarks.variants.TASK``.
"""

from __future__ import annotations

import hashlib
import math
import re
import string
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from medtasks.benchmarks.documents import Rows, task_rows
from medtasks.catalog.benchmark import FAILED, Benchmark, Document, Item, Joined, SampleView, Value
from medtasks.catalog.spec import load_spec
from medtasks.catalog.task_model import (
    ORDER_METRICS,
    Metadata,
    OptionOrder,
    prompt_metric,
    prompt_metrics,
)
from medtasks.core.errors import UsageError
from medtasks.metrics import variants as measures
from medtasks.metrics.closed_answer import closed_answer_matches
from medtasks.metrics.registry import get_metric

_FIELDS = {
    "options": ("rotation_of", "rotation", "rotations"),
    "prompts": ("prompt_of", "prompt", "prompts"),
}
"""By ``metadata.varied``, the document fields of the question, of the variant's number and of their
count.
"""


def __getattr__(name: str) -> Rows:
    if name.startswith("_"):
        raise AttributeError(name)
    rows = varied_rows(name, load_spec(name).metadata)
    if rows is None:
        raise UsageError(
            f"{name}: asks each question once; set metadata.options or metadata.prompts."
        )
    return rows


def varied_rows(task: str, metadata: Metadata) -> Rows | None:
    """The rows of ``compare_with``, each in several variants; None for a task that asks each
    question once.

    Rows that cannot be asked this way are left out: those without options to rotate, with several
    rounds or answers. Metadata that do not fit the plain task are a :class:`UsageError`.
    """
    if metadata.varied is None:
        return None
    plain = load_spec(metadata.compare_with)
    if plain.kind != "task" or plain.metadata.varied is not None:
        raise UsageError(
            f"{task}: metadata.compare_with is {metadata.compare_with!r}, expected a task that asks each question "
            f"once, which metadata.{metadata.varied} asks several times; name one."
        )
    if metadata.prompts:
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

    def unusable(document: Document) -> str:
        if rows.unusable is not None and (reason := rows.unusable(document)):
            return reason
        several = (document.get("rounds") or 1) > 1 or bool(document.get("multi_select"))
        if metadata.options:
            return _not_rotatable(document, several)
        if several:
            return "not_one_answer"
        return "no_options" if "options" in document and not document["options"] else ""

    def variants(document: Document) -> list[Document]:
        if metadata.prompts:
            return _paraphrases(metadata.prompts, plain.metrics[0], document)
        return _rotations(task, metadata.options, document)

    return replace(rows, unusable=unusable, variants=variants)


def question_of(document: Mapping[str, object]) -> object:
    """The question that a document is a variant of; None if it is asked once."""
    return document.get("rotation_of", document.get("prompt_of"))


def joined_items(benchmark: Benchmark, samples: Sequence[SampleView]) -> Joined:
    """The benchmark's items; all variants of a question are one item, with the scores of the
    variants as well.

    Any other metric of such an item is the mean over its variants, which name targets and answers
    in the plain order. With a failed variant the item's values are unknown, without one that was
    asked it is incomplete.
    """
    asked = (
        one for one in _FIELDS if any(_FIELDS[one][0] in sample.document for sample in samples)
    )
    varied = next(asked, None)
    if varied is None:
        return benchmark.join(samples)
    of, number, total = _FIELDS[varied]
    questions: dict[str, list[SampleView]] = {}
    plain: list[SampleView] = []
    for sample in samples:
        question = sample.document.get(of)
        (plain if question is None else questions.setdefault(question, [])).append(sample)
    found = benchmark.join(plain) if plain else Joined(())
    items, incomplete = list(found.items), dict(found.incomplete)
    for question, views in sorted(questions.items()):
        views.sort(key=lambda view: int(view.document[number]))
        kept = (
            tuple(_in_plain_order(benchmark, view) for view in views)
            if varied == "options"
            else tuple(views)
        )
        if len(views) < views[0].document[total]:
            incomplete[question] = kept
            continue
        each = [benchmark.join([view]).items[0].values for view in views]
        scores = (
            _order_scores(benchmark, views)
            if varied == "options"
            else _prompt_scores(benchmark, views, each)
        )
        values = {name: _mean([one[name] for one in each]) for name in each[0]}
        items.append(Item(question, views[0].cluster, kept, {**values, **scores}))
    prompts = max(int(views[0].document[total]) for views in questions.values())
    metrics = ORDER_METRICS if varied == "options" else prompt_metrics(prompts)
    return Joined(tuple(items), incomplete, metrics)


def _mean(values: Sequence[Value]) -> Value:
    """The mean of one metric over the variants; if one failed, its lowest and highest values."""
    rows = [
        (value.low, value.high)
        if value.statistics is None
        else (value.statistics, value.statistics)
        for value in values
    ]
    failed = any(value.failed for value in values)
    ends = [
        None
        if None in side
        else tuple(math.fsum(column) / len(side) for column in zip(*side, strict=True))
        for side in zip(*rows, strict=True)
    ]
    return Value(low=ends[0], high=ends[1], failed=True) if failed else Value(statistics=ends[0])


def _every_time(possible: bool, *, failed: bool) -> Value:
    row = (float(possible), 1.0)
    return Value(low=(0.0, 1.0), high=row, failed=True) if failed else Value(statistics=row)


# --- the selected option, also of questions that are asked once ---


def selected_option(benchmark: Benchmark, view: SampleView) -> str | None:
    """The letter of the one selected option, or its text in a list without letters; None unless one
    is selected.
    """
    if view.status != "ok":
        return None
    texts = _unlettered(benchmark, view)
    if texts is None:
        return view.filtered
    chosen = [text for text in texts if closed_answer_matches(view.filtered, [text], texts)]
    return chosen[0] if len(chosen) == 1 else None


def _unlettered(benchmark: Benchmark, view: SampleView) -> list[str] | None:
    """The options as shown if they are a list, whose target is a text; None if they have
    letters.
    """
    return None if benchmark.options else view.document.get("options") or None


# --- rotated options ---


def _letters(document: Mapping[str, Any]) -> list[str]:
    choices = document.get("choices")
    return (
        sorted(choices)
        if choices
        else list(string.ascii_uppercase[: len(document.get("options") or ())])
    )


def _not_rotatable(document: Document, several: bool) -> str:
    letters, options = _letters(document), document.get("options") or ()
    if len(letters) < 2:
        return "no_options"
    if len(options) > measures.POSITIONS:
        return "too_many_options"
    if options and all(
        re.match(rf"\(?{letter}[.):]", text) for letter, text in zip(letters, options, strict=True)
    ):
        return "options_name_their_letters"
    if several:
        return "not_one_answer"
    return (
        ""
        if document["target"] in (letters if document.get("choices") else options)
        else "answer_not_an_option"
    )


def _rotations(task: str, order: OptionOrder, document: Document) -> list[Document]:
    letters, name, choices = _letters(document), document["sample_id"], document.get("choices")
    if order.rotations != "all" and order.rotations > len(letters):
        raise UsageError(
            f"{task}: metadata.options.rotations is {order.rotations}, but question {name} has {len(letters)} options; "
            f"write at most {len(letters)}, or all."
        )
    shifts = list(range(len(letters)))
    if (
        order.rotations != "all"
    ):  # each rotation is equally likely, whatever the other questions are
        shifts.sort(
            key=lambda shift: hashlib.sha256(f"{order.seed}\0{name}\0{shift}".encode()).digest()
        )
        shifts = sorted(shifts[: order.rotations])
    rotated = []
    for shift in shifts:
        shown = [*letters[shift:], *letters[:shift]]  # the original option behind each letter
        facts = {
            "rotation_of": name,
            "rotation": shift,
            "rotations": len(shifts),
            "option_order": shown,
        }
        found = {**document, "sample_id": f"{name}~{shift}", **facts}
        if choices:
            now = dict(zip(shown, letters, strict=True))
            found.pop(
                "ideal_response", None
            )  # may name the letter of the plain order; baselines answer the target
            found["choices"] = {
                letter: choices[option] for letter, option in zip(letters, shown, strict=True)
            }
            found |= {
                field: now.get(document[field], document[field])
                for field in ("target", "abstention")
            }
        else:
            found["options"] = [*document["options"][shift:], *document["options"][:shift]]
        rotated.append(found)
    return rotated


def _order_scores(benchmark: Benchmark, views: Sequence[SampleView]) -> dict[str, Value]:
    answered = [view for view in views if view.status != FAILED]
    answers = [_positions(benchmark, view) for view in answered]
    pairs = zip(answers, answered, strict=True)
    options = {
        None if one is None else view.document["option_order"][one[0]] for one, view in pairs
    }
    failed = len(answered) < len(views)
    right = all(answer is not None and answer[0] == answer[1] for answer in answers)
    values = {
        measures.CIRCULAR: _every_time(right, failed=failed),
        measures.CONSISTENCY: _every_time(len(options) < 2 and None not in options, failed=failed),
    }
    selected = [answer for answer in answers if answer is not None]
    if failed:
        values[measures.PREFERENCE] = Value(failed=True)
    elif selected:
        letters = sorted(views[0].document["option_order"])
        places = [(benchmark.options or letters).index(letter) for letter in letters]
        found = [(places[chosen], places[correct]) for chosen, correct in selected]
        values[measures.PREFERENCE] = Value(
            statistics=tuple(measures.letter_statistics(found, places).tolist())
        )
    return values


def _positions(benchmark: Benchmark, view: SampleView) -> tuple[int, int] | None:
    """Positions of the selected and of the correct option as shown; None unless one option is
    selected.
    """
    chosen = selected_option(benchmark, view)
    shown = _unlettered(benchmark, view) or sorted(view.document["option_order"])
    return (shown.index(chosen), shown.index(view.document["target"])) if chosen in shown else None


def _in_plain_order(benchmark: Benchmark, view: SampleView) -> SampleView:
    if _unlettered(benchmark, view) is not None:
        return view
    order = view.document["option_order"]
    was = dict(zip(sorted(order), order, strict=True))
    # not a copy: `medtasks.leaderboard.intake.remove_rows` watches which fields of the document are
    # read
    document = cast(
        "Mapping[str, Any]",
        ChainMap({"target": was[view.document["target"]]}, cast("Any", view.document)),
    )
    return replace(view, document=document, filtered=was.get(view.filtered, view.filtered))


# --- paraphrased prompts ---


def _paraphrases(templates: Sequence[str], metric: str, document: Document) -> list[Document]:
    name = document["sample_id"]
    # of the cluster's own name, which stripped runs do not have
    facts = {"prompt_metric": metric, "prompt_half": measures.half_of(document["cluster"])}
    return [
        {
            **document,
            "sample_id": f"{name}~p{number}",
            "prompt_of": name,
            "prompt": number,
            "prompt_template": template,
            "prompts": len(templates),
            **facts,
        }
        for number, template in enumerate(templates, start=1)
    ]


def _prompt_scores(
    benchmark: Benchmark, views: Sequence[SampleView], asked: Sequence[Mapping[str, Value]]
) -> dict[str, Value]:
    """The scores of `prompt_metrics` of one question; ``asked`` are the values under each prompt,
    as if asked alone.
    """
    document = views[0].document
    each = [one[document["prompt_metric"]] for one in asked]
    answered = [view for view in views if view.status != FAILED]
    failed = len(answered) < len(views)
    rows = [one.statistics for one in each if one.statistics is not None]
    over = Value(failed=failed)
    if len(rows) == len(each):
        over = Value(
            statistics=tuple(measures.prompt_statistics(rows, document["prompt_half"]).tolist())
        )
    agreement = Value(statistics=(0.0, 0.0))
    if benchmark.options or document.get("options"):
        options = {selected_option(benchmark, view) for view in answered}
        agreement = _every_time(len(options) < 2 and None not in options, failed=failed)
    numbered = {prompt_metric(number): one for number, one in enumerate(each, start=1)}
    return {
        **dict.fromkeys((measures.WORST, measures.BEST, measures.SPREAD), over),
        measures.AGREEMENT: agreement,
        **numbered,
    }
