"""The runs of a board whose judged scores people's labels correct."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from medtasks.core.errors import MachineError, MedtasksError, UsageError, first_line
from medtasks.core.text import counted
from medtasks.judge.corrected_scores import CorrectedRun, corrected_run
from medtasks.judge.label_sources import labelled_runs, labels_by_run
from medtasks.scoring.run_folder import read_manifest

from ..verify.scored_run import ScoredRun, scored_run
from .collect import find_everything


@dataclass(frozen=True)
class CorrectedRuns:
    """The corrected scores of labelled runs by the digest of the run, and ``reasons``, why the
    scores of others are not corrected. ``unused`` says which labels are of other runs.
    """

    by_digest: Mapping[str, CorrectedRun] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


def corrected_runs(human: Path, runs: Iterable[ScoredRun], paths: Sequence[Path]) -> CorrectedRuns:
    """The labelled ones of these runs, whose directories are below ``paths``.

    Raises:
        UsageError: the labels are about none of the runs, or do not say about which.
        DataError: the labels cannot be read.
    """
    labelled = labelled_runs(human)
    wanted = {run.digest for run in runs if run.manifest.identity in labelled}
    whole_runs: dict[str, ScoredRun] = {}
    for folder in find_everything(paths).runs:
        try:
            if read_manifest(folder.directory).identity in labelled and folder.content in wanted:
                run = scored_run(folder, whole=True)
                whole_runs.setdefault(run.digest, run)
        except MachineError:
            raise
        except MedtasksError:  # the board lists it as refused
            continue
    return corrected_whole_runs(human, whole_runs.values())


def corrected_whole_runs(human: Path, runs: Iterable[ScoredRun]) -> CorrectedRuns:
    """The labelled ones of these runs, which have their samples.

    Raises:
        UsageError: the labels are about none of the runs, or do not say about which.
        DataError: the labels cannot be read.
    """
    labelled = labelled_runs(human)
    board_runs: set[str] = set()
    by_digest: dict[str, CorrectedRun] = {}
    reasons: dict[str, str] = {}
    for run in runs:
        if run.manifest.identity not in labelled:
            continue
        board_runs.add(run.manifest.identity)
        try:
            by_digest[run.digest] = corrected_run(run.record, human)
        except UsageError as error:
            reasons[run.digest] = first_line(error).rstrip(".")
    if not by_digest and not reasons:
        raise UsageError(
            f"{human}: people labelled answers of none of these runs; give the results that "
            "`medtasks rate` was given."
        )
    return CorrectedRuns(by_digest, reasons, tuple(_unused(human, board_runs)))


def _unused(human: Path, board_runs: Set[str]) -> Iterator[str]:
    """Which labels are of answers of runs other than `board_runs`."""
    for run, labels in labels_by_run(human).items():
        if run not in board_runs:
            answers = counted(labels, "answer")
            yield f"{answers} of run {run} not used, because the run is not on this board"
