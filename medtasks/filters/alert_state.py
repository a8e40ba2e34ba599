"""The state that a proactive round reports: ``no_alert``, ``uncertain`` or ``alert: reason``.

arXiv 2607.01751 (equation 5) allows these three replies. The rules, the same for every model:

1. Thinking blocks and markup are removed, and a JSON object with a state becomes lines (``state: …``, ``reason: …``).
   If nothing is left the status is ``empty``.
2. A state *stands* if it begins a line, after bullets, brackets, a round number or a time, and is followed by the
   line's end, by a sign (``: . , ; ! ( |`` or a dash) or by *because*, *since*, *due to*. Case, ``no alert``,
   ``no-alert`` and ``NoAlert`` are alike. A few closing words may follow it: ``No alert needed at this time.``
3. A state followed by other words is prose: ``uncertain whether to alert``, ``alert and awake``,
   ``Alert is not needed``. So is one within a word (``alertness``), a question (``Alert?``) and one in the middle of
   a sentence (``There is no alert needed``, ``not an alert``).
4. A state after a label (``Response:``, ``State:``, ``Answer is``, alone on the line above) is *labelled*; one after a
   label with *final* (or an answer tag or LaTeX box) is *final*. Labels may be within a line. Ranks: final, labelled,
   at the start of a line.
5. The last state decides alone if its rank is above that of every earlier different one; otherwise all of them
   count. One line that offers two states (``no_alert | uncertain``, ``uncertain (alert)``) counts as both.
6. If no line has a state, sentences are read as lines are: ``The view is clear. No alert.``
7. Exactly one state is ``ok``. None, or several different ones, is ``invalid``: no partial credit, never positive.
8. The text after ``alert`` up to the next state is the reason, on one line, without a leading ``Reason:``; if nothing
   follows, it is an earlier alert's reason or a ``Reason:`` line above. It may be missing.
9. Lines that repeat the instruction's format (``no_alert / alert: <reason> / uncertain``) are not read. A later state
   replaces one that is taken back (``correction``, ``wait``).
10. ``Alert: no_alert`` and ``Alert: uncertain`` use *alert* as a label; ``Alert: no`` (none, false) is ``no_alert``.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, cast

from medtasks.filters.base import ResponseFilter
from medtasks.filters.plain_text import bounded, plain_text
from medtasks.filters.reasoned_answer import reply_text

State = Literal["no_alert", "uncertain", "alert"]
AlertStatus = Literal["ok", "invalid", "empty"]


@dataclass(frozen=True)
class AlertResponse:
    """The state of a reply, None unless ``status`` is ``ok``; ``reason`` is an alert's, on one line, else empty."""

    state: State | None
    reason: str
    status: AlertStatus

    @property
    def filtered(self) -> str:
        """The filtered response in the harness's log: the state, ``alert: reason``, or the status in brackets."""
        if self.state is None:
            return f"[{self.status}]"
        return f"{self.state}: {self.reason}" if self.reason else self.state


