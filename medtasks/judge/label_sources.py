"""Where labels of people are: the runs and rubrics that a file or folder is about, and its hash."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import file_sha256, short_hash
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.csv_rows import read_csv_rows
from medtasks.judge.rating_file import is_rating_file, rating_files, read_rating_file
from medtasks.runs.manifest import RubricFacts
from medtasks.scoring.run_record import RunRecord

_ANSWER = ("run", "task", "sample_id", "rater")
"""Columns of a CSV file that identify a rater's answer, the run first."""


def labels_hash(human: Path, rubric: str) -> str:
    """Identifies labels by their content: of a folder of ratings, that of all its files."""
    paths = [human]
    if human.is_dir():
        paths = rating_files(human, rubric)
    return short_hash(" ".join(sorted(file_sha256(path) for path in paths)))


def labels_content(human: Path) -> str:
    """Identifies all labels in a file or a folder by their content.

    Raises:
        DataError: they cannot be read.
    """
    paths = sorted(human.rglob("*.jsonl")) if human.is_dir() else [human]
    contents = []
    for path in paths:
        with reading(path, "name another file"):
            contents.append(file_sha256(path))
    return short_hash(" ".join(contents))


def require_named_runs(human: Path) -> None:
    """Refuse labels for several runs in a CSV file that does not say whose answers they are about.

    Raises:
        UsageError: it has no column `run`.
        DataError: it cannot be read.
    """
    if human.is_dir() or is_rating_file(human):
        return
    if "run" not in read_csv_rows(human)[0].row:
        raise UsageError(
            f"{human}: has no column `run`, so it does not say which model's answers people "
            "labelled; add the column, or give rating files."
        )


def labelled_runs(human: Path) -> set[str]:
    """The identities of the runs whose answers people labelled.

    Raises:
        UsageError: there are no ratings, or a CSV file has no column `run`.
        DataError: the labels cannot be read.
    """
    if not human.is_dir() and not is_rating_file(human):
        require_named_runs(human)
        return {row["run"].strip() for _, row in read_csv_rows(human)}
    runs: set[str] = set()
    for path in _rating_paths(human):
        runs.update(stratum.run for stratum in read_rating_file(path).plan.strata)
    return runs


def labels_by_run(human: Path) -> dict[str, int]:
    """How many answers of each run people labelled, by the run's identity, sorted.

    An answer counts once for each rater.

    Raises:
        UsageError: there are no ratings, or a CSV file has no column `run`.
        DataError: the labels cannot be read.
    """
    answers: set[tuple[str, ...]] = set()
    if human.is_dir() or is_rating_file(human):
        for path in _rating_paths(human):
            for rating in read_rating_file(path).ratings.values():
                answers.add((rating.run, rating.task, rating.sample_id, str(path)))
    else:
        require_named_runs(human)
        for _, row in read_csv_rows(human):
            if row.get("score", "").strip():
                named = (row.get(column, "").strip() for column in _ANSWER)
                answers.add(tuple(named))
    counts = Counter(answer[0] for answer in answers)
    counts.pop("", None)  # gold answers were rated, or a row does not name its run
    return dict(sorted(counts.items()))


def _rating_paths(human: Path) -> list[Path]:
    """The rating file itself, or all those in a folder.

    Raises:
        UsageError: there is none.
    """
    if not human.is_dir():
        return [human]
    paths = sorted(human.rglob("*.jsonl"))
    if not paths:
        raise UsageError(f"{human}: has no rating files; give a folder that `medtasks rate` wrote.")
    return paths


def labelled_rubrics(run: RunRecord, human: Path) -> list[RubricFacts]:
    """The rubrics of the labels under which the run was judged.

    A CSV file does not name its rubric: if there are several, it is the only one with all aspects
    in the file.

    Raises:
        UsageError: there is none, or a CSV file may be about several.
        DataError: the labels cannot be read.
    """
    judged = run.manifest.judge
    if human.is_dir():
        labelled = [name for name in judged if _has_ratings(human, name)]
        problem = f"{human}: has no ratings under a rubric that judged the run"
    elif is_rating_file(human):
        rubric = read_rating_file(human).plan.rubric
        labelled = [rubric] if rubric in judged else []
        problem = f"{human}: was rated under {rubric}, under which the run was not judged"
    else:
        labelled = list(judged)
        problem = f"{human}: the run was not judged"
        if len(labelled) > 1:
            labelled = [_rubric_of_csv(run, human)]
    if not labelled:
        names = first_names(sorted(judged)) if judged else "none"
        fix = "give ratings under one of these, or judge the run" if judged else "judge it first"
        raise UsageError(
            f"{problem} ({names}), so there is nothing to correct; {fix} with `medtasks judge`."
        )
    return [judged[name] for name in labelled]


def _rubric_of_csv(run: RunRecord, human: Path) -> str:
    """The only rubric of a run's judge that has all aspects in a CSV file."""
    labelled = set()
    for _, row in read_csv_rows(human):
        if row.get("score", "").strip():
            labelled.add(row.get("aspect", "").strip())
    judged = run.manifest.judge
    if not labelled:
        return next(iter(judged))  # under any rubric, reading the labels says what is missing
    fitting = [name for name in judged if labelled <= _aspect_names(run, judged[name])]
    if len(fitting) == 1:
        return fitting[0]
    aspects = first_names([shown(name) for name in sorted(labelled)])
    if fitting:
        why = f"{first_names(fitting)} have all its aspects ({aspects})"
        fix = "give rating files, which name their rubric"
    else:
        why = f"none of these has all its aspects ({aspects})"
        fix = "correct them, or give a file for one rubric alone"
    raise UsageError(
        f"{human}: the run was judged under {first_names(list(judged))}, and {why}, expected "
        f"exactly one; {fix}."
    )


def _aspect_names(run: RunRecord, facts: RubricFacts) -> set[str]:
    """The names of a rubric's aspects, including those that the run's documents name."""
    rubric = facts.rubric
    names = {aspect.name for aspect in rubric.aspects}
    if rubric.aspects_from is None:
        return names
    for task in facts.tasks:
        for sample in run.samples.get(task, ()):
            with suppress(DataError):  # nobody can label a document that does not fit
                names.update(aspect.name for aspect in aspects_of(rubric, sample.whole_document()))
    return names


def _has_ratings(folder: Path, rubric: str) -> bool:
    """Whether a folder has rating files under a rubric."""
    try:
        paths = rating_files(folder, rubric)
    except UsageError:
        return False
    return any(read_rating_file(path).plan.rubric == rubric for path in paths)
