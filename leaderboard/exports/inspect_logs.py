"""Runs as logs of Inspect (``inspect view``), written with its own package: one ``.eval`` file per
run and task.

Samples are those of the run as it is scored here.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError, UsageError, first_line, machine_fault
from medtasks.core.extras import needs
from medtasks.core.files import require_clock
from medtasks.core.replacement import temporary_beside
from medtasks.runs.find import no_run
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.run_folder import RunFolder, as_data_error

from ..intake.collect import find_everything
from ..intake.shown_layouts import layout_of
from ..schema.numbers import safe_name
from ..verify.media import picture, shown_media
from ..verify.model_identity import model_name
from ..verify.scored_run import scored_run
from .inspect_log_content import Pictures, log_content
from .written_files import WrittenFiles


def write_inspect_logs(results: Sequence[Path], out: Path) -> WrittenFiles:
    """Write the logs of all runs in ``results`` to the new directory ``out``.

    Pictures are included where the benchmark's board layout lets media be published, and nowhere
    else; notes state why there are none. A crash leaves no ``out``.

    Raises:
        UsageError: Inspect is not installed, ``out`` exists, or there is no run.
        MedtasksError: a run cannot be read, or Inspect does not write its log.
    """
    with needs("inspect", "exporting logs of Inspect"):
        import inspect_ai.log  # noqa: F401
    if out.exists():
        raise UsageError(
            f"{out}: exists already; logs are never overwritten, choose another directory."
        )
    require_clock()
    folders = find_everything(results).runs
    if not folders:
        raise no_run(results[0])
    logs: list[_WrittenLog] = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(out) as partial:
        for folder in folders:
            logs += _write_run(folder, partial)
        partial.rename(out)
    files = [out / log.name for log in logs]
    notes = dict.fromkeys(log.note for log in logs if log.note)
    return WrittenFiles(files, list(notes))


class _WrittenLog(NamedTuple):
    """The name of a log's file, and a note on its pictures, or an empty one."""

    name: str
    note: str


def _write_run(folder: RunFolder, out: Path) -> Iterator[_WrittenLog]:
    """Write a log for each task of a run."""
    digest = folder.content
    with as_data_error(folder.directory):
        run = scored_run(folder, whole=True)
    for task, samples in run.samples.items():
        with as_data_error(folder.directory):
            pictures, note = _pictures(task, samples, run.manifest)
            content = log_content(run, task, digest, pictures)
        name = f"{digest[:12]}_{safe_name(model_name(run.manifest))}_{safe_name(task)}.eval"
        _write_log(content, out / name)
        yield _WrittenLog(name, note)


def _write_log(content: Mapping[str, Any], path: Path) -> None:
    """Write a log with Inspect's own package, which checks it."""
    from inspect_ai.log import EvalLog, write_eval_log

    try:
        write_eval_log(EvalLog.model_validate(content), path, format="eval")
    except OSError:
        raise
    except Exception as error:
        raise machine_fault(error) or MedtasksError(
            f"{path.name}: Inspect's package cannot write this log ({first_line(error)}); restore "
            "the directory, or install another version of inspect_ai."
        ) from error


def _pictures(task: str, samples: Sequence[Sample], manifest: RunManifest) -> tuple[Pictures, str]:
    """The pictures, or a note on why there are none."""
    benchmark = load_spec(task).metadata.benchmark
    layout = layout_of(benchmark)
    pictures: dict[str, list[str]] = {}
    absent = ""
    if layout.shows != "media":
        absent = layout.why or "Its terms do not allow them."
    try:
        for sample in samples:
            absent = absent or shown_media(sample, manifest).absent
            if absent:
                break
            pictures[sample.sample_id] = _data_urls(task, sample, manifest)
    except MedtasksError as error:
        absent = first_line(error)
    if absent:
        return {}, f"{benchmark}: without pictures. {absent}"
    return pictures, ""


def _data_urls(task: str, sample: Sample, manifest: RunManifest) -> list[str]:
    """A sample's pictures as data URLs."""
    urls = []
    for number in range(shown_media(sample, manifest).count):
        content = picture(task, sample.sample_id, manifest, number, False)
        urls.append(f"data:image/png;base64,{base64.b64encode(content).decode()}")
    return urls
