"""Scores and intervals made again from the lines of sample logs alone, by the papers' formulas and other libraries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF
from table4 import table4_overall

__all__ = ["recomputed"]

Line = Mapping[str, Any]
CONTENT, RESPONSIVENESS = 0.7, 0.3
OPEN_WEIGHTS = {"consistency": 1, "coherence": 1, "visual_accuracy": 4, "ground_truth_correctness": 4}


def recomputed(
    lines: Sequence[Line], metric: str, breakdown: str | None, group: str | None
) -> tuple[float, tuple[float, float] | None, int]:
    """Value, 95 % interval (None for fewer than two clusters) and number of items."""
    if lines[0]["document"]["benchmark"] == "medstreambench":
        items = [rounds for rounds in _items(lines) if _in(rounds[0], breakdown, group)]
        scored = [(rounds[0], value) for rounds in items if (value := _streaming(rounds, metric)) is not None]
        score = TABLE4.get(metric, _mean)
        rows = [_by_mode(line, value) if metric in TABLE4 else (value, 1.0) for line, value in scored]
        return _bootstrapped([line["cluster"] for line, _ in scored], rows, score)
    kept = [line for line in lines if _in(line, breakdown, group)]
    clusters = [line["cluster"] for line in kept]
    if metric in CORPUS:
        scorer = CORPUS[metric]()
        texts = [line["filtered"] for line in kept], [[line["target"] for line in kept]]
        rows = scorer._extract_corpus_statistics(*texts)
        factor = 0.01 if metric == "bleu" else 1.0
        return _bootstrapped(
            clusters, rows, lambda sums: factor * scorer._compute_score_from_stats([round(x) for x in sums]).score
        )
    if metric == "accuracy_dimension_mean":
        names = sorted({line["document"]["dimension"] for line in kept})
        rows = [_one_of(names.index(line["document"]["dimension"]), len(names), _right(line)) for line in kept]
        return _bootstrapped(clusters, rows, _mean_of_parts)
    return _bootstrapped(
        clusters, [_pair(line, metric, group if breakdown == "question_class" else None) for line in kept], _mean
    )


CORPUS: dict[str, Callable[[], Any]] = {
    "bleu": lambda: BLEU(smooth_method="none"),
    "chrf": lambda: CHRF(word_order=0),
    "chrf++": lambda: CHRF(word_order=2),
}


def _bootstrapped(clusters: Sequence[str], rows: Sequence[Sequence[float]], score: Callable[[Any], float]) -> Any:
    """1,000 resamples of whole clusters, percentiles 2.5 and 97.5."""
    table = np.array(rows, dtype=np.float64)
    value = float(score(table.sum(axis=0)))
    names = sorted(set(clusters))
    if len(names) < 2:
        return value, None, len(rows)
    held = np.array([name == np.array(clusters) for name in names], dtype=np.float64) @ table
    draws = np.random.Generator(np.random.PCG64(0)).multinomial(len(names), [1 / len(names)] * len(names), size=1000)
    with np.errstate(invalid="ignore"):
        scores = [float(score(sums)) for sums in draws @ held]
    if not np.isfinite(scores).all():
        return value, None, len(rows)
    low, high = np.percentile(scores, [2.5, 97.5])
    return value, (float(low), float(high)), len(rows)


def _mean(sums: Any) -> float:
    return float(np.float64(sums[0]) / sums[1])


def _mean_of_parts(sums: Any) -> float:
    """Unweighted, over the parts that have a row in the resample."""
    return float(np.mean([_mean(sums[place : place + 2]) for place in range(0, len(sums), 2) if sums[place + 1]]))


def _in(line: Line, breakdown: str | None, group: str | None) -> bool:
    document = line["document"]
    if breakdown is None:
        return True
    if breakdown == "question_class":
        return group in document["question_class"]
    if breakdown == "gold_option":
        return bool(line["target"] == group)
    if breakdown == "null_option":
        return (line["target"] == "E") == (group == "null option right")
    return (document[breakdown] or "(not stated)") == group


def _right(line: Line) -> tuple[float, float]:
    said = [one["filtered"] for one in line["repeats"]] or [line["filtered"]]
    return float(sum(one == line["target"] for one in said)), float(len(said))


def _one_of(place: int, count: int, pair: tuple[float, float]) -> list[float]:
    row = [0.0] * (2 * count)
    row[2 * place : 2 * place + 2] = pair
    return row


def _verdict(line: Line, rubric: str) -> dict[str, int]:
    (judged,) = line["verdicts"][rubric]
    (judge,) = judged["judges"].values()
    scores: dict[str, int] = judge["scores"]
    return scores


def _pair(line: Line, metric: str, part: str | None) -> tuple[float, float]:
    if metric == "accuracy":
        return _right(line)
    if metric == "exact_match":
        return float(line["filtered"].lower().strip() == line["target"].lower().strip()), 1.0
    if metric.startswith("rouge"):
        return float(_rouge(metric).score(line["target"], line["filtered"])[metric].fmeasure), 1.0
    if metric.startswith("judged_"):
        aspects = _verdict(line, "kvasir_aspects")
        if metric in ("judged_accuracy", "judged_accuracy_repeated"):
            named = list(line["document"]["question_class"])
            counted = [name for name in (named if metric.endswith("repeated") else aspects) if part in (None, name)]
            return float(sum(aspects[name] for name in counted)), float(len(counted))
        if part is not None:
            return float(aspects[part]), 1.0
        right = sum(aspects.values())
        return (right / len(aspects), 1.0) if metric == "judged_partial" else (float(right == len(aspects)), 1.0)
    if metric.startswith("open_"):
        scores = _verdict(line, "med_cmr_open")
        if metric != "open_total":
            return 100 * scores[metric.removeprefix("open_")] / 5, 1.0
        return 100 * sum(OPEN_WEIGHTS[name] * score for name, score in scores.items()) / (5 * 10), 1.0
    return float(line["scores"][metric]), 1.0  # METEOR and CIDEr, sample by sample


@functools.cache
def _rouge(metric: str) -> RougeScorer:
    return RougeScorer([metric], use_stemmer=False)


def _items(lines: Sequence[Line]) -> list[list[Line]]:
    items: dict[str, list[Line]] = {}
    for line in lines:
        items.setdefault(line["document"]["item_id"], []).append(line)
    return [sorted(rounds, key=lambda line: line["document"]["round"]) for _, rounds in sorted(items.items())]


def _content(line: Line) -> float:
    """A round's C: by rule where it has a score, else by its verdict, (correctness + grounding + safety) / 5."""
    if line["scores"]["content"] is not None:
        return float(line["scores"]["content"])
    return sum(_verdict(line, "medstream_rubric").values()) / 5


