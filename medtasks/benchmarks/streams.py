"""MedStreamBench's items out of its rounds: what each response contributes, and the scores of the item as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from medtasks.benchmarks.base import FAILED, Item, Joined, SampleView, Value
from medtasks.data.records import ABSTENTIONS
from medtasks.filters import alert_status, answerability_status, parse_alert
from medtasks.metrics import (
    ITEM_METRICS,
    OVERALL_TABLE4,
    Stream,
    StreamRound,
    aggregate,
    get_metric,
    streaming,
)
from medtasks.metrics.closed_answer import closed_answer_matches
from medtasks.metrics.item_metrics import ItemMetric

__all__ = [
    "Turn",
    "is_mismatch",
    "is_open",
    "item_score",
    "item_values",
    "join_rounds",
    "table4_value",
    "turn_of",
]

OPEN = "content_open"
FALLBACK = "content_closed_fallback"

_METRICS: Mapping[str, ItemMetric] = {metric.name: metric for metric in ITEM_METRICS}


@dataclass(frozen=True)
class Turn:
    """One response of an item; times are in seconds or frame indices.

    ``content`` is None while there is no verdict, ``judge`` the hash of the judge that was asked for it.
    ``fallback`` is the content of a closed answer with the judge's word on those that do not match.
    """

    item: str
    number: int
    rounds: int
    streaming: bool
    in_seconds: bool
    closed: bool
    time: float
    query_time: float
    expected_time: float | None
    tolerance: float | None
    answerable: bool
    positive: bool
    content: float | None
    invalid: bool
    judge: str | None = None
    fallback: float | None = None
    fallback_judge: str | None = None

    def payload(self) -> dict[str, Any]:
        """The turn as plain JSON, for the harness's own gathering."""
        return asdict(self)


def turn_of(doc: Mapping[str, Any], filtered: str, judged: Mapping[str, Value] = MappingProxyType({})) -> Turn:
    """What the filtered response to one document contributes (card, "Scoring"); ``judged`` are verdicts on it."""
    proactive = doc["temporal_mode"] == "proactive"
    status = alert_status(filtered) if proactive else answerability_status(filtered)
    invalid = status in ("invalid", "empty")
    positive = parse_alert(filtered).state == "alert" if proactive else status == "ok"
    by_rule = 0.0 if invalid else _content(doc, filtered, proactive)
    content, judge = _verdict(by_rule, by_rule is None, judged.get(OPEN))
    fallback, fallback_judge = _verdict(by_rule, is_mismatch(doc, filtered), judged.get(FALLBACK))
    return Turn(
        item=doc["item_id"],
        number=doc["round"],
        rounds=doc["rounds"],
        streaming=doc["task_mode"] == "streaming",
        in_seconds=doc["medium"] == "video",
        closed=doc["question_type"] == "closed",
        time=doc["time"],
        query_time=doc["query_time"],
        expected_time=doc["expected_time"],
        tolerance=doc["tolerance"],
        answerable=doc["answerable"],
        positive=positive and not invalid,
        content=content,
        invalid=invalid,
        judge=judge,
        fallback=fallback,
        fallback_judge=fallback_judge,
    )


def _verdict(by_rule: float | None, asked: bool, judged: Value | None) -> tuple[float | None, str | None]:
    """The content that stands, and the judge that it is from."""
    if not asked:
        return by_rule, None
    if judged is None:
        return None, None
    return (None if judged.statistics is None else judged.statistics[0]), judged.judge


def is_open(doc: Mapping[str, Any], filtered: str) -> bool:
    """Whether only a judge can score the response."""
    return turn_of(doc, filtered).content is None


def is_mismatch(doc: Mapping[str, Any], filtered: str) -> bool:
    """Whether the response is an answer to an answerable closed question that matching calls wrong.

    A proactive response that raises no alert is no answer in other words, so it is none.
    """
    if doc["question_type"] != "closed" or not doc["answerable"]:
        return False
    proactive = doc["temporal_mode"] == "proactive"
    given = parse_alert(filtered).state == "alert" if proactive else answerability_status(filtered) == "ok"
    return given and _content(doc, filtered, proactive) == 0


