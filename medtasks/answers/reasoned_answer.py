r"""Open answers after a reasoning part: the whole reply is scored, and its final answer is located.

Prompts may ask for a reasoning part and then one line ``Final answer: …`` (arXiv 2512.00818). The
rules:

1. Thinking blocks are removed. What is left, stripped, is the reply; ``empty`` if nothing is left.
2. A label is the words *final answer* (any case, in emphasis, quotes, HTML or as a JSON key) before
   a colon or an equals sign, at the start of a line before a dash, or alone on a line; or a tag
   ``<final_answer>``; or a LaTeX box. Only without any of these does ``final answer is`` count,
   because prose uses it, too; and only without that does plain ``Answer:`` count at the start of a
   line or sentence, as a heading, a JSON key or a tag, as in the layout (``Reasoning: …``,
   ``Answer: …``).
3. The last label with something after it decides. The answer runs from there to the end of the
   reply, over lines if need be; a box and a tag end it where they close, and a line ``Reasoning:
   …`` ends what a plain ``Answer:`` begins. Markup around it is removed, the inside stays as
   written. A line ``Note: …`` or another question ends it, and a placeholder (``<your answer>``) is
   none. Plain labels are known in several languages (``答案：``, ``Respuesta:``). Of a reply that
   is a JSON object, the field *answer* (or the like), or its only field, is the final answer.
4. A reply of one line with one sentence and no label is the answer. Any other reply without a
   label, or with nothing after it, is ``no_final_answer``.
"""

from __future__ import annotations

import re
from typing import Literal

from medtasks.answers.answerability import declines
from medtasks.answers.base import ResponseFilter
from medtasks.answers.json_answer import answer_field
from medtasks.answers.markup import bounded, reply_text
from medtasks.answers.vocabulary import Vocabulary

ReasonedStatus = Literal["ok", "no_final_answer", "empty"]

_EMPTY = "[empty]"
_PATTERNS = Vocabulary("finals")


def final_answer(text: str) -> str | None:
    """The text after the last *Final answer* (or else *Answer*) label, or a reply of one line.

    >>> final_answer("It enhances.\\n**Final answer:** a meningioma"), final_answer("A meningioma.")
    ('a meningioma', 'A meningioma.')
    """
    reply = bounded(reply_text(text))
    field = answer_field(reply)
    if field is not None and _says_something(field):
        return field
    for name in ("label", "said", "plain"):
        labels = list(_PATTERNS[name].finditer(reply))
        if not labels:
            continue
        asked = _PATTERNS["asked"].search(reply, labels[0].end())
        if asked and _says_something(
            reply[labels[0].end() : asked.start()]
        ):  # it wrote the next question, too
            reply = reply[: asked.start()]
        end = len(reply)
        for label in reversed(labels):
            answer = _labelled(label, reply[label.end() : end], is_plain=name == "plain")
            if _says_something(answer):
                return answer
            end = min(end, label.start())
        return None
    alone = reply != _EMPTY and _PATTERNS["one_line"].fullmatch(reply) and not declines(reply)
    return _unwrapped(reply) if alone else None


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text))


def _labelled(label: re.Match[str], segment: str, *, is_plain: bool) -> str:
    """The answer in the segment behind a label; empty for a placeholder."""
    for ends in ("reasoning", "next") if is_plain else ("next",):
        segment = _PATTERNS[ends].split(segment, maxsplit=1)[0]
    if _PATTERNS["placeholder"].fullmatch(segment.strip(" \t\n*_`")):
        return ""
    if not label.groupdict().get("box"):
        return _unwrapped(segment)
    depth = 1
    for brace in re.finditer(r"[{}]", segment):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            segment = segment[: brace.start()]
            break
    text = re.fullmatch(r"\s{0,9}\\text(?:bf|it|rm)?\{(?P<inner>[^{}]*)\}\s{0,9}", segment)
    return _unwrapped(text["inner"] if text else segment)


def _unwrapped(segment: str) -> str:
    """``segment`` without the markup around it, or left half open by its label."""
    segment = _PATTERNS["closing_tag"].split(segment, maxsplit=1)[0]
    answer = _PATTERNS["token"].sub("", segment).strip().strip("`").strip()
    # the end of a JSON object whose key was the label
    if answer.endswith(("}", "]")) and answer.startswith(('"', "'", "[")):
        answer = answer.rstrip("}] \t\n")
    for mark in _MARKS:
        answer = _without_mark(answer, mark)
    if re.fullmatch("“[^“”]*”", answer):
        return answer[1:-1]
    return answer


_MARKS = ("**", "__", "`", '"', "$", "*", "_")
"""Marks around an answer; a double mark comes before the single one."""


def _without_mark(answer: str, mark: str) -> str:
    """``answer`` without a pair of ``mark`` around it, and without half of a pair."""
    if answer.count(mark) % 2:  # the other half belonged to the label
        if answer.startswith(mark):
            answer = answer.removeprefix(mark).strip()
        else:
            answer = answer.removesuffix(mark).strip()
    if answer.count(mark) == 2 and answer.startswith(mark) and answer.endswith(mark):
        answer = answer.removeprefix(mark).removesuffix(mark).strip()
    return answer


def reasoned_status(filtered: str) -> ReasonedStatus:
    """Whether a filtered reply has a final answer, has none, or is empty."""
    if filtered.strip() in ("", _EMPTY):
        return "empty"
    return "no_final_answer" if final_answer(filtered) is None else "ok"


class ReasonedAnswerFilter(ResponseFilter):
    """Raw responses become replies without thinking, or ``[empty]``."""

    version = "10"
    status = staticmethod(reasoned_status)
    read = staticmethod(lambda text: reply_text(text) or _EMPTY)
