"""The filters of HTML templates that are about runs and samples; `html_filters` registers them."""

from __future__ import annotations

from typing import NamedTuple

from medtasks.catalog.statuses import status_words
from medtasks.runs.samples import Sample

_MOST_LETTERS = 300
_FINISH_WORDS = {
    "stop": "ended by the model",
    "length": "cut off at the token limit",
    "unknown": "with an unknown end",
}
"""Ends of a response (`Reply.finish`) in words."""


def count_words(key: str) -> str:
    """What a count of `BoardRun.counts` is of, in words; a key without words stays as it is.

    >>> count_words("finish length"), count_words("asked")
    ('cut off at the token limit', 'asked')
    """
    kind, _, value = key.partition(" ")
    if kind == "status":
        return status_words(value)
    if kind == "finish":
        return _FINISH_WORDS.get(value, key)
    return key


def shortened(text: str) -> str:
    """The beginning of a text, for a list; a short text stays as it is.

    >>> shortened("no polyp"), len(shortened("no polyp " * 100))
    ('no polyp', 302)
    """
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]} …"


def age_text(seconds: float) -> str:
    """A time since something happened, in the largest unit of which there are at least two.

    >>> age_text(90), age_text(600), age_text(9000)
    ('90 s', '10 min', '2 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


def question_text(sample: Sample) -> str:
    """The question of a sample's document, or else the whole prompt.

    >>> from types import SimpleNamespace
    >>> question_text(SimpleNamespace(document={"question": "Is there a polyp?"}, prompt=""))
    'Is there a polyp?'
    """
    question = sample.document.get("question")
    return question if isinstance(question, str) and question else sample.prompt


class SampleScore(NamedTuple):
    """A sample's own value of a metric; without one, ``note`` says why."""

    metric: str
    value: float | None
    note: str


def sample_scores(sample: Sample) -> list[SampleScore]:
    """The sample's own scores, with those that it lacks for a reason.

    >>> from types import SimpleNamespace
    >>> scores = {"accuracy": 1.0, "rubric": None, "corpus_bleu": None}
    >>> sample_scores(SimpleNamespace(scores=scores, limits={}, pending=["rubric"], judged={}))
    ... # doctest: +NORMALIZE_WHITESPACE
    [SampleScore(metric='accuracy', value=1.0, note=''),
     SampleScore(metric='rubric', value=None, note='awaits a judge')]
    """
    notes = dict.fromkeys(sample.limits, "no response")
    notes |= dict.fromkeys(sample.pending, "awaits a judge")
    for metric, judged in sample.judged.items():
        if judged.value.pending:
            notes[metric] = "awaits a judge"
    scores = []
    for metric, value in sample.scores.items():
        if value is not None or metric in notes:
            scores.append(SampleScore(metric, value, notes.get(metric, "")))
    return scores
