"""``medtasks demo``: a small vision-language model, seeing and blind, and baselines on all
benchmarks; the page.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from lxml import html
from rouge_score.rouge_scorer import RougeScorer
from runs import Run
from sacrebleu.metrics import BLEU, CHRF

pytestmark = pytest.mark.slow

BLIND = " (blind)"


@dataclass(frozen=True)
class Demo:
    """What it printed to standard output and standard error, and the folder that it wrote."""

    printed: str
    errors: str
    folder: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "medtasks", "demo", "--out", str(folder / "out")]
    terminal = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=terminal, check=False
    )
    assert done.returncode == 0, done.stderr
    return Demo(done.stdout, done.stderr, folder / "out")


def test_it_fits_a_screen_and_says_what_to_do_next(demo: Demo) -> None:
    lines = demo.printed.splitlines()
    assert len(lines) <= 48
    commands = (str(demo.folder), "  running ", "and your model: ")  # what is copied is not wrapped
    assert max(len(line) for line in lines if not any(part in line for part in commands)) <= 80
    assert re.search(r"Kvasir-VQA-x1 +MI-CXR", demo.printed)
    assert re.search(r"100\.0 \[[89]\d\.\d–100\.0\]", demo.printed)
    assert "a demonstration, not a benchmark result" in demo.printed
    assert "medtasks prepare" in demo.printed
    assert len(list(demo.folder.rglob("manifest.json"))) == 5
    assert lines[-1].startswith("and your model: ")
    assert demo.errors == ""  # libraries write at the end of a process, too


def test_seeing_beats_guessing_and_falls_behind_knowing(demo: Demo, board: dict[str, Any]) -> None:
    assert len(board["benchmarks"]) == 4
    for benchmark in board["benchmarks"]:
        key = benchmark["rankings"][0]["column"]["key"]
        (apart,) = benchmark["tables"][0]["apart"]
        rows = {row["model"].split("-")[0]: row for row in benchmark["tables"][0]["rows"]}
        order = [rows["uniform"], apart, rows["tiny"], rows["noisy"], rows["oracle"]]
        guessed, blind, seeing, noisy, right = [row["cells"][key]["value"] for row in order]
        assert guessed < blind < seeing < noisy < right, benchmark["name"]
    assert "Gain of tiny from images: " in demo.printed


@pytest.fixture(scope="module")
def board(demo: Demo) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (demo.folder / "leaderboard" / "exports" / "board.json").read_text()
    )
    return found


CONFIDENCES = ("confidence", "reliability", "coverage")
COUNTED_ELSEWHERE = ("errors", "reasoning", *CONFIDENCES)
"""Tables whose scores have tests of their own: tests/scoring/test_scoring_errors.py and
test_scoring_confidence.py.
"""


def scored(
    board: dict[str, Any], without: Sequence[str] = ()
) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Model, run, column and cell of every score in the board's other tables, once; a blind run is
    a model of its own.
    """
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for benchmark in board["benchmarks"]:
        for table in benchmark["tables"]:
            kind = table["name"].partition("-")[0]
            # gains of media are differences of two runs; no log of samples has seconds
            if kind in ("media", "latency", *without):
                continue
            if not table[
                "rows"
            ]:  # of tasks that the demo does not run, with published figures alone
                continue
            assert len(table["rows"]) == (1 if kind in CONFIDENCES else 4), table["name"]
            rows = [*table["rows"], *table["apart"]]
            for row, column in itertools.product(rows, table["columns"]):
                cell = row["cells"].get(column["key"])
                if cell is None:
                    continue
                place = (row["model"] + BLIND * row["blind"], column["key"])
                assert seen.setdefault(place, cell) == cell
                if seen[place] is cell:
                    (run,) = row["runs"]
                    yield place[0], run, column, cell


def test_every_score_of_the_board_follows_from_the_sample_logs(
    demo: Demo, board: dict[str, Any]
) -> None:
    folders = {folder.name: Run(folder) for folder in demo.folder.rglob("*_medtasks")}
    count = 0
    for model, run, column, cell in scored(board, COUNTED_ELSEWHERE):
        run_of = folders[Path(board["runs"][run]["folder"]).name]
        if cell["value"] is None:
            assert cell["reason"], (model, column["key"])
            continue
        if column["task"].startswith("medstreambench"):  # worked out by hand in tests/streams
            continue
        tasks = run_of.manifest["groups"].get(column["task"], [column["task"]])
        lines = [line for task in tasks for line in run_of.samples(task)]
        value, interval, items = recomputed(
            lines, column["metric"], column["breakdown"], column["group"]
        )
        told = (model, column["key"])
        assert (told, cell["items"]) == (told, items)
        assert (told, cell["value"]) == (told, pytest.approx(value, abs=1e-9))
        ends = None if cell["low"] is None else (cell["low"], cell["high"])
        # a share of 1 - 3e-16, which is rounding, moves an end by its root
        assert (told, ends) == (
            told,
            None if interval is None else pytest.approx(interval, rel=1e-7, abs=1e-9),
        )
        count += 1
    assert count > 1000


