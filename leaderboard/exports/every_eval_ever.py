"""Scores and samples in the schema of Every Eval Ever (https://evalevalai.com), made of its own
package's models.

The package is not among our optional dependencies: its bounds on `rich` contradict ours. Without
its dependencies it works, and its models need only pydantic.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.prompts import template_source
from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import UsageError, first_line
from medtasks.core.files import file_sha256
from medtasks.core.replacement import replaced
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.stats.bootstrap import CONFIDENCE

from ..intake.collect import find_everything
from ..schema.numbers import safe_name
from ..verify.hub_datasets import dataset_of
from ..verify.scored_run import ScoredRun, scored_run
from .publishable import Headline, publishable

INSTALL = "pip install --no-deps every-eval-ever (below Python 3.12 with --ignore-requires-python)"
_BOUNDS = {"fraction": (0.0, 1.0), "points": (0.0, 100.0)}
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


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
    try:
        log = import_module("every_eval_ever.eval_types").EvaluationLog
        line = import_module("every_eval_ever.instance_level_types").InstanceLevelEvaluationLog
        version = import_module("every_eval_ever.schema").get_schema_version()
    except ImportError as error:
        raise UsageError(
            f"every_eval_ever cannot be imported ({first_line(error)}); install it: {INSTALL}"
        ) from error
    if relationship not in RELATIONSHIPS:
        raise UsageError(f"--relationship {relationship}: choose from {', '.join(RELATIONSHIPS)}.")

    def as_json(kind: Any, content: Mapping[str, Any], indent: int | None = None) -> str:
        """The content as the package's own model writes it."""
        return (
            str(kind.model_validate(content).model_dump_json(exclude_none=True, indent=indent))
            + "\n"
        )

    found, notes = publishable(results, model)
    written: list[Path] = []
    for (key, benchmark), group in groupby(
        found, key=lambda one: (one.run.public.key, one.benchmark)
    ):
        members, layout = list(group), all_layouts()[benchmark]
        run, folder = members[0].run, Path(safe_name(benchmark)) / model
        (out / folder).mkdir(parents=True, exist_ok=True)
        stem = str(
            uuid.UUID(
                bytes=hashlib.sha256(f"{key} {benchmark} {model}".encode()).digest()[:16], version=4
            )
        )
        shared = {"schema_version": version, "evaluation_id": f"{benchmark}/{model}/{key}"}
        source = {"source_organization_name": organization, "evaluator_relationship": relationship}
        record = {**shared, **_record(members, model, source)}
        lines: list[str] = []
        if layout.shows == "nothing":
            notes.append(f"{benchmark}: without samples. {layout.why}")
        else:
            stored = next(one for one in find_everything(results).runs if one.content == run.digest)
            rows = _sample_lines(members, scored_run(stored, whole=True))
            lines = [as_json(line, {**shared, "model_id": model, **row}) for row in rows]
        if lines:
            file = folder / f"{stem}_samples.jsonl"
            written.append(out / file)
            _write(written[-1], "".join(lines))
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"data/{file.as_posix()}",
                "hash_algorithm": "sha256",
                "checksum": file_sha256(written[-1]),
                "total_rows": len(lines),
            }
        written.append(out / folder / f"{stem}.json")
        _write(written[-1], as_json(log, record, indent=1))
    return written, list(dict.fromkeys(notes))


