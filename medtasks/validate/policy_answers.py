"""Answers to a task's documents whose scores are known in advance: right, trivial, of other
documents, and malformed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from medtasks.adapters.policies import PolicyQuestion, abstain, constant, early, oracle
from medtasks.validate.report import Documents

TRIVIAL = {
    "constant": "the same to every question",
    "commonest": "every question with the commonest answer",
    "abstain": "that the question cannot be answered",
    "empty": "nothing",
    "shuffled": "with the reference answers of other documents",
}
"""Answers that must score lower than correct ones, in words."""

MALFORMED: Mapping[str, str] = {
    "empty": "",
    "blank": " \n\t ",
    "long": "The first finding is seen again (B), or it may not be. " * 120,
    "non-ASCII": "Ответ: ответа нет 🩺 — 所见正常。 Ελ\u0301κος, قرحة \u202eA\u202c e\u0301",
    "markup": (
        "<think>A or B?</think>\n# Answer\n"
        '**<b>C</b>** | `{"answer": ["D"]}` | $\\boxed{E}$ <answer>A</answer>'
    ),
    "unclosed": ('<think>I wonder whether {{ target }} {% if %} ${ \\boxed{ ```json {"answer": '),
    "control": "\x00\x1b[31mA\x07\r\n\u2028B\ufeff",
}
"""Malformed responses as models sometimes give them, by kind."""


def policy_answers(documents: Documents) -> tuple[list[str], dict[str, list[str]]]:
    """The reference answers, and by name answers of policies that ignore the question.

    All are lists with one answer per document, in the form that the task asks for. The policies:

    - ``constant``: the same answer to every question.
    - ``commonest``: the most frequent reference answer.
    - ``empty``: no text.
    - ``abstain``: the abstention that the task defines; left out if a document has none.
    - ``early``: answers to streams before there is anything to see; left out of other tasks.
    - ``shuffled``: the reference answers of other documents, for as many as possible; left out if
      all are equal.
    """
    references = sorted(str(document["target"]) for document in documents)
    questions = [
        PolicyQuestion.of(document, str(document["sample_id"]), references)
        for document in documents
    ]
    right = [oracle(question) for question in questions]
    counts = Counter(right)
    commonest = min(counts, key=lambda answer: (-counts[answer], answer))
    blind = {
        "constant": [constant(question) for question in questions],
        "commonest": [commonest] * len(questions),
        "empty": [""] * len(questions),
    }
    if all(question.abstention is not None for question in questions):
        blind["abstain"] = [abstain(question) for question in questions]
    if any(question.positive is not None for question in questions):
        blind["early"] = [early(question) for question in questions]
    if len(counts) > 1:
        blind["shuffled"] = _shuffled(right, shift=counts[commonest])
    return right, blind


def _shuffled(answers: Sequence[str], shift: int) -> list[str]:
    """The answers, each moved to a document with another answer where possible.

    In sorted order all move by ``shift``, the size of the largest group of equal answers: none
    stays within its group.
    """
    ordered = sorted(range(len(answers)), key=answers.__getitem__)
    shuffled = list(answers)
    for position, source in zip(ordered, ordered[shift:] + ordered[:shift], strict=True):
        shuffled[position] = answers[source]
    return shuffled
