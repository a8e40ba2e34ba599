"""Closed questions in the plain order of their options, and the option that an answer selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medtasks.benchmarks.rotated_options import in_plain_order
from medtasks.benchmarks.variant_answers import has_several_answers, selected_option
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.items import SampleView
from medtasks.metrics.normalisation import normalise
from medtasks.runs.samples import Sample

YES_OR_NO = ("yes", "no")
"""The options of a question that names none, if its reference is one of them."""


@dataclass(frozen=True)
class ClosedQuestion:
    """The options of a question with one right answer, in the plain order.

    ``labels`` are their letters, or their numbers in a list without letters. ``texts`` are empty if
    the document does not state them. ``gold`` is the place of the gold answer, from 0.
    ``is_numbered`` is whether the options have no letters, so that an answer states a text.
    """

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    gold: int
    is_numbered: bool = False

    @property
    def answers(self) -> tuple[str, ...]:
        """What an answer that selects an option states: its text in a list without letters, or else
        its label.
        """
        return self.texts if self.is_numbered else self.labels

    def described(self, place: int) -> str:
        """An option as people name it: its label and, if it is stated, its text.

        >>> ClosedQuestion(("A", "B"), ("left", "right"), 0).described(1)
        'B (right)'
        """
        if not self.texts or self.texts[place] == self.labels[place]:
            return self.labels[place]
        return f"{self.labels[place]} ({self.texts[place]})"


def closed_question(benchmark: Benchmark, sample: Sample) -> ClosedQuestion | None:
    """The closed question of a sample; None if it is open, has several right answers, or a gold
    answer that is none of its options.
    """
    document = sample.document
    if has_several_answers(document):
        return None
    letters = _plain_choices(document)
    texts = _plain_options(document)
    target = _plain_view(benchmark, sample).document["target"]
    if letters:
        return _with_gold(tuple(letters), tuple(letters.values()), target)
    if benchmark.options:
        return _with_gold(benchmark.options, (), target)
    if texts:
        if target not in texts or len(texts) < 2:
            return None
        numbers = tuple(str(number) for number in range(1, len(texts) + 1))
        return ClosedQuestion(numbers, tuple(texts), texts.index(target), is_numbered=True)
    answer = normalise(sample.target)
    if answer in YES_OR_NO:
        return ClosedQuestion(YES_OR_NO, YES_OR_NO, YES_OR_NO.index(answer))
    return None


def _with_gold(
    labels: tuple[str, ...], texts: tuple[str, ...], target: object
) -> ClosedQuestion | None:
    """The question whose gold answer has the label ``target``; None if no option has."""
    if target not in labels or len(labels) < 2:
        return None
    return ClosedQuestion(labels, texts, labels.index(str(target)))


def chosen_options(
    benchmark: Benchmark, sample: Sample, question: ClosedQuestion
) -> list[int | None]:
    """The places of the options that the responses to a sample select, one for each repeat; None
    unless exactly one is selected.
    """
    view = _plain_view(benchmark, sample)
    if not sample.repeats:
        return [_chosen(benchmark, view, question)]
    chosen = []
    for repeat in sample.repeats:
        answered = replace(sample_view(sample), filtered=repeat.filtered, status=repeat.status)
        chosen.append(_chosen(benchmark, _in_plain_order(benchmark, answered), question))
    return chosen


def _chosen(benchmark: Benchmark, view: SampleView, question: ClosedQuestion) -> int | None:
    """The place of the option that a response selects; None unless exactly one is selected."""
    selected: str | None
    if question.labels == YES_OR_NO:
        selected = normalise(view.filtered) if view.status == "ok" else None
    else:
        selected = selected_option(benchmark, view)
    if selected is None or selected not in question.answers:
        return None
    return question.answers.index(selected)


def sample_view(sample: Sample) -> SampleView:
    """The sample as scoring sees it, without its values."""
    return SampleView(
        sample_id=sample.sample_id,
        cluster=sample.cluster,
        document={**sample.document, "target": sample.target},
        filtered=sample.filtered,
        status=sample.status,
        task=sample.task,
    )


def _plain_view(benchmark: Benchmark, sample: Sample) -> SampleView:
    """The sample with target and answer as in the plain order of the options."""
    return _in_plain_order(benchmark, sample_view(sample))


def _in_plain_order(benchmark: Benchmark, view: SampleView) -> SampleView:
    """The view with its options in the plain order, whether or not they were rotated."""
    if view.document.get("rotation_of") is None:
        return view
    return in_plain_order(benchmark, view)


def _plain_choices(document: Mapping[str, Any]) -> dict[str, str]:
    """The texts of lettered options by their letters in the plain order; empty without any."""
    choices = document.get("choices")
    if not isinstance(choices, Mapping):
        return {}
    texts = {str(letter): str(text) for letter, text in choices.items() if text is not None}
    order = document.get("option_order")
    if not order:
        return dict(sorted(texts.items()))
    plain_texts = {}
    for plain_letter, letter in zip(order, sorted(order), strict=True):
        plain_texts[str(plain_letter)] = texts[letter]
    return dict(sorted(plain_texts.items()))


def _plain_options(document: Mapping[str, Any]) -> Sequence[str]:
    """The texts of options without letters in the plain order; empty without any."""
    options = [str(option) for option in document.get("options") or ()]
    shift = int(document.get("rotation") or 0)
    return [*options[len(options) - shift :], *options[: len(options) - shift]]
