"""``medtasks compare``: what it prints of two runs; its numbers are those of another computation,
and of the board.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aligned import cells
from invented_runs import Invented, edit_json, make_run, write_run_of
from made_runs import ITEMS, entry, right, run
from medtasks.leaderboard.rank.compare import compare_runs
from medtasks.leaderboard.rank.comparison import COLUMNS, Comparison, ComparisonLine
from medtasks.leaderboard.rank.rankings import rank_models
from medtasks.leaderboard.schema.model_rankings import Pair
from medtasks.leaderboard.schema.score_tables import BoardColumn
from medtasks.leaderboard.verify.scored_run import ScoredRun, scored_run
from scipy.stats import PermutationMethod, binomtest, wilcoxon
from statsmodels.stats.multitest import multipletests

from medtasks.cli.app import main
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.scoring.comparisons import Paired, same_tasks
from medtasks.scoring.run_folder import write_run
from medtasks.scoring.verified_runs import scored_record
from medtasks.stats.student import detectable_difference

CAREFUL = Invented("lab/Careful-7B", "noisy_oracle", seed=1, accuracy=0.8)
GUESS = Invented("lab/<b>Guess</b>-1B", "uniform", seed=3)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("compared")
    blind = make_run(GUESS, ["mi_cxr_icr"], blind=True)
    return {
        "careful": write_run_of(root / "one", CAREFUL, ["mi_cxr_icr", "mi_cxr_gts"]),
        "guess": write_run_of(root / "two", GUESS, ["mi_cxr_icr"]),
        "blind": write_run(root / "three" / "20261101_000001_medtasks", blind),
        "other": write_run_of(root / "four", GUESS, ["mi_cxr_tel_single"]),
    }


def command(*arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of ``medtasks compare`` in this process."""
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
    ):
        patch.setattr("sys.argv", ["medtasks", "compare", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def test_a_table_of_all_that_both_runs_have(folders: dict[str, Path]) -> None:
    code, out, err = command(folders["careful"], folders["guess"])
    assert (code, err) == (0, "")
    head, rows = out.split("\n\n", 1)
    assert head.splitlines()[0] == "A: lab/Careful-7B (20261101_000000_medtasks)"
    columns, line, *notes = rows.splitlines()
    found = cells(columns, line)
    assert (found["task"], found["metric"], found["items"], found["unpaired"]) == (
        "mi_cxr_icr",
        "accuracy",
        "6",
        "0",
    )
    assert (found["clusters"], found["comparable"]) == ("6", "yes")
    assert found["p"] == found["p (Holm)"]
    assert float(found["A - B"]) == pytest.approx(float(found["A"]) - float(found["B"]), abs=0.002)
    assert not any("corrected over" in note for note in notes)  # there is one test
    assert any("minimum detectable difference" in note for note in notes)
    assert any("warning: with 6 clusters" in note for note in notes)
    code, out, _ = command(
        folders["careful"].parent, folders["guess"], "--metric", "accuracy", "--json"
    )
    assert code == 0
    (line,) = json.loads(out)["lines"]
    assert (line["task"], line["unit"], line["unlike"]) == ("mi_cxr_icr", "fraction", [])
    assert line["pair"]["difference"] == pytest.approx(line["first"] - line["second"])
    assert line["first"] == pytest.approx(float(found["A"]), abs=0.0005)


def used(folder: Path, target: Path, **usage: Any) -> Path:
    """A copy of the run, whose manifest has this usage of its tasks."""
    copy = Path(shutil.copytree(folder, target / folder.name))
    edit_json(
        copy / "manifest.json",
        lambda it: it.update(usage={**usage, "tasks": dict.fromkeys(it["tasks"], usage)}),
    )
    return copy


def test_what_both_runs_used_is_printed_below(folders: dict[str, Path], tmp_path: Path) -> None:
    first = used(
        folders["guess"], tmp_path / "a", samples=6, seconds=3.0, process_seconds=3.0, devices=2, prompt_tokens=1200,
        output_tokens=60, reused_tokens=300, peak_device_memory=3 * 2**30,
    )  # fmt: skip
    second = used(
        folders["blind"], tmp_path / "b", samples=6, seconds=12.0, process_seconds=12.0, devices=1
    )
    prices = tmp_path / "prices.yaml"
    prices.write_text('"lab/<b>Guess*": {device_hour_price: 6}\n')
    _, out, _ = command(first, second, "--prices", prices)
    columns, *lines = out[out.index("\nusage ") + 1 :].splitlines()
    found = {
        (one["usage"], one["unit"]): (one["A"], one["B"])
        for one in (cells(columns, line) for line in lines)
    }
    assert found == {
        ("Samples", ""): ("6", "6"),
        ("Samples", "per s"): ("2", "0.5"),
        ("Time", "s per sample"): ("0.5", "2"),
        ("Tokens", "per sample"): ("210", ""),
        ("Prompt tokens", "per sample"): ("200", ""),
        ("Output tokens", "per sample"): ("10", ""),
        ("Prompt tokens reused", "%"): ("25", ""),
        ("Peak GPU memory", "GiB"): ("3", ""),
        ("Cost", "per 1,000 samples"): ("1.67", "3.33"),
    }
    _, out, _ = command(first, second, "--prices", prices, "--json")
    written = json.loads(out)["usage"]
    assert (written["first"]["cost"], written["second"]["cost"]) == (
        pytest.approx(0.01),
        pytest.approx(0.02),
    )
    assert "prompt_tokens" not in written["second"]
    assert "\nusage " not in command(folders["guess"], folders["blind"])[1]


def test_runs_that_were_asked_otherwise_are_marked_and_names_steer_no_terminal(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    evil = Path(shutil.copytree(folders["blind"], tmp_path / "20261101_000002_medtasks"))
    edit_json(
        evil / "manifest.json",
        lambda it: it["model"].update(pretrained="evil\n::error::pwned\x1b[2J\tcol"),
    )
    code, out, _ = command(folders["careful"], evil, "--task", "mi_cxr_icr")
    assert code == 0
    assert out.splitlines()[1].startswith(
        "B: evil ::error::pwned\N{REPLACEMENT CHARACTER}[2J col ("
    )
    assert "\x1b" not in out
    header, line = out.splitlines()[3:5]
    assert cells(header, line)["comparable"] == "no"
    assert "not comparable: prompts with media instead of blind (mi_cxr_icr accuracy)" in out


def test_wrong_usage_and_a_damaged_run_are_one_sentence(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken_medtasks"
    (broken / "samples").mkdir(parents=True)
    (broken / "manifest.json").write_text("{")
    careful, guess = folders["careful"], folders["guess"]
    for arguments, expected, said in (
        ((careful, folders["other"]), 2, "B has mi_cxr_tel_single; compare runs of the same tasks"),
        (
            (careful, guess, "--task", "mi_cxr_irc"),
            2,
            "(did you mean 'mi_cxr_icr'?), which share mi_cxr_icr",
        ),
        (
            (careful, guess, "--metric", "bleu"),
            2,
            "--metric bleu: not in both runs, which share accuracy",
        ),
        ((careful, guess / "nowhere"), 2, "no such directory"),
        ((guess.parents[2], guess), 2, "contains 4 result directories"),
        ((guess, broken), 1, "not the manifest of a run"),
        ((), 2, "expected two directories of runs, or --pairs BASE:TUNED"),
        (("--pairs", "only-one"), 2, "--pairs only-one: expected BASE:TUNED"),
        (
            (careful, "--pairs", f"{careful}:{careful}"),
            2,
            "--pairs takes the place of two directories",
        ),
        (
            ("--pairs", f"{careful}:{careful}", "--task", "mi_cxr"),
            2,
            "--task mi_cxr: the runs share mi_cxr_gts",
        ),
    ):
        code, _, err = command(*arguments)
        assert (code, len(err.splitlines())) == (expected, 1)
        assert said in err


def pair_of(**tables: tuple[np.ndarray, np.ndarray]) -> Comparison:
    """Two runs of a task with those metrics' tables."""
    task = "mi_cxr" if [*tables] == ["accuracy"] else "kvasir_vqa_x1"
    runs = [run(name, [entry(task, {metric: two[side] for metric, two in tables.items()})])
            for side, name in enumerate(("one", "two"))]  # fmt: skip
    return compare_runs(*runs)


def test_holms_correction_is_over_the_printed_table() -> None:
    """All metrics have the same test (`test_one_question_has_one_number`)."""
    shares = {"rouge1": 0.6, "rouge2": 0.62, "rougeL": 0.8, "meteor": 0.55}
    lines = pair_of(
        **{name: (right(share, 1), right(0.55, 2)) for name, share in shares.items()}
    ).lines
    values = [line.pair.p_value for line in lines if line.pair is not None]
    assert len({*values}) == 4
    expected = multipletests(values, method="holm")[1]
    assert [line.pair.p_holm for line in lines if line.pair is not None] == pytest.approx(
        list(expected)
    )
    error = lines[0].pair.standard_error if lines[0].pair is not None else None
    assert lines[0].detectable == detectable_difference(error or 0, 60)


@pytest.fixture
def with_repeats() -> tuple[ScoredRun, ScoredRun]:
    """Two runs of a task, of its group without any other task, and with a metric that applies to no
    item.
    """
    task, group = "mi_cxr_icr", "mi_cxr"
    runs = []
    for name, share in (("one", 0.8), ("two", 0.6)):
        tables = {"accuracy": right(share, len(runs)), "exact_match": np.zeros((len(ITEMS), 2))}
        alone, whole = entry(task, tables), entry(group, tables)
        whole = replace(whole, table=replace(whole.table, tasks=(task,) * len(ITEMS)))
        runs.append(run(name, [alone, whole]))
    return runs[0], runs[1]


def test_a_group_of_one_task_is_one_test_and_metrics_without_items_are_left_out(
    with_repeats: tuple[ScoredRun, ScoredRun],
) -> None:
    (line,) = compare_runs(*with_repeats).lines
    assert (line.task, line.metric) == ("mi_cxr_icr", "accuracy")
    assert line.pair is not None
    assert line.pair.p_holm == line.pair.p_value  # corrected over what is shown
    asked = compare_runs(*with_repeats, task="mi_cxr").lines
    assert [(line.task, line.metric) for line in asked] == [
        ("mi_cxr", "accuracy"),
        ("mi_cxr", "exact_match"),
    ]


def test_whether_scores_are_comparable_is_among_the_first_columns() -> None:
    """On 80 columns, the last ones are left out."""
    assert COLUMNS.index("comparable") == 2


def test_unpaired_items_are_counted_and_do_not_move_the_difference() -> None:
    one, two = right(0.7, 1), right(0.55, 2)
    alone = [f"c{number}" for number in range(240)]
    whole = run("one", [entry("mi_cxr", {"accuracy": one}, clusters=alone)])
    last = entry("mi_cxr", {"accuracy": two[40:]}, clusters=alone[40:], items="200-i1")
    part = run("two", [replace(last, table=replace(last.table, items=ITEMS[40:]))])
    (line,) = compare_runs(whole, part).lines
    assert line.pair is not None
    assert (line.pair.items, line.unpaired) == (200, 40)
    assert (line.first, line.second) == (
        pytest.approx(one[40:, 0].mean()),
        pytest.approx(two[40:, 0].mean()),
    )
    assert line.pair.wins == int(((one > two)[40:, 0]).sum())
    assert line.unlike == ("240 samples instead of 200",)
    wins, losses = line.pair.wins or 0, line.pair.losses or 0
    assert line.pair.p_value == pytest.approx(binomtest(wins, wins + losses).pvalue)


def test_what_only_one_run_was_judged_in_has_no_difference_and_other_clusters_are_not_comparable() -> (
    None
):
    table, nothing = right(0.5, 1), np.full((240, 2), np.nan)
    (line,) = pair_of(judged_accuracy=(nothing, table)).lines
    assert line.pair is None
    assert (line.reason, line.unpaired) == ("first run: none of 240 items has a verdict", 240)
    other = entry("mi_cxr", {"accuracy": table}, clusters=["x"] * 240)
    (line,) = compare_runs(
        run("one", [entry("mi_cxr", {"accuracy": table})]), run("two", [other])
    ).lines
    assert line.unlike == ("items are in different clusters",)


def test_confidences_are_compared_over_the_answers_with_one_in_both_runs(tmp_path: Path) -> None:
    task, sides, runs = "mi_cxr_tel_multiple", [], []
    for name, policy in (("whole", "calibrated"), ("half", "overconfident")):
        made = make_run(Invented(f"lab/{name}-7B", policy, seed=1), [task])
        samples = made.samples[task]
        if name == "half":
            samples[::2] = [
                one.model_copy(update={"probabilities": (None,)}) for one in samples[::2]
            ]
        sides.append(samples)
        runs.append(scored_run(write_run(tmp_path / f"{name}_medtasks", made)))
    shared, gaps = sides[0][1::2], defaultdict[int, float](float)
    for sample in shared:
        (given,) = sample.probabilities
        sure = given.letters[-1].options[sample.filtered]
        gaps[int(np.ceil(round(100 * sure) * 15 / 100))] += sure - (
            sample.filtered == sample.target
        )
    line = next(line for line in compare_runs(*runs).lines if line.metric == "ece")
    assert line.first == pytest.approx(sum(map(abs, gaps.values())) / len(shared))
    assert line.pair is not None
    assert (line.pair.items, line.unpaired) == (len(shared), len(sides[0]) - len(shared))


DIMENSIONS = 7
BASES = [
    Invented(f"lab/Base-{number}", "noisy_oracle", seed=number, accuracy=0.2) for number in (1, 2)
]
TUNED = [
    Invented(f"lab/Tuned-{number}", "noisy_oracle", seed=number, accuracy=1.0) for number in (3, 4)
]


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """``BASE:TUNED`` of two pairs of models."""
    root = tmp_path_factory.mktemp("families")
    return [
        ":".join(str(write_run_of(root / one.folder, one, ["med_cmr_mcq"])) for one in pair)
        for pair in zip(BASES, TUNED, strict=True)
    ]


def exact_wilcoxon_p(differences: list[float]) -> float:
    """SciPy's p-value over every sign assignment, of differences freed of rounding errors."""
    rounded = [round(one, 9) for one in differences]
    every_sign = PermutationMethod(n_resamples=2**20)
    return float(wilcoxon([one for one in rounded if one], method=every_sign).pvalue)


@pytest.mark.slow
def test_several_pairs_are_tested_over_the_tasks_of_a_group(families: list[str]) -> None:
    """Med-CMR, section 4: p < 0.001 over seven dimensions takes more than one pair."""
    options = ["--task", "med_cmr_mcq", "--metric", "accuracy"]
    code, out, _ = command("--pairs", families[0], "--pairs", families[1], *options, "--json")
    (test,) = json.loads(out)["tests"]
    differences = [one["difference"] for one in test["differences"]]
    assert code == 0
    assert len(differences) == 2 * DIMENSIONS
    runs = [[scored_run(Path(folder)) for folder in pair.split(":")] for pair in families]
    tasks = [one["task"] for one in test["differences"][:DIMENSIONS]]
    expected = [
        tuned.entries[task].scores.metrics["accuracy"].value
        - base.entries[task].scores.metrics["accuracy"].value
        for base, tuned in runs
        for task in tasks
    ]
    assert differences == pytest.approx(expected, abs=1e-12)
    better, worse = (sum(sign * one > 0 for one in expected) for sign in (1, -1))
    assert (test["better"], test["worse"]) == (better, worse)
    assert test["sign_p"] == pytest.approx(binomtest(better, better + worse).pvalue)
    assert test["wilcoxon_p"] == pytest.approx(exact_wilcoxon_p(expected))
    assert test["wilcoxon_p"] < 0.016
    # one pair cannot go below what its dimensions allow
    (test,) = json.loads(command("--pairs", families[0], *options, "--json")[1])["tests"]
    assert (
        min(test["sign_p"], test["wilcoxon_p"])
        >= test["least_p"]
        == 2.0 ** (1 - test["better"] - test["worse"])
    )
    out = command("--pairs", families[0], *options)[1]
    assert "lowest possible p" in out
    assert "med_cmr_mcq_su" in out


TASKS = ("mi_cxr_icr", "kvasir_vqa_x1_level1", "medstreambench_proactive", "med_cmr_mcq_cr")


@cache
def answers() -> tuple[dict[str, Paired], dict[tuple[str, str], ComparisonLine], list[ScoredRun]]:
    """How two runs differ: by ``score --against``, and by ``compare``; last the runs."""
    records = [make_run(model, list(TASKS)) for model in (CAREFUL, GUESS)]
    runs = [
        ScoredRun(scored_record(one.manifest, one.samples), f"run{n}")
        for n, one in enumerate(records)
    ]
    lines = {(line.task, line.metric): line for line in compare_runs(*runs).lines}
    return same_tasks(*(record.tables for record in records)), lines, runs


def on_the_board(task: str, metric: str) -> Pair:
    entries = [run.entries[task] for run in answers()[2]]
    assert entries[0].items == entries[1].items
    column = BoardColumn(key="c", task=task, metric=metric, label=metric, unit=unit_of(metric),
                         higher_is_better=get_metric(metric).higher_is_better)  # fmt: skip
    tables = {
        name: entry.statistics(metric)
        for name, entry in zip(("first", "second"), entries, strict=True)
    }
    (pair,) = rank_models(column, tables, entries[0].clusters, signature="s", resamples=20).pairs
    return pair


@pytest.mark.parametrize("task", TASKS)
def test_one_question_has_one_number(task: str) -> None:
    against, lines, _ = answers()
    found = against[f"{task} (both)"].metrics
    for metric, score in found.items():
        line, pair = lines[task, metric], on_the_board(task, metric)
        assert line.pair is not None
        for one in (line.pair, pair):
            assert (one.items, one.clusters, one.p_value) == (
                score.items,
                score.clusters,
                score.p_value,
            )
        assert (line.first, line.second) == (score.first, score.second)
        assert (line.pair.difference, line.pair.low, line.pair.high) == (
            score.difference,
            score.low,
            score.high,
        )
        assert (1 if pair.first == "first" else -1) * pair.difference == score.difference
        assert pair.warning == score.warning
    assert any(score.p_value not in (None, 1.0) for score in found.values())
