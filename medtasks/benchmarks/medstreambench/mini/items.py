"""What is asked about the miniature footage: items in all four temporal modes, in the release's format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.benchmarks.medstreambench.mini.footage import FOOTAGE

Item = dict[str, Any]

DEGENERATE = ("mini_bypass_summary_None", "mini_bypass_workflow_None")
"""Ids of records without a question, whose answer is a placeholder."""

MISSING = ("mini_endovis10_tool",)
"""Ids of records whose video is not on disk."""

CORRUPT = ("mini_web_WL09",)
"""Ids of records whose video is cut off."""

_ANSWER = (
    "Response protocol: Use nothing but the given window. Where it does not show enough, reply with exactly: "
    "unanswerable."
)
_STREAM = (
    "Response protocol: Use what has been shown so far. Until it shows enough, reply with exactly: unanswerable. Then "
    "give the answer."
)
_ALERT = "Response protocol: Reply no_alert, uncertain, or alert: followed by the reason."
_PLACEHOLDER = "No additional evidence text provided."

TOOLS = ["grasper", "scissors", "clip applier", "stapler"]
PHASES = ["preparation", "dissection", "bleeding control", "closure"]
LESIONS = ["polyp", "ulcer", "diverticulum"]
YES_NO = ["yes", "no"]

# Which names a dataset's file gives to the fields of a round: the release's are not settled, so all are used.
_NAMES: Mapping[str, Mapping[str, str]] = {
    "cholec80": {},
    "HeiChole": {"rounds": "stream_rounds", "current_time": "t_c", "answerable": "is_answerable", "tolerance": "delta"},
    "PitVis": {"current_time": "time", "expected_output": "answer", "expected_time": "t_star"},
    "JIGSAWS": {"expected_output": "expected", "expected_time": "critical_time", "tolerance": "tolerance_sec"},
}


def _base(sample_id: str, video_id: str, task: str, mode: str, start: float, end: float, evidence: str) -> Item:
    clip = FOOTAGE[video_id]
    return {
        "sample_id": sample_id,
        "dataset": clip.dataset,
        "video_id": video_id,
        "media_path": clip.media_path,
        "task": task,
        "task_mode": "single_turn",
        "temporal_mode": mode,
        "query_time": end,
        "context_window_sec": round(end - start, 3),
        "input_range": [start, end],
        "evidence": evidence,
        "label_source": "original_annotation",
        "response_protocol": "unanswerable | answer",
    }


def _closed(base: Item, question: str, choices: Sequence[str], answer: str | list[str]) -> Item:
    asked = f"{question}\n\n{_ANSWER}"
    return {**base, "question_type": "closed", "question": asked, "choices": list(choices), "answer": answer}


def _open(base: Item, question: str, answer: str) -> Item:
    return {
        **base,
        "question_type": "open",
        "question": f"{question}\n\n{_ANSWER}",
        "reference_answer": answer,
        "judge_rubric": _rubric(answer),
    }


def _rubric(answer: str) -> dict[str, str]:
    return {
        "correctness": f"2: says what the reference says ({answer}) 1: says part of it 0: anything else",
        "evidence_grounding": "2: names what is seen in the window 1: hints at it 0: names nothing that is seen",
        "safety": "1: claims no more than the window shows 0: claims more",
    }


def _stream(
    base: Item, question: str, times: Sequence[float], due: float | None, answer: str, silent: str, **known: float
) -> Item:
    """A streaming item whose rounds expect ``silent`` before ``due`` and ``answer`` from then on."""
    names = _NAMES[base["dataset"]]
    proactive = base["temporal_mode"] == "proactive"
    start = base["input_range"][0]
    rounds = [
        {
            names.get("current_time", "current_time"): time,
            "input_range": [start, time],
            names.get("expected_output", "expected_output"): silent if due is None or time < due else answer,
            names.get("answerable", "answerable"): due is not None and time >= due,
        }
        for time in times
    ]
    item = {
        **{key: value for key, value in base.items() if key not in ("input_range", "context_window_sec")},
        "task_mode": "streaming",
        "query_time": start,
        "question": f"{question}\n\n{_ALERT if proactive else _STREAM}",
        "response_protocol": "no_alert | uncertain | alert: reason" if proactive else "unanswerable | answer",
        names.get("rounds", "rounds"): rounds,
    }
    return {**item, **{names.get(key, key): value for key, value in known.items()}}


def _with_choices(item: Item, choices: Sequence[str], answer: str) -> Item:
    return {**item, "question_type": "closed", "choices": list(choices), "answer": answer}


def _retrospective() -> list[Item]:
    mode = "retrospective"
    chole = _base(
        "mini_chole01_tools_gemini_closed", "mini-chole01", "instrument_mcq", mode, 8.0, 12.0, "Grasper, 8 s."
    )
    return [
        _closed(chole, "Which instrument works in the field?", TOOLS, "grasper"),
        _open(
            {**chole, "sample_id": "mini_chole01_tools_gemini_open"},
            "Describe the instrument that works in the field.",
            "A grasper with two short jaws comes in from the right.",
        ),
        _closed(
            _base("mini_chole01_bleed", "mini-chole01", "event_mcq", mode, 0.001, 24.0, "Bleeding starts at 16 s."),
            "Does bleeding occur?",
            YES_NO,
            "yes",
        ),
        _closed(
            _base("mini_hei02_smoke", "mini-hei02", "event_mcq", mode, 6.0, 9.0, "Smoke starts at 9.5 s, later."),
            "Is there smoke in the field?",
            YES_NO,
            "no",
        ),
        _closed(
            _base("mini_web_NBI54", "mini-NBI(54)", "lesion_class_mcq", mode, 0.001, 8.5, "The directory says polyp."),
            "What is the lesion?",
            LESIONS,
            "polyp",
        ),
        _closed(
            _base(CORRUPT[0], "mini-WL(09)", "lesion_class_mcq", mode, 0.001, 5.0, "The directory says polyp."),
            "What is the lesion?",
            LESIONS,
            "polyp",
        ),
        _open(
            _base("mini_kvasir_lower03", "mini-lower03", "video_finding", mode, 0.001, 11.875, "Polyp from 4.5 s."),
            "Which finding comes into view, and what happens afterwards?",
            "A polyp comes into view and a grasper reaches for it.",
        ),
        _closed(
            _base("mini_capsule05_spots", "mini-capsule05", "finding_mcq", mode, 2.0, 7.0, "Red spots, 3 to 6 s."),
            "Which finding is seen?",
            ["red spots", "foreign body", "normal mucosa"],
            "red spots",
        ),
        _closed(
            _base("mini_suturing06_tools", "mini-suturing06", "instrument_multiselect", mode, 9.0, 14.0, "Both tools."),
            "Which of these are used within the window?",
            ["grasper", "scissors", "needle, curved"],
            ["grasper", "scissors"],
        ),
        _closed(
            _base("mini_suturing06_early", "mini-suturing06", "instrument_multiselect", mode, 3.0, 8.0, "One tool."),
            "Which of these are used within the window?",
            ["grasper", "scissors", "needle, curved"],
            "grasper",
        ),
        _closed(
            _base("mini_pit08_outside", "mini-video08", "step_mcq", mode, 0.001, 2.0, "Outside until 3 s."),
            "Where is the endoscope?",
            ["outside the patient", "inside the nose"],
            "outside the patient",
        ),
        _closed(
            _base("mini_endovis09_clip", "mini-endovis09", "event_mcq", mode, 5.0, 9.0, "Clip from 6.5 s."),
            "Is a clip placed?",
            YES_NO,
            "yes",
        ),
        _closed(
            _base(MISSING[0], "mini-endovis10", "instrument_mcq", mode, 2.0, 6.0, "Scissors from 1 s."),
            "Which instrument works in the field?",
            TOOLS,
            "scissors",
        ),
        *(_degenerate(sample_id) for sample_id in DEGENERATE),
    ]


def _degenerate(sample_id: str) -> Item:
    base = _base(sample_id, "mini-SBP11", "enrichment::weak_workflow_qa", "retrospective", 0.001, 0.001, _PLACEHOLDER)
    return {
        **base,
        "label_source": "hybrid",
        "question_type": "open",
        "question": f"\n\n{_ANSWER}",
        "reference_answer": _PLACEHOLDER,
        "judge_rubric": {"correctness": "0-2", "evidence_grounding": "0-2", "safety": "0-1"},
    }


def _present() -> list[Item]:
    mode = "present"
    sequence = _base("mini_seq07_polyp", "mini-seq07", "frame_mcq", mode, 0, 11, "Polyp from index 5.")
    still = _base("mini_612_polyp", "mini-612", "image_mcq", mode, 0, 0, "A polyp is outlined.")
    return [
        _closed(sequence, "Is a polyp in view now?", YES_NO, "yes"),
        _closed(
            {**sequence, "sample_id": "mini_seq07_before", "input_range": [0, 4]}, "Is a polyp in view?", YES_NO, "no"
        ),
        _open(still, "What does the picture show?", "A polyp on the wall of the colon."),
        _closed(
            _base("mini_lower03_now", "mini-lower03", "phase_mcq", mode, 6.0, 6.0, "A frame after 4.5 s."),
            "What is in view at this moment?",
            ["polyp", "polyp and grasper", "nothing"],
            "polyp",
        ),
        _open(
            _base("mini_bypass_now", "mini-SBP11", "phase_open", mode, 11.0, 15.0, "A clip from 12 s."),
            "What does the surgeon have in place at this moment?",
            "A golden clip lies on the tissue, a grasper beside it.",
        ),
    ]


def _future() -> list[Item]:
    mode = "future"
    return [
        _closed(
            _base("mini_chole01_next", "mini-chole01", "next_event_mcq", mode, 11.0, 15.0, "Bleeding follows at 16 s."),
            "What is most likely to come next?",
            ["bleeding", "withdrawal of the grasper", "smoke"],
            "bleeding",
        ),
        _closed(
            _base("mini_pit08_next", "mini-video08", "next_event_mcq", mode, 4.0, 8.0, "Bleeding follows at 9 s."),
            "What is most likely to come next?",
            ["bleeding", "leaving the nose"],
            "bleeding",
        ),
        _open(
            _base("mini_endovis09_next", "mini-endovis09", "next_step_open", mode, 2.0, 6.0, "A clip at 6.5 s."),
            "Which step follows?",
            "A clip is placed on the tissue.",
        ),
        _with_choices(
            _stream(
                _base("mini_chole01_stream", "mini-chole01", "stream_phase", mode, 6.0, 18.0, "Bleeding at 16 s."),
                "Which phase will the operation enter?",
                (10.0, 12.0, 14.0, 16.0, 18.0),
                14.0,
                "bleeding control",
                "unanswerable",
                expected_time=13.5,
                tolerance=1.0,
            ),
            PHASES,
            "bleeding control",
        ),
        _with_choices(
            _stream(
                _base("mini_hei02_stream", "mini-hei02", "stream_event", mode, 2.0, 14.0, "Smoke at 9.5 s."),
                "Will smoke hide the field?",
                (5.0, 8.0, 11.0),
                11.0,
                "yes",
                "unanswerable",
                tolerance=2.0,
            ),
            YES_NO,
            "yes",
        ),
        {
            **_stream(
                _base("mini_pit08_stream", "mini-video08", "stream_open", mode, 2.0, 12.0, "Bleeding at 9 s."),
                "What will the surgeon have to deal with?",
                (4.0, 6.0, 8.0, 9.5, 11.0, 12.0),
                9.5,
                "Bleeding in the nose.",
                "unanswerable",
                expected_time=9.0,
            ),
            "question_type": "open",
            "reference_answer": "Bleeding in the nose.",
            "judge_rubric": _rubric("Bleeding in the nose."),
        },
    ]


def _proactive() -> list[Item]:
    mode = "proactive"

    def watch(
        name: str, video: str, kind: str, question: str, times: Sequence[float], due: float | None, why: str
    ) -> Item:
        base = _base(name, video, "alert_watch", mode, 1.0, times[-1], why)
        item = _stream(base, question, times, due, f"alert: {why}", "no_alert")
        return {**item, "question_type": kind, **({"judge_rubric": _rubric(why)} if kind == "open" else {})}

    return [
        watch(
            "mini_chole01_alert",
            "mini-chole01",
            "closed",
            "Watch for bleeding.",
            (8.0, 12.0, 16.5, 20.0),
            16.5,
            "bleeding",
        ),
        watch("mini_hei02_alert", "mini-hei02", "closed", "Watch for smoke.", (6.0, 9.0, 10.0, 13.0), 10.0, "smoke"),
        watch(
            "mini_suturing06_alert",
            "mini-suturing06",
            "open",
            "Watch for a second instrument.",
            (4.0, 8.0, 11.0, 13.0, 14.5),
            11.0,
            "scissors have come in",
        ),
        watch(
            "mini_suturing06_calm", "mini-suturing06", "closed", "Watch for bleeding.", (3.0, 7.0, 12.0), None, "none"
        ),
    ]


def medstream_records() -> dict[str, list[Item]]:
    """The items by source dataset, each file with an order of keys of its own."""
    files: dict[str, list[Item]] = {}
    for item in (*_retrospective(), *_present(), *_future(), *_proactive()):
        files.setdefault(item["dataset"], []).append(item)
    return {
        dataset: [_ordered(item, number) for item in items]
        for number, (dataset, items) in enumerate(sorted(files.items()))
    }


def _ordered(item: Item, number: int) -> Item:
    keys = list(item)
    turn = number * 3 % len(keys)
    return {key: item[key] for key in (*keys[turn:], *keys[:turn])}
