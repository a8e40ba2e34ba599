"""MedStreamBench: time-aware video QA, single-turn and in streaming rounds (paper, section 5).

A record is one document per round, which sees its own window and nothing later. Task files refer to
names of this module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from medtasks.answers.alert_state import parse_alert
from medtasks.answers.answerability import UNANSWERABLE, answerability_status
from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.benchmarks.medstreambench.board import MEDSTREAMBENCH
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.benchmarks.medstreambench.records import ABSTENTIONS, MedStreamRecord
from medtasks.benchmarks.rows import Rows
from medtasks.catalog.benchmark import (
    Benchmark,
    Document,
    Item,
    Joined,
    SampleView,
    Turn,
    Value,
    by_fields,
    round_items,
    shipped,
)
from medtasks.catalog.records import letters_and_digits
from medtasks.catalog.registry import Plugin
from medtasks.core.settings import current_settings
from medtasks.data.media.windows import thin
from medtasks.data.prepare_commands import prepare_command
from medtasks.data.sources import read_table
from medtasks.metrics.base import Array, means
from medtasks.metrics.closed_answer import closed_answer_matches
from medtasks.metrics.item_metrics import CLOSED, ErrorRate, ItemScore, item_mean, sum_in_order
from medtasks.metrics.streaming import (
    DUE,
    EXPECTED_TIME,
    FALLBACK,
    LAW,
    OPEN,
    TOLERANCE,
    WEIGHTS,
    overall,
    round_values,
)

SINGLE_TURN_METRICS = ("content", "content_closed", "overall")
STREAMING_METRICS = (
    *("content", "content_closed", "responsiveness", "stability", "overall"),
    *("false_alarm_rate", "miss_rate", "signed_delay", "invalid_rate"),
)


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What one filtered response contributes: the same for every metric, since items are joined
    later.
    """
    turn = turn_of(doc, results[0])
    facts = {
        "cluster": doc["cluster"],
        "task": f"medstreambench_{doc['subtask']}",
        "turn": asdict(turn),
    }
    names = SINGLE_TURN_METRICS if doc["task_mode"] == "single_turn" else STREAMING_METRICS
    values = {name: dict(facts) for name in names}
    if turn.content is not None:
        values["content"]["score"] = turn.content
    return values


_OF_TURNS = ("rounds", "time", "query_time", "expected_time", "tolerance", "answerable")


def turn_of(
    doc: Mapping[str, Any], filtered: str, judged: Mapping[str, Value] = MappingProxyType({})
) -> Turn:
    """What the filtered response to one document contributes; ``judged`` are verdicts on it."""
    invalid, positive, by_rule = _by_rule(doc, filtered)
    content, judge = _verdict(judged.get(OPEN)) if by_rule is None else (by_rule, None)
    mismatch = doc["question_type"] == "closed" and doc["answerable"] and positive and by_rule == 0
    fallback, fallback_judge = _verdict(judged.get(FALLBACK)) if mismatch else (by_rule, None)
    return Turn(
        item=doc["item_id"],
        number=doc["round"],
        streaming=doc["task_mode"] == "streaming",
        in_seconds=doc["medium"] == "video",
        closed=doc["question_type"] == "closed",
        positive=positive,
        content=content,
        invalid=invalid,
        judge=judge,
        fallback=fallback,
        fallback_judge=fallback_judge,
        **{name: doc[name] for name in _OF_TURNS},
    )


def _verdict(judged: Value | None) -> tuple[float | None, str | None]:
    """The content by a judge, and the judge that was asked; None if none was."""
    if judged is None:
        return None, None
    return (None if judged.statistics is None else judged.statistics[0]), judged.judge


def is_open(doc: Mapping[str, Any], filtered: str) -> bool:
    """Whether only a judge can score the response."""
    return turn_of(doc, filtered).content is None


def is_mismatch(doc: Mapping[str, Any], filtered: str) -> bool:
    """Whether matching finds an answer to an answerable closed question wrong; no alert is not an
    answer in other words.
    """
    turn = turn_of(doc, filtered)
    return turn.content is not None and turn.fallback is None