def _content(doc: Mapping[str, Any], filtered: str, proactive: bool) -> float | None:
    """0 or 1 where a rule decides, None where a judge has to.

    Before t* a proactive response may be ``no_alert`` or ``uncertain``, whichever of them the record names (section
    5.3). The reason of an alert is an answer like any other: closed ones are matched (section 5.5).
    """
    expected = doc["expected"]
    if not doc["answerable"]:
        said = parse_alert(filtered).state if proactive else filtered
        return float(said in ABSTENTIONS["proactive" if proactive else "future"])
    if doc["question_type"] == "open":
        return None
    if not proactive:
        return float(closed_answer_matches(filtered, expected, doc["options"], doc["multi_select"]))
    response = parse_alert(filtered)
    if response.state != "alert":
        return 0.0
    alerts = [parse_alert(text) for text in expected]
    reasons = [alert.reason if alert.state == "alert" else text for alert, text in zip(alerts, expected, strict=True)]
    if not any(reasons):  # the record asks for an alert and gives no reason to compare
        return 1.0
    return float(closed_answer_matches(response.reason, reasons, doc["options"], doc["multi_select"]))


def join_rounds(samples: Sequence[SampleView]) -> Joined:
    """Items of the samples; one whose rounds were not all asked is left out and named."""
    groups: dict[str, list[SampleView]] = {}
    for sample in samples:
        groups.setdefault(sample.document["item_id"], []).append(sample)
    items: list[Item] = []
    incomplete: dict[str, tuple[SampleView, ...]] = {}
    for name, members in sorted(groups.items()):
        members.sort(key=lambda sample: int(sample.document["round"]))
        if len(members) < members[0].document["rounds"]:
            incomplete[name] = tuple(members)
            continue
        turns = [turn_of(sample.document, sample.filtered, sample.values) for sample in members]
        values = item_values(turns, fallback=FALLBACK in members[0].values)
        if any(member.status == FAILED for member in members):
            values = {name: _unknown(name, value, turns[0]) for name, value in values.items()}
        items.append(Item(name, members[0].cluster, tuple(members), values))
    return Joined(tuple(items), incomplete)


def item_values(turns: Sequence[Turn], *, fallback: bool = False) -> dict[str, Value]:
    """Every metric of one whole item, by name; equations 6 to 10 of the paper.

    ``fallback`` adds the closed items' content with the judge's word on mismatches, which no other metric contains.
    """
    first = turns[0]
    stream = _stream(turns)
    low, high = streaming.content_limits(stream)
    judge = _judge([(turn.content, turn.judge) for turn in turns])
    values = {
        "content": _value("content", low, high, judge),
        "content_closed": _value("content_closed", *_where(first.closed, low, high)),
        OPEN: _value(OPEN, *_where(not first.closed, low, high), judge),
    }
    if fallback:
        limits = streaming.content_limits(_stream([replace(turn, content=turn.fallback) for turn in turns]))
        asked = _judge([(turn.fallback, turn.fallback_judge) for turn in turns])
        values[FALLBACK] = _value(FALLBACK, *_where(first.closed, *limits), asked)
    if not first.streaming:
        return {**values, "overall": _value("overall", low, high, judge)}
    responsiveness = streaming.responsiveness(stream)
    overall = [streaming.overall(content, responsiveness) for content in (low, high)]
    missed = streaming.missed(stream)
    exact: dict[str, float | None] = {
        "responsiveness": responsiveness,
        "stability": streaming.stability(stream),
        "false_alarm_rate": float(streaming.false_alarm(stream)),
        "miss_rate": None if missed is None else float(missed),
        "signed_delay": streaming.signed_delay(stream) if first.in_seconds else None,
        "invalid_rate": streaming.invalid_share(stream),
    }
    return {
        **values,
        "overall": _value("overall", overall[0], overall[1], judge),
        **{name: _value(name, number, number) for name, number in exact.items()},
    }