def test_every_number_of_the_pages_is_the_boards(demo: Demo, board: dict[str, Any]) -> None:
    cells = {
        (model, column["key"]): (cell, column["unit"]) for model, _, column, cell in scored(board)
    }
    shown = set()
    for benchmark in board["benchmarks"]:
        page = (demo.folder / "leaderboard" / f"benchmark-{benchmark['name']}.html").read_text()
        for table, slug, key, value, text in cells_of(page):
            model = slug + BLIND * table.startswith("apart-")
            if table.startswith("published-") or (model, key) not in cells:
                continue
            if table.startswith("ranks-"):
                assert text == f"{normalised_rank(model, key, cells):.2f}", (model, key)
                continue
            cell, unit = cells[model, key]
            if cell["value"] is None:
                assert value in (None, ""), (model, key)
                continue
            assert float(value or "nan") == pytest.approx(cell["value"], rel=1e-5, abs=1e-6), (
                model,
                key,
            )
            scale, digits = {
                "fraction": (100, 1),
                "points": (1, 1),
                "seconds": (1, 1),
                "score": (1, 3),
            }[unit]
            printed = float(text.split()[0].replace("−", "-"))
            assert abs(printed - scale * cell["value"]) <= 0.5 * 10**-digits + 1e-9, (
                model,
                key,
                text,
            )
            shown.add((model, key))
    assert shown == {place for place, (cell, _) in cells.items() if cell["value"] is not None}


def normalised_rank(model: str, key: str, cells: dict[tuple[str, str], Any]) -> float:
    """(rank - 1) / (models - 1), ties averaged, of a score of which more is better."""
    found = {
        name: cell
        for (name, column), (cell, _) in cells.items()
        if column == key and not name.endswith(BLIND)
    }
    values = {name: cell["value"] for name, cell in found.items()}
    better = sum(value > values[model] for value in values.values())
    tied = sum(value == values[model] for value in values.values()) - 1
    return (better + tied / 2) / (len(values) - 1)


def cells_of(page: str) -> Iterator[tuple[str, str, str, str | None, str]]:
    """Cells of a page's tables as (table, model, column, value to sort by, text)."""
    for table in html.fromstring(page).iter("table"):
        keys = [head.get("data-k") for head in table.iterfind("thead//th[@data-k]")]
        for row in table.iter("tr"):
            model = f"{row.get('data-m', '')}{BLIND * (row.get('class') == 'with')}"  # blind: below the model's own row
            if model:  # rounds of a stream have heads without keys
                for key, cell in zip(keys, row, strict=False):
                    yield (
                        table.get("id", ""),
                        model,
                        key,
                        cell.get("data-v"),
                        cell.text_content().strip(),
                    )


Line = Mapping[str, Any]
OPEN_WEIGHTS = {
    "consistency": 1,
    "coherence": 1,
    "visual_accuracy": 4,
    "ground_truth_correctness": 4,
}


def recomputed(
    lines: Sequence[Line], metric: str, breakdown: str | None, group: str | None
) -> tuple[float, tuple[float, float] | None, int]:
    """Value, 95 % interval (None for fewer than two clusters) and number of items, of any benchmark
    but MedStreamBench, whose scores are worked out by hand in tests/streams.
    """
    kept = [line for line in lines if _in(line, breakdown, group)]
    clusters = [line["cluster"] for line in kept]
    if metric in CORPUS:
        scorer = CORPUS[metric]()
        texts = [line["filtered"] for line in kept], [[line["target"] for line in kept]]
        rows = scorer._extract_corpus_statistics(*texts)
        factor = 0.01 if metric == "bleu" else 1.0
        return _with_interval(
            clusters,
            rows,
            lambda sums: factor * scorer._compute_score_from_stats([round(x) for x in sums]).score,
            100 * factor,
        )
    if metric == "accuracy_dimension_mean":
        names = sorted({line["document"]["dimension"] for line in kept})
        rows = [
            _one_of(names.index(line["document"]["dimension"]), len(names), _right(line))
            for line in kept
        ]
        return _with_interval(clusters, rows, _mean_of_parts)
    pairs = [_pair(line, metric, group if breakdown == "question_class" else None) for line in kept]
    used = [place for place, pair in enumerate(pairs) if pair[1]]
    top = 100.0 if metric.startswith("open_") else 1.0
    if metric == "cider":  # has no upper bound
        return _with_student(
            [clusters[place] for place in used], [pairs[place][0] for place in used], len(kept)
        )
    value, ends, _ = _with_interval(
        [clusters[place] for place in used], [pairs[place] for place in used], _mean, top
    )
    return value, ends, len(kept)


CORPUS: dict[str, Callable[[], Any]] = {
    "bleu": lambda: BLEU(smooth_method="none"),
    "chrf": lambda: CHRF(word_order=0),
    "chrf++": lambda: CHRF(word_order=2),
}


