"""Questions that are asked with their options in several orders (``metadata.options``): documents, and scores.

In rotation r the letter at position i shows the option that was at position i + r, modulo the number of options: the
circular shifts of MMBench (arXiv 2307.06281). A task's rows are this module's attribute with the task's name, so task
files write ``process_docs: !function medtasks.benchmarks.rotations.TASK``.
"""

from __future__ import annotations

import functools
import hashlib
import re
import string
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from medtasks.benchmarks.base import FAILED, Benchmark, Document, SampleView, Value
from medtasks.benchmarks.documents import Rows, task_rows
from medtasks.errors import UsageError
from medtasks.metrics.closed_answer import closed_answer_matches
from medtasks.metrics.variants import CIRCULAR, CONSISTENCY, POSITIONS, PREFERENCE, letter_statistics
from medtasks.spec import TaskSpec, load_spec
from medtasks.task_model import Metadata, OptionOrder


def __getattr__(name: str) -> Rows:
    """The rows of the task called ``name``, for ``!function`` in its file."""
    if name.startswith("_"):
        raise AttributeError(name)
    return rotated_rows(name, load_spec(name).metadata)


def rotated_rows(task: str, metadata: Metadata) -> Rows:
    """The rows of ``compare_with``, each in several orders of its options; rows without options are left out."""
    rows = task_rows(plain_task(task, metadata, "options").name)
    return replace(
        rows,
        unusable=functools.partial(_unusable, rows.unusable),
        variants=functools.partial(_rotated, task, metadata.options),
    )


def plain_task(task: str, metadata: Metadata, key: str) -> TaskSpec:
    """The task of ``compare_with``, whose questions ``task`` asks several times because of ``metadata``'s ``key``.

    Raises:
        UsageError: the key is not set, or ``compare_with`` is not a task that asks each question once.
    """
    plain = load_spec(metadata.compare_with) if metadata.varied is not None and metadata.varied[0] == key else None
    if plain is None or plain.kind != "task" or plain.metadata.varied is not None:
        raise UsageError(
            f"{task}: metadata.compare_with is {metadata.compare_with!r}, expected a task that asks each question "
            f"once, which metadata.{key} asks several times; name one."
        )
    return plain


def _letters(document: Mapping[str, Any]) -> list[str]:
    """The letters of a document's options in the order of the prompt, as for an unlettered list of options."""
    choices = document.get("choices")
    return sorted(choices) if choices else list(string.ascii_uppercase[: len(document.get("options") or ())])


def _unusable(other: Callable[[Document], str] | None, document: Document) -> str:
    letters, options = _letters(document), document.get("options") or ()
    if other is not None and (reason := other(document)):
        return reason
    if len(letters) < 2:
        return "no_options"
    if len(options) > POSITIONS:
        return "too_many_options"
    if options and all(re.match(rf"\(?{letter}[.):]", text) for letter, text in zip(letters, options, strict=True)):
        return "options_name_their_letters"
    if (document.get("rounds") or 1) > 1 or document.get("multi_select"):
        return "not_one_answer"
    return "" if document["target"] in (letters if document.get("choices") else options) else "answer_not_an_option"


def _rotated(task: str, order: OptionOrder, document: Document) -> list[Document]:
    letters, name = _letters(document), document["sample_id"]
    if order.rotations != "all" and order.rotations > len(letters):
        raise UsageError(
            f"{task}: metadata.options.rotations is {order.rotations}, but question {name} has {len(letters)} options; "
            f"write at most {len(letters)}, or all."
        )
    shifts = list(range(len(letters)))
    if order.rotations != "all":  # each rotation is equally likely, whatever the other questions are
        shifts.sort(key=lambda shift: hashlib.sha256(f"{order.seed}\0{name}\0{shift}".encode()).digest())
        shifts = sorted(shifts[: order.rotations])
    return [_shifted(document, letters, shift, len(shifts)) for shift in shifts]


