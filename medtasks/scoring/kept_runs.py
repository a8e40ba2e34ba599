"""Runs that were just scored here, kept in the cache as they would be read from their
directories.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from medtasks.scoring.installed_manifest import installed_part, installed_rubrics
from medtasks.scoring.local_documents import forget_documents
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_folder import RunFolder, read_manifest
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.run_tables import batches
from medtasks.scoring.verification import SubmittedTask
from medtasks.scoring.verification_outcome import verification_notes
from medtasks.scoring.verified_runs import verified


def is_known_as_scored(folder: Path, store: RunStore) -> bool:
    """Whether the store has the run in ``folder``, and its samples are as they are scored here."""
    kept = store.read_run(_key(folder, store), own=False)
    return kept is not None and not kept.differences


def keep_finished(folder: Path, run: RunRecord, store: RunStore) -> None:
    """Keep a run that was scored here and written to ``folder`` just now, as it would be read from
    there.

    A run that needs a word about what was verified is left to whoever reads it.
    """
    with contextlib.suppress(Exception):  # the run is finished, and scored again when it is read
        record = _as_read(folder, run)
        if record is not None:
            store.keep(_key(folder, store), record)


def keep_written(folder: Path, run: RunRecord, store: RunStore) -> None:
    """Keep the scored run under the content of the directory to which it was written, too."""
    has_own_notes = run.notes != tuple(verification_notes(run.verification))
    if run.mode or has_own_notes:  # else it reads otherwise
        return
    kept = replace(run.rescored, changes=(), differences=(), amended={})
    store.keep(_key(folder, store), kept)


def _key(folder: Path, store: RunStore) -> str:
    source = RunFolder(folder)
    return store.key_of(source.content, *source.contains())


def _as_read(folder: Path, run: RunRecord) -> RunRecord | None:
    """The run as it would be read from ``folder``; None if it would be read with notes, or with
    other samples.
    """
    # tasks are in the order in which they are read
    manifest, _ = installed_part(read_manifest(folder), folder.name)
    rubrics, rubric_notes = installed_rubrics(manifest.judge)
    manifest = manifest.model_copy(update={"judge": rubrics})
    tasks = []
    for name in manifest.tasks:
        task = SubmittedTask(name, manifest, own=False)
        tasks.append(task)
        is_as_data = _check_samples(task, run)
        forget_documents()
        if not is_as_data or not task.is_plain:
            return None
    if rubric_notes:
        return None
    record = replace(
        run,
        manifest=manifest,
        tasks={name: run.tasks[name] for name in manifest.tasks},
        groups={name: run.groups[name] for name in manifest.groups},
        kept=(run.comparisons, run.level_gaps),
    )
    return verified(record, tasks)


def _check_samples(task: SubmittedTask, run: RunRecord) -> bool:
    """Whether the run's samples have the documents of the data prepared here."""
    for submitted, checked in task.checked(batches(run.samples[task.spec.name])):
        if submitted != checked:
            return False
        task.outcomes += [sample.outcome for sample in checked]
    return True
