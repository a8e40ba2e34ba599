"""From a document and its replies to a scored sample: the task's filter, its metrics, the
confidence of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from medtasks.answers.base import Reading, ResponseFilter, is_scored_whole, scored_part
from medtasks.answers.stated_confidence import parse_confidence, stated_confidence
from medtasks.benchmarks.pair_entries import BatchResponses, PairEntries
from medtasks.catalog.items import Derived, Item, Value
from medtasks.catalog.registry import wrong_return
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.catalog.statuses import ANSWERED, FAILED
from medtasks.catalog.task_model import Confidence
from medtasks.core.errors import first_line
from medtasks.metrics.confidence import (
    BRIER,
    CONFIDENCE_METRICS,
    CONFIDENCE_NAMES,
    GIVEN,
    LEVELS,
    case,
    given_statistics,
)
from medtasks.metrics.learned import LEARNED
from medtasks.runs.replies import Letter, failure_in
from medtasks.runs.samples import Limits, Repeat, Sample, reply_fields

Values = Mapping[str, Mapping[str, Any]]
"""What a task's ``process_results`` returns for a response: one entry per metric."""


def scored_samples(spec: TaskSpec, samples: Sequence[Sample]) -> list[Sample]:
    """``samples`` scored from their responses under the task's rules; text metrics are computed for
    all of them together. If a reply failed, the sample has the status ``failed`` and only the
    limits of its statistics: those of a blank response and of :func:`ideal_response`.
    """
    checked = [
        sample.model_copy(update=reply_fields(sample.replies))
        if any(map(failure_in, sample.responses))
        else sample
        for sample in samples
    ]
    documents = [sample.whole_document() for sample in checked]
    filtered = _filtered(
        spec, documents, [[*map(scored_part, sample.responses)] for sample in checked]
    )
    targets = zip(filtered, (sample.target for sample in checked), strict=True)
    pairs = [(reading.filtered, target) for several, target in targets for reading in several]
    entries = PairEntries(spec.metrics, pairs)
    return [_scored(spec, *one, entries) for one in zip(checked, documents, filtered, strict=True)]


def _scored(
    spec: TaskSpec,
    sample: Sample,
    document: Mapping[str, Any],
    readings: list[Reading],
    entries: PairEntries,
) -> Sample:
    function = spec.function("process_results")

    def process(readings: list[Reading]) -> Values:
        responses = BatchResponses((reading.filtered for reading in readings), entries)
        values: object = function(document, responses)
        if isinstance(values, Mapping) and all(
            isinstance(value, Mapping) for value in values.values()
        ):
            return values
        raise wrong_return(
            "`process_results`",
            function,
            values,
            "a mapping of metrics to what `sample_value` gives",
        )

    limits: dict[str, Limits] = {}
    if sample.failed:
        count = len(sample.responses)
        values, best = (
            process(*_filtered(spec, [document], [[text] * count]))
            for text in ("", ideal_response(document))
        )
        low, high = _statistics(values), _statistics(best)
        limits = {metric: (low[metric], high[metric]) for metric in low if metric in high}
        values = {metric: {"pending": value.get("pending")} for metric, value in values.items()}
        readings = [Reading(f"[{FAILED}]")]
    else:
        values = process(readings)
    repeats = tuple(
        Repeat(
            filtered=reading.filtered,
            status=spec.filter.status(reading.filtered),
            statistics={
                name: tuple(value["repeats"][number])
                for name, value in values.items()
                if "repeats" in value
            },
        )
        for number, reading in enumerate(readings if len(readings) > 1 else ())
    )
    scored = {
        "filtered": readings[0].filtered,
        "reading": readings[0].how,
        "status": FAILED if sample.failed else spec.filter.status(readings[0].filtered),
        "scored_in_part": not all(map(is_scored_whole, sample.responses)),
        "scores": {metric: value.get("score") for metric, value in values.items()},
        "statistics": _statistics(values),
        "limits": limits,
        "repeats": repeats,
        "pending": tuple(metric for metric, value in values.items() if value.get("pending")),
        "judged": {},
        "confidence": None,
    }
    # validated, because the values come from functions of task packages
    return Sample.model_validate(dict(sample) | scored)


