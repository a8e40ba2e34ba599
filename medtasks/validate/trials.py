"""Answers made of a task's documents (right, trivial, shuffled, malformed), and what a metric can give for them."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from medtasks.adapters.policies import Question, abstain, constant, early, oracle
from medtasks.catalog.packages import OURS
from medtasks.metrics.base import Metric, corpus_score
from medtasks.validate.documents import Documents

MESSY: Mapping[str, str] = {
    "empty": "",
    "blank": " \n\t ",
    "long": "The first finding is seen again (B), or it may not be. " * 120,
    "non-ASCII": "Ответ: ответа нет 🩺 — 所见正常。 Ελ\u0301κος, قرحة \u202eA\u202c e\u0301",
    "markup": '<think>A or B?</think>\n# Answer\n**<b>C</b>** | `{"answer": ["D"]}` | $\\boxed{E}$ <answer>A</answer>',
    "unclosed": '<think>I wonder whether {{ target }} {% if %} ${ \\boxed{ ```json {"answer": ',
    "control": "\x00\x1b[31mA\x07\r\n\u2028B\ufeff",
}
"""Malformed responses as models sometimes give them, by kind."""


def policy_answers(documents: Documents) -> tuple[list[str], dict[str, list[str]]]:
    """The reference answers in the form that the task asks for, and answers that ignore the question, by name.

    ``constant`` and ``commonest`` are the same for every question, ``abstain`` is the abstention that the task defines
    (left out if a document lacks one), ``early`` answers streams before there is anything to see.
    """
    references = sorted(str(document["target"]) for document in documents)
    questions = [Question.of(document, str(document["sample_id"]), references) for document in documents]
    perfect = [oracle(question) for question in questions]
    counts = Counter(perfect)
    commonest = min(counts, key=lambda answer: (-counts[answer], answer))
    others = {
        "constant": [constant(question) for question in questions],
        "commonest": [commonest for _ in questions],
        "empty": ["" for _ in questions],
    }
    if all(question.abstention is not None for question in questions):
        others["abstain"] = [abstain(question) for question in questions]
    if any(question.positive is not None for question in questions):
        others["early"] = [early(question) for question in questions]
    if (mixed := shuffled(perfect)) is not None:
        others["shuffled"] = mixed
    return perfect, others


def shuffled(answers: Sequence[str]) -> list[str] | None:
    """The same answers assigned to other documents; None if all are equal.

    As many documents as possible get an answer other than their own: all of them, if no answer belongs to more than
    half.
    """
    members: dict[str, list[int]] = {}
    for position, answer in enumerate(answers):
        members.setdefault(answer, []).append(position)
    if len(members) < 2:
        return None
    draw = random.Random(0)
    ordered = [position for _, group in sorted(members.items()) for position in draw.sample(group, len(group))]
    shift = max(len(group) for group in members.values())
    found = list(answers)
    for place, position in enumerate(ordered):
        found[position] = answers[ordered[(place + shift) % len(ordered)]]
    return found


TOLERANCE = 1e-9

_REACHED = {
    **dict.fromkeys(("accuracy", "exact_match", "rouge1", "rougeL", "content", "content_closed", "overall"), 1.0),
    **dict.fromkeys(("responsiveness", "stability"), 1.0),
    **dict.fromkeys(("chrf", "chrf++"), 100.0),
    **dict.fromkeys(("false_alarm_rate", "miss_rate", "invalid_rate"), 0.0),
}
"""Scores of a model that always gives the reference answer."""

_RANGES = {
    **dict.fromkeys(("chrf", "chrf++"), (0.0, 100.0)),
    "cider": (0.0, 10.0),
    "signed_delay": (-math.inf, math.inf),
}
"""Ranges of our metrics other than 0 to 1."""

TIMED = frozenset({"responsiveness", "stability", "overall", "false_alarm_rate", "miss_rate"})
"""Metrics of answer times in streams: the times in the records limit what can be reached."""


class Range(NamedTuple):
    """Minimum and maximum score; ``stated`` is False if 0 to 1 is only assumed."""

    low: float
    high: float
    stated: bool = True


def range_of(metric: Metric) -> Range:
    """The range of ``metric``: ours by name, another package's by its attribute ``bounds``."""
    bounds: Any = _RANGES.get(metric.name) or getattr(metric, "bounds", None)
    if isinstance(bounds, (tuple, list)) and len(bounds) == 2:
        return Range(float(bounds[0]), float(bounds[1]))
    return Range(0.0, 1.0, stated=type(metric).__module__.partition(".")[0] == OURS)


def best_score(metric: Metric, targets: Sequence[str]) -> float | None:
    """The score of answers equal to their targets; None if pairs of texts do not determine it.

    Some metrics do not reach their maximum even then, such as METEOR, or BLEU of a few words.
    """
    if metric.name in _REACHED:
        return _REACHED[metric.name]
    try:
        rows = np.array([metric.statistics(target, target) for target in targets], dtype=np.float64)
        score = corpus_score(metric, rows)
    except Exception:  # scored elsewhere, or unavailable; process_results is checked separately
        return None
    return score if math.isfinite(score) else None


def reaches(metric: Metric, value: float, other: float) -> bool:
    """Whether ``value`` is at least as good as ``other``, up to rounding."""
    slack = TOLERANCE * max(1.0, abs(other))
    return value >= other - slack if metric.higher_is_better else value <= other + slack
