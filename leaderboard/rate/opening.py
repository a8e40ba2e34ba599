"""Opening a rater's session: the sample is drawn, or the one in the rater's file is continued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from medtasks.catalog.rubric_files import load_rubric
from medtasks.core.errors import UsageError
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.progress_bars import progress
from medtasks.judge.human_labels import rating_hash
from medtasks.judge.ratable import Ratable
from medtasks.judge.rating_records import GOLD, GOLD_CHOICES, DrawnAnswer, RatingPlan
from medtasks.judge.rating_sample import Frame
from medtasks.judge.rating_writer import RatingWriter, open_for_rating

from .asked import Asked, asked_answer
from .doubtful import ABSENT, DoubtfulQuestions
from .options import OVERLAP, SAMPLE, SEED, RatingOptions
from .rated_runs import RunsToRate
from .session import RatingSession

GOLD_TITLE = "Gold answers"
GOLD_HASH = short_hash(canonical_json([GOLD, *GOLD_CHOICES]))


@contextmanager
def answers_to_rate(paths: Sequence[Path], options: RatingOptions) -> Iterator[RatingSession]:
    """The session of a rater who rates answers in result directories under a rubric.

    The rater's file is locked for the block.

    Raises:
        UsageError: options cannot be used, or differ from those of the file; or another process
            has it open.
        DataError: results or the file cannot be read, or an answer has changed.
    """
    rubric = load_rubric(options.rubric)
    runs = RunsToRate(paths)

    def population() -> Ratable:
        with progress("reading answers") as bar:
            return runs.ratable(rubric, bar)

    def first_plan() -> RatingPlan:
        plan = _new_plan(options, runs, population(), rating_hash(rubric))
        options.require_joinable(plan)
        return plan

    with open_for_rating(options.path, first_plan) as writer:
        options.require_same(writer.plan, rating_hash(rubric))
        if options.sample is not None and options.sample > writer.plan.samples[-1]:
            _extend(writer, population(), options.sample, options.path)
        with progress("reading the drawn answers"):
            samples = runs.samples_of(writer.plan.answers, options.path)

        def asked(answer: DrawnAnswer) -> Asked:
            manifest = runs.by_identity[answer.run].manifest
            return asked_answer(samples[answer.key], manifest, rubric)

        yield RatingSession(writer, asked, rubric.title)


@contextmanager
def questions_to_rate(
    paths: Sequence[Path], questions: Path, options: RatingOptions
) -> Iterator[RatingSession]:
    """The session of a rater who checks the gold answers of the questions in a CSV file.

    The rater's file is locked for the block. Questions that were not listed when the rater began
    are added to it.

    Raises:
        UsageError: options cannot be used, or differ from those of the file; or another process
            has it open.
        DataError: results, questions or the file cannot be read, or a question has changed.
    """
    runs = RunsToRate(paths)
    with progress("reading answers"):
        doubtful = DoubtfulQuestions(questions, runs)

    def first_plan() -> RatingPlan:
        left_out = {ABSENT: doubtful.absent} if doubtful.absent else {}
        frame = Frame(doubtful.population)
        size = frame.size if options.sample is None else options.sample
        overlap = size if options.overlap is None else options.overlap
        return _plan(options, frame, GOLD_HASH, size, overlap, left_out)

    with open_for_rating(options.path, first_plan) as writer:
        options.require_same(writer.plan, GOLD_HASH)
        doubtful.include(writer.plan.answers, options.path)
        frame = Frame(doubtful.population)
        if frame.hash != writer.plan.frame:
            writer.extend(_with_new_questions(writer.plan, frame, options))
        elif options.sample is not None and options.sample > writer.plan.samples[-1]:
            writer.extend(_extended(writer.plan, frame, options.sample))

        def asked(answer: DrawnAnswer) -> Asked:
            return doubtful.asked(answer.key)

        yield RatingSession(writer, asked, GOLD_TITLE)


def _with_new_questions(plan: RatingPlan, frame: Frame, options: RatingOptions) -> RatingPlan:
    """The plan with the newly listed questions after the others.

    Raises:
        UsageError: the plan has a random sample of the questions listed before.
    """
    if any(stratum.drawn < stratum.population for stratum in plan.strata):
        raise UsageError(
            f"{options.path}: was begun with a sample of other questions; give their file with "
            "--questions, or another --rater."
        )
    everything = frame.draw([frame.size], frame.size, plan.seed, plan.rater)
    strata = {stratum.task: stratum for stratum in plan.strata}
    for stratum in everything.strata:
        strata[stratum.task] = stratum
    # ratings name strata by number: earlier tasks keep theirs, new tasks follow
    places = {task: number for number, task in enumerate(strata)}
    answers = {answer.key: answer for answer in plan.answers}
    for answer in everything.answers:
        renumbered = answer.model_copy(update={"stratum": places[answer.task]})
        answers.setdefault(answer.key, renumbered)
    update = {
        "samples": (*plan.samples, frame.size),
        "frame": frame.hash,
        "strata": tuple(strata.values()),
        "answers": tuple(answers.values()),
    }
    return plan.model_copy(update=update)


def _new_plan(
    options: RatingOptions, runs: RunsToRate, ratable: Ratable, rubric_hash: str
) -> RatingPlan:
    """The plan of a rater's first sample of answers."""
    frame = Frame(ratable.answers)
    sample = SAMPLE if options.sample is None else options.sample
    overlap = OVERLAP if options.overlap is None else options.overlap
    plan = _plan(options, frame, rubric_hash, sample, overlap, dict(ratable.left_out))
    return plan.model_copy(update={"runs": runs.facts})


def _plan(
    options: RatingOptions,
    frame: Frame,
    rubric_hash: str,
    sample: int,
    overlap: int,
    left_out: dict[str, int],
) -> RatingPlan:
    """A plan with a sample that is drawn from the frame."""
    seed = SEED if options.seed is None else options.seed
    draw = frame.draw([sample], overlap, seed, options.rater)
    return RatingPlan(
        rubric=options.rubric,
        rubric_hash=rubric_hash,
        rater=options.rater,
        seed=seed,
        samples=(sample,),
        overlap=overlap,
        hide_reference=bool(options.hide_reference),
        frame=frame.hash,
        runs=(),
        strata=draw.strata,
        left_out=left_out,
        answers=draw.answers,
    )


def _extend(writer: RatingWriter, ratable: Ratable, sample: int, path: Path) -> None:
    """Draw further answers into a rater's file."""
    frame = Frame(ratable.answers)
    if frame.hash != writer.plan.frame:
        raise UsageError(
            f"--sample {sample}: cannot be raised, because the results or their verdicts have "
            f"changed since {path} was begun; keep --sample {writer.plan.samples[-1]}, or give "
            "another folder with --ratings."
        )
    writer.extend(_extended(writer.plan, frame, sample))


def _extended(plan: RatingPlan, frame: Frame, sample: int) -> RatingPlan:
    """The plan with a larger sample."""
    samples = (*plan.samples, sample)
    draw = frame.draw(samples, plan.overlap, plan.seed, plan.rater)
    update = {"samples": samples, "strata": draw.strata, "answers": draw.answers}
    return plan.model_copy(update=update)
