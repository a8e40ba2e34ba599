"""Questions with rotated options: their documents, and the scores over all rotations.

In rotation r the letter at position i shows the option that was at position i + r, modulo the
number of options: the circular shifts of MMBench (arXiv 2307.06281).
"""

from __future__ import annotations

import hashlib
import re
import string
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from medtasks.benchmarks.variant_answers import (
    has_several_answers,
    options_without_letters,
    selected_option,
    value_for_all,
)
from medtasks.catalog.benchmark import Benchmark, Document
from medtasks.catalog.items import SampleView, Value
from medtasks.catalog.statuses import FAILED
from medtasks.catalog.task_model import OptionOrder
from medtasks.core.errors import UsageError
from medtasks.metrics import variants as measures


def why_not_rotatable(document: Document) -> str:
    """Why a question's options cannot be rotated; empty if they can."""
    letters = _letters(document)
    options = document.get("options") or ()
    if len(letters) < 2:
        return "no_options"
    if len(options) > measures.POSITIONS:
        return "too_many_options"
    if options and _name_their_letters(options, letters):
        return "options_name_their_letters"
    if has_several_answers(document):
        return "not_one_answer"
    possible_targets = letters if document.get("choices") else options
    if document["target"] not in possible_targets:
        return "answer_not_an_option"
    return ""


def _letters(document: Mapping[str, Any]) -> list[str]:
    """The letters of the options, sorted; a list of options is lettered from A."""
    choices = document.get("choices")
    if choices:
        return sorted(choices)
    options = document.get("options") or ()
    return list(string.ascii_uppercase[: len(options)])


def _name_their_letters(options: Sequence[str], letters: Sequence[str]) -> bool:
    """Whether every option's text begins with its letter, as in ``A) …``."""
    for letter, text in zip(letters, options, strict=True):
        if re.match(rf"\(?{letter}[.):]", text) is None:
            return False
    return True


def rotated_documents(task: str, order: OptionOrder, document: Document) -> list[Document]:
    """The question with its options in each rotation that ``metadata.options`` asks for.

    Raises:
        UsageError: the task asks for more rotations than the question has options.
    """
    letters = _letters(document)
    name = document["sample_id"]
    if order.rotations != "all" and order.rotations > len(letters):
        raise UsageError(
            f"{task}: metadata.options.rotations is {order.rotations}, but question {name} has "
            f"{len(letters)} options; write at most {len(letters)}, or all."
        )
    shifts = _shifts(order, name, len(letters))
    return [_rotated(document, letters, shift, len(shifts)) for shift in shifts]


def _rotated(document: Document, letters: Sequence[str], shift: int, rotations: int) -> Document:
    """The question with its options rotated by ``shift``, one of its ``rotations``."""
    name = document["sample_id"]
    # the original option behind each letter
    option_order = [*letters[shift:], *letters[:shift]]
    rotated = {
        **document,
        "sample_id": f"{name}~{shift}",
        "rotation_of": name,
        "rotation": shift,
        "rotations": rotations,
        "option_order": option_order,
    }
    if document.get("choices"):
        _rotate_choices(rotated, letters, option_order)
    else:
        rotated["options"] = [*document["options"][shift:], *document["options"][:shift]]
    return rotated


def _shifts(order: OptionOrder, question: str, options: int) -> list[int]:
    """The rotations of a question, sorted: all, or a random sample of them.

    The sample depends on the seed and the question alone, not on the other questions.
    """
    if order.rotations == "all":
        return list(range(options))
    shift_of_digest: dict[bytes, int] = {}
    for shift in range(options):
        digest = hashlib.sha256(f"{order.seed}\0{question}\0{shift}".encode()).digest()
        shift_of_digest[digest] = shift
    first_digests = sorted(shift_of_digest)[: order.rotations]
    return sorted(shift_of_digest[digest] for digest in first_digests)


def _rotate_choices(
    document: Document, letters: Sequence[str], option_order: Sequence[str]
) -> None:
    """Give each letter the text of the option that it shows; rename target and abstention."""
    letter_of = dict(zip(option_order, letters, strict=True))
    # It may name the letter of the plain order. Baselines answer the target instead.
    document.pop("ideal_response", None)
    choices = document["choices"]
    document["choices"] = {letter: choices[option] for option, letter in letter_of.items()}
    for field in ("target", "abstention"):
        document[field] = letter_of.get(document[field], document[field])


class _Positions(NamedTuple):
    """Positions of the selected and of the correct option, as shown."""

    selected: int
    correct: int


def order_scores(benchmark: Benchmark, samples: Sequence[SampleView]) -> dict[str, Value]:
    """The scores over all rotations of one question; preference only if an option is selected."""
    answered = [sample for sample in samples if sample.status != FAILED]
    failed = len(answered) < len(samples)
    selections: list[_Positions] = []
    selected_options: set[str] = set()
    for sample in answered:
        positions = _positions(benchmark, sample)
        if positions is not None:
            selections.append(positions)
            selected_options.add(sample.document["option_order"][positions.selected])
    all_selected = len(selections) == len(answered)
    all_right = all_selected and all(pair.selected == pair.correct for pair in selections)
    same_option = all_selected and len(selected_options) < 2
    values = {
        measures.CIRCULAR: value_for_all(all_right, failed=failed),
        measures.CONSISTENCY: value_for_all(same_option, failed=failed),
    }
    if failed:
        values[measures.PREFERENCE] = Value(failed=True)
    elif selections:
        letters = sorted(samples[0].document["option_order"])
        values[measures.PREFERENCE] = _preference(benchmark.options or letters, letters, selections)
    return values


def _preference(
    alphabet: Sequence[str], letters: Sequence[str], selections: Sequence[_Positions]
) -> Value:
    """How often each letter of the ``alphabet`` was selected, expected and correct."""
    places = [alphabet.index(letter) for letter in letters]
    answers = [(places[pair.selected], places[pair.correct]) for pair in selections]
    return Value(statistics=tuple(measures.letter_statistics(answers, places).tolist()))


def _positions(benchmark: Benchmark, sample: SampleView) -> _Positions | None:
    """The positions of one answer; None unless one option is selected."""
    texts = options_without_letters(benchmark, sample)
    options = texts or sorted(sample.document["option_order"])
    selected = selected_option(benchmark, sample)
    if selected not in options:
        return None
    return _Positions(options.index(selected), options.index(sample.document["target"]))


def in_plain_order(benchmark: Benchmark, sample: SampleView) -> SampleView:
    """The sample with target and answer named as in the plain order of the options."""
    if options_without_letters(benchmark, sample) is not None:
        return sample
    order = sample.document["option_order"]
    plain_letter = dict(zip(sorted(order), order, strict=True))
    target = {"target": plain_letter[sample.document["target"]]}
    # Not a copy: `medtasks.leaderboard.intake.remove_rows` watches which fields of the document
    # are read.
    document = cast("Mapping[str, Any]", ChainMap(target, cast("Any", sample.document)))
    answer = plain_letter.get(sample.filtered, sample.filtered)
    return replace(sample, document=document, filtered=answer)