def ideal_response(document: Mapping[str, Any]) -> str:
    """The best-scoring response: the document's ``ideal_response``, else the gold answer."""
    return str(document.get("ideal_response") or document["target"])


def _filtered(
    spec: TaskSpec, documents: Sequence[Mapping[str, Any]], texts: Sequence[list[str]]
) -> list[list[Reading]]:
    if not documents:
        return []
    step = spec.filter.kind()
    if isinstance(step, ResponseFilter):
        readings = step.readings(texts, documents)
    else:
        what, apply, count = f"filter {spec.filters[-1]}", type(step).apply, len(documents)
        made: Any = step.apply([*texts], [*documents])
        if not isinstance(made, Sequence) or isinstance(made, str) or len(made) != count:
            expected = (
                f"a list with an entry for each of {count} documents"
                if count > 1
                else "a list with one entry"
            )
            raise wrong_return(what, apply, made, expected)
        readings = []
        for several, given in zip(made, texts, strict=True):
            filtered = [several] if isinstance(several, str) else several
            if not isinstance(filtered, Sequence) or not all(
                isinstance(text, str) for text in filtered
            ):
                raise wrong_return(what, apply, several, "a filtered response, or a list of them")
            if len(filtered) != len(given):
                raise wrong_return(
                    what, apply, several, f"a filtered response for each of {len(given)}"
                )
            readings.append([Reading(text) for text in filtered])
    return [[Reading(text.strip(), how) for text, how in several] for several in readings]


def _statistics(values: Values) -> dict[str, tuple[float, ...]]:
    return {
        metric: tuple(value["statistics"])
        for metric, value in values.items()
        if "statistics" in value
    }


# --- learned metrics ---


def with_learned_metrics(
    spec: TaskSpec, samples: Sequence[Sample], problems: list[str]
) -> list[Sample]:
    """``samples`` with the task's learned metrics; one whose weights are missing has no statistics.
    If a model fails, a message is added to ``problems``.
    """
    if not spec.metadata.learned:
        return list(samples)
    values: dict[str, dict[int, float]] = {name: {} for name in spec.metadata.learned}
    answered = [number for number, sample in enumerate(samples) if sample.status != FAILED]
    for name, known in values.items():
        if LEARNED[name].unavailable() is not None:
            continue
        try:
            scores = LEARNED[name].scores(
                [(samples[number].filtered, samples[number].target) for number in answered]
            )
            known.update(zip(answered, scores.tolist(), strict=True))
        except Exception as error:  # any model on any device: memory, drivers, weights
            why = first_line(error)
            problems.append(
                f"{spec.name}: {name} could not be computed ({why}); `medtasks score` tries again."
            )
    renewed = []
    for number, sample in enumerate(samples):
        own = {name: known.get(number) for name, known in values.items()}
        statistics = {name: (value, 1.0) for name, value in own.items() if value is not None}
        update = {
            "scores": {**sample.scores, **own},
            "statistics": {**sample.statistics, **statistics},
        }
        renewed.append(sample.model_copy(update=update))
    return renewed


def has_models(spec: TaskSpec) -> bool:
    """Whether a model scores the task's samples: a score depends a little on the others in its
    batch.
    """
    return any(LEARNED[name].unavailable() is None for name in spec.metadata.learned)


# --- confidence ---

_WRONG, _RIGHT = (0.0, 1.0), (1.0, 1.0)
"""Statistics of an answer whose correctness is known."""
Found = float | str
"""A confidence, 0..1, or the reason why there is none (`medtasks.metrics.confidence.REASONS`)."""


