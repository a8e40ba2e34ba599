"""Answers made of a task's documents: right ones, trivial ones, shuffled ones; and malformed responses."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from medtasks.adapters.policies import Question, abstain, constant, early, oracle
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

_SEED = 0


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
    found = {
        "constant": [constant(question) for question in questions],
        "commonest": [commonest for _ in questions],
        "empty": ["" for _ in questions],
    }
    if all(question.abstention is not None for question in questions):
        found["abstain"] = [abstain(question) for question in questions]
    if any(question.positive is not None for question in questions):
        found["early"] = [early(question) for question in questions]
    if (mixed := shuffled(perfect)) is not None:
        found["shuffled"] = mixed
    return perfect, found


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
    draw = random.Random(_SEED)
    ordered = [position for _, group in sorted(members.items()) for position in draw.sample(group, len(group))]
    shift = max(len(group) for group in members.values())
    found = list(answers)
    for place, position in enumerate(ordered):
        found[position] = answers[ordered[(place + shift) % len(ordered)]]
    return found
