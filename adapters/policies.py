"""Answering policies of the baselines: pure functions of a question, a seed and further settings.

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
from typing import Any, NamedTuple

from medtasks.core.errors import DataError, UsageError
from medtasks.runs.replies import Letter, Probabilities

DEFAULT_ACCURACY = 0.7
CONFIDENCES = (0.55, 0.65, 0.75, 0.85, 0.95)
OVERCONFIDENT = 0.99


def option_letters(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The letters of a document's options, sorted.

    A dataset pads missing options with None. Documents of other tasks list texts: they have none.
    """
    choices = document.get("choices")
    if not isinstance(choices, Mapping):
        return ()
    letters = [letter for letter, text in choices.items() if text is not None]
    return tuple(sorted(letters))


def draw(*parts: int | str) -> int:
    """A 256-bit integer from its arguments alone, so neither order nor sharding can change it."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest(), "big")


@dataclass(frozen=True)
class PolicyQuestion:
    """A question as policies see it.

    ``choices`` are empty for an open question, which is answered from ``answers``, the sorted
    references of all documents. ``ideal`` is a whole perfect response if that is more than the
    target, ``positive`` the positive response to a streaming item.
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
    def of(
        cls, document: Mapping[str, Any], sample_id: str, answers: Sequence[str]
    ) -> PolicyQuestion:
        """The question of a document."""
        is_streaming = document.get("task_mode") == "streaming"
        return cls(
            sample_id,
            document["target"],
            document.get("abstention"),
            choices=tuple(option_letters(document) or document.get("guesses") or ()),
            answers=answers,
            ideal=document.get("ideal_response"),
            positive=document.get("positive_response") if is_streaming else None,
            round=document.get("round") or 1,
            rounds=document.get("rounds") or 1,
        )

    def draw(self, seed: int, purpose: str) -> int:
        """A 256-bit integer, uniform over seeds, samples and purposes."""
        return draw(seed, self.sample_id, purpose)

    def pick(self, seed: int, purpose: str) -> str:
        """One of the choices; of an open question, the answer of a random document."""
        options = self.choices or self.answers
        return options[self.draw(seed, purpose) % len(options)]


def oracle(question: PolicyQuestion) -> str:
    """The reference answer, in the form the task asks for."""
    return question.target if question.ideal is None else question.ideal


def constant(question: PolicyQuestion, answer: str | None = None) -> str:
    """Always ``answer``; without one, ``A`` for multiple choice and a fixed sentence otherwise."""
    if answer is not None:
        return answer
    return "A" if "A" in question.choices else "There is no abnormality in the image."


def abstain(question: PolicyQuestion) -> str:
    """The task's abstention; raises :class:`DataError` if it has none."""
    if question.abstention is None:
        raise DataError(
            f"{question.sample_id}: field 'abstention' is missing, which policy=abstain answers."
        )
    return question.abstention


def uniform(question: PolicyQuestion, seed: int = 0) -> str:
    """One of the choices, all equally likely."""
    return question.pick(seed, "choice")


def noisy_oracle(
    question: PolicyQuestion, seed: int = 0, accuracy: float = DEFAULT_ACCURACY
) -> str:
    """The reference answer with probability ``accuracy``, else a wrong one, all equally likely.

    Raises:
        DataError: the task has no wrong answer.
    """
    if question.draw(seed, "correct") < int(accuracy * 2**256):
        return oracle(question)
    if all(option == question.target for option in question.choices or question.answers):
        raise DataError(
            f"{question.sample_id}: noisy_oracle needs an answer that differs from the reference, "
            "found none."
        )
    # redrawn, not filtered: a task can have thousands of documents
    for attempt in count():
        answer = question.pick(seed, f"wrong {attempt}")
        if answer != question.target:
            break
    return answer


def certainty(question: PolicyQuestion, seed: int = 0) -> float:
    """The confidence of ``calibrated`` in its answer, one of `CONFIDENCES`, all equally likely."""
    return CONFIDENCES[question.draw(seed, "confidence") % len(CONFIDENCES)]


def calibrated(question: PolicyQuestion, seed: int = 0) -> str:
    """The reference answer with the stated probability (:func:`certainty`), else a wrong one.

    ``overconfident`` gives the same answers, and always states 99 %.
    """
    return noisy_oracle(replace(question, ideal=None), seed, certainty(question, seed))


def with_confidence(
    policy: str, answer: str, question: PolicyQuestion, seed: int = 0
) -> tuple[str, Probabilities | None]:
    """A policy's answer, and the probabilities of its confidence; None if it states none.

    After a choice, the answer states the confidence in words, too.
    """
    if policy == "calibrated":
        confidence = certainty(question, seed)
    elif policy == "overconfident":
        confidence = OVERCONFIDENT
    else:
        return answer, None
    if not question.choices or question.positive is not None:
        return answer, Probabilities(confidence)
    letters: tuple[Letter, ...] = ()
    if answer in question.choices and len(answer) == 1:
        other_options = max(1, len(question.choices) - 1)
        options = dict.fromkeys(question.choices, round((1 - confidence) / other_options, 6))
        options[answer] = confidence
        letters = (Letter(0, answer, options, 1.0),)
    return f"{answer}\nConfidence: {confidence:.0%}", Probabilities(confidence, letters)


def streamed(question: PolicyQuestion, first: Callable[[PolicyQuestion], float]) -> str:
    """The positive response to a stream from the round ``first`` on, and silence before it.

    Other questions get the reference answer.
    """
    if question.positive is None:
        return oracle(question)
    return question.positive if question.round >= first(question) else abstain(question)


early = partial(streamed, first=lambda _: 1)
late = partial(streamed, first=lambda question: question.rounds)
never = partial(streamed, first=lambda _: math.inf)


class Policy(NamedTuple):
    """A function of a question and ``settings``, the names of its keyword arguments."""

    answer: Callable[..., str]
    settings: tuple[str, ...] = ()


POLICIES: dict[str, Policy] = {
    "oracle": Policy(oracle),
    "constant": Policy(constant, ("answer",)),
    "uniform": Policy(uniform, ("seed",)),
    "abstain": Policy(abstain),
    "noisy_oracle": Policy(noisy_oracle, ("seed", "accuracy")),
    "calibrated": Policy(calibrated, ("seed",)),
    "overconfident": Policy(calibrated, ("seed",)),
    "early": Policy(early),
    "late": Policy(late),
    "never": Policy(never),
}


def make_policy(
    name: str, *, seed: int = 0, accuracy: float | None = None, answer: str | None = None
) -> Callable[[PolicyQuestion], str]:
    """The policy called ``name`` with its settings bound; None leaves a setting at its default.

    Raises:
        UsageError: the policy is unknown or does not have a setting.
    """
    if name not in POLICIES:
        raise UsageError(f"policy is {name!r}, expected one of {', '.join(POLICIES)}.")
    policy = POLICIES[name]
    settings: dict[str, Any] = {}
    for setting, value in (("accuracy", accuracy), ("answer", answer)):
        if value is None:
            continue
        if setting not in policy.settings:
            raise UsageError(
                f"policy={name} takes no {setting}; leave it out or choose another policy."
            )
        settings[setting] = value
    if "seed" in policy.settings:
        settings["seed"] = seed
    return partial(policy.answer, **settings)
