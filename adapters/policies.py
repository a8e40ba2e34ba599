"""Answering policies of the baselines: pure functions of one question, a seed and the policy's own
settings.

Every draw comes from SHA-256 over (seed, sample id, purpose), so an answer depends neither on order
or sharding nor on earlier questions.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from medtasks.core.errors import DataError, UsageError
from medtasks.runs.replies import Letter, Probabilities

DEFAULT_ACCURACY = 0.7
CONFIDENCES = (0.55, 0.65, 0.75, 0.85, 0.95)
OVERCONFIDENT = 0.99


def option_letters(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The letters of a document's options; a dataset pads missing options with None, and other
    tasks list texts.
    """
    choices = document.get("choices")
    options = choices.items() if isinstance(choices, Mapping) else ()
    return tuple(sorted(letter for letter, text in options if text is not None))


def draw(*parts: int | str) -> int:
    """A 256-bit integer from its arguments alone, so neither order nor sharding can change it."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest(), "big")


@dataclass(frozen=True)
class Question:
    """A question as policies see it. ``choices`` are empty for an open question, which is answered
    from ``answers``, the sorted references of all documents. ``ideal`` is a whole perfect response
    if that is more than the target, ``positive`` the positive response to a streaming item.
    """

    sample_id: str
    target: str
    abstention: str | None = None
    choices: tuple[str, ...] = ()
    answers: Sequence[str] = ()
    ideal: str | None = None
    positive: str | None = None
    round: int = 1
    rounds: int = 1

    @classmethod
    def of(cls, document: Mapping[str, Any], sample_id: str, answers: Sequence[str]) -> Question:
        numbers = {name: document[name] for name in ("round", "rounds") if document.get(name)}
        return cls(
            sample_id,
            document["target"],
            document.get("abstention"),
            choices=tuple(option_letters(document) or document.get("guesses") or ()),
            answers=answers,
            ideal=document.get("ideal_response"),
            positive=document.get("positive_response")
            if document.get("task_mode") == "streaming"
            else None,
            **numbers,
        )

    def draw(self, seed: int, purpose: str) -> int:
        """A 256-bit integer, uniform over seeds, samples and purposes."""
        return draw(seed, self.sample_id, purpose)

    def pick(self, seed: int, purpose: str) -> str:
        """One of the choices; of an open question, the answer of a random document."""
        options = self.choices or self.answers
        return options[self.draw(seed, purpose) % len(options)]


def oracle(question: Question) -> str:
    """The reference answer, in the form the task asks for."""
    return question.target if question.ideal is None else question.ideal


def constant(question: Question, answer: str | None = None) -> str:
    """Always ``answer``; without one, ``A`` for multiple choice and a fixed sentence otherwise."""
    if answer is not None:
        return answer
    return "A" if "A" in question.choices else "There is no abnormality in the image."


def abstain(question: Question) -> str:
    """The task's abstention; raises :class:`DataError` if it has none."""
    if question.abstention is None:
        raise DataError(
            f"{question.sample_id}: field 'abstention' is missing, which policy=abstain answers."
        )
    return question.abstention


def uniform(question: Question, seed: int = 0) -> str:
    """One of the choices, all equally likely."""
    return question.pick(seed, "choice")


def noisy_oracle(question: Question, seed: int = 0, accuracy: float = DEFAULT_ACCURACY) -> str:
    """The reference answer with probability ``accuracy``, else a wrong one, all equally likely;
    raises :class:`DataError` if the task has none.
    """
    if question.draw(seed, "correct") < int(accuracy * 2**256):
        return oracle(question)
    if all(option == question.target for option in question.choices or question.answers):
        raise DataError(
            f"{question.sample_id}: noisy_oracle needs an answer that differs from the reference, found none."
        )
    # redrawn, not filtered: a task can have thousands of documents
    drawn = (question.pick(seed, f"wrong {attempt}") for attempt in count())
    return next(answer for answer in drawn if answer != question.target)


def certainty(question: Question, seed: int = 0) -> float:
    """The confidence of ``calibrated`` in its answer, one of `CONFIDENCES`, all equally likely."""
    return CONFIDENCES[question.draw(seed, "confidence") % len(CONFIDENCES)]


def calibrated(question: Question, seed: int = 0) -> str:
    """The reference answer with the probability that it states for an option letter
    (:func:`certainty`), else a wrong one; ``overconfident`` gives the same answers, and always
    states 99 %.
    """
    return noisy_oracle(replace(question, ideal=None), seed, certainty(question, seed))


def with_confidence(
    policy: str, answer: str, question: Question, seed: int = 0
) -> tuple[str, Probabilities | None]:
    """A policy's answer with its confidence, as probabilities and, after a choice, in words; None
    without one.
    """
    if policy not in ("calibrated", "overconfident"):
        return answer, None
    sure = certainty(question, seed) if policy == "calibrated" else OVERCONFIDENT
    if not question.choices or question.positive is not None:
        return answer, Probabilities(sure)
    letters: tuple[Letter, ...] = ()
    if answer in question.choices and len(answer) == 1:
        others = round((1 - sure) / max(1, len(question.choices) - 1), 6)
        letters = (
            Letter(0, answer, {**dict.fromkeys(question.choices, others), answer: sure}, 1.0),
        )
    return f"{answer}\nConfidence: {sure:.0%}", Probabilities(sure, letters)


def streamed(question: Question, first: Callable[[Question], float]) -> str:
    """The positive response to a stream from a round on, before it silence; the reference answer to
    other questions.
    """
    if question.positive is None:
        return oracle(question)
    return question.positive if question.round >= first(question) else abstain(question)


early = partial(streamed, first=lambda _: 1)
late = partial(streamed, first=lambda question: question.rounds)
never = partial(streamed, first=lambda _: math.inf)

POLICIES: dict[str, tuple[Callable[..., str], tuple[str, ...]]] = {
    "oracle": (oracle, ()),
    "constant": (constant, ("answer",)),
    "uniform": (uniform, ("seed",)),
    "abstain": (abstain, ()),
    "noisy_oracle": (noisy_oracle, ("seed", "accuracy")),
    "calibrated": (calibrated, ("seed",)),
    "overconfident": (calibrated, ("seed",)),
    "early": (early, ()),
    "late": (late, ()),
    "never": (never, ()),
}


def make_policy(
    name: str, *, seed: int = 0, accuracy: float | None = None, answer: str | None = None
) -> Callable[[Question], str]:
    """The policy called ``name`` with its settings bound; None leaves a setting at its default.

    Raises:
        UsageError: the policy is unknown or does not have a given setting.
    """
    if name not in POLICIES:
        raise UsageError(f"policy is {name!r}, expected one of {', '.join(POLICIES)}.")
    function, takes = POLICIES[name]
    given = {
        key: value
        for key, value in (("accuracy", accuracy), ("answer", answer))
        if value is not None
    }
    if others := given.keys() - set(takes):
        raise UsageError(
            f"policy={name} takes no {min(others)}; leave it out or choose another policy."
        )
    return partial(function, **given, **({"seed": seed} if "seed" in takes else {}))
