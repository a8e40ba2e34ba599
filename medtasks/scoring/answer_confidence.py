"""The confidence of answers: stated, or the probability that the back-end gave; and its scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from medtasks.answers.base import scored_part
from medtasks.answers.stated_confidence import parse_confidence, stated_confidence
from medtasks.catalog.items import Derived, Item, Value
from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import ANSWERED, FAILED, MISSED
from medtasks.catalog.task_model import Confidence
from medtasks.metrics.confidence import (
    BRIER,
    CONFIDENCE_METRICS,
    CONFIDENCE_NAMES,
    GIVEN,
    LEVELS,
    case,
    given_statistics,
)
from medtasks.runs.replies import Letter
from medtasks.runs.samples import Sample

_WRONG, _RIGHT = (0.0, 1.0), (1.0, 1.0)
"""Statistics of an answer whose correctness is known."""
ConfidenceOrReason = float | str
"""A confidence, 0 to 1, or the reason why there is none (`medtasks.metrics.confidence.REASONS`)."""


# --- scores of confidences ---


def confidence_metrics(samples: Sequence[Sample]) -> Iterator[Derived]:
    """The scores of confidences in tasks with ``metadata.confidence``, as one set.

    There is no set if the back-end gave no probabilities at all. Items of several samples, and
    repeated questions, have no scores.
    """
    declared = _declared_confidences(samples)
    tasks = _tasks_with_confidences(samples, declared)
    if not tasks:
        return
    by_id = {}
    for sample in samples:
        is_single = len(sample.responses) == 1 or sample.confidence is not None
        if is_single and sample.task in tasks:
            by_id[sample.sample_id] = sample
    yield Derived(CONFIDENCE_NAMES, _ItemConfidences(by_id, declared).values)


def _declared_confidences(samples: Sequence[Sample]) -> dict[str, Confidence]:
    """What the task files declare, by task."""
    declared = {}
    for task in {sample.task for sample in samples}:
        confidence = load_spec(task).metadata.confidence
        if confidence is not None:
            declared[task] = confidence
    return declared


def _tasks_with_confidences(
    samples: Sequence[Sample], declared: Mapping[str, Confidence]
) -> set[str]:
    """The tasks in which a sample has a confidence, or states one."""
    tasks: set[str] = set()
    for sample in samples:
        if sample.task in tasks or sample.task not in declared:
            continue
        if declared[sample.task].of == "stated" or gives_confidence(sample):
            tasks.add(sample.task)
    return tasks


@dataclass(frozen=True)
class _ItemConfidences:
    """Samples by id that may have a confidence, and what their tasks declare."""

    by_id: Mapping[str, Sample]
    declared: Mapping[str, Confidence]

    def values(self, item: Item) -> Mapping[str, Value]:
        """The item's values of the metrics of confidence."""
        sample = self.by_id.get(item.item_id)
        if sample is None or len(item.samples) != 1:
            return {}
        if sample.status == FAILED:
            return dict.fromkeys(CONFIDENCE_NAMES, Value(failed=True))
        declared = self.declared[sample.task]
        confidence = confidence_of(sample, declared)
        if isinstance(confidence, str):
            return {GIVEN: Value(given_statistics(confidence))}
        correct = item.values.get(declared.correct)
        # it awaits a judge, or is neither right nor wrong
        if correct is None or correct.statistics not in (_WRONG, _RIGHT):
            return {GIVEN: Value(given_statistics("not_scored"))}
        return _confidence_values(confidence, is_right=correct.statistics == _RIGHT)


def _confidence_values(confidence: float, *, is_right: bool) -> dict[str, Value]:
    """What an answer with this confidence contributes to each metric of confidence."""
    percent = round(100 * confidence)
    gap = percent / 100 - is_right
    counted = Value(case(percent, right=is_right))
    values = {GIVEN: Value(given_statistics(None))}
    for metric in CONFIDENCE_METRICS:
        if metric.width == 2 * LEVELS:
            values[metric.name] = counted
    values[BRIER] = Value((gap * gap, 1.0))
    return values


# --- the confidence of a sample ---


def gives_confidence(sample: Sample) -> bool:
    """Whether the back-end gave probabilities: if it did for one sample, all others of the task
    count as well.
    """
    return _has_probabilities(sample) or sample.confidence is not None


def _has_probabilities(sample: Sample) -> bool:
    return any(sample.probabilities)


def kept_confidences(samples: Sequence[Sample]) -> list[ConfidenceOrReason | None]:
    """What the scores need of the confidence of each sample of a task if its response is removed,
    if anything.
    """
    declared = load_spec(samples[0].task).metadata.confidence if samples else None
    unchanged = [sample.confidence for sample in samples]
    if declared is None:
        return unchanged
    if declared.of != "stated" and not any(map(_has_probabilities, samples)):
        return unchanged
    confidences: list[ConfidenceOrReason | None] = []
    for sample in samples:
        if len(sample.responses) == 1:
            confidences.append(confidence_of(sample, declared))
        else:
            confidences.append(sample.confidence)
    return confidences


def confidence_of(sample: Sample, declared: Confidence) -> ConfidenceOrReason:
    """The confidence of a sample's first response: stated, or the probability of the answer or of
    the option at its :func:`deciding_letter`, normalised over the question's options.
    """
    if not sample.responses and sample.confidence is not None:
        return sample.confidence
    is_unread = sample.status not in ANSWERED and declared.of != "answer"
    if is_unread or sample.status in ("empty", FAILED, MISSED):
        return "no_answer"
    if declared.of == "stated":
        return parse_confidence(stated_confidence(scored_part(sample.responses[0])))
    probabilities = sample.probabilities[0] if sample.probabilities else None
    if probabilities is None:
        return "no_probabilities"
    if declared.of == "answer":
        return "no_probabilities" if probabilities.answer is None else probabilities.answer
    letter = deciding_letter(
        probabilities.letters, sample.filtered, sample.responses[0], _reader(sample)
    )
    return "no_letter_token" if letter is None else letter.options[letter.letter]


def _reader(sample: Sample) -> Callable[[str], str]:
    """The task's filter, as it reads any response to the sample's document."""
    step = load_spec(sample.task).filter.kind()
    document = {**sample.document, "target": sample.target}
    return lambda text: str(step.apply([[text]], [document])[0])


def deciding_letter(
    letters: Sequence[Letter], chosen: str, response: str, read: Callable[[str], str]
) -> Letter | None:
    """The generated letter that named the ``chosen`` option for good; None if the option was not
    named by its letter.

    Of the tokens that are this letter it is the last one before which ``read`` does not yet find
    the option, so ``B. Vitamin B is low`` counts at its first letter and ``B or C? The answer is
    B`` at its last. If ``read`` finds the option without that letter, too, something else named it:
    ``Maybe B. Option (b) it is``.
    """
    end = len(response)
    for letter in reversed(letters):
        if letter.letter != chosen or chosen not in letter.options:
            continue
        before = response[: letter.at]
        if read(before).strip() != chosen:
            without = response[letter.at : end].replace(chosen, "", 1)
            is_named_otherwise = read(before + without).strip() == chosen
            return None if is_named_otherwise else letter
        end = letter.at
    return None
