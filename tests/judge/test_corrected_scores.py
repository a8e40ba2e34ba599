"""Judged scores corrected by people: from a run and the files of raters to what a user sees."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from judged_run import copied, judged, settings_of
from medtasks.leaderboard.verify.scored_run import scored_run
from typer.testing import CliRunner

import medtasks
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric
from medtasks.cli.app import app
from medtasks.core.errors import DataError, UsageError
from medtasks.harness import run_tasks
from medtasks.judge.corrected_scores import CorrectedRun, corrected_run
from medtasks.judge.human_labels import rating_hash
from medtasks.judge.label_sources import labelled_rubrics
from medtasks.judge.ratable import ratable_answers
from medtasks.judge.rating_file import rating_path
from medtasks.judge.rating_records import AnswerKey, Rating, RatingPlan
from medtasks.judge.rating_sample import Frame
from medtasks.judge.rating_writer import open_for_rating
from medtasks.judge.stub import StubJudge
from medtasks.runs.samples import Sample
from medtasks.scoring.run_record import RunRecord

pytestmark = pytest.mark.slow  # two runs of the harness

RUBRIC = load_rubric("med_cmr_open")
GROUP = "med_cmr_open"
TOTAL = "open_total"
Scores = dict[str, "int | None"]
Rater = Callable[[int, Scores], Scores]


def stricter(place: int, scores: Scores) -> Scores:
    """A person who gives every fourth answer two points less than the judge."""
    return {name: max(0, (score or 0) - 2 * (place % 4 == 0)) for name, score in scores.items()}


def judged_run(output: Path, accuracy: str) -> Path:
    """A noisy oracle's run with the verdicts of the stub judge."""
    policy = f"policy=noisy_oracle,accuracy={accuracy},seed=3"
    folder = run_tasks("medtasks_baseline", policy, [GROUP], output)
    with StubJudge() as stub:
        judged(folder, settings_of(stub), store=output / "verdicts")
    return folder


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The runs of two models."""
    root = tmp_path_factory.mktemp("judged")
    return [judged_run(root / accuracy, accuracy) for accuracy in ("0.5", "0.8")]


@functools.cache
def whole(folder: Path) -> RunRecord:
    return scored_run(folder, own=True, whole=True).record


def rate(
    folders: Sequence[Path], ratings: Path, sample: int, rater: str = "ann", says: Rater = stricter
) -> Path:
    """What a rater says of a sample of the runs' answers, in the rater's file."""
    runs = [whole(folder) for folder in folders]
    answers = []
    samples: dict[AnswerKey, Sample] = {}
    for run in runs:
        answers += ratable_answers(run.manifest, "m", run.samples, RUBRIC).answers
        for task, of_task in run.samples.items():
            for one in of_task:
                samples[AnswerKey(run.manifest.identity, task, one.sample_id)] = one
    frame = Frame(answers)
    draw = frame.draw((sample,), 4, 0, rater)
    plan = RatingPlan(
        rubric=RUBRIC.name, rubric_hash=rating_hash(RUBRIC), rater=rater, seed=0,
        samples=(sample,), overlap=4, hide_reference=False, frame=frame.hash, runs=(),
        strata=draw.strata, left_out={}, answers=draw.answers,
    )  # fmt: skip
    path = rating_path(ratings, RUBRIC.name, rater)
    with open_for_rating(path, lambda: plan) as writer:
        for place, answer in enumerate(draw.answers):
            (response,) = samples[answer.key].verdicts[RUBRIC.name]
            (verdict,) = response.judges.values()
            scores = says(place, dict(verdict.scores or {}))
            writer.add(
                Rating(
                    **answer.model_dump(),
                    probability=plan.stratum_of(answer).probability,
                    scores=scores,
                    cannot_tell=None in scores.values(),
                    time="2026-11-30T05:00:00+00:00",
                )
            )
    return path


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def corrected(folder: Path, human: Path) -> CorrectedRun:
    return corrected_run(whole(folder), human)


def test_labels_of_all_answers_are_the_corrected_scores_of_aspects_and_total(
    folders: list[Path], tmp_path: Path
) -> None:
    """A census: what people gave on average, whatever the judge said."""
    totals = []

    def says(place: int, scores: Scores) -> Scores:
        given: Scores = {name: (place + number) % 6 for number, name in enumerate(scores)}
        weights = {aspect.name: aspect.weight for aspect in RUBRIC.aspects}
        points = sum(weights[name] * (score or 0) for name, score in given.items())
        totals.append(100 * points / (5 * sum(weights.values())))
        return given

    rate(folders[:1], tmp_path, 28, says=says)
    score = corrected(folders[0], tmp_path).scores[GROUP][TOTAL]
    assert len(totals) == score.labels == score.answers == 28
    assert score.value == pytest.approx(np.mean(totals))
    low, high = score.interval or (0, 0)
    assert low < np.mean(totals) < high


def test_score_shows_corrected_scores_beside_judged_ones_with_agreement(
    folders: list[Path], tmp_path: Path
) -> None:
    rate(folders[:1], tmp_path / "ratings", 24)
    before = json.loads((folders[0] / "scores.json").read_text())
    human = ("--human", str(tmp_path / "ratings"))
    text = shown("score", str(folders[0]), *human)
    assert "Corrected by people" in text
    assert "24 of 28" in text
    assert "Krippendorff's alpha, ordinal" in text
    assert "not corrected: fewer than 20 labelled answers" in text
    content = json.loads(shown("score", str(folders[0]), *human, "--json"))
    assert content["groups"] == before["groups"]
    score = content["corrected"]["scores"][GROUP][TOTAL]
    assert score["judged"] == before["groups"][GROUP]["metrics"][TOTAL]["value"]
    assert score["value"] < score["judged"]
    assert score["effective_labels"] > 24
    assert score["interval_method"] == "ppi-wilson-clustered"
    assert "|corrected:ppi-wilson-clustered,labels=" in score["signature"]
    assert score["signature"].endswith(",n=24")
    run = medtasks.open(folders[0])[0]
    assert run.corrected(tmp_path / "ratings").scores[GROUP][TOTAL].value == score["value"]


def test_two_raters_count_once_on_average_and_cannot_tell_is_missing(
    folders: list[Path], tmp_path: Path
) -> None:
    def unsure(place: int, scores: Scores) -> Scores:
        return dict.fromkeys(scores) if place == 5 else scores

    rate(folders[:1], tmp_path, 24, "ann", unsure)
    rate(folders[:1], tmp_path, 24, "bo", lambda _, scores: scores)
    run = corrected(folders[0], tmp_path)
    score = run.scores[GROUP][TOTAL]
    assert (score.raters, score.cannot_tell) == (2, 1)
    assert score.labels > 24
    # both say what the judge says
    assert score.judged is not None
    assert score.value == pytest.approx(score.judged, abs=2)
    assert "med_cmr_open: 1 rating cannot tell" in run.notes


def test_aspects_are_corrected_if_people_leave_the_total_open(
    folders: list[Path], tmp_path: Path
) -> None:
    def one_aspect(_: int, scores: Scores) -> Scores:
        return {name: score if name == "coherence" else None for name, score in scores.items()}

    rate(folders[:1], tmp_path, 24, says=one_aspect)
    scores = corrected(folders[0], tmp_path).scores[GROUP]
    assert scores["open_coherence"].labels == 24
    assert scores["open_coherence"].value is not None
    assert (scores[TOTAL].labels, scores[TOTAL].value) == (0, None)


def test_compare_corrects_the_difference_and_the_board_ranks_by_it(
    folders: list[Path], tmp_path: Path
) -> None:
    ratings = tmp_path / "ratings"
    rate(folders, ratings, 50)
    runs = [str(folder) for folder in folders]
    text = shown("compare", *runs, "--human", str(ratings), "--task", GROUP)
    assert "labels A, B" in text
    comparison = medtasks.compare(*runs, task=GROUP, metric=TOTAL, human=ratings)
    (pair,) = comparison.corrected
    scores = [corrected(folder, ratings).scores[GROUP][TOTAL] for folder in folders]
    first, second = (score.value or 0.0 for score in scores)
    assert pair.difference == pytest.approx(first - second)
    low, high = pair.interval or (0, 0)
    assert low < first - second < high
    assert (low > 0 or high < 0) == ((pair.p_value or 0) <= 0.05)
    board = medtasks.board(folders, human=ratings)
    tables = {table.name: table for table in board.benchmarks[0].tables}
    columns = [column.key for column in tables["corrected"].columns]
    assert columns[:3] == [
        f"{GROUP}.{TOTAL}",
        f"{GROUP}.{TOTAL}.corrected",
        f"{GROUP}.{TOTAL}.corrected-rank",
    ]
    better, worse = tables["corrected"].rows
    assert better.cells[columns[2]].value == 1
    assert (better.cells[columns[1]].value or 0) > (worse.cells[columns[1]].value or 0)
    judged_cells = tables["headline"].rows[0].cells
    assert judged_cells[columns[0]] == better.cells[columns[0]]


def test_the_board_names_what_it_cannot_rank(folders: list[Path], tmp_path: Path) -> None:
    def undecided_once(place: int, scores: Scores) -> Scores:
        return dict.fromkeys(scores) if place == 0 else stricter(place, scores)

    ratings = tmp_path / "ratings"
    rate(folders[:1], ratings, 28, says=undecided_once)
    site = tmp_path / "site"
    results = str(folders[0].parents[1])
    shown(
        "leaderboard", "build", results, "--out", str(site), "--demonstration", "--human",
        str(ratings),
    )  # fmt: skip
    page = (site / "benchmark-med_cmr.html").read_text(encoding="utf-8")
    assert "Judged scores corrected by people" in page
    assert "No ranks by the corrected" in page
    assert "med_cmr_open: 1 rating cannot tell." in page


def test_a_board_names_labels_of_runs_that_it_does_not_have(
    folders: list[Path], tmp_path: Path
) -> None:
    path = rate(folders, tmp_path, 50)
    absent = whole(folders[1]).manifest.identity
    rated = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    count = sum(rating["run"] == absent for rating in rated)
    unused = f"{count} answers of run {absent} not used, because the run is not on this board"
    with pytest.warns(UserWarning, match=unused):
        board = medtasks.board(folders[:1], human=tmp_path)
    assert board.human_notes == (f"labels of answers: {unused}",)


def as_csv(path: Path, labels: Mapping[str, str], header: str) -> Path:
    lines = [header]
    for sample, rest in labels.items():
        for aspect in RUBRIC.aspects:
            lines.append(f"{sample},{aspect.name},3{rest}")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_csv_file_needs_probabilities(folders: list[Path], tmp_path: Path) -> None:
    run = whole(folders[0])
    samples = [sample.sample_id for task in run.samples.values() for sample in task]
    plain = as_csv(tmp_path / "plain.csv", dict.fromkeys(samples, ""), "sample_id,aspect,score")
    result = corrected_run(run, plain)
    assert not result.scores
    assert "not corrected: the labels are no probability sample" in " ".join(result.notes)
    assert result.agreement
    sampled = as_csv(
        tmp_path / "sampled.csv",
        {**dict.fromkeys(samples, ",1"), "no-such-sample": ",1"},
        "sample_id,aspect,score,probability",
    )
    result = corrected_run(run, sampled)
    assert result.scores[GROUP][TOTAL].value == pytest.approx(60)
    assert "med_cmr_open: 1 labelled sample is not in the run: no-such-sample" in result.notes
    with pytest.raises(UsageError, match="has no column `run`"):
        medtasks.compare(*folders, human=sampled)


def test_what_cannot_be_corrected_is_refused_with_the_reason(
    folders: list[Path], tmp_path: Path
) -> None:
    path = rate(folders[:1], tmp_path / "ratings", 24)
    other = corrected(folders[1], path)
    assert other.scores == {}
    assert other.notes == (
        "med_cmr_open: people scored no answer of this run; its scores stay as judged",
    )
    with pytest.raises(UsageError, match="corrects no difference"):
        medtasks.compare(*folders, human=path)
    run = whole(folders[0])
    unjudged = run.manifest.model_copy(update={"judge": {}})
    record = RunRecord(unjudged, run.samples, run.tasks, run.groups)
    with pytest.raises(UsageError, match="under which the run was not judged"):
        corrected_run(record, path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(rating_hash(RUBRIC), "0" * 16), encoding="utf-8")
    with pytest.raises(DataError, match="another version of rubric med_cmr_open"):
        corrected(folders[0], path)
    expected = "has no ratings under a rubric that judged the run .*; give ratings under one of"
    with pytest.raises(UsageError, match=expected):
        corrected(folders[0], tmp_path)


def test_a_csv_file_is_of_the_only_rubric_with_its_aspects(
    folders: list[Path], tmp_path: Path
) -> None:
    run = whole(folders[0])
    (facts,) = run.manifest.judge.values()
    renamed = tuple(
        aspect.model_copy(update={"name": f"other_{aspect.name}"}) for aspect in RUBRIC.aspects
    )
    other = RUBRIC.model_copy(update={"name": "other", "aspects": renamed})
    samples = [sample.sample_id for task in run.samples.values() for sample in task]
    file = as_csv(
        tmp_path / "labels.csv", dict.fromkeys(samples, ",1"), "sample_id,aspect,score,probability"
    )

    def rubrics(second: Rubric) -> list[str]:
        """The rubrics of the labels, if the run was also judged under a second one."""
        judge = {"other": facts.model_copy(update={"rubric": second}), RUBRIC.name: facts}
        manifest = run.manifest.model_copy(update={"judge": judge})
        record = RunRecord(manifest, run.samples, run.tasks, run.groups)
        return [labelled.rubric.name for labelled in labelled_rubrics(record, file)]

    assert rubrics(other) == [RUBRIC.name]
    expected = f"judged under other, {RUBRIC.name}, and other, {RUBRIC.name} have all its aspects"
    with pytest.raises(UsageError, match=rf"{expected} .*; give rating files"):
        rubrics(other.model_copy(update={"aspects": RUBRIC.aspects}))
    file.write_text("sample_id,aspect,score\ns,unknown,1\n", encoding="utf-8")
    with pytest.raises(
        UsageError, match=r"none of these has all its aspects .'unknown'.*; correct"
    ):
        rubrics(other)


def test_answers_that_changed_since_they_were_rated_correct_nothing(
    folders: list[Path], tmp_path: Path
) -> None:
    path = rate(folders[:1], tmp_path / "ratings", 24)
    folder = copied(folders[0], tmp_path / "copy")
    task, file = next((file.stem, file) for file in sorted((folder / "samples").glob("*.jsonl")))
    lines = file.read_text(encoding="utf-8").splitlines()
    sample = json.loads(lines[0])
    rated = json.loads(path.read_text(encoding="utf-8").splitlines()[0])["answers"]
    assert any(
        (answer["task"], answer["sample_id"]) == (task, sample["sample_id"]) for answer in rated
    )
    sample["responses"] = ["Answer: something else."]
    lines[0] = json.dumps(sample)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = corrected(folder, path)
    assert result.scores == {}
    assert any("have changed since" in note for note in result.notes)