_STATE = r"(?P<state>no[\s_‐–-]{0,3}alerts?|uncertain|alert)(?![^\W_]|_)"
_TAIL_WORDS = (
    r"(?:\s{1,3}(?:is|are|be|should|needs?|needed|required|necessary|warranted|indicated|triggered|raised|issued|yet"
    r"|now|currently|at\s{1,3}(?:this|the)(?:\s{1,3}(?:current|present))?\s{1,3}(?:time|moment|point|stage)|so\s{1,3}far"
    r"|for\s{1,3}(?:now|this\s{1,3}(?:round|window|clip))|to\s{1,3}be)(?![^\W_])){0,6}"
)
_STANDS = re.compile(
    rf"{_STATE}[\"'”’)\]}}>]{{0,4}}{_TAIL_WORDS}[\"'”’)\]}}>]{{0,4}}(?:(?P<end>[^\w?/|]*$)"
    r"|\s{0,4}(?P<sign>(?=(?P=state)(?![^\W_]))|[:=]|[.,;!|/–—→]|->|=>|-\s|(?<=\s)-|(?=[(\[]|(?:because|since|due\s{1,3}to)\b)))",
    re.IGNORECASE,
)
_DECORATION = (
    r"[^\w\n]{0,16}(?:(?:round|frame|time|step|t|at)?[ \t#=:]{0,3}\d[\d.:]{0,11}[ \t]?(?:s|sec|seconds)?[ \t]{0,2}"
    r"[.:)\]–—-][^\w\n]{0,8})?"
)
_FINAL = r"(?P<final>final[ \t_-]{1,3})?"
_SURE = (
    r"(?:answer|response|reply|output|decision|verdict|correction|alert[ _-](?:state|status|decision|level)"
    r"|回答|答案|输出)"
)
_LOOSE = r"(?:state|status|conclusion|assessment|prediction|result|classification|judge?ment|action)"
_CLOSE = r"[\"')\]]{0,3}[ \t]{0,4}"
_SAYS = (
    rf"(?:(?:{_SURE}|state){_CLOSE}(?:is|should be|would be|remains)\b[ \t]{{0,4}}[:=]?"
    rf"|(?:{_SURE}|{_LOOSE}){_CLOSE}(?:[:=|]|->|→|[-–—][ \t]))"
)
_LABEL = re.compile(
    rf"(?:(?:so|thus|therefore|hence|the|my|our|current|correct|proactive|overall|monitoring)[ \t,]{{1,3}}){{0,4}}"
    rf"(?:{_FINAL}(?:(?:current|corrected|revised|updated)[ \t]{{1,3}})?{_SAYS}|(?:wait|actually|sorry|no)[ \t]?,"
    r"|(?P<finally>final(?:ly)?)[ \t]{0,3}[:,])[^\w\n]{0,12}",
    re.IGNORECASE,
)
_LABEL_ALONE = re.compile(
    rf"[^\w\n]{{0,12}}(?:(?:the|my|current)[ \t]{{1,3}})?{_FINAL}(?:{_SURE}|{_LOOSE})[^\w\n]{{0,8}}", re.IGNORECASE
)
_LABEL_WITHIN = re.compile(  # fewer words than at the start of a line: a reason may describe a patient's state
    rf"(?<![^\W_])(?:(?P<final>final[ \t_-]{{1,3}})(?:{_SURE}|{_LOOSE}){_CLOSE}(?:[:=]|->|→|is\b:?)"
    rf"|answer{_CLOSE}(?:[:=]|is\b:?)|(?:my|the)[ \t]{{1,3}}response{_CLOSE}is\b:?"
    rf"|(?:response|output|decision|respond(?:[ \t]{{1,3}}with)?){_CLOSE}[:=]"
    r"|(?:so|thus|therefore|hence|因此|所以|故)[ \t]{0,2}[:,]"
    r"|I(?:['’](?:d|ll)|[ \t]{1,3}(?:would|will|must|should|can))?[ \t]{1,3}"
    r"(?:respond|reply|answer|report|say|output|choose|select|go)(?:[ \t]{1,3}with)?(?=[ \t])"
    r"|I(?:['’]m|[ \t]{1,3}am)(?=[ \t]{1,3}uncertain))"
    rf"[^\w\n]{{0,12}}(?={_STATE})",
    re.IGNORECASE,
)
_DECORATED = re.compile(_DECORATION, re.IGNORECASE)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?。！？])\s+|\n")

_FENCE = re.compile(r"^[ \t]{0,4}(?:```|~~~)[a-z]{0,12}[ \t]{0,4}$", re.IGNORECASE | re.MULTILINE)
_OBJECT = re.compile(r"\{[^{}]{1,8000}\}")
_TAG = re.compile(r"<(?P<close>/)?(?P<name>state|status|decision|response|output|alert|reason)>", re.IGNORECASE)
_STATE_KEYS = ("final_answer", "answer", "response", "state", "status", "alert_state", "decision", "output", "alert")
_REASON_KEYS = ("reason", "alert_reason", "explanation", "rationale", "justification", "message")

_REASON_LABEL = re.compile(
    r"(?:[\W_]{0,8}(?:(?:reason(?:ing)?|explanation|rationale)\b[\"']?\s{0,3}[:=–—-]"
    r"|(?:because(?:\s{1,3}of)?|due\s{1,3}to|since)\b))+",
    re.IGNORECASE,
)
_REASON_LINE = re.compile(
    r"^[^\w\n]{0,12}(?:reason|explanation|rationale)[\"']?[ \t]{0,3}[:=](?P<reason>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_NOTHING = re.compile(
    r"(?:no|none|false|n/a|nil|null|nothing|off|not\s{1,3}(?:needed|required|warranted))"
    r"(?:[\"'”]?$|[.,;:!(–—]|\s-|\s{1,3}(?:reason|explanation|rationale)\b)",
    re.IGNORECASE,
)
_YES = re.compile(r"(?:yes|true|on)[.!]?", re.IGNORECASE)
_EDGES = " \t\"'“”‘’`{}:;,=–—-|>→#!"
_SKIPPED = (_REASON_LABEL, _LABEL_WITHIN, re.compile(rf"[{re.escape(_EDGES)}]+"))
_MARKUP = str.maketrans("", "", "<>|_#◁▷*`$\\~")

