"""The commands: one for each challenge file, and one that scores such a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from medtasks import Run
from medtasks.api import MedtasksError, UsageError

from medtasks_challenges import (
    explanations_file,
    kvasir_rows,
    medreason_file,
    output_files,
    predictions_file,
    public_scores,
    run_answers,
    split_order,
)
from medtasks_challenges.predictions_file import GI_1, MEDICO_1, PredictionsChallenge
from medtasks_challenges.score_command import score
from medtasks_challenges.team import read_team

app = typer.Typer(
    help="Challenge files made of medtasks runs, and their public scores.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
RunPath = Annotated[
    Path, typer.Argument(metavar="RUN", help="A result directory, or one above it.")
]
TeamPath = Annotated[Path, typer.Option("--team", help="YAML file about the team (README.md).")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The new file.")]
OutFolder = Annotated[Path, typer.Option("--out", "-o", help="The new directory.")]
Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", help="A task that asked the rows; can be repeated."),
]
AllowMissing = Annotated[
    bool,
    typer.Option(
        "--allow-missing", help="Write the file although answers are missing (README.md)."
    ),
]
Split = Annotated[
    Path | None,
    typer.Option("--split", help="A copy of the hub's test split, to check the order of the rows."),
]
app.command("score")(score)
ADVICE = "finish or repeat the run, or add --allow-missing, whose meaning is in README.md."
ADVICE_OPTIONS = "repeat these cases, because an option cannot be left out."


@app.command("medico-2026-1")
def medico_2026_1(
    run: RunPath,
    team: TeamPath,
    out: Out = Path("predictions_1.json"),
    task: Tasks = None,
    split: Split = None,
    allow_missing: AllowMissing = False,
) -> None:
    """Write predictions_1.json of Medico 2026, subtask 1."""
    _write_predictions(MEDICO_1, run, team, out, task or (), allow_missing, split)


@app.command("gi-2026-1")
def gi_2026_1(
    run: RunPath,
    team: TeamPath,
    out: Out = Path("predictions_1.json"),
    task: Tasks = None,
    allow_missing: AllowMissing = False,
) -> None:
    """Write predictions_1.json of ImageCLEFmed MEDVQA-GI 2026, subtask 1."""
    _write_predictions(GI_1, run, team, out, task or (), allow_missing)


def _write_predictions(
    challenge: PredictionsChallenge,
    path: Path,
    team_path: Path,
    out: Path,
    tasks: Sequence[str],
    allow_missing: bool,
    split: Path | None = None,
) -> None:
    """Write the predictions of a run, and print the public scores and what is missing."""
    output_files.refuse_unwritable(out)
    team = read_team(team_path)
    run = run_answers.only_run(path)
    documents = challenge.documents()
    expected = challenge.rows
    if expected is None:
        expected = run_answers.prepared_rows(run, challenge.benchmark)
    run_answers.refuse_partial(documents, expected)
    if split is not None:
        split_order.check_order(split, documents, level1_only=False)
    answers = run_answers.answers_of(run, tasks or _tasks_in(run, challenge))
    ordered = run_answers.in_order(documents, answers)
    problems = run_answers.problems_of(ordered)
    if not allow_missing:
        run_answers.refuse_missing(problems, len(documents), ADVICE)
    scores = public_scores.public_scores(challenge.scored_as, ordered, run.model)
    rounded = public_scores.rounded(scores, challenge.digits)
    content = predictions_file.predictions_file(documents, ordered, team, rounded, run)
    text = json.dumps(content, indent=4, ensure_ascii=False) + "\n"
    output_files.write_file(out, text.encode())
    _report(run, out, len(documents), problems, "written as empty texts, which score 0")
    for line in public_scores.score_lines(scores, challenge.digits):
        print(line)
    if team.measured.unknown:
        names = ", ".join(team.measured.unknown)
        print(f"null, because the team file does not state it under `measured`: {names}")


def _tasks_in(run: Run, challenge: PredictionsChallenge) -> Sequence[str]:
    """The tasks of the run that are in the first of the challenge's alternatives of which it has
    any; rows of the others count as missing.

    Raises:
        UsageError: it has none of them.
    """
    for alternative in challenge.tasks:
        tasks = [task for task in alternative if task in run.manifest.tasks]
        if tasks:
            return tasks
    alternatives = " or ".join(" + ".join(tasks) for tasks in challenge.tasks)
    raise UsageError(
        f"{run.name}: the run has the tasks {', '.join(sorted(run.manifest.tasks))}, expected "
        f"{alternatives}; run these, or name yours with --task."
    )


@app.command("medico-2026-2")
def medico_2026_2(
    run: RunPath,
    team: TeamPath,
    out: OutFolder = Path("medico-2026-2"),
    task: Tasks = None,
    answers: Annotated[
        Path | None,
        typer.Option("--answers", help="The run of subtask 1, whose answers are to be explained."),
    ] = None,
    answers_task: Annotated[
        str, typer.Option("--answers-task", help="The task of that run.")
    ] = "kvasir_vqa_x1_level1",
    split: Split = None,
    allow_missing: AllowMissing = False,
) -> None:
    """Write submission_task2.jsonl and submission_task2.py of Medico 2026, subtask 2."""
    output_files.refuse_unwritable(out)
    information = read_team(team)
    explained_run = run_answers.only_run(run)
    documents = kvasir_rows.subtask2.documents(media=False)
    run_answers.refuse_partial(documents, kvasir_rows.SELECTED)
    if split is not None:
        split_order.check_order(split, documents, level1_only=True)
    public_scores.refuse_excluded(explained_run)
    by_sample = run_answers.answers_of(explained_run, task or ["medico_2026_explained"])
    ordered = run_answers.in_order(documents, by_sample)
    rows = explanations_file.explained_rows(documents, ordered)
    differing = 0
    if answers is not None:
        run_of_answers = run_answers.only_run(answers)
        answers_by_sample = run_answers.answers_of(
            run_of_answers, [answers_task], option="--answers-task"
        )
        rows, differing = explanations_file.with_answers(rows, answers_by_sample)
    problems = explanations_file.problems_of(rows)
    if not allow_missing:
        run_answers.refuse_missing(problems, len(rows), ADVICE)
    texts = {
        "submission_task2.jsonl": explanations_file.jsonl(rows),
        "submission_task2.py": explanations_file.script(information),
    }
    output_files.write_folder(out, texts)
    _report(explained_run, out, len(rows), problems, "stated in words")
    if differing:
        print(f"{differing:,} explanations were given for another answer than that of {answers}")
    print(explanations_file.confidence_line(rows))
    print("visual_explanation: none, because runs have no heatmaps, masks or boxes")


@app.command("medreason")
def medreason(
    run: RunPath,
    out: Out = Path("submission.zip"),
    task: Tasks = None,
    name: Annotated[str, typer.Option("--name", help="The submission's name.")] = "medtasks",
    allow_missing: AllowMissing = False,
) -> None:
    """Write the ZIP file of MedReason with results.json."""
    output_files.refuse_unwritable(out)
    if not name.strip():
        raise UsageError("--name is empty, expected the submission's name; give one.")
    medreason_run = run_answers.only_run(run)
    cases = medreason_file.documents()
    tasks = task or ["medreason_2026_mcq", "medreason_2026_open"]
    present = [asked for asked in tasks if asked in medreason_run.manifest.tasks]
    expected = run_answers.prepared_rows(medreason_run, medreason_file.BENCHMARK)
    run_answers.refuse_partial(cases, expected)
    by_sample = run_answers.answers_of(medreason_run, tasks if task else present)
    ordered = run_answers.in_order(cases, by_sample)
    answers = medreason_file.case_answers(cases, ordered)
    choice_problems = medreason_file.problems_of(answers, "mcq")
    open_problems = medreason_file.problems_of(answers, "open")
    run_answers.refuse_missing(choice_problems, len(cases), ADVICE_OPTIONS)
    if not allow_missing:
        run_answers.refuse_missing(open_problems, len(cases), ADVICE)
    content = medreason_file.results(answers, name)
    output_files.write_file(out, medreason_file.archive(content))
    _report(medreason_run, out, len(cases), open_problems, "stated in words")


def _report(run: Run, out: Path, rows: int, problems: Sequence[str], meaning: str) -> None:
    """Print what was written, what a reader of the run must know, and each missing answer."""
    print(f"wrote {out}: {rows:,} rows")
    for note in run.notes:
        print(f"note on the run: {note}")
    if problems:
        print(f"{len(problems):,} missing answers, {meaning}:")
    for problem in problems:
        print(f"  {problem}")


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the command failed, 2 wrong usage."""
    try:
        app()
    except MedtasksError as error:
        print(f"medtasks-challenges: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)


if __name__ == "__main__":
    main()
