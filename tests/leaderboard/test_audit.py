"""``medtasks audit`` on runs whose models know that some gold answers are wrong."""

from __future__ import annotations

import csv
import json
import re
from html import unescape
from pathlib import Path

import pytest
from invented_runs import Invented, write_runs
from medtasks.leaderboard.audit.audit_folders import audit_folders
from medtasks.leaderboard.audit.audit_report import AuditReport
from medtasks.leaderboard.audit.question_file import question_csv, withheld_notes
from medtasks.leaderboard.audit.signs import SignKind
from medtasks.leaderboard.rate.opening import questions_to_rate
from medtasks.leaderboard.rate.options import RatingOptions
from medtasks.leaderboard.verify.gold_verdicts import read_verdicts, verdicts_beside
from planted_golds import Planted, models, planted_in, write_voters
from typer.testing import CliRunner
from view_server import serving

import medtasks
from medtasks.cli.app import app
from medtasks.core.errors import DataError
from medtasks.judge.rating_records import GOLD

pytestmark = pytest.mark.slow

GROUP, WITHHELD = "med_cmr_mcq", "mi_cxr_tel"


@pytest.fixture(scope="module")
def planted() -> Planted:
    return planted_in(GROUP, every=14)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, planted: Planted) -> Path:
    """Eight models on Med-CMR, and an oracle that only repeats gold answers."""
    root = tmp_path_factory.mktemp("audited")
    write_voters(root, models(8, 0.6, 0.95), GROUP, planted)
    return root


@pytest.fixture(scope="module")
def report(results: Path) -> AuditReport:
    return audit_folders([results])


def test_planted_wrong_golds_are_found(report: AuditReport, planted: Planted) -> None:
    outvoted = {
        (question.task, question.sample_id)
        for question in report.questions
        if question.signs[0].kind is SignKind.OUTVOTED
    }
    assert len(planted) == 3
    assert len(outvoted & planted.keys()) / len(planted) >= 0.8
    assert len(outvoted - planted.keys()) / len(outvoted) <= 0.2
    for question in report.questions:
        if (question.task, question.sample_id) in planted:
            assert question.rival == planted[question.task, question.sample_id]


def test_the_command_prints_reasons_and_writes_a_file(
    results: Path, report: AuditReport, tmp_path: Path
) -> None:
    file = tmp_path / "audit.csv"
    printed = CliRunner().invoke(app, ["audit", str(results), "--csv", str(file)])
    assert printed.exit_code == 0, printed.output
    first = report.questions[0]
    assert first.sample_id in printed.output
    assert f"{len(report.questions)} questions: {file}" in printed.output
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["task"], row["sample_id"]) for row in rows] == [
        (question.task, question.sample_id) for question in report.questions
    ]
    assert rows[0]["reasons"] == first.reasons
    assert rows[0]["preferred"] == first.rival
    as_json = CliRunner().invoke(app, ["audit", str(results), "--json"])
    content = json.loads(as_json.output)
    assert content["questions"][0]["sample_id"] == first.sample_id
    assert content["questions"][0]["strong"] is True