def _by_rule(doc: Mapping[str, Any], filtered: str) -> tuple[bool, bool, float | None]:
    """Whether the response is none of those allowed, whether it is positive, and its content.

    Positive (section 5.5) is an alert, or any answer other than ``unanswerable``. The content is 0
    or 1 if a rule decides, None if a judge has to: on all answers to open questions (section 5.5),
    except in rounds of a stream in which nothing can be answered yet. Before t* a proactive
    response may be ``no_alert`` or ``uncertain`` (section 5.3); the reason of an alert to a closed
    question is matched (section 5.5).
    """
    proactive, expected, options = (
        doc["temporal_mode"] == "proactive",
        doc["expected"],
        doc["options"],
    )
    if proactive:
        response = parse_alert(filtered)
        answer, invalid = response.reason, response.status != "ok"
        positive, abstains = response.state == "alert", response.state in ABSTENTIONS["proactive"]
    else:
        status, refusals = answerability_status(filtered), _unanswerable_options(tuple(options))
        answer, invalid = filtered, status == "empty"
        selected = any(closed_answer_matches(filtered, (option,), options) for option in refusals)
        positive, abstains = status == "ok" and not selected, filtered == UNANSWERABLE or selected
    if invalid:
        return True, False, 0.0
    if doc["question_type"] == "open" and (doc["answerable"] or doc["task_mode"] == "single_turn"):
        return False, positive, None
    if not doc["answerable"]:
        return False, positive, float(abstains)
    if proactive:
        alerts = zip(map(parse_alert, expected), expected, strict=True)
        expected = [alert.reason if alert.state == "alert" else text for alert, text in alerts]
        if not (
            positive and any(expected)
        ):  # a record may ask for an alert and give no reason to compare
            return False, positive, float(positive)
    return (
        False,
        positive,
        float(closed_answer_matches(answer, expected, options, doc["multi_select"])),
    )