_PLACEHOLDER = re.compile(
    r"alert[\"'`*]{0,3}[ ]?:[ ]?[\"'`*]{0,3}[<\[{](?:(?:your|the|a|brief|short)[ _])*"
    r"(?:answer|reason|description|explanation|text|finding)s?[>\]}]",
    re.IGNORECASE,
)
_LISTED = re.compile(  # the three states offered side by side, as in the instruction
    r"(?:(?:no[ _-]?alert|uncertain|alert(?:[ ]?:[^/|,\n]{0,40})?)[\s\"'`*.]{0,4}(?:[/|,]|\bor\b)"
    r"[\s\"'`*]{0,4}(?:or\s)?){2}(?:no[ _-]?alert|uncertain|alert)(?![^\W_])",
    re.IGNORECASE,
)
_RETRACTS = re.compile(
    r"(?<!\w)(?:correction|wait|actually|scratch that|on (?:second thoughts?|reflection)|my mistake"
    r"|let me (?:correct|revise)|I (?:was wrong|misread)|sorry)(?!\w)|更正|不对",
    re.IGNORECASE,
)
_CHINESE = (
    (re.compile("(?:无需?|没有|不需要?)(?:发出)?(?:警报|警示|告警|报警)"), "no_alert"),
    (re.compile("不确定"), "uncertain"),
    (re.compile("警报|告警"), "alert"),
)

_BARE, _LABELLED, _SAID_FINAL = 0, 1, 2


@dataclass(frozen=True)
class _Selection:
    states: frozenset[State]
    rank: int
    tail: str
    label: bool = False  # "Alert:" with nothing after it: a state on the next line replaces it


def parse_alert(text: str) -> AlertResponse:
    """The state that ``text`` reports, by the rules in this module's docstring.

    Never raises; the result depends on the text alone, and a filtered response is read back as it is.

    >>> parse_alert("**Alert** - active bleeding").filtered, parse_alert("The patient is alert.").filtered
    ('alert: active bleeding', '[invalid]')
    """
    reply = _without_instruction(bounded(reply_text(text)))
    if reply in ("[invalid]", "[empty]"):
        return AlertResponse(None, "", cast("AlertStatus", reply[1:-1]))
    if reply.startswith("alert: ") and _reason(reply[7:]) == reply[7:]:
        return _settled(reply[7:])
    plain = plain_text(_FENCE.sub("", _TAG.sub(_as_label, _OBJECT.sub(_as_lines, reply))))
    if not plain:
        return AlertResponse(None, "", "empty")
    selections = _selections(plain.split("\n")) or _selections(_SENTENCE_ENDS.split(plain))
    states = _deciding(selections)
    if states != {"alert"}:
        return _only(states)
    tails = [_reason(selection.tail) for selection in selections if selection.states == states]
    stated = [_reason(match["reason"]) for match in _REASON_LINE.finditer(plain)]
    reasons = [reason for reason in [*stated, *tails] if reason]
    return _settled(tails[-1] or (reasons[-1] if reasons else ""))


def _without_instruction(reply: str) -> str:
    """``reply`` without the lines that repeat the instruction's format; *[invalid]* if nothing else is left."""
    for pattern, state in _CHINESE:
        reply = pattern.sub(state, reply)
    if not (_PLACEHOLDER.search(reply) or _LISTED.search(reply)):
        return reply
    lines = [line for line in reply.split("\n") if not (_PLACEHOLDER.search(line) or _LISTED.search(line))]
    return "\n".join(lines).strip() or "[invalid]"


def alert_status(filtered: str) -> AlertStatus:
    """Status of a response, filtered or not: ``ok`` if it reports one of the three states."""
    return parse_alert(filtered).status


class AlertStateFilter(ResponseFilter):
    """Raw responses become states or ``[status]`` markers."""

    version = "4"
    status = staticmethod(alert_status)
    read = staticmethod(lambda text: parse_alert(text).filtered)


def _as_lines(match: re.Match[str]) -> str:
    """A JSON object as lines, its state first; any other object as it is."""
    try:
        loaded = json.loads(match[0], strict=False)
    except (ValueError, RecursionError):
        return match[0]
    fields = {str(key).strip().casefold().replace(" ", "_"): value for key, value in loaded.items()}
    states = [line for key in _STATE_KEYS for line in _state_lines(key, fields.get(key))]
    reasons = [f"reason: {fields[key]}" for key in _REASON_KEYS if isinstance(fields.get(key), str)]
    return "\n" + "\n".join(states + reasons) + "\n" if states else match[0]


def _state_lines(key: str, value: object) -> list[str]:
    if key == "alert" and isinstance(value, bool):
        return ["state: alert" if value else "state: no_alert"]
    if isinstance(value, str) and (key == "alert" or _STANDS.match(value.strip())):
        return [f"{key}: {value}"]
    return []


def _as_label(match: re.Match[str]) -> str:
    return "\n" if match["close"] else f"\n{match['name']}: "