def _with_interval(
    clusters: Sequence[str],
    rows: Sequence[Sequence[float]],
    score: Callable[[Any], float],
    top: float = 1.0,
) -> Any:
    """Value, Wilson's interval with the effective number of items (docs/statistics.md), number of
    items; item by item, by the formulas there.
    """
    table = np.array(rows, dtype=np.float64)
    total = table.sum(axis=0)
    value = float(score(total))
    names = sorted(set(clusters))
    k, n = len(names), len(rows)
    if k < 2:
        return value, None, n
    members = {name: [row for row in range(n) if clusters[row] == name] for name in names}
    without = [float(score(total - table[rows].sum(axis=0))) / top for rows in members.values()]
    if not np.isfinite(without).all():
        return value, None, n
    p = value / top
    pseudo = [n * p - (n - 1) * float(score(total - row)) / top for row in table]
    shift = p - math.fsum(pseudo) / n
    pseudo = [one + shift for one in pseudo]
    sizes = [len(rows) for rows in members.values()]
    sums = [math.fsum(pseudo[row] for row in rows) for rows in members.values()]
    squares = math.fsum(one**2 for one in pseudo)
    kish = sum(size**2 for size in sizes) / n
    fewer = min(p, 1 - p) * k
    unseen, assumed = 1 / (1 + fewer**2), 1 / (1 + (fewer / 3) ** 2)
    relative = unseen + (1 - unseen) * (
        (squares / n - p**2) / (p * (1 - p)) if p * (1 - p) > 1e-12 else 0
    )
    by_cluster = math.fsum(total**2 / size for total, size in zip(sums, sizes, strict=True))
    between = (by_cluster - n * p**2) / (k - 1)
    within = (squares - by_cluster) / (n - k) if n > k else 0
    spread = between + ((n - kish) / (k - 1) - 1) * within
    icc = min((between - within) / spread, 1) if n > k and spread > 1e-12 else 0
    effect = relative * max(1 + (kish - 1) * (assumed * 0.3 + (1 - assumed) * icc), 0.9)
    if p * (1 - p) > 1e-12:
        effect = max(
            effect, n * (k - 1) / k * math.fsum((one - p) ** 2 for one in without) / (p * (1 - p))
        )
    freedom = max(math.sqrt(k * n / kish) - 1, 1)
    low, high = _wilson(p, n / effect, float(scipy.stats.t.ppf(0.975, freedom)))
    return value, (top * low, top * high), n


def _with_student(clusters: Sequence[str], values: Sequence[float], items: int) -> Any:
    """Mean, its interval by Student's t and the jackknife over clusters, number of items."""
    names = sorted(set(clusters))
    k, mean = len(names), math.fsum(values) / len(values)
    if k < 2:
        return mean, None, items
    without = [
        np.mean([value for value, name in zip(values, clusters, strict=True) if name != left])
        for left in names
    ]
    error = math.sqrt((k - 1) / k * math.fsum((one - mean) ** 2 for one in without))
    if error == 0:
        return mean, None, items
    equal = len(values) ** 2 / sum(list(clusters).count(name) ** 2 for name in names)
    reach = error * float(scipy.stats.t.ppf(0.975, max(math.sqrt(k * equal) - 1, 1)))
    return mean, (mean - reach, mean + reach), items


def _wilson(p: float, n: float, t: float) -> tuple[float, float]:
    """The roots of (p - x)² = t² x (1 - x) / n."""
    roots = np.roots([1 + t**2 / n, -2 * p - t**2 / n, p**2])
    return float(min(roots.real)), float(max(roots.real))


def _mean(sums: Any) -> float:
    return float(np.float64(sums[0]) / sums[1])


def _mean_of_parts(sums: Any) -> float:
    """Unweighted, over the parts that have a row in the sums."""
    return float(
        np.mean(
            [_mean(sums[place : place + 2]) for place in range(0, len(sums), 2) if sums[place + 1]]
        )
    )


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
            counted = [
                name
                for name in (named if metric.endswith("repeated") else aspects)
                if part in (None, name)
            ]
            return float(sum(aspects[name] for name in counted)), float(len(counted))
        if part is not None:
            return float(aspects[part]), 1.0
        right = sum(aspects.values())
        return (
            (right / len(aspects), 1.0)
            if metric == "judged_partial"
            else (float(right == len(aspects)), 1.0)
        )
    if metric.startswith("open_"):
        scores = _verdict(line, "med_cmr_open")
        if metric != "open_total":
            return 100 * scores[metric.removeprefix("open_")] / 5, 1.0
        return 100 * sum(OPEN_WEIGHTS[name] * score for name, score in scores.items()) / (
            5 * 10
        ), 1.0
    return float(line["scores"][metric]), 1.0  # METEOR and CIDEr, sample by sample


@functools.cache
def _rouge(metric: str) -> RougeScorer:
    return RougeScorer([metric], use_stemmer=False)
