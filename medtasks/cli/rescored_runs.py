"""What ``medtasks score`` prints of a run: its scores as they are now, finished or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.cli.console import write, write_json
from medtasks.cli.corrected_tables import show_corrected
from medtasks.cli.latency_tables import show_latency
from medtasks.cli.score_tables import show_changes, show_diagnostics, show_level_gaps, show_paired
from medtasks.cli.stream_latency_tables import show_stream_latency
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.text import first_names, printable

if TYPE_CHECKING:
    from medtasks.judge.corrected_scores import CorrectedRun
    from medtasks.runs.times import Times
    from medtasks.scoring.comparisons import Paired
    from medtasks.scoring.latency import RunLatency
    from medtasks.scoring.run_cache import RunStore
    from medtasks.scoring.run_record import RunRecord


def score_again(
    folder: Path, against: Path | None, human: Path | None, out: Path | None, as_json: bool
) -> None:
    """Print the scores of a run as they are now, with comparisons, corrected scores and changes.

    Args:
        folder: the run's directory, or one that contains it.
        against: another run's directory, for a paired comparison.
        human: ratings by people that correct judged scores.
        out: a new directory for the scored run.
        as_json: print JSON instead of tables.

    Raises:
        UsageError: an option does not fit the run.
        MedtasksError: the run cannot be scored.
    """
    from medtasks.runs.find import is_unfinished, one_run
    from medtasks.scoring.run_cache import user_store

    folder = one_run(folder)
    if is_unfinished(folder):
        if against is not None or human is not None:
            raise UsageError(
                "--against and --human need a finished run; write the unfinished run with --out "
                "first."
            )
        _score_unfinished(folder, out, as_json)
        return
    store = user_store()
    finished = _finished_run(folder, store, human, out)
    if against is not None:
        paired = _compared_with(finished.run, against, store)
        finished = replace(finished, paired=paired)
    if as_json:
        write_json(_json_of(finished))
    else:
        _show(finished, out)


@dataclass(frozen=True)
class _FinishedRun:
    """What is printed of a finished run: ``run`` has the scores as they are now, ``again`` also the
    stored ones.
    """

    again: RunRecord
    run: RunRecord
    paired: dict[str, Paired]
    corrected: CorrectedRun | None
    latency: RunLatency
    times_problem: str | None


def _finished_run(
    folder: Path, store: RunStore, human: Path | None, out: Path | None
) -> _FinishedRun:
    """The run in ``folder``, scored again, corrected by ratings, and written to ``out``."""
    from medtasks.judge.corrected_scores import corrected_run
    from medtasks.runs.times import FoundTimes
    from medtasks.scoring.latency import run_latency

    again = _scored_again(folder, store, whole=out is not None or human is not None)
    corrected = None if human is None else corrected_run(again, human)
    stored = FoundTimes.of(folder)
    if out is not None:
        _write_whole_run(folder, again, out, stored.times)
    run = again.rescored
    latency = run_latency(run, stored.times, folder)
    if stored.problem is not None:
        latency = latency.model_copy(update={"reason": stored.problem})
    return _FinishedRun(again, run, run.comparisons, corrected, latency, stored.problem)


def _json_of(finished: _FinishedRun) -> dict[str, Any]:
    """The content of ``scores.json``, with what the tables show besides."""
    run = replace(finished.run, kept=(finished.paired, finished.run.level_gaps))
    notes = [*finished.again.notes]
    if finished.times_problem is not None:
        notes.append(finished.times_problem)
    results = {**run.results, "changes": finished.again.changes, "notes": notes}
    results["latency"] = finished.latency.model_dump(mode="json")
    if finished.corrected is not None:
        results["corrected"] = finished.corrected.json()
    return results


def _show(finished: _FinishedRun, out: Path | None) -> None:
    """Print the tables of a finished run."""
    from medtasks.scoring.summary import summary

    write(summary(finished.run, out, keep="--out"))
    write(*(f"  {printable(note)}" for note in finished.again.notes))
    show_diagnostics(finished.run)
    show_level_gaps(finished.run)
    show_paired(finished.paired)
    if finished.corrected is not None:
        show_corrected(finished.corrected)
    show_latency(finished.latency)
    show_stream_latency(finished.latency)
    if finished.times_problem is not None:
        write(f"  {printable(finished.times_problem)}")
    show_changes(finished.again)


def _scored_again(folder: Path, store: RunStore, *, whole: bool) -> RunRecord:
    """A run, scored again; an error if some of its scores can only be taken from its files."""
    from medtasks.leaderboard.verify.scored_run import scored_run

    again = scored_run(folder, store, own=True, whole=whole).record
    for name, verification in again.verification.items():
        if verification.claimed:
            raise MedtasksError(f"{folder}: {name}: {verification.reason}.")
    return again


def _compared_with(run: RunRecord, against: Path, store: RunStore) -> dict[str, Paired]:
    """The paired differences within a run, and between its tasks and those of another run."""
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.runs.find import one_run
    from medtasks.scoring.comparisons import comparisons, same_tasks

    tables = scored_run(one_run(against), store, own=True).record.tables
    return {**comparisons(run.tables, tables), **same_tasks(run.tables, tables)}


def _write_whole_run(folder: Path, again: RunRecord, out: Path, times: Times) -> None:
    """Write the scored run and its times into a new directory, unless it lacks tasks of the run in
    ``folder``.
    """
    from medtasks.scoring.kept_runs import keep_written
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.run_folder import read_manifest, write_run

    scored_tasks = again.rescored.manifest.tasks
    lacking = sorted(read_manifest(folder).tasks.keys() - scored_tasks.keys())
    if lacking:
        raise UsageError(
            f"{folder}: no installed package has {first_names(lacking)}, which --out would "
            "leave out; install it."
        )
    write_run(out, again.rescored, times)
    keep_written(out, again, user_store())


def _score_unfinished(folder: Path, out: Path | None, as_json: bool) -> None:
    """Print the scores of the replies that a run has so far."""
    from medtasks.runs.manifest import now
    from medtasks.scoring.finished_run import score_unfinished, unfinished_times
    from medtasks.scoring.latency import run_latency
    from medtasks.scoring.run_folder import write_run
    from medtasks.scoring.summary import summary

    run = score_unfinished(folder, created=now())
    times = unfinished_times(folder)
    latency = run_latency(run, times)
    if out is not None:
        write_run(out, run, times)
    if as_json:
        write_json({**run.results, "latency": latency.model_dump(mode="json")})
    else:
        write(summary(run, out, keep="--out"))
        show_latency(latency)
        show_stream_latency(latency)
