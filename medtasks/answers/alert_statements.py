"""The lines of a reply that state something about an alert (rules of `alert_state`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from medtasks.answers.vocabulary import Rank, Vocabulary

State = Literal["no_alert", "uncertain", "alert"]

_PATTERNS = Vocabulary("alerts")
STATES: dict[str, State] = {"no": "no_alert", "un": "uncertain", "al": "alert"}
EDGES = " \t\"'“”‘’`{}:;,=–—-|>→#!"


@dataclass
class AlertStatement:
    """A line that states something, with the text behind it up to the next such line."""

    states: frozenset[State]
    rank: Rank
    tail: list[str]
    label: bool = False  # "Alert:" with nothing after it: a state on the next line replaces it


def alert_statements(lines: Sequence[str]) -> list[AlertStatement]:
    """The statements of the lines, in order; a line without one belongs to the tail of the
    statement before it.
    """
    statements: list[AlertStatement] = []
    above = Rank.LABEL
    for line in lines:
        statement = _in_line(line, above)
        if statement is not None:
            if statements and statements[-1].label and not "".join(statements[-1].tail).strip():
                statements.pop()
            statements.append(statement)
        elif statements:
            statements[-1].tail.append(line)
        if line.strip():
            label = _PATTERNS["label_alone"].fullmatch(line)
            above = _rank(label) if label else Rank.LABEL
    return statements


def _in_line(line: str, above: Rank) -> AlertStatement | None:
    """What a line states: at its start, below a label (of the rank ``above``), or after one within
    the line.
    """
    start = _PATTERNS["bullet"].sub("", line, count=1)
    label = _PATTERNS["label"].match(start)
    first = _standing(start[label.end() :], _rank(label)) if label else _standing(start, above)
    within = state_within(line)
    return within if first is None or (within and within.states != first.states) else first


def state_within(line: str) -> AlertStatement | None:
    """The last state on the line after a label."""
    last = None
    for label in _PATTERNS["label_within"].finditer(line):
        last = _standing(line[label.end() :], _rank(label)) or last
    return last


def _rank(label: re.Match[str]) -> Rank:
    groups = label.groupdict()
    return Rank.FINAL if groups["final"] or groups.get("finally") else Rank.ANSWER


def _standing(text: str, rank: Rank) -> AlertStatement | None:
    """The state that ``text`` begins with, and others that follow it at once (a hedge)."""
    match = _PATTERNS["stands"].match(text)
    if match is None:
        return None
    states, tail = named_states([match]), text[match.end() :]
    is_label = "alert" in states and (":" in match[0] or match["sign"] == "=")  # rule 5
    if is_label and _PATTERNS["nothing"].match(tail.strip(EDGES)):
        return AlertStatement(none_beside(tail), rank, [tail])
    later: list[re.Match[str]] = []
    while after := _PATTERNS["stands"].match(tail.lstrip(" \t\"'([|/:;,–—->")):
        later.append(after)
        tail = after.string[after.end() :]
    if not later:
        return AlertStatement(states, rank, [tail], is_label)
    return AlertStatement(named_states(later if is_label else [match, *later]), rank, [tail])


def named_states(matches: Iterable[re.Match[str]]) -> frozenset[State]:
    return frozenset(STATES[match["state"][:2].casefold()] for match in matches)


def none_beside(tail: str) -> frozenset[State]:
    """*No alert*, and the states of further sentences of ``tail``."""
    return named_states(
        filter(None, map(_PATTERNS["stands"].match, _PATTERNS["sentence_ends"].split(tail)))
    ) | {"no_alert"}
