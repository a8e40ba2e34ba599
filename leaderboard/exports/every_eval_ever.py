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
) -> tuple[list[Path], list[str]]:
    """Write one record for each run and benchmark to ``out/BENCHMARK/OWNER/NAME/``; return the
    files, and notes.

    Samples are written beside a record where the benchmark's board layout lets texts be published.

    Args:
        results: result directories of one model, or trees that contain some.
        out: the directory ``data`` of the collection.
        model: the model's name on the hub, owner/name.
        organization: who reports the results.
        relationship: of those who evaluated to the model, one of `RELATIONSHIPS`.
    """
    schema = _imported_schema()
    if relationship not in RELATIONSHIPS:
        raise UsageError(f"--relationship {relationship}: choose from {', '.join(RELATIONSHIPS)}.")
    source = {"source_organization_name": organization, "evaluator_relationship": relationship}
    headlines, notes = publishable(results, model)
    written: list[Path] = []
    for (key, benchmark), group in groupby(headlines, key=_run_and_benchmark):
        members = list(group)
        folder = Path(safe_name(benchmark)) / model
        (out / folder).mkdir(parents=True, exist_ok=True)
        stem = _record_id(key, benchmark, model)
        shared = {
            "schema_version": schema.version,
            "evaluation_id": f"{benchmark}/{model}/{key}",
        }
        record = {**shared, **evaluation_record(members, model, source)}
        lines: list[str] = []
        layout = all_layouts()[benchmark]
        if layout.shows == "nothing":
            notes.append(f"{benchmark}: without samples. {layout.why}")
        else:
            run = _with_samples(results, members[0].run)
            lines = _sample_lines(schema, members, run, {**shared, "model_id": model})
        if lines:
            file = folder / f"{stem}_samples.jsonl"
            _write(out / file, "".join(lines))
            written.append(out / file)
            record["detailed_evaluation_results"] = _sample_file_facts(out, file, len(lines))
        file = folder / f"{stem}.json"
        _write(out / file, _checked_json(schema.log, record, indent=1))
        written.append(out / file)
    return written, list(dict.fromkeys(notes))


def _sample_lines(
    schema: _Schema, headlines: Sequence[Headline], run: ScoredRun, shared: Mapping[str, str]
) -> list[str]:
    """The lines of a record's samples, each with the fields ``shared``."""
    lines = []
    for fields in sample_lines(headlines, run):
        lines.append(_checked_json(schema.sample_line, {**shared, **fields}))
    return lines


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
    folder = next(
        folder for folder in find_everything(results).runs if folder.content == run.digest
    )
    return scored_run(folder, whole=True)


def _sample_file_facts(out: Path, file: Path, rows: int) -> dict[str, Any]:
    """What a record states about its file of samples."""
    return {
        "format": "jsonl",
        "file_path": f"data/{file.as_posix()}",
        "hash_algorithm": "sha256",
        "checksum": file_sha256(out / file),
        "total_rows": rows,
    }


def _checked_json(kind: Any, content: Mapping[str, Any], indent: int | None = None) -> str:
    """The content as the package's own model checks and writes it."""
    checked = kind.model_validate(content)
    return str(checked.model_dump_json(exclude_none=True, indent=indent)) + "\n"


def _write(path: Path, text: str) -> None:
    with replaced(path) as partial:
        partial.write_text(text, encoding="utf-8")