def _selections(lines: list[str]) -> list[_Selection]:
    """The states that stand, in order; lines without one belong to the tail of the state before them."""
    selections: list[_Selection] = []
    tails: list[list[str]] = []
    above: int | None = None
    for line in lines:
        found = _in_line(line, above)
        if found is not None:
            if selections and selections[-1].label and not "".join(tails[-1]).strip():
                selections.pop()
                tails.pop()
            selections.append(found)
            tails.append([found.tail])
        elif tails:
            tails[-1].append(line)
        if line.strip():
            alone = _LABEL_ALONE.fullmatch(line)
            above = None if alone is None else _SAID_FINAL if alone["final"] else _LABELLED
    return [
        _Selection(selection.states, selection.rank, "\n".join(tail))
        for selection, tail in zip(selections, tails, strict=True)
    ]


def _in_line(line: str, above: int | None) -> _Selection | None:
    decorated = _DECORATED.match(line)
    start = decorated.end() if decorated else 0
    label = _LABEL.match(line, start)
    if label:
        stands = _standing(line, label.end(), _SAID_FINAL if label["final"] or label["finally"] else _LABELLED)
    else:
        stands = _standing(line, start, _BARE if above is None else above)
    within = _within(line)
    if stands is None or (within is not None and within.states != stands.states):
        return within
    return stands


def _within(line: str) -> _Selection | None:
    """The last state on the line after a label."""
    last = None
    for label in _LABEL_WITHIN.finditer(line):
        last = _standing(line, label.end(), _SAID_FINAL if label["final"] else _LABELLED) or last
    return last


def _standing(line: str, start: int, rank: int) -> _Selection | None:
    """The state that begins at ``start``, with a second one that follows it at once (a hedge)."""
    match = _STANDS.match(line, start)
    if match is None:
        return None
    state, tail = _state_named(match["state"]), line[match.end() :]
    if state == "alert" and match["sign"] in (":", "=") and _NOTHING.match(tail.strip(_EDGES)):
        return _Selection(frozenset(("no_alert",)), rank, tail)
    after = _STANDS.match(tail, len(tail) - len(tail.lstrip(" \t\"'([|/:;,–—->")))
    if after is None:
        return _Selection(frozenset((state,)), rank, tail, label=state == "alert" and ":" in match[0])
    second = _state_named(after["state"])
    if state == second or (state == "alert" and match["sign"] in (":", "=")):  # rule 9
        return _Selection(frozenset((second,)), rank, tail[after.end() :])
    return _Selection(frozenset((state, second)), rank, tail)


def _state_named(written: str) -> State:
    lowered = written.casefold()
    return "no_alert" if lowered.startswith("no") else "uncertain" if lowered == "uncertain" else "alert"


def _deciding(selections: list[_Selection]) -> frozenset[State]:
    if not selections:
        return frozenset()
    last = selections[-1]
    if any(_RETRACTS.search(selection.tail) for selection in selections[:-1]):
        return last.states
    if all(selection.rank < last.rank for selection in selections if selection.states != last.states):
        return last.states
    return frozenset[State]().union(*(selection.states for selection in selections))


def _settled(reason: str) -> AlertResponse:
    """An alert with this tidied reason, unless the reason itself states another state (rules 4 and 9)."""
    within = _within(reason)
    if within is not None and within.states != {"alert"}:
        return _only(within.states)
    position = 0
    while True:
        stands = _STANDS.match(reason, position)
        if stands and _state_named(stands["state"]) != "alert":
            return _only(frozenset((_state_named(stands["state"]),)))
        step = stands or next(filter(None, (skip.match(reason, position) for skip in _SKIPPED)), None)
        if step is None or step.end() == position:
            break
        position = step.end()
    if _NOTHING.match(reason, position):
        return _only(frozenset(("no_alert",)))
    again = _LABEL_WITHIN.search(reason, position) if within else None
    reason = _reason(reason[position : again.start() if again else len(reason)])
    return AlertResponse("alert", "" if _YES.fullmatch(reason) else reason, "ok")


def _only(states: frozenset[State]) -> AlertResponse:
    if len(states) != 1:
        return AlertResponse(None, "", "invalid")
    (state,) = states
    return AlertResponse(state, "", "ok")


def _reason(tail: str) -> str:
    """A reason on one line, without its label and markup; idempotent."""
    reason = tail
    for _ in range(3):
        reason = _tidied(reason)
    if _tidied(reason) != reason or reply_text(reason) != reason:  # markup that appeared only after removing markup
        reason = _tidied(_tidied(reason.translate(_MARKUP)))
    return reason


def _tidied(text: str) -> str:
    line = " ".join(unicodedata.normalize("NFKC", plain_text(text)).split()).strip(_EDGES)
    label = _REASON_LABEL.match(line)
    line = (line[label.end() :] if label else line).strip(_EDGES)
    return line[1:-1].strip(_EDGES) if line.startswith("(") and line.find(")") == len(line) - 1 else line
