"""MedStreamBench's records as documents: one per round, which sees its own window and nothing later."""

from __future__ import annotations

import json
from dataclasses import replace

from medtasks.answers.answerability import UNANSWERABLE
from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.medstreambench.records import ABSTENTIONS, MedStreamRecord, MedStreamRound
from medtasks.catalog.benchmark import Document
from medtasks.catalog.records import plain
from medtasks.core.settings import current_settings
from medtasks.data.media.windows import thin
from medtasks.data.sources import read_table

ALERT = "alert: "


def _bare(name: str) -> str:
    return plain(name).removesuffix("dataset")


ORGAN_GROUPS = read_table(__file__, "organs.yaml", dict[str, tuple[str, ...]])
_GROUP_OF = {_bare(dataset): group for group, datasets in ORGAN_GROUPS.items() for dataset in datasets}


def organ_group(dataset: str) -> str:
    """The organ or procedure group of a source dataset, so that none is left out of the breakdown.

    >>> organ_group("Surgical-phase"), organ_group("cholec80"), organ_group("another")
    ('unspecified surgery', 'gallbladder', 'unlisted dataset')
    """
    return _GROUP_OF.get(_bare(dataset), "unlisted dataset")


def documents(record: MedStreamRecord) -> list[Document]:
    """One document per round, each with its own window only; a single-turn item has one.

    ``MEDTASKS_MAX_FRAMES`` thins the frames of every document; the cap is a field of the document.
    """
    single, alerts = record.task_mode == "single_turn", record.temporal_mode == "proactive"
    shared = {
        **record.model_dump(mode="json", exclude={"rounds", "media", "judge_rubric", "choices", "sample_id"}),
        "item_id": record.sample_id,
        "subtask": record.subtask,
        "organ_group": organ_group(record.dataset),
        "options": list(record.choices),
        "judge_rubric": json.dumps(record.judge_rubric, sort_keys=True, ensure_ascii=False),
        "rounds": len(record.rounds),
        **_responses(record),
    }
    return [
        {
            **shared,
            "sample_id": record.sample_id if single else f"{record.sample_id}@{number}",
            "round": number,
            **_window(turn),
            "target": _alert("; ".join(turn.expected)) if alerts and turn.answerable else "; ".join(turn.expected),
        }
        for number, turn in enumerate(record.rounds, start=1)
    ]


def _window(turn: MedStreamRound) -> Document:
    most = current_settings().max_frames
    kept = thin(len(turn.times), most)
    return {
        "time": turn.time,
        "window_start": turn.window[0],
        "window_end": turn.window[1],
        "times": [turn.times[position] for position in kept],
        "frames": [turn.frames[position] for position in kept] if turn.frames else [],
        "media": list(turn.media) if turn.frames else [turn.media[position] for position in kept],
        "max_frames": most,
        "expected": list(turn.expected),
        "answerable": turn.answerable,
    }


def _responses(record: MedStreamRecord) -> Document:
    """Allowed responses, as in the release's response protocol, and the responses of baselines."""
    if record.temporal_mode == "proactive":
        alert = next((turn.expected for turn in record.rounds if turn.answerable), ("something changed",))
        return {
            "allowed_responses": ["no_alert", "uncertain", "alert: <reason>"],
            "abstention": ABSTENTIONS["proactive"][0],
            "positive_response": _alert("; ".join(alert)),
            "guesses": [*ABSTENTIONS["proactive"], _alert("; ".join(alert))],
        }
    answer = next((turn.expected for turn in record.rounds if turn.answerable), ("yes",))
    return {
        "allowed_responses": [UNANSWERABLE, "<answer>"],
        "abstention": UNANSWERABLE,
        "positive_response": "; ".join(answer),
        "guesses": [*record.choices, *([UNANSWERABLE] if record.choices and record.task_mode == "streaming" else [])],
    }


def _alert(reason: str) -> str:
    return reason if reason.casefold().startswith("alert") else f"{ALERT}{reason}"


def _subtask(name: str) -> Rows:
    return Rows("medstreambench", lambda row: row["subtask"] == name)


retrospective, present, future = map(_subtask, ("retrospective", "present", "future"))
retrospective_choices, present_choices, future_choices = (  # open answers are scored by a judge
    replace(rows, unusable=lambda document: "" if document["options"] else "no_options")
    for rows in (retrospective, present, future)
)
future_streaming, proactive = _subtask("future_streaming"), _subtask("proactive")
