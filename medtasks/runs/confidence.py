"""The confidence of each answer of a task with ``metadata.confidence``, and whether the answer is right.

The option letter of a response is the generated one with which the response named its option for good: the last one
before which the filter does not yet read that option, and without which it would not read it. Its confidence is the
option's probability there, normalised over the question's options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from medtasks.answers.stated_confidence import parse_confidence, stated_confidence
from medtasks.catalog.benchmark import ANSWERED, FAILED, Derived, Item, Value
from medtasks.catalog.spec import load_spec
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
from medtasks.runs.replies import Letter, Probabilities
from medtasks.runs.samples import Sample

Found = float | str
"""A confidence, 0..1, or the reason why there is none (`medtasks.metrics.confidence.REASONS`)."""


def confidence_metrics(samples: Sequence[Sample]) -> Iterator[Derived]:
    """The scores of confidences, as one set; none if the back-end gave no probabilities at all.

    Items of several samples, and repeated questions, have none. A failed request leaves them open.
    """
    declared = {task: load_spec(task).metadata.confidence for task in {sample.task for sample in samples}}
    giving = {
        sample.task
        for sample in samples
        if (facts := declared[sample.task]) is not None and (facts.of == "stated" or gives_confidence(sample))
    }
    by_id = {sample.sample_id: sample for sample in samples if sample.task in giving and _is_one(sample)}

    def values(item: Item) -> Mapping[str, Value]:
        sample = by_id.get(item.item_id) if len(item.samples) == 1 else None
        facts = None if sample is None else declared[sample.task]
        return {} if sample is None or facts is None else _values(item, sample, facts)

    if giving:
        yield Derived(CONFIDENCE_NAMES, values)


def gives_confidence(sample: Sample) -> bool:
    """Whether the back-end gave probabilities; if it did for one sample, all others of the task count as well."""
    return any(sample.probabilities) or sample.confidence is not None


def kept_confidences(samples: Sequence[Sample]) -> list[Found | None]:
    """What the scores need of each sample's confidence if its response is removed; None if they need nothing.

    The samples are those of one task.
    """
    facts = load_spec(samples[0].task).metadata.confidence if samples else None
    if facts is None or not (facts.of == "stated" or any(any(sample.probabilities) for sample in samples)):
        return [sample.confidence for sample in samples]
    return [confidence_of(sample, facts) if _is_one(sample) else None for sample in samples]


def _is_one(sample: Sample) -> bool:
    """Whether the sample has, or had, one response."""
    return len(sample.responses) == 1 or sample.confidence is not None


def _values(item: Item, sample: Sample, facts: Confidence) -> Mapping[str, Value]:
    if sample.status == FAILED:
        return dict.fromkeys(CONFIDENCE_NAMES, Value(failed=True))
    found = confidence_of(sample, facts)
    right = item.values[facts.correct].statistics if facts.correct in item.values else None
    if not isinstance(found, str) and (right is None or right[1] != 1.0 or right[0] not in (0.0, 1.0)):
        found = "not_scored"  # awaits a judge, or is neither right nor wrong
    given = {GIVEN: Value(given_statistics(found if isinstance(found, str) else None))}
    if isinstance(found, str) or right is None:
        return given
    percent = round(100 * found)
    gap = percent / 100 - right[0]
    counted = Value(case(percent, right=right[0] == 1.0))
    scores = {metric.name: counted for metric in CONFIDENCE_METRICS if metric.width == 2 * LEVELS}
    return {**given, **scores, BRIER: Value((gap * gap, 1.0))}


def confidence_of(sample: Sample, facts: Confidence) -> Found:
    """The confidence of a sample's first response, or what was kept of it."""
    if not sample.responses and sample.confidence is not None:
        return sample.confidence
    if sample.status in ("empty", FAILED) or (sample.status not in ANSWERED and facts.of != "answer"):
        return "no_answer"
    if facts.of == "stated":
        return parse_confidence(stated_confidence(sample.responses[0]))
    given: Probabilities | None = sample.probabilities[0] if sample.probabilities else None
    if given is None:
        return "no_probabilities"
    if facts.of == "answer":
        return "no_probabilities" if given.answer is None else given.answer
    step = load_spec(sample.task).filter.kind()
    document = {**sample.document, "target": sample.target}

    def read(text: str) -> str:
        return str(step.apply([[text]], [document])[0])

    letter = deciding_letter(given.letters, sample.filtered, sample.responses[0], read)
    return "no_letter_token" if letter is None else letter.options[letter.letter]


def deciding_letter(letters: Sequence[Letter], chosen: str, response: str, read: Callable[[str], str]) -> Letter | None:
    """The generated letter that named the ``chosen`` option for good; None if the option was not named by its letter.

    Of the tokens that are this letter it is the last one before which ``read`` does not yet find the option, so
    ``B. Vitamin B is low`` counts at its first letter and ``B or C? The answer is B`` at its last. If ``read`` finds
    the option without that letter, too, something else named it: ``Maybe B. Option (b) it is``.
    """
    end = len(response)
    for one in reversed([one for one in letters if one.letter == chosen and chosen in one.options]):
        before = response[: one.at]
        if read(before).strip() != chosen:
            without = response[one.at : end].replace(chosen, "", 1)
            return None if read(before + without).strip() == chosen else one
        end = one.at
    return None