def _write(path: Path, text: str) -> None:
    with replaced(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _record(members: Sequence[Headline], model: str, source: Mapping[str, str]) -> dict[str, Any]:
    """The record of a run's headline scores on one benchmark."""
    run = members[0].run
    versions, facts = run.manifest.versions, run.public.model_facts
    return {
        "evaluation_timestamp": run.manifest.created,
        "retrieved_timestamp": str(int(time.time())),
        "source_metadata": {
            "source_name": "medtasks",
            "source_type": "evaluation_run",
            **source,
            "additional_details": {"run": run.public.key, "notes": "; ".join(run.public.notes)},
        },
        "eval_library": {
            "name": "medtasks",
            "version": versions.get("medtasks", "unknown"),
            "additional_details": {
                name: text for name, text in versions.items() if text != "absent"
            },
        },
        "model_info": {
            "name": str(facts.get("name", model)),
            "id": model,
            "developer": model.partition("/")[0],
            "additional_details": dict(facts),
        },
        "evaluation_results": [_result(one) for one in members],
    }


def _result(one: Headline) -> dict[str, Any]:
    """A headline score with its data, metric, judges, interval and generation settings."""
    score, unit, benchmark = one.score, unit_of(one.column.metric), get_benchmark(one.benchmark)
    data = one.run.manifest.data[one.benchmark]
    details = {"fingerprint": data.fingerprint, "records": str(data.records)}
    source: dict[str, Any] = {"dataset_name": benchmark.title, "additional_details": details}
    try:
        dataset, revision = dataset_of(one.benchmark, data.fingerprint)
        source |= {"source_type": "hf_dataset", "hf_repo": dataset, "samples_number": score.samples}
        details |= {} if revision is None else {"revision": revision}
    except UsageError:
        source["source_type"] = "other"
        details["source"] = benchmark.publication.source

    least, most = _BOUNDS.get(unit, ("-Infinity", "Infinity"))
    counts = {
        "items": score.samples,
        "answered": score.answered,
        "judged": score.judged,
        "clusters": one.run.entries[one.column.task].scores.clusters,
        "chance": score.chance,
        "constant": score.constant,
        "constant_answer": score.constant_answer,
    }
    interval = score.interval and {
        "lower": score.interval[0],
        "upper": score.interval[1],
        "confidence_level": CONFIDENCE,
        "method": f"{score.interval_method}, cluster: {benchmark.cluster}",
    }
    settings = next(iter(one.tasks.values())).generation
    tokens = settings.get("max_new_tokens")
    return {
        "evaluation_result_id": one.task_id,
        "evaluation_name": one.column.task,
        "source_data": source,
        "evaluation_timestamp": one.run.manifest.created,
        "metric_config": {
            "evaluation_description": one.column.label,
            "metric_id": one.column.metric,
            "metric_name": one.column.label,
            "metric_unit": "proportion" if unit == "fraction" else unit,
            "lower_is_better": not get_metric(one.column.metric).higher_is_better,
            "score_type": "continuous",
            "min_score": least,
            "max_score": most,
            "llm_scoring": _judging(one),
            "additional_details": {"signature": one.signature},
        },
        "score_details": {
            "score": score.value,
            "details": {name: str(value) for name, value in counts.items() if value is not None},
            "uncertainty": {
                "confidence_interval": interval,
                "num_samples": score.samples,
            },
        },
        "generation_config": {
            "generation_args": {
                "temperature": settings.get("temperature"),
                "top_p": settings.get("top_p"),
                "max_tokens": tokens if isinstance(tokens, int) and tokens > 0 else None,
            },
            "additional_details": {"settings": json.dumps(settings, sort_keys=True)},
        },
    }


def _judging(one: Headline) -> dict[str, Any] | None:
    judged = one.run.manifest.judge.values()
    rubric = next((facts for facts in judged if one.column.metric in facts.rubric.metrics), None)
    if rubric is None or one.score.judged is None:
        return None
    return {
        "judges": [
            {
                "model_info": {
                    "name": name,
                    "id": str(facts.get("model", name)),
                    "additional_details": {},
                },
                "temperature": facts["temperature"]
                if isinstance(facts.get("temperature"), int | float)
                else None,
                "additional_details": {key: json.dumps(value) for key, value in facts.items()},
            }
            for name, facts in rubric.judges.items()
        ],
        "input_prompt": template_source(rubric.rubric.template),
        "aggregation_method": "majority_vote" if rubric.combine == "majority" else "average",
        "additional_details": {"rubric": rubric.rubric.name},
    }


def _sample_lines(members: Sequence[Headline], run: ScoredRun) -> Iterator[dict[str, Any]]:
    """A line for each sample of the run, which has them, and headline score that the sample has a
    value of.
    """
    for one in members:
        full = _BOUNDS.get(unit_of(one.column.metric), (0.0, float("inf")))[1]
        for sample in (sample for task in one.tasks for sample in run.samples[task]):
            if (value := sample.scores.get(one.column.metric)) is None:
                continue
            choices = sample.document.get("choices")
            asked = str(sample.document.get("question") or sample.prompt)
            options = (
                list(map(str, filter(None, choices.values())))
                if isinstance(choices, dict)
                else None
            )
            doubts = run.verification[sample.task].doubts(sample.sample_id)
            read = {"turn_idx": 0, "source": "output.raw", "extracted_value": sample.filtered}
            yield {
                "evaluation_name": one.column.task,
                "evaluation_result_id": one.task_id,
                "sample_id": f"{sample.task}/{sample.sample_id}",
                "sample_hash": hashlib.sha256(f"{asked}{sample.target}".encode()).hexdigest(),
                "interaction_type": "single_turn",
                "input": {
                    "raw": asked,
                    "formatted": sample.prompt,
                    "reference": [sample.target],
                    "choices": options,
                },
                "output": {"raw": list(sample.responses)},
                "answer_attribution": [
                    {**read, "extraction_method": "custom", "is_terminal": True}
                ],
                "evaluation": {"score": value, "is_correct": value >= full * (1 - 1e-9)},
                "metadata": {
                    "task": sample.task,
                    "cluster": sample.cluster,
                    "status": sample.status,
                    **({"unverified": doubts} if doubts else {}),
                },
            }
