"""The signs that a gold answer deserves a second look, and what each of them is worth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SignKind(str, Enum):
    """What makes a question doubtful; the order is that of lists."""

    OUTVOTED = "outvoted"
    DIFFERENT_GOLDS = "different_golds"
    EQUAL_OPTIONS = "equal_options"
    INVERTED = "inverted"
    DIFFERENT_REFERENCES = "different_references"
    EQUAL_DISTRACTORS = "equal_distractors"
    TEXT_ONLY = "text_only"

    @property
    def is_strong(self) -> bool:
        """Whether the sign alone says that the gold answer is probably wrong or not the only right
        one.
        """
        return self in (SignKind.OUTVOTED, SignKind.DIFFERENT_GOLDS, SignKind.EQUAL_OPTIONS)


SIGN_TITLES = {
    SignKind.OUTVOTED: "models agree on another option",
    SignKind.DIFFERENT_GOLDS: "same question and media, different gold answers",
    SignKind.EQUAL_OPTIONS: "another option says the same as the gold answer",
    SignKind.INVERTED: "good models miss it, weak ones get it",
    SignKind.DIFFERENT_REFERENCES: "same question and media, different references",
    SignKind.EQUAL_DISTRACTORS: "two wrong options say the same",
    SignKind.TEXT_ONLY: "all blind runs get it",
}
"""The kinds of signs in words."""


@dataclass(frozen=True)
class Sign:
    """One reason why a question is listed, in words.

    ``public`` is the same without anything of the question or its answers; empty if ``text`` is
    that already.
    """

    kind: SignKind
    text: str
    public: str = ""

    @property
    def public_text(self) -> str:
        return self.public or self.text