def _shifted(document: Document, letters: Sequence[str], shift: int, rotations: int) -> Document:
    shown = [*letters[shift:], *letters[:shift]]  # the original option behind each letter
    facts = {"rotation_of": document["sample_id"], "rotation": shift, "rotations": rotations, "option_order": shown}
    found = {**document, "sample_id": f"{document['sample_id']}~{shift}", **facts}
    choices = document.get("choices")
    if not choices:
        texts = document["options"]
        return {**found, "options": [*texts[shift:], *texts[:shift]]}
    now = dict(zip(shown, letters, strict=True))
    found.pop("ideal_response", None)  # it may name the letter of the plain order; baselines then answer the target
    return {
        **found,
        "choices": {letter: choices[option] for letter, option in zip(letters, shown, strict=True)},
        **{field: now.get(document[field], document[field]) for field in ("target", "abstention")},
    }


def order_scores(
    benchmark: Benchmark, views: Sequence[SampleView], asked: Sequence[Mapping[str, Value]]
) -> dict[str, Value]:
    """The scores of `ORDER_METRICS` of one question from its rotations; those ``asked`` one by one do not matter."""
    del asked
    answered = [view for view in views if view.status != FAILED]
    answers = [_answer(benchmark, view) for view in answered]
    pairs = zip(answers, answered, strict=True)
    options = {None if one is None else view.document["option_order"][one[0]] for one, view in pairs}
    failed = len(answered) < len(views)
    right = all(one is not None and one[0] == one[1] for one in answers)
    values = {
        CIRCULAR: share(right, failed=failed),
        CONSISTENCY: share(len(options) < 2 and None not in options, failed=failed),
    }
    selected = [one for one in answers if one is not None]
    if failed:
        values[PREFERENCE] = Value(failed=True)
    elif selected:
        values[PREFERENCE] = _preference(benchmark, sorted(views[0].document["option_order"]), selected)
    return values


def share(possible: bool, *, failed: bool) -> Value:
    """Whether something holds every time; ``possible`` is whether it holds where the back-end did not fail."""
    row = (float(possible), 1.0)
    return Value(low=(0.0, 1.0), high=row, failed=True) if failed else Value(statistics=row)


def _preference(benchmark: Benchmark, letters: Sequence[str], answers: Sequence[tuple[int, int]]) -> Value:
    names = benchmark.options or letters
    places = [names.index(letter) for letter in letters]
    found = [(places[chosen], places[correct]) for chosen, correct in answers]
    return Value(statistics=tuple(letter_statistics(found, places).tolist()))


def _answer(benchmark: Benchmark, view: SampleView) -> tuple[int, int] | None:
    """Positions of the selected and of the correct option as they were shown; None unless one option is selected."""
    chosen, texts = selected_option(benchmark, view), unlettered(benchmark, view)
    if chosen is None:
        return None
    if texts is not None:
        return int(chosen), texts.index(view.document["target"])
    letters = sorted(view.document["option_order"])
    return (letters.index(chosen), letters.index(view.document["target"])) if chosen in letters else None


def selected_option(benchmark: Benchmark, view: SampleView) -> str | None:
    """The letter of the one option that was selected, or its position in a list without letters; None without one."""
    if view.status != "ok":
        return None
    texts = unlettered(benchmark, view)
    if texts is None:
        return view.filtered
    chosen = [place for place, text in enumerate(texts) if closed_answer_matches(view.filtered, [text], texts)]
    return str(chosen[0]) if len(chosen) == 1 else None


def unlettered(benchmark: Benchmark, view: SampleView) -> list[str] | None:
    """The options as shown if they are a list, whose target is a text; None if they have letters of their own."""
    return None if benchmark.options else view.document.get("options") or None


def in_plain_order(benchmark: Benchmark, view: SampleView) -> SampleView:
    """The view with the letters of the plain order as target and answer."""
    if unlettered(benchmark, view) is not None:
        return view
    order = view.document["option_order"]
    was = dict(zip(sorted(order), order, strict=True))
    # not a copy: `medtasks.leaderboard.strip` watches which fields of the document are read
    document = cast("Mapping[str, Any]", ChainMap({"target": was[view.document["target"]]}, cast("Any", view.document)))
    return replace(view, document=document, filtered=was.get(view.filtered, view.filtered))
