"""The state that a proactive round reports: ``no_alert``, ``uncertain`` or ``alert: reason``.

arXiv 2607.01751 (equation 5) allows these three replies. The rules, the same for every model:

1. Thinking, markup and lines that repeat the instruction's format are removed; a JSON object with a
   state becomes lines. If nothing is left the status is ``empty``.
2. A state *stands* if it begins a line, after bullets, a round number or a time, and is followed by
   the line's end, by a sign or by *because*, *since*, *due to*; a few closing words may be between
   (``No alert needed at this time.``). Followed by other words it is prose (``uncertain whether to
   alert``), as it is within a sentence or a question. If no line has a state, sentences are read as
   lines are.
3. Ranks: at the start of a line; after a label (``Response:``, ``State:``, alone on the line above,
   within a line; for ``alert:`` and the other states any short one, as ``Safety:``); after a label
   with *final*, an answer tag or a box. The last state decides alone if it outranks every earlier
   different one, or if they are taken back (``wait``), also on their own line (``alert: polyp.
   Correction: it is a bubble. no_alert``); otherwise all of them count, as do two on one line
   (``uncertain (alert)``).
4. Exactly one state is ``ok``. None, or several different ones, is ``invalid``: no partial credit,
never positive.
5. The text after ``alert`` up to the next state is the reason, without a leading ``Reason:``; if
   nothing follows, it is an earlier alert's reason or a ``Reason:`` line. In ``Alert: no_alert``
   *alert* is a label; ``Alert: no`` is ``no_alert``, as are denials in words (``There is no reason
   to alert.``, ``alert level: none``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from medtasks.answers.alert_statements import (
    EDGES,
    STATES,
    AlertStatement,
    State,
    alert_statements,
    named_states,
    none_beside,
    state_within,
)
from medtasks.answers.base import ResponseFilter
from medtasks.answers.markup import bounded, labelled, plain_text, reply_text
from medtasks.answers.vocabulary import Vocabulary

AlertStatus = Literal["ok", "invalid", "empty"]

_PATTERNS = Vocabulary("alerts")
_MARKUP = str.maketrans("", "", "<>|_#◁▷*`$\\~")


@dataclass(frozen=True)
class AlertResponse:
    """The state of a reply, None unless ``status`` is ``ok``; ``reason`` is an alert's, on one
    line, else empty.
    """

    state: State | None
    reason: str = ""
    status: AlertStatus = "ok"

    @property
    def filtered(self) -> str:
        """The filtered response in the harness's log: the state, ``alert: reason``, or the status
        in brackets.
        """
        if self.state is None:
            return f"[{self.status}]"
        return f"{self.state}: {self.reason}" if self.reason else self.state


_INVALID, _EMPTY = AlertResponse(None, status="invalid"), AlertResponse(None, status="empty")


def parse_alert(text: str) -> AlertResponse:
    """The state that ``text`` reports, by the rules in this module's docstring.

    Never raises; the result depends on the text alone, and a filtered response is read back as it
    is.

    >>> (parse_alert("**Alert** - active bleeding").filtered,
    ...  parse_alert("The patient is alert.").filtered)
    ('alert: active bleeding', '[invalid]')
    """
    reply = _without_echo(text)
    if reply == _INVALID.filtered:
        return _INVALID
    if reply == _EMPTY.filtered:
        return _EMPTY
    reason = reply.removeprefix("alert: ")
    if reason != reply and _reason(reason) == reason:
        return _settled(reason)
    unfenced = _PATTERNS["fence"].sub("", _states_named(labelled(reply)))
    bare_text = _states_named(plain_text(_PATTERNS["other_field"].sub("", unfenced)))
    lines = bare_text.split("\n")
    if all(_is_empty_answer(line.strip()) for line in lines):
        return _EMPTY
    statements = alert_statements(lines)
    if not statements:
        sentences = _PATTERNS["sentence_ends"].split(bare_text)
        statements = alert_statements(sentences)
    if not statements:
        return _INVALID
    states = _deciding_states(statements)
    if states != {"alert"}:
        return _only(states)
    return _settled(_last_reason(bare_text, statements))


def _without_echo(text: str) -> str:
    """The reply with its states named, without lines that repeat the question."""
    reply = _states_named(bounded(reply_text(text)))
    lines = [_correction_apart(line) for line in reply.split("\n")]
    reply = "\n".join(lines)
    echo = _PATTERNS["echo"]
    if not echo.search(reply):
        return reply
    lines = [line for line in reply.split("\n") if not echo.search(line)]
    return "\n".join(lines).strip() or _INVALID.filtered


def _is_empty_answer(line: str) -> bool:
    """Whether a line is blank, or a box or answer tag without an answer."""
    if not line:
        return True
    label = _PATTERNS["label_alone"].fullmatch(line)
    return label is not None and bool(label["final"])


def _deciding_states(statements: Sequence[AlertStatement]) -> frozenset[State]:
    """The states of the last statement if it decides alone (rule 3), else those of all."""
    *earlier, last = statements
    rivals = [statement for statement in earlier if statement.states != last.states]
    if all(rival.rank < last.rank for rival in rivals):
        return last.states
    for statement in earlier:
        if _PATTERNS["taken_back"].search("\n".join(statement.tail)):
            return last.states
    return last.states.union(*(statement.states for statement in earlier))


def _last_reason(bare_text: str, statements: Sequence[AlertStatement]) -> str:
    """The last reason for an alert: behind a statement of it, else in a line of its own."""
    reasons = [_reason(line["reason"]) for line in _PATTERNS["reason_line"].finditer(bare_text)]
    for statement in statements:
        if statement.states == {"alert"}:
            reasons.append(_reason("\n".join(statement.tail)))
    for reason in reversed(reasons):
        if reason and not _PATTERNS["only_yes"].fullmatch(reason):
            return reason
    return ""


def alert_status(filtered: str) -> AlertStatus:
    """Status of a response, filtered or not: ``ok`` if it reports one of the three states."""
    return parse_alert(filtered).status


class AlertStateFilter(ResponseFilter):
    """Raw responses become states or ``[status]`` markers."""

    version = "13"
    status = staticmethod(alert_status)
    read = staticmethod(lambda text: parse_alert(text).filtered)


def _states_named(reply: str) -> str:
    """``reply`` with the states' own names where other words, or another language, state them."""
    for state in STATES.values():
        reply = _PATTERNS[state].sub(state, reply)
    return reply