@lru_cache(maxsize=1024)
def _unanswerable_options(options: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(option for option in options if answerability_status(option) == UNANSWERABLE)


def turn_of_sample(sample: SampleView) -> Turn:
    """:func:`turn_of` a scored sample."""
    return turn_of(sample.document, sample.filtered, sample.values)


# --- table 4 of the paper: how it combines the temporal modes into one overall score ---

MODES: tuple[str, ...] = ("retrospective", "present", "future", "proactive")
"""In the order of table 4 and of the statistics."""

STREAMING_MODES: tuple[str, ...] = ("future", "proactive")  # future has single-turn items, too

_STREAMING = np.array([mode in STREAMING_MODES for mode in MODES])


def table4_statistics(mode: str, content: float, responsiveness: float | None) -> tuple[float, ...]:
    """One item's ``(Σ C, items, Σ R, streaming items)`` per mode; responsiveness is None for a
    single-turn item.
    """
    own = (content, 1.0, responsiveness or 0.0, float(responsiveness is not None))
    return tuple(number for each in MODES for number in (own if each == mode else (0.0,) * 4))


def overall_table4(totals: Array, *, zeros: bool) -> Array:
    """Overall score as table 4 combines it: mode means weighted by the modes' items, 0..1.

    ``Σ_m share_m · O_m`` with ``O = C̄`` for retrospective and present and ``0.7 C̄ + 0.3 R̄`` for
    future and proactive. Equations 9 and 10 per item give another number wherever a mode mixes
    single-turn and streaming items. The printed table cannot tell what R̄ of the future mode is:
    over the mode's streaming items alone, or, with ``zeros``, over all of its items with R = 0 for
    single-turn ones. Without streaming items and zeros, a mode counts its content alone.

    >>> rows = np.add(table4_statistics("future", 1.0, None), table4_statistics("future", 0.5, 1.0))
    >>> [round(float(overall_table4(rows, zeros=zeros)), 3) for zeros in (False, True)]  # 0.7 · 0.75 + 0.3 · (1 or 1/2)
    [0.825, 0.675]
    """
    sums = totals.reshape(*totals.shape[:-1], len(MODES), 4)
    items = sums[..., 1]
    content, responsiveness = (
        means(sums[..., 0], items),
        means(sums[..., 2], items if zeros else sums[..., 3]),
    )
    weighed = _STREAMING & ~np.isnan(responsiveness)
    scores = np.where(weighed, overall(content, responsiveness), content)
    return means(sum_in_order(np.where(items > 0, items * scores, 0.0)), sum_in_order(items))


def _reading(name: str, *, zeros: bool) -> ItemScore:
    choices = {
        "mean": "modes-by-items",
        "weights": WEIGHTS,
        "modes": ",".join(MODES),
        **CLOSED,
        **DUE,
    }
    single = {"single_turn": f"responsiveness-{'0' if zeros else 'left-out'}"}
    score = partial(overall_table4, zeros=zeros)
    return ItemScore(name, 4 * len(MODES), score, {**single, **choices}, timing=LAW)


OVERALL_TABLE4 = _reading("overall_table4", zeros=False)
OVERALL_TABLE4_EQ10 = _reading("overall_table4_eq10", zeros=True)


def table4_value(item: Item) -> Value | None:
    """The item's part in Table 4's overall, of either reading, where mode means are combined."""
    content, timing = item.values["content"], item.values.get("responsiveness", Value())
    mode, known = item.view.document["temporal_mode"], timing.statistics
    statistics, low, high = (
        None
        if row is None
        else table4_statistics(mode, row[0], None if timed is None else timed[0])
        for row, timed in zip(
            content[:3], (known, known or timing.low, known or timing.high), strict=True
        )
    )
    return Value(statistics, low, high, judge=content.judge, failed=content.failed)


# --- alerts that come late, and the delay of those that are no false alarms, from the scores of
# streaming items ---

ALERT_DELAY = item_mean(
    "alert_delay",
    {
        "unit": "s",
        "missed": "left-out",
        "false_alarms": "left-out",
        "default_expected": EXPECTED_TIME,
    },
    higher_is_better=False,
    timing=TOLERANCE,
)
"""Mean delay in seconds of the first positive response, over items where it is no false alarm."""


def _number(item: Item, name: str) -> float | None:
    """The item's value of a metric, if it is known and applies."""
    row = item.values[name].statistics if name in item.values else None
    return row[0] if row is not None and row[1] else None


def cases(item: Item) -> Iterator[Case]:
    """Whether the response was late, of an item in which one was due: neither too early, nor
    missing, nor in time.
    """
    missed = item.values.get("miss_rate")
    if missed is None or (missed.statistics is not None and not missed.statistics[1]):
        return
    timely = _number(item, "responsiveness") == 1
    yield Case(
        "late_rate", not (timely or _number(item, "miss_rate") or _number(item, "false_alarm_rate"))
    )


def alert_delay(item: Item) -> Value | None:
    """The item's delay; none if it is not a stream, nothing if its first positive response was a
    false alarm.
    """
    delay = item.values.get("signed_delay")
    if delay is None or not _number(item, "false_alarm_rate"):
        return delay
    return Value(statistics=(0.0, 0.0))


ERRORS = Errors(
    (
        ErrorRate(
            "late_rate",
            "Late",
            cases="a-response-was-due",
            choices=DUE,
            harms=True,
            timing=TOLERANCE,
        ),
    ),
    cases,
)


_GROUP_OF = {
    letters_and_digits(dataset).removesuffix("dataset"): group
    for group, datasets in read_table(__file__, "organs.yaml", dict[str, tuple[str, ...]]).items()
    for dataset in datasets
}
"""The organ or procedure group of each source dataset."""


def documents(record: MedStreamRecord) -> list[Document]:
    """One document per round, each with its own window only; a single-turn item has one.

    ``MEDTASKS_MAX_FRAMES`` thins the frames of every document; the cap is a field of the document.
    """
    alerts = record.temporal_mode == "proactive"
    answer = "; ".join(next((turn.expected for turn in record.rounds if turn.answerable), ()))
    abstentions = ABSTENTIONS["proactive" if alerts else "future"]
    if alerts:
        positive = _alert(answer or "something changed")
        allowed, guesses = [*abstentions, "alert: <reason>"], [*abstentions, positive]
    else:
        positive = answer or "yes"
        allowed = [*abstentions, "<answer>"]
        guesses = [
            *record.choices,
            *(abstentions if record.choices and record.task_mode == "streaming" else ()),
        ]
    shared = {
        **record.model_dump(
            mode="json", exclude={"rounds", "media", "judge_rubric", "choices", "sample_id"}
        ),
        "item_id": record.sample_id,
        "subtask": record.subtask,
        "organ_group": _GROUP_OF.get(
            letters_and_digits(record.dataset).removesuffix("dataset"), "unlisted dataset"
        ),
        "options": list(record.choices),
        "judge_rubric": json.dumps(record.judge_rubric, sort_keys=True, ensure_ascii=False),
        "rounds": len(record.rounds),
        "allowed_responses": allowed,
        "abstention": abstentions[0],
        "positive_response": positive,
        "guesses": guesses,
    }
    most = current_settings().max_frames
    found = []
    for number, turn in enumerate(record.rounds, start=1):
        kept = thin(len(turn.times), most)
        target = "; ".join(turn.expected)
        window = {
            "sample_id": record.sample_id
            if record.task_mode == "single_turn"
            else f"{record.sample_id}@{number}",
            "round": number,
            "time": turn.time,
            "window_start": turn.window[0],
            "window_end": turn.window[1],
            "times": [turn.times[position] for position in kept],
            "frames": [turn.frames[position] for position in kept] if turn.frames else [],
            "media": list(turn.media)
            if turn.frames
            else [turn.media[position] for position in kept],
            "max_frames": most,
            "expected": list(turn.expected),
            "answerable": turn.answerable,
            "target": _alert(target) if alerts and turn.answerable else target,
        }
        found.append({**shared, **window})
    return found


def _alert(reason: str) -> str:
    return reason if reason.casefold().startswith("alert") else f"alert: {reason}"


retrospective, present, future, future_streaming, proactive = (
    Rows.where("medstreambench", subtask=name)
    for name in ("retrospective", "present", "future", "future_streaming", "proactive")
)
retrospective_choices, present_choices, future_choices = (  # open answers are scored by a judge
    replace(rows, unusable=lambda document: "" if document["options"] else "no_options")
    for rows in (retrospective, present, future)
)


def _kinds(record: MedStreamRecord) -> Iterator[str]:
    yield record.task_mode
    yield record.subtask
    if record.task_mode == "streaming":
        yield from ["rounds"] * len(record.rounds)


_TABLE4 = (OVERALL_TABLE4, OVERALL_TABLE4_EQ10)

BENCHMARK = Benchmark(
    name="medstreambench",
    title="MedStreamBench",
    paper="arXiv 2607.01751",
    source="Venn2024/MedStreamBench, media of 22 upstream datasets",
    licence="Apache-2.0 (records); media: upstream terms",
    prepare="medtasks prepare medstreambench --source hub --media DIR",
    cluster="video",
    visible_fields=frozenset(
        (
            *("question", "options", "multi_select", "allowed_responses"),
            *(
                "task_mode",
                "temporal_mode",
                "medium",
                "query_time",
                "window_start",
                "window_end",
                "times",
            ),
        )
    ),
    breakdowns={
        **by_fields(
            "temporal_mode",
            "dataset",
            "organ_group",
            "question_type",
            "label_source",
            task="source_task",
        ),
    },
    join=lambda samples: round_items(samples, lambda rounds: round_values(rounds, turn_of_sample)),
    timeline=turn_of_sample,
    sampled_frames=True,
    pooled={
        **{metric.name: table4_value for metric in _TABLE4},
        "content_fallback": lambda item: item.values.get("content_fallback"),
        "responsiveness_stream_length": lambda item: item.values.get(
            "responsiveness_stream_length"
        ),
        "overall_stream_length": lambda item: item.values.get("overall_stream_length"),
        ALERT_DELAY.name: alert_delay,
    },
    errors=ERRORS,
    to_judge={"medstream_rubric": is_open, "medstream_closed_fallback": is_mismatch},
    documents=documents,
    record=MedStreamRecord,
    coverage=lambda record: (
        None if record.degenerate else (record.dataset, f"medstreambench_{record.subtask}")
    ),
    mini=shipped(__file__),
    prepare_mini=lambda source, out: prepare_medstream(
        str(source / "records"), source / "media", out, mini=True
    ),
    command=prepare_command(
        prepare_medstream,
        "verifying media",
        "medtasks prepare medstreambench --source hub --media /data/media",
    ),
    kinds=_kinds,
    published={"rows": 5419, "single_turn": 4663, "streaming": 756, "rounds": 3369},
    figures=Path(__file__).with_name("published.csv"),
    bibliography=Path(__file__).with_name("paper.bib"),
)

PLUGIN = Plugin(
    benchmarks=(BENCHMARK,),
    metrics=(*_TABLE4, ALERT_DELAY, *ERRORS.rates),
    layouts=(MEDSTREAMBENCH,),
)
