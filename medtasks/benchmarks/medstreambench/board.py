"""MedStreamBench (Table 4, Figure 4), with timing and timelines of streaming items."""

from __future__ import annotations

from collections.abc import Iterator

from medtasks.benchmarks.layout_parts import (
    HARMS,
    groups,
    kinds_of_error,
    option_order,
    prompt_sensitivity,
    scores,
    tasks,
    with_notes,
)
from medtasks.catalog.board_layout import BoardLayout, Column, LayoutTable, Plot

_STREAM = "medstreambench"
_FUTURE, _PROACTIVE = f"{_STREAM}_future_streaming", f"{_STREAM}_proactive"
_STREAMED = {_FUTURE: "future", _PROACTIVE: "proactive"}
_BEHAVIOUR = {"content": "Content", "responsiveness": "Responsiveness", "stability": "Stability"}
_WATCHED = {"false_alarm_rate": "False alarms", "miss_rate": "Misses"}
_TIMING = {**_WATCHED, "signed_delay": "Delay", "invalid_rate": "Invalid"}
_CONTENT = {
    "content": "All",
    "content_fallback": "All, mismatches judged",
    "content_closed": "Closed",
    "content_closed_fallback": "Closed, mismatches judged",
    "content_open": "Open, judged",
}
_MODES = (
    Column(f"{_STREAM}_retrospective", "content", "Retrospective, content"),
    Column(f"{_STREAM}_present", "content", "Present, content"),
    Column(_STREAM, "content", "Future, content", "temporal_mode", "future"),
    Column(_FUTURE, "responsiveness", "Future, responsiveness"),
    Column(_FUTURE, "stability", "Future, stability"),
    *(Column(_PROACTIVE, metric, f"Proactive, {metric}") for metric in _BEHAVIOUR),
)
_ROTATED, _ROTATED_PLOTS = option_order(
    f"{_STREAM}_circular",
    {f"{_STREAM}_{mode}_circular": mode for mode in ("retrospective", "present", "future")},
    "content",
)
_PARAPHRASED, _PARAPHRASED_PLOTS = prompt_sensitivity(f"{_STREAM}_prompts", 3, "content")
_TABLE4 = Column(_STREAM, "overall_table4", "Overall, Table 4")
_LAWS = (
    Column(_STREAM, "overall", "Overall"),
    Column(_STREAM, "overall_stream_length", "Overall, stream length"),
    *(
        Column(task, f"responsiveness{suffix}", f"{mode.capitalize()}, responsiveness{label}")
        for task, mode in _STREAMED.items()
        for suffix, label in (("", ""), ("_stream_length", ", stream length"))
    ),
    _TABLE4,
    Column(_STREAM, "overall_table4_eq10", "Overall, Table 4 by equation 10"),
)


def _errors(suffix: str = "", mode: str | None = None) -> tuple[Column, ...]:
    """A column per kind of error, for all items or those of one temporal mode."""
    labels = {
        "miss_rate": ("Missed", HARMS),
        "late_rate": ("Late", HARMS),
        "false_alarm_rate": ("False alarm", HARMS),
        "invalid_rate": ("Invalid response", "no harm by itself"),
        "alert_delay": ("Delay without false alarms", ""),
    }
    breakdown = None if mode is None else "temporal_mode"
    return tuple(
        Column(_STREAM, metric, f"{label}{suffix}", breakdown, mode, remark)
        for metric, (label, remark) in labels.items()
    )


_ERRORS, _ERROR_PLOT = kinds_of_error(
    _errors(),
    (*_errors(", future", "future"), *_errors(", proactive", "proactive")),
    note="Missed: no response is positive. Late: the first positive response comes after t* + δ. "
    "False alarm: it comes before t* - δ. Invalid: share of rounds.",
)
_CONTENTS = {"content": ("", "Content"), "content_closed": ("-closed", "Closed content")}
_BY_MODE = groups(_STREAM, "overall", "temporal_mode")
_TIMING_BY_TASK = [
    column for task, mode in _STREAMED.items() for column in scores(task, _TIMING, f", {mode}")
]
_NOTES = {
    "modes": "As in Table 4 of the paper, whose overall score combines the means of the modes. "
    "The headline score is pooled over items.",
    "laws": "Computed from the same responses. The paper has no formula for early and late "
    "responses. Our score falls to 0 at 2δ; the alternative, stream length, falls to 0 at the "
    "stream's length beyond δ. Table 4 is equally consistent with applying equation 10 to all "
    "future items, with responsiveness 0 for single-turn items.",
    "timing": "False alarm: before t* - δ. Miss: never. Delay: mean over answered items; "
    "positive values are late.",
}


def _content_tables() -> Iterator[LayoutTable]:
    """The content scores by organ group and by dataset."""
    for metric, (suffix, title) in _CONTENTS.items():
        organs = groups(_STREAM, metric, "organ_group")
        datasets = groups(_STREAM, metric, "dataset")
        yield LayoutTable(f"organ{suffix}", f"{title} by organ group", organs)
        yield LayoutTable(f"dataset{suffix}", f"{title} by dataset", datasets)


MEDSTREAMBENCH = BoardLayout(
    benchmark=_STREAM,
    headline=(
        *(Column(_STREAM, "overall", "Overall"), _TABLE4),
        *scores(_STREAM, {**_BEHAVIOUR, "content_closed": "Closed content"}),
    ),
    tables=with_notes(
        _NOTES,
        LayoutTable("modes", "By temporal mode", (*_MODES, _TABLE4)),
        LayoutTable("laws", "What depends on our reading of the paper", _LAWS),
        LayoutTable("mode-overall", "Overall by temporal mode", _BY_MODE),
        LayoutTable("content", "Content by kind of question", scores(_STREAM, _CONTENT)),
        LayoutTable(
            "timing", "Timing of streaming items", (*scores(_STREAM, _TIMING), *_TIMING_BY_TASK)
        ),
        _ERRORS,
        *_content_tables(),
        LayoutTable(
            "label-source",
            "Content by source of labels",
            groups(_STREAM, "content", "label_source"),
        ),
        _ROTATED,
        _PARAPHRASED,
    ),
    plots=(
        Plot("modes", "Content, responsiveness, stability by mode", "radar", _MODES),
        Plot("mode-overall", "Overall by temporal mode", "bars", _BY_MODE),
        Plot(
            "behaviour", "Content, responsiveness, stability", "bars", scores(_STREAM, _BEHAVIOUR)
        ),
        Plot(
            "timing",
            "False alarms and misses",
            "bars",
            scores(_STREAM, _WATCHED),
            note="Lower is better.",
        ),
        *(
            Plot(
                f"organ{suffix}",
                f"{title} by organ group",
                "heatmap",
                groups(_STREAM, metric, "organ_group"),
            )
            for metric, (suffix, title) in _CONTENTS.items()
        ),
        _ERROR_PLOT,
        *_ROTATED_PLOTS,
        *_PARAPHRASED_PLOTS,
        Plot(
            "timelines",
            "Rounds of streaming items",
            "timeline",
            tasks(_STREAMED, "responsiveness"),
            note="Rounds, positive responses, and the time t* from which the question can be "
            "answered, with its tolerance.",
        ),
    ),
    shows="text",
    why="The records are Apache-2.0. Videos and images are under the terms of 22 upstream datasets "
    "and are not copied.",
)
