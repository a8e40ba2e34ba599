r"""Open answers after a reasoning part: the whole reply is scored, and its final answer is located.

Prompts may ask for a reasoning part and then one line ``Final answer: …`` (arXiv 2512.00818). The rules:

1. Thinking blocks are removed. What is left, stripped, is the reply; ``empty`` if nothing is left.
2. A label is the words *final answer* (any case, in emphasis, quotes, HTML or as a JSON key) before a colon or an
   equals sign, at the start of a line before a dash, or alone on a line; or a tag ``<final_answer>``; or a LaTeX
   box. Only without any of these does ``final answer is`` count, because prose uses it, too; and only without that
   does plain ``Answer:`` count at the start of a line or sentence, as a heading, a JSON key or a tag, as in the
   layout (``Reasoning: …``, ``Answer: …``).
3. The last label with something after it decides. The answer runs from there to the end of the reply, over lines if
   need be; a box and a tag end it where they close, and a line ``Reasoning: …`` ends what a plain ``Answer:`` begins.
   Markup around it is removed, the inside stays as written.
   A line ``Note: …`` or another question ends it, and a placeholder (``<your answer>``) is none. Plain labels are known
   in several languages (``答案：``, ``Respuesta:``).
4. A reply of one line with one sentence and no label is the answer. Any other reply without a label, or with nothing
   after it, is ``no_final_answer``.
"""

from __future__ import annotations

import re
from typing import Literal

from medtasks.filters.base import ResponseFilter
from medtasks.filters.cues import abstentions
from medtasks.filters.plain_text import bounded
from medtasks.filters.thinking import strip_thinking

ReasonedStatus = Literal["ok", "no_final_answer", "empty"]

_EMPTY = "[empty]"
_TAG_BRACKETS = str.maketrans("", "", "<>◁▷[]|#")

