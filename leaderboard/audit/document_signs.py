"""Signs in the questions themselves: equal options, and equal questions with different golds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from medtasks.core.text import first_names
from medtasks.metrics.normalisation import normalise, verbatim

from .answered_questions import AuditedQuestion
from .closed_questions import ClosedQuestion
from .signs import Sign, SignKind

_MOST_NAMED = 3
"""Questions and options named in a sign; the others are counted."""


def equal_option_sign(question: AuditedQuestion) -> Sign | None:
    """The sign that options say the same after normalisation (`medtasks.metrics.normalisation`).

    It is a strong one if the gold answer is among them: then another option is as right.
    """
    closed = question.closed
    if closed is None or not closed.texts:
        return None
    groups = [group for group in _equal_options(closed.texts) if len(group) > 1]
    if not groups:
        return None
    with_gold = [group for group in groups if closed.gold in group]
    first_group = (with_gold or groups)[0]
    labels = " and ".join(closed.labels[place] for place in first_group)
    text = f"options {labels} say the same ({closed.texts[first_group[0]]!r})"
    if with_gold:
        public = f"options {labels} say the same, and one of them is the gold answer"
        return Sign(SignKind.EQUAL_OPTIONS, f"{text}, and one of them is the gold answer", public)
    return Sign(SignKind.EQUAL_DISTRACTORS, text, f"options {labels} say the same")


def _equal_options(texts: Sequence[str]) -> Iterable[list[int]]:
    """The places of the options by their texts after normalisation; texts of which nothing is left
    are compared as they are.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        groups[normalise(text) or verbatim(text)].append(place)
    return groups.values()


def different_gold_signs(
    questions: Sequence[AuditedQuestion], media_hashes: Mapping[str, str]
) -> Iterator[tuple[AuditedQuestion, Sign]]:
    """The questions that are asked of the same media elsewhere with another gold answer.

    Closed questions need the same options, in any order; open ones are a weaker sign, since their
    references may say the same in other words.

    Args:
        questions: those of one benchmark.
        media_hashes: the hash of each file by its name; others are compared by name.
    """
    for alike in _asked_alike(questions, media_hashes):
        golds = [_gold_text(question) for question in alike]
        if len(set(golds)) == 1:
            continue
        for question, gold in zip(alike, golds, strict=True):
            contradicting = []
            for question_alike, gold_alike in zip(alike, golds, strict=True):
                if gold_alike != gold:
                    contradicting.append(question_alike.sample_id)
            kind = SignKind.DIFFERENT_GOLDS
            if question.closed is None:
                kind = SignKind.DIFFERENT_REFERENCES
            names = first_names(contradicting, _MOST_NAMED)
            yield question, Sign(kind, f"same question and media as {names}, other gold answer")


def _asked_alike(
    questions: Sequence[AuditedQuestion], media_hashes: Mapping[str, str]
) -> Iterator[list[AuditedQuestion]]:
    """Questions with the same text, context, media and options, two or more each."""
    groups: dict[tuple[object, ...], list[AuditedQuestion]] = defaultdict(list)
    for question in questions:
        if question.media and question.text:
            media = tuple(media_hashes.get(name, name) for name in question.media)
            options = _option_set(question.closed)
            key = (normalise(question.text), question.context, media, options)
            groups[key].append(question)
    for alike in groups.values():
        if len({question.sample_id for question in alike}) > 1:
            yield alike


def _option_set(closed: ClosedQuestion | None) -> frozenset[str] | None:
    """The options after normalisation; None for an open question."""
    if closed is None:
        return None
    return frozenset(normalise(text) for text in closed.texts or closed.labels)


def _gold_text(question: AuditedQuestion) -> str:
    """The gold answer after normalisation."""
    closed = question.closed
    if closed is None:
        return normalise(question.target)
    return normalise((closed.texts or closed.labels)[closed.gold])