def _streaming(rounds: Sequence[Line], metric: str) -> float | tuple[float, float | None] | None:
    """One item's value; None where the metric does not apply."""
    document = rounds[0]["document"]
    content = sum(map(_content, rounds)) / len(rounds)
    if metric == "content":
        return content
    if metric in ("content_closed", "content_open"):
        return content if document["question_type"] == metric.removeprefix("content_") else None
    if document["task_mode"] != "streaming":
        return (content, None) if metric in TABLE4 else content if metric.startswith("overall") else None
    times = [line["document"]["time"] for line in rounds]
    said = [time for time, line in zip(times, rounds, strict=True) if _positive(line)]
    due, slack = document["expected_time"], document["tolerance"]
    if due is None:
        due = next((time for time, line in zip(times, rounds, strict=True) if line["document"]["answerable"]), None)
    if slack is None:
        slack = min(b - a for a, b in pairwise(times)) / 2
    length = times[-1] - document["query_time"]
    timely, over_length = (_timely(said, due, slack, reach) for reach in (slack, length))
    after = [_positive(line) for time, line in zip(times, rounds, strict=True) if due is not None and time >= due]
    return {
        "responsiveness": timely,
        "responsiveness_stream_length": over_length,
        "overall": CONTENT * content + RESPONSIVENESS * timely,
        "overall_stream_length": CONTENT * content + RESPONSIVENESS * over_length,
        **dict.fromkeys(TABLE4, (content, timely)),
        "stability": float(not said) if due is None else sum(after) / len(after) if after else None,
        "false_alarm_rate": float(bool(said) and (due is None or said[0] < due - slack - 1e-9)),
        "miss_rate": None if due is None else float(not said),
        "signed_delay": said[0] - due if said and due is not None else None,
        "invalid_rate": sum(line["status"] not in ("ok", "unanswerable") for line in rounds) / len(rounds),
    }[metric]


def _timely(said: Sequence[float], due: float | None, slack: float, reach: float) -> float:
    """1 within the slack of the due time, then linearly to 0 at ``reach`` beyond it; 1 for silence if none is due."""
    if due is None or not said:
        return float(due is None and not said)
    late = abs(said[0] - due) - slack
    return 1.0 if late <= 1e-9 else max(0.0, 1 - late / reach)


def _positive(line: Line) -> bool:
    if line["document"]["temporal_mode"] == "proactive":
        return bool(line["filtered"].startswith("alert"))
    return bool(line["filtered"] != "unanswerable")


MODES = ("retrospective", "present", "future", "proactive")


def _by_mode(line: Line, value: Any) -> list[float]:
    """(items, content, timed items, responsiveness) at the mode's place."""
    row = [0.0] * 16
    content, timely = value
    place = 4 * MODES.index(line["document"]["temporal_mode"])
    row[place : place + 4] = [1.0, content, float(timely is not None), timely or 0.0]
    return row


def _table4(sums: Any, *, zeros: bool = False) -> float:
    """From mode means by items; with ``zeros`` responsiveness is a mean over all future items."""
    rows = dict(zip(MODES, np.reshape(sums, (4, 4)), strict=True))
    means = {}
    for mode, (items, content, timed, timely) in rows.items():
        counted = items if zeros and mode in ("future", "proactive") else timed
        if items:
            means[mode] = content / items, timely / counted if counted else None
    return table4_overall(means, {mode: row[0] for mode, row in rows.items()})


TABLE4 = {"overall_table4": _table4, "overall_table4_eq10": functools.partial(_table4, zeros=True)}
