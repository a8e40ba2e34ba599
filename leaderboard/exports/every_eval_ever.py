"""Scores and samples in the schema of Every Eval Ever (https://evalevalai.com), made of its own
package's models.

The package is not among our optional dependencies: its bounds on `rich` contradict ours. Without
its dependencies it works, and its models need only pydantic.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from medtasks.benchmarks.layouts import all_layouts
from medtasks.core.errors import UsageError, first_line
from medtasks.core.files import file_sha256
from medtasks.core.replacement import replaced

from ..intake.collect import find_everything
from ..schema.numbers import safe_name
from ..verify.scored_run import ScoredRun, scored_run
from .evaluation_records import evaluation_record, sample_lines
from .publishable import Headline, publishable
from .written_files import WrittenFiles

INSTALL = "pip install --no-deps every-eval-ever (below Python 3.12 with --ignore-requires-python)"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


@dataclass(frozen=True)
class _Schema:
    """The package's models, and the version of its schema."""

    log: Any
    sample_line: Any
    version: str


def write_records(
    results: Sequence[Path],
    out: Path,
    *,
    model: str,
    organization: str,
    relationship: str = "third_party",
) -> WrittenFiles:
    """Write one record for each run and benchmark to ``out/BENCHMARK/OWNER/NAME/``.

    Samples are written beside a record where the benchmark's board layout lets texts be published.

    Args:
        results: result directories of one model, or trees that contain some.
        out: the directory ``data`` of the collection.
        model: the model's name on the hub, owner/name.
        organization: who reports the results.
        relationship: of those who evaluated to the model, one of `RELATIONSHIPS`.

    Raises:
        UsageError: the package is not installed, or an argument is wrong.
        MedtasksError: a run cannot be read.
    """
    schema = _imported_schema()
    if relationship not in RELATIONSHIPS:
        raise UsageError(f"--relationship {relationship}: choose from {', '.join(RELATIONSHIPS)}.")
    source = {"source_organization_name": organization, "evaluator_relationship": relationship}
    writer = _RecordWriter(schema, out, model, source)
    headlines, notes = publishable(results, model)
    files: list[Path] = []
    for (_, benchmark), members in groupby(headlines, key=_run_and_benchmark):
        scores = list(members)
        layout = all_layouts()[benchmark]
        run_with_samples = None
        if layout.shows == "nothing":
            notes.append(f"{benchmark}: without samples. {layout.why}")
        else:
            run_with_samples = _with_samples(results, scores[0].run)
        files += writer.write(scores, run_with_samples)
    return WrittenFiles(files, list(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _RecordWriter:
    """Writes records of one model to ``out``; ``source`` states who evaluated it."""

    schema: _Schema
    out: Path
    model: str
    source: Mapping[str, str]

    def write(
        self, headlines: Sequence[Headline], run_with_samples: ScoredRun | None
    ) -> list[Path]:
        """Write the record of a run's scores on one benchmark, and its samples if there are any."""
        benchmark = headlines[0].benchmark
        run_key = headlines[0].run.public.key
        folder = Path(safe_name(benchmark)) / self.model
        (self.out / folder).mkdir(parents=True, exist_ok=True)
        stem = _record_id(run_key, benchmark, self.model)
        shared = {
            "schema_version": self.schema.version,
            "evaluation_id": f"{benchmark}/{self.model}/{run_key}",
        }
        record = {**shared, **evaluation_record(headlines, self.model, self.source)}
        files: list[Path] = []
        lines: list[str] = []
        if run_with_samples is not None:
            lines = self._sample_lines(headlines, run_with_samples, shared)
        if lines:
            sample_file = folder / f"{stem}_samples.jsonl"
            _write(self.out / sample_file, "".join(lines))
            files.append(self.out / sample_file)
            record["detailed_evaluation_results"] = self._sample_file_facts(sample_file, len(lines))
        record_file = self.out / folder / f"{stem}.json"
        _write(record_file, _checked_json(self.schema.log, record, indent=1))
        return [*files, record_file]

    def _sample_lines(
        self, headlines: Sequence[Headline], run: ScoredRun, shared: Mapping[str, str]
    ) -> list[str]:
        """The lines of a record's samples, each with the fields ``shared`` with the record."""
        lines = []
        for fields in sample_lines(headlines, run):
            line = {**shared, "model_id": self.model, **fields}
            lines.append(_checked_json(self.schema.sample_line, line))
        return lines

    def _sample_file_facts(self, file: Path, rows: int) -> dict[str, Any]:
        """What a record states about its file of samples, which is below ``out``."""
        return {
            "format": "jsonl",
            "file_path": f"data/{file.as_posix()}",
            "hash_algorithm": "sha256",
            "checksum": file_sha256(self.out / file),
            "total_rows": rows,
        }


def _imported_schema() -> _Schema:
    """The models of the package; `UsageError` if it is not installed."""
    try:
        return _Schema(
            log=import_module("every_eval_ever.eval_types").EvaluationLog,
            sample_line=import_module(
                "every_eval_ever.instance_level_types"
            ).InstanceLevelEvaluationLog,
            version=import_module("every_eval_ever.schema").get_schema_version(),
        )
    except ImportError as error:
        raise UsageError(
            f"every_eval_ever cannot be imported ({first_line(error)}); install it: {INSTALL}"
        ) from error


def _run_and_benchmark(headline: Headline) -> tuple[str, str]:
    return headline.run.public.key, headline.benchmark


def _record_id(run_key: str, benchmark: str, model: str) -> str:
    """A UUID of the record, the same whenever it is written."""
    digest = hashlib.sha256(f"{run_key} {benchmark} {model}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def _with_samples(results: Sequence[Path], run: ScoredRun) -> ScoredRun:
    """The run with its samples, read again from its directory."""
    folders = find_everything(results).runs
    own_folder = next(folder for folder in folders if folder.content == run.digest)
    return scored_run(own_folder, whole=True)


def _checked_json(kind: Any, content: Mapping[str, Any], indent: int | None = None) -> str:
    """The content as the package's own model checks and writes it."""
    checked = kind.model_validate(content)
    return str(checked.model_dump_json(exclude_none=True, indent=indent)) + "\n"


def _write(path: Path, text: str) -> None:
    with replaced(path) as partial:
        partial.write_text(text, encoding="utf-8")