_MARKUP = r"(?:[*_`\"'’”)\]}]|\\?\}|</?(?:b|i|u|em|strong|span|p|h[1-6]|code)>|[ \t])"
_WORDS = r"final(?:[ \t_*-]{1,4}|&nbsp;)answer"
_LABEL = re.compile(
    rf"(?<![^\W_])(?<!/){_WORDS}{_MARKUP}{{0,12}}[:：=]"
    rf"|^[^\w\n]{{0,12}}{_WORDS}{_MARKUP}{{0,12}}(?:[-–—]|→)"
    rf"|^(?:[^\w\n]|<(?:b|i|u|em|strong|span|p|h[1-6])>){{0,12}}{_WORDS}{_MARKUP}{{0,12}}$"
    r"|<\s{0,3}final[ _-]?answer\s{0,3}>"
    r"|(?P<box>\\(?:boxed|fbox)\s{0,3}\{)",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER = (
    r"(?:answer|(?:最终|最終)?答案|回答|答え|最終的な答え|答|정답|(?:최종 )?답변|답|respuesta(?: final)?"
    r"|resposta(?: final)?|risposta(?: finale)?|réponse(?: finale)?|(?:endgültige )?antwort|(?:het )?antwoord"
    r"|(?:окончательный )?ответ|đáp án|câu trả lời|(?:nihai )?cevap|yanıt|odpowiedź|(?:अंतिम )?उत्तर"
    r"|(?:ال)?إجابة(?: النهائية)?)"
)
_SAID = re.compile(rf"(?<![^\W_]){_WORDS}{_MARKUP}{{0,8}}\s{{1,3}}(?:is|would be)\b\s{{0,3}}[:：]?", re.IGNORECASE)
_PLAIN = re.compile(
    r"(?:^(?:[^\w\n]|<(?:b|i|u|em|strong|span|p|h[1-6])>){0,12}(?:\d{1,2}[.)][ \t]{0,3})?[*_\"'{ \t]{0,6}"
    r"|(?<=[.!?;,。；])[ \t]{0,3}[*_\"'{]{0,4})(?:(?:so|thus|therefore|hence|finally)[ \t,]{1,3})?(?:(?:the|my)[ \t])?"
    rf"{_ANSWER}(?:{_MARKUP}{{0,12}}[:：=]|{_MARKUP}{{0,12}}$)|<\s{{0,3}}answer\s{{0,3}}>",
    re.IGNORECASE | re.MULTILINE,
)
_REASONING = re.compile(
    r"^[^\w\n]{0,12}(?:reasoning|explanation|rationale|justification)[\"'*_]{0,4}[ \t]{0,3}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT = re.compile(
    r"\n[^\w\n]{0,8}(?:note|remark|disclaimer|question|q\d{1,2}|user|human|instruction)[*_]{0,2}[ \t]{0,3}[:：]", re.I
)
_ASKED = re.compile(r"\n[^\w\n]{0,8}(?:question|q\d{1,2}|user|human)[*_]{0,2}[ \t]{0,3}[:：]", re.I)
_PLACEHOLDER = re.compile(
    r"[<\[{(]\s{0,2}(?:your|the|insert|final)?\s{0,2}(?:final |short )?answer(?: here)?\s{0,2}[>\]})]", re.IGNORECASE
)
_ONE_LINE = re.compile(r"(?=[^\n]{0,20}[^\W_])(?![^\n]*answer)[^\n.!?:。！？：]{1,200}[.!?。！？]?", re.IGNORECASE)
_CLOSING_TAG = re.compile(r"</\s{0,3}(?:final[ _-]?)?answer\s{0,3}>", re.IGNORECASE)
_TOKEN = re.compile(
    r"<\|[^|<>\n]{0,40}\|>|</(?:s|b|i|u|em|strong|span|p|h[1-6]|code|body|html)>|<(?:s|eos|pad)>", re.IGNORECASE
)
_MARKS = ("**", "__", "`", '"', "$", "*", "_")


def reply_text(text: str) -> str:
    """``text`` without thinking blocks, stripped; idempotent.

    >>> reply_text("<think>hm</think> It enhances.\\nFinal answer: meningioma")
    'It enhances.\\nFinal answer: meningioma'
    """
    reply = strip_thinking(text)
    if strip_thinking(reply) != reply:  # removing one block joined the halves of another tag
        reply = reply.translate(_TAG_BRACKETS).strip()
    return reply


def final_answer(text: str) -> str | None:
    """The text after the last *Final answer* (or else *Answer*) label, or a reply of one line.

    >>> final_answer("It enhances.\\n**Final answer:** a meningioma"), final_answer("A meningioma.")
    ('a meningioma', 'A meningioma.')
    """
    reply = bounded(reply_text(text))
    for label in (_LABEL, _SAID, _PLAIN):
        found = list(label.finditer(reply))
        asked = _ASKED.search(reply, found[0].end()) if found else None
        if asked and any(character.isalnum() for character in reply[found[0].end() : asked.start()]):
            reply = reply[: asked.start()]  # the model went on to write the next question
            found = [match for match in found if match.end() <= len(reply)]
        end = len(reply)
        for match in reversed(found):
            segment = reply[match.end() : end]
            if label is _PLAIN:
                segment = _REASONING.split(segment, maxsplit=1)[0]
            segment = _NEXT.split(segment, maxsplit=1)[0]
            answer = _boxed(segment) if match.groupdict().get("box") else _unwrapped(segment)
            if any(character.isalnum() for character in answer) and not _PLACEHOLDER.fullmatch(
                segment.strip(" \t\n*_`")
            ):
                return answer
            end = match.start()
        if found:
            return None
    alone = reply != _EMPTY and _ONE_LINE.fullmatch(reply) and not abstentions()[0].match(reply)
    return _unwrapped(reply) if alone else None


def reasoned_status(filtered: str) -> ReasonedStatus:
    """Whether a filtered reply has a final answer, has none, or is empty."""
    if filtered.strip() in ("", _EMPTY):
        return "empty"
    return "no_final_answer" if final_answer(filtered) is None else "ok"


class ReasonedAnswerFilter(ResponseFilter):
    """Raw responses become replies without thinking, or ``[empty]``."""

    version = "4"
    status = staticmethod(reasoned_status)
    read = staticmethod(lambda text: reply_text(text) or _EMPTY)


def _boxed(segment: str) -> str:
    """The content of a LaTeX box that was opened just before ``segment``."""
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
    closing = _CLOSING_TAG.search(segment)
    if closing:
        segment = segment[: closing.start()]
    answer = _TOKEN.sub("", segment).strip().strip("`").strip()
    if answer.endswith(("}", "]")):  # the end of a JSON object whose key was the label
        answer = answer.rstrip("}] \t\n") if answer.startswith(('"', "'", "[")) else answer
    for mark in _MARKS:
        if answer.count(mark) % 2:  # its other half belonged to the label
            answer = (answer.removeprefix(mark) if answer.startswith(mark) else answer.removesuffix(mark)).strip()
        if answer.count(mark) == 2 and answer.startswith(mark) and answer.endswith(mark):
            answer = answer.removeprefix(mark).removesuffix(mark).strip()
    return answer[1:-1] if re.fullmatch("“[^“”]*”", answer) else answer