def _correction_apart(line: str) -> str:
    r"""``line`` with its correction, and each sentence behind it, on lines of their own.

    A line without states on both sides of a correction is returned as it is.

    >>> _correction_apart("alert: polyp. Correction: it is a bubble. no_alert").split("\n")
    ['alert: polyp.', 'Correction:', 'it is a bubble.', 'no_alert']
    """
    correction = _PATTERNS["corrects"].search(line)
    if correction is None:
        return line
    before, behind = line[: correction.start()], line[correction.end() :].strip()
    if not (_PATTERNS["named"].search(before) and _PATTERNS["named"].search(behind)):
        return line
    return "\n".join([before, correction[0].strip(), *_PATTERNS["behind_correction"].split(behind)])


def _settled(reason: str) -> AlertResponse:
    """An alert with this tidied reason, unless the reason itself states another state (rules 3 and
    5).
    """
    if _PATTERNS["either"].search(reason):
        return _INVALID
    within = state_within(reason)
    if within and within.states != {"alert"}:
        return _only(within.states)
    if _is_contradicted(reason):
        return _INVALID
    lead = _lead_of(reason)
    if lead.states is not None:
        return _only(lead.states)
    if _PATTERNS["nothing"].match(reason, lead.end):
        return _only(none_beside(reason[lead.end :]))
    end = len(reason)
    if within:
        second_label = _PATTERNS["label_within"].search(reason, lead.end)
        if second_label is not None:
            end = second_label.start()
    bare_reason = _reason(reason[lead.end : end])
    if _PATTERNS["only_yes"].fullmatch(bare_reason):
        return AlertResponse("alert")
    return AlertResponse("alert", bare_reason)


def _is_contradicted(reason: str) -> bool:
    """Whether a later sentence is just another state, as in ``alert: bleeding. no_alert.``"""
    for sentence in _PATTERNS["sentence_ends"].split(reason)[1:]:
        state = _PATTERNS["stands"].match(sentence)
        if state is None or sentence[state.end() :].strip(EDGES + "."):
            continue
        if named_states([state]) != {"alert"}:
            return True
    return False


@dataclass(frozen=True)
class _Lead:
    """The states, labels and signs that precede a reason: where they end.

    ``states`` are the first ones other than ``alert``, None without any.
    """

    end: int
    states: frozenset[State] | None = None


def _lead_of(reason: str) -> _Lead:
    """The lead of a reason, up to a state other than ``alert``."""
    position = 0
    while True:
        state = _PATTERNS["stands"].match(reason, position)
        if state is not None:
            states = named_states([state])
            if states != {"alert"}:
                return _Lead(position, states)
        step = state or _skippable(reason, position)
        if step is None:
            return _Lead(position)
        position = step.end()


def _skippable(reason: str, position: int) -> re.Match[str] | None:
    """The label or signs at ``position`` that are not part of the reason."""
    for name in ("reason", "label_within", "edges"):
        match = _PATTERNS[name].match(reason, position)
        if match is not None:
            return match
    return None


def _only(states: frozenset[State]) -> AlertResponse:
    """The response that reports one state; invalid if there are none or several."""
    if len(states) != 1:
        return _INVALID
    (state,) = states
    return AlertResponse(state)


def _reason(tail: str) -> str:
    """A reason on one line, without its label and markup; idempotent."""
    reason = tail
    for _ in range(3):
        reason = _tidied(reason)
    # removing markup may have joined characters to new markup
    if _tidied(reason) != reason or reply_text(reason) != reason:
        reason = _tidied(_tidied(reason.translate(_MARKUP)))
    return reason


def _tidied(text: str) -> str:
    """``text`` on one line, without one layer of markup, label and brackets."""
    normalised = unicodedata.normalize("NFKC", plain_text(text))
    line = " ".join(normalised.split()).strip(EDGES)
    label = _PATTERNS["reason"].match(line)
    if label:
        line = _PATTERNS["reason"].sub("", line, count=1)
    line = line.strip(EDGES)
    is_in_brackets = line.startswith("(") and line.find(")") == len(line) - 1
    if is_in_brackets:
        return line[1:-1].strip(EDGES)
    return line
