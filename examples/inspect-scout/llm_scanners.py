"""The same four questions for a model: ``scout scan llm_scanners.py -T logs --model MODEL``.

A model also reads what `scanners` cannot: paraphrases, other languages, contradictions in meaning.
Each scanner marks the transcript with a random code, which a response cannot imitate.
"""

from __future__ import annotations

from secrets import token_hex

from inspect_scout import Scanner, Transcript, llm_scanner, scanner

REFUSAL = (
    "Does the assistant decline to answer the question? An answer with a warning is not a refusal, "
    "and neither is the statement that the image does not show what was asked."
)
PICTURE_NOT_SEEN = (
    "Does the assistant say that it did not get, or cannot see, any image? That something is not "
    "visible in the image does not count."
)
LANGUAGE_CHANGE = (
    "Is the assistant's answer, or a part of it, in another language than the question? Technical "
    "terms, such as Latin names, do not count."
)
CONTRADICTION = (
    "Does the assistant's answer contain two statements that cannot both be true? Judge only the "
    "answer, not whether it is right."
)


@scanner(messages="all")
def refusal_llm() -> Scanner[Transcript]:
    """Whether the answer declines to answer, as a model reads it."""
    return llm_scanner(question=REFUSAL, answer="boolean", nonce=token_hex(4))


@scanner(messages="all")
def picture_not_seen_llm() -> Scanner[Transcript]:
    """Whether the answer says that there is no picture, as a model reads it."""
    return llm_scanner(question=PICTURE_NOT_SEEN, answer="boolean", nonce=token_hex(4))


@scanner(messages="all")
def language_change_llm() -> Scanner[Transcript]:
    """Whether the answer changes the language, as a model reads it."""
    return llm_scanner(question=LANGUAGE_CHANGE, answer="boolean", nonce=token_hex(4))


@scanner(messages="all")
def contradiction_llm() -> Scanner[Transcript]:
    """Whether the answer contradicts itself, as a model reads it."""
    return llm_scanner(question=CONTRADICTION, answer="boolean", nonce=token_hex(4))