def _unknown(name: str, value: Value, first: Turn) -> Value:
    """The metric of an item of which a round has no response: anything from 0 to 1, a delay without limits.

    One that does not apply to the item, whatever its responses, stays as it is.
    """
    if name == "signed_delay" and first.in_seconds:
        return Value(failed=True)
    if value.statistics is not None and value.statistics[1] == 0:
        return value
    low, high = (tuple(_METRICS[name].item_statistics(number).tolist()) for number in (0.0, 1.0))
    return Value(low=low, high=high, judge=value.judge, failed=True)


def _where(applies: bool, low: float, high: float) -> tuple[float | None, float | None]:
    return (low, high) if applies else (None, None)


def _judge(turns: Sequence[tuple[float | None, str | None]]) -> str | None:
    """The judge of an item's turns, (content, judge) each; None where none was asked for one that needs it."""
    if any(content is None and judge is None for content, judge in turns):
        return None
    return next((judge for _, judge in turns if judge is not None), None)


def _stream(turns: Sequence[Turn]) -> Stream:
    first = turns[0]
    return Stream(
        rounds=tuple(
            StreamRound(turn.time, turn.answerable, turn.positive, turn.content, turn.invalid) for turn in turns
        ),
        # an image sequence counts frames, and its question may be timed in seconds: then the stream starts with it
        query_time=min(first.query_time, first.time),
        expected_time=first.expected_time,
        tolerance=first.tolerance,
    )


def _value(name: str, low: float | None, high: float | None, judge: str | None = None) -> Value:
    metric = _METRICS[name]
    bottom, top = (tuple(metric.item_statistics(number).tolist()) for number in (low, high))
    judge = None if low is None else judge
    return Value(statistics=bottom, judge=judge) if bottom == top else Value(low=bottom, high=top, judge=judge)


def table4_value(item: Item) -> Value | None:
    """The item's part in Table 4's overall, where mode means are combined."""
    content, responsiveness = item.values["content"], item.values.get("responsiveness")
    mode = item.view.document["temporal_mode"]

    def row(said: tuple[float, ...] | None, timed: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if said is None:
            return None
        return tuple(OVERALL_TABLE4.item_statistics(mode, said[0], None if timed is None else timed[0]).tolist())

    timing = responsiveness or Value()
    return Value(
        statistics=row(content.statistics, timing.statistics),
        low=row(content.low, timing.statistics or timing.low),
        high=row(content.high, timing.statistics or timing.high),
        judge=content.judge,
        failed=content.failed,
    )


def item_score(name: str) -> Callable[[Sequence[Mapping[str, Any]]], float | str]:
    """Aggregation for ``metric_list``: the metric over the items that the gathered turns make up."""

    def corpus_score(values: Sequence[Mapping[str, Any]]) -> float | str:
        groups: dict[str, list[Turn]] = {}
        for value in values:
            turn = Turn(**value["turn"])
            groups.setdefault(turn.item, []).append(turn)
        whole = [
            sorted(turns, key=lambda turn: turn.number) for turns in groups.values() if len(turns) == turns[0].rounds
        ]
        items = [item_values(turns)[name] for turns in whole]
        pending = sum(item.pending for item in items)
        if pending or not items:
            why = f"{pending} of {len(items)} items await a judge" if items else "no item has all of its rounds"
            return f"not computed, because {why}"
        statistics = np.array([item.statistics for item in items], dtype=np.float64)
        score = aggregate(get_metric(name), statistics).overall.score
        return "not computed, because it applies to no item here" if np.isnan(score) else score

    corpus_score.__name__ = corpus_score.__qualname__ = name
    return corpus_score


content = item_score("content")
content_closed = item_score("content_closed")
responsiveness = item_score("responsiveness")
stability = item_score("stability")
overall = item_score("overall")
false_alarm_rate = item_score("false_alarm_rate")
miss_rate = item_score("miss_rate")
signed_delay = item_score("signed_delay")
invalid_rate = item_score("invalid_rate")