def confidence_metrics(samples: Sequence[Sample]) -> Iterator[Derived]:
    """The scores of confidences in tasks with ``metadata.confidence``, as one set.

    There is no set if the back-end gave no probabilities at all. Items of several samples, and
    repeated questions, have no scores.
    """
    declared: dict[str, Confidence] = {}
    for task in {sample.task for sample in samples}:
        facts = load_spec(task).metadata.confidence
        if facts is not None:
            declared[task] = facts
    giving: set[str] = set()
    for sample in samples:
        if sample.task in declared and sample.task not in giving:
            is_stated = declared[sample.task].of == "stated"
            if is_stated or gives_confidence(sample):
                giving.add(sample.task)
    by_id: dict[str, Sample] = {}
    for sample in samples:
        is_single = len(sample.responses) == 1 or sample.confidence is not None
        if is_single and sample.task in giving:
            by_id[sample.sample_id] = sample

    def values(item: Item) -> Mapping[str, Value]:
        sample = by_id.get(item.item_id) if len(item.samples) == 1 else None
        if sample is None:
            return {}
        if sample.status == FAILED:
            return dict.fromkeys(CONFIDENCE_NAMES, Value(failed=True))
        facts = declared[sample.task]
        confidence = confidence_of(sample, facts)
        if isinstance(confidence, str):
            return {GIVEN: Value(given_statistics(confidence))}
        correct = item.values.get(facts.correct)
        # it awaits a judge, or is neither right nor wrong
        if correct is None or correct.statistics not in (_WRONG, _RIGHT):
            return {GIVEN: Value(given_statistics("not_scored"))}
        return _confidence_values(confidence, is_right=correct.statistics == _RIGHT)

    if giving:
        yield Derived(CONFIDENCE_NAMES, values)


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


def gives_confidence(sample: Sample) -> bool:
    """Whether the back-end gave probabilities: if it did for one sample, all others of the task
    count as well.
    """
    return any(sample.probabilities) or sample.confidence is not None


def kept_confidences(samples: Sequence[Sample]) -> list[Found | None]:
    """What the scores need of the confidence of each sample of a task if its response is removed,
    if anything.
    """
    facts = load_spec(samples[0].task).metadata.confidence if samples else None
    if facts is None or not (
        facts.of == "stated" or any(any(sample.probabilities) for sample in samples)
    ):
        return [sample.confidence for sample in samples]
    return [
        confidence_of(sample, facts) if len(sample.responses) == 1 else sample.confidence
        for sample in samples
    ]


def confidence_of(sample: Sample, facts: Confidence) -> Found:
    """The confidence of a sample's first response: stated, or the probability of the answer or of
    the option at its :func:`deciding_letter`, normalised over the question's options.
    """
    if not sample.responses and sample.confidence is not None:
        return sample.confidence
    if sample.status in ("empty", FAILED) or (
        sample.status not in ANSWERED and facts.of != "answer"
    ):
        return "no_answer"
    if facts.of == "stated":
        return parse_confidence(stated_confidence(scored_part(sample.responses[0])))
    given = sample.probabilities[0] if sample.probabilities else None
    if given is None:
        return "no_probabilities"
    if facts.of == "answer":
        return "no_probabilities" if given.answer is None else given.answer
    step, document = (
        load_spec(sample.task).filter.kind(),
        {**sample.document, "target": sample.target},
    )

    def read(text: str) -> str:
        return str(step.apply([[text]], [document])[0])

    letter = deciding_letter(given.letters, sample.filtered, sample.responses[0], read)
    return "no_letter_token" if letter is None else letter.options[letter.letter]


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
    for one in reversed([one for one in letters if one.letter == chosen and chosen in one.options]):
        before = response[: one.at]
        if read(before).strip() != chosen:
            without = response[one.at : end].replace(chosen, "", 1)
            return None if read(before + without).strip() == chosen else one
        end = one.at
    return None