def test_verdicts_of_people_are_beside_the_reasons(
    results: Path, report: AuditReport, tmp_path: Path
) -> None:
    first = report.questions[0]
    file = tmp_path / "golds.csv"
    lines = ["task,sample_id,verdict,rater"]
    lines += [
        f"{first.task},{first.sample_id},{said},{who}"
        for said, who in (("wrong", "r1"), ("right", "r2"))
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    printed = CliRunner().invoke(app, ["audit", str(results), "--verdicts", str(file)])
    assert "wrong 1, right 1" in printed.output
    assert "raters disagree on 1 of 1 question with several verdicts" in printed.output


def test_a_csv_file_of_verdicts_notices_changed_questions(
    report: AuditReport, tmp_path: Path
) -> None:
    """The list as `medtasks audit` writes it, with a verdict in each row: one question has changed
    since, and one row has lost its hash.
    """
    rows = list(csv.DictReader(question_csv(report).splitlines()))
    assert len(rows) >= 3
    for row in rows:
        row["verdict"] = "wrong"
    rows[0]["question_hash"] = "0" * 16
    file = tmp_path / "audit.csv"

    def notes() -> tuple[str, ...]:
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
        judged = report.with_verdicts(read_verdicts(file))
        assert judged.questions[0].verdict is None
        assert all(str(question.verdict) == "wrong" for question in judged.questions[1:])
        return judged.notes

    changed = f"1 rated question has changed since, .*: '{rows[0]['sample_id']} of "
    assert re.search(changed, " ".join(notes()))
    assert "question_hash" not in " ".join(notes())
    rows[1]["question_hash"] = ""
    unknown = "1 verdict without `question_hash`: whether the question has changed since it was"
    assert unknown in " ".join(notes())


def test_the_page_of_a_view_links_to_media_and_answers(results: Path, report: AuditReport) -> None:
    first = report.questions[0]
    with serving([results]) as server:
        page = server.ask("audit.html")
        assert page.status == 200
        assert first.sample_id in page.text
        link = page.text.split("<tbody>")[2].split('href="')[1].split('"')[0].replace("&amp;", "&")
        sample = server.ask(link)
        assert sample.status == 200
        assert first.sample_id in sample.text
        assert server.ask("audit.html?sign=outvoted&page=9").status == 200
        assert server.ask("audit.html?sign=nonsense").status == 404


def test_what_raters_said_is_read_from_their_files(
    results: Path, report: AuditReport, planted: Planted, tmp_path: Path
) -> None:
    """The list as a file, two raters, and the list again with what they said."""
    file = tmp_path / "audit.csv"
    file.write_text(question_csv(report), encoding="utf-8")
    for rater, said in (("ann", "wrong"), ("ben", "right")):
        options = RatingOptions(GOLD, rater, results / "ratings")
        with questions_to_rate([results], file, options) as session:
            assert session.total == len(report.questions)
            for position, answer in enumerate(session.plan.answers, start=1):
                is_planted = (answer.task, answer.sample_id) in planted
                session.rate(position, {"do": "save", "aspect-0": "wrong" if is_planted else said})
    verdicts = verdicts_beside(results)
    assert verdicts.found("wrong") == planted.keys() & set(verdicts.by_question)
    judged = report.with_verdicts(verdicts)
    for question in judged.questions:
        is_planted = (question.task, question.sample_id) in planted
        assert str(question.verdict) == ("wrong 2" if is_planted else "wrong 1, right 1")
    others = sum((name.task, name.sample_id) not in planted for name in report.questions)
    expected = (
        f"raters disagree on {others} of {len(report.questions)} questions with several verdicts"
    )
    assert expected in judged.notes
    with serving([results]) as server:
        assert "wrong 2" in server.ask("audit.html").text
    written = results / "ratings" / GOLD / "ben.jsonl"
    torn = tmp_path / "ben.jsonl"
    torn.write_bytes(written.read_bytes()[:-9])
    note = "the last line of ben.jsonl is cut off and not used: its answer is asked again"
    assert note in report.with_verdicts(read_verdicts(torn)).notes
    older = tmp_path / "older.jsonl"
    seen = verdicts.hashes[report.questions[0].task, report.questions[0].sample_id]["ben"]
    older.write_text(written.read_text(encoding="utf-8").replace(seen, "0" * 16), "utf-8")
    judged = report.with_verdicts(read_verdicts(older))
    assert judged.questions[0].verdict is None
    assert all(question.verdict is not None for question in judged.questions[1:])
    name = f"'{report.questions[0].sample_id} of {report.questions[0].task}'"
    unused = f"1 rated question has changed since, so earlier verdicts are not used: {name}"
    assert judged.notes[-2] == unused
    runs = medtasks.open(results)
    with pytest.warns(UserWarning, match=unused):
        medtasks.board(runs, without_wrong_golds=older)
    site = tmp_path / "site"
    command = ["leaderboard", "build", str(results), "--out", str(site), "--demonstration"]
    printed = CliRunner().invoke(app, [*command, "--without-wrong-golds", str(older)])
    assert unused in " ".join(printed.output.split())
    assert unused in unescape((site / "index.html").read_text(encoding="utf-8"))
    page = (site / "benchmark-med_cmr.html").read_text(encoding="utf-8")
    assert f"Of the verdicts: {unused}." in unescape(page)
    edited = tmp_path / "ann.jsonl"
    lines = (results / "ratings" / GOLD / "ann.jsonl").read_text(encoding="utf-8")
    edited.write_text(lines.replace('"gold": "wrong"', '"gold": "false"'), encoding="utf-8")
    with pytest.raises(DataError, match=r"ann.jsonl: sample .* expected `gold` with one of right"):
        read_verdicts(edited)


def test_baselines_do_not_vote_and_two_models_are_too_few(tmp_path: Path) -> None:
    folders = write_runs(tmp_path, models(3), ["med_cmr_mcq_cr"], judged=False)
    manifest = folders["Voter-2-7B"] / "manifest.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    content["model"].update(model="medtasks_baseline", policy="noisy_oracle", accuracy=0.9)
    manifest.write_text(json.dumps(content), encoding="utf-8")
    report = audit_folders([tmp_path])
    (audit,) = report.benchmarks
    assert len(audit.models) == 2
    assert audit.effective is None
    assert any(note.startswith("baselines do not vote: noisy_oracle") for note in report.notes)
    assert "found 2 models" in audit.notes[0]


def test_rows_that_may_not_be_published_have_ids_alone(tmp_path: Path) -> None:
    planted = planted_in(WITHHELD, every=7)
    write_voters(tmp_path, models(8, 0.6, 0.95), WITHHELD, planted)
    report = audit_folders([tmp_path])
    assert report.questions
    (note,) = withheld_notes(report)
    assert "only ids and signs are in the file" in note
    rows = list(csv.DictReader(question_csv(report).splitlines()))
    for row, question in zip(rows, report.questions, strict=True):
        assert row["sample_id"] == question.sample_id
        assert not any(
            row[name] for name in ("question", "options", "gold", "preferred", "answers")
        )
        for text in (question.question, *question.options.values()):
            assert text not in row["reasons"]


def test_variants_of_a_question_are_one_question(tmp_path: Path) -> None:
    names = ["med_cmr_mcq_cr", "med_cmr_mcq_cr_circular"]
    write_runs(tmp_path, models(3), names, judged=False)
    (audit,) = audit_folders([tmp_path]).benchmarks
    assert audit.closed == 7


def test_blind_runs_do_not_vote(tmp_path: Path) -> None:
    voters = models(3, 0.99, 0.99)
    write_runs(tmp_path / "seeing", voters, ["med_cmr_mcq_cr"], judged=False)
    blind = [Invented(voter.name, "oracle", seed=voter.seed) for voter in voters]
    write_runs(tmp_path / "blind", blind, ["med_cmr_mcq_cr"], judged=False, blind=True)
    report = audit_folders([tmp_path])
    (audit,) = report.benchmarks
    assert len(audit.models) == 3
    assert report.counts() == {SignKind.TEXT_ONLY: 7}
    assert report.questions[0].signs[0].text == "all 3 blind runs get it (guessing alone: 0.8 %)"


def test_a_board_shows_scores_and_ranks_without_wrong_golds(
    results: Path, planted: Planted, tmp_path: Path
) -> None:
    file = tmp_path / "golds.csv"
    rows = [f"{task},{sample},wrong" for task, sample in planted]
    task = next(iter(planted))[0]
    rows += [f"{task},gone,wrong", "no_such_task,a,wrong"]
    file.write_text("\n".join(["task,sample_id,verdict", *rows]), encoding="utf-8")
    runs = medtasks.open(results)
    absent = (
        f"2 rated questions are not in the results and not used: 'gone of {task}', "
        "'a of no_such_task'"
    )
    with pytest.warns(UserWarning, match=absent):
        board = medtasks.board(runs, without_wrong_golds=file)
    site = str(tmp_path / "site")
    command = ["leaderboard", "build", str(results), "--out", site, "--demonstration"]
    printed = CliRunner().invoke(app, [*command, "--without-wrong-golds", str(file)])
    assert absent in " ".join(printed.output.split())
    (page,) = board.benchmarks
    table = next(table for table in page.tables if table.name == "without-wrong-golds")
    assert "MCQ, all rows: 3 of 43 items" in table.note
    kept_shares = {}
    for run in runs:
        right = []
        for sample in run.samples(GROUP).arrow.to_pylist():
            if (sample["task"], sample["sample_id"]) not in planted:
                right.append(sample["score_accuracy"])
        assert len(right) == 40
        kept_shares[run.scored.model] = sum(right) / len(right)
    key = f"{GROUP}.accuracy"
    for row in table.rows:
        share = kept_shares[row.model]
        kept = row.cells[f"{key}.kept"]
        assert kept.value == pytest.approx(share)
        assert kept.low is not None
        assert kept.low < share < (kept.high or 0)
        rank = 1 + sum(other > share + 1e-9 for other in kept_shares.values())
        assert row.cells[f"{key}.rank-kept"].value == rank
    headline = {row.model: row.cells[key].value for row in page.tables[0].rows}
    assert headline == {row.model: row.cells[f"{key}.all"].value for row in table.rows}


def test_the_audit_in_python_is_that_of_the_command(results: Path, report: AuditReport) -> None:
    audit = medtasks.audit(medtasks.open(results))
    names = [(question.task, question.sample_id) for question in report.questions]
    assert [(question.task, question.sample_id) for question in audit.questions] == names
    assert report.questions[0].sample_id in audit._repr_html_()
    assert audit.csv() == question_csv(report)


def test_an_older_run_of_a_model_is_left_out_with_the_reason(tmp_path: Path) -> None:
    voters = models(3)
    write_runs(tmp_path / "old", voters, ["med_cmr_mcq_su"], judged=False)
    newest = "2026-11-05T00:00:00+00:00"
    write_runs(tmp_path / "new", voters[:1], ["med_cmr_mcq_su"], judged=False, created=newest)
    report = audit_folders([tmp_path])
    (note,) = report.notes
    assert note.endswith("med_cmr_mcq_su left out (a newer run of the model counts)")
    assert len(report.benchmarks[0].models) == 3
