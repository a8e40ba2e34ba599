"""Records of Every Eval Ever as plain data: a run's headline scores, and its samples."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medtasks.catalog.prompts import template_source
from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import UsageError
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.runs.samples import Sample
from medtasks.stats.bootstrap import CONFIDENCE

from ..verify.hub_datasets import dataset_of
from ..verify.scored_run import ScoredRun
from .publishable import Headline

_BOUNDS = {"fraction": (0.0, 1.0), "points": (0.0, 100.0)}


def evaluation_record(
    members: Sequence[Headline], model: str, source: Mapping[str, str]
) -> dict[str, Any]:
    """The record of a run's headline scores on one benchmark.

    Args:
        members: the scores, all of one run.
        model: the model's name on the hub, owner/name.
        source: fields of ``source_metadata``: who evaluated.
    """
    run = members[0].run
    facts = run.public.model_facts
    versions = run.manifest.versions
    installed = {name: text for name, text in versions.items() if text != "absent"}
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
            "additional_details": installed,
        },
        "model_info": {
            "name": str(facts.get("name", model)),
            "id": model,
            "developer": model.partition("/")[0],
            "additional_details": dict(facts),
        },
        "evaluation_results": [_result(headline) for headline in members],
    }


def _result(headline: Headline) -> dict[str, Any]:
    """A headline score with its data, metric, judges, interval and generation settings."""
    return {
        "evaluation_result_id": headline.task_id,
        "evaluation_name": headline.column.task,
        "source_data": _source_data(headline),
        "evaluation_timestamp": headline.run.manifest.created,
        "metric_config": _metric_config(headline),
        "score_details": _score_details(headline),
        "generation_config": _generation_config(headline),
    }


def _source_data(headline: Headline) -> dict[str, Any]:
    """The prepared data, with their dataset on the hub if there is one."""
    benchmark = get_benchmark(headline.benchmark)
    data = headline.run.manifest.data[headline.benchmark]
    details = {"fingerprint": data.fingerprint, "records": str(data.records)}
    source: dict[str, Any] = {"dataset_name": benchmark.title, "additional_details": details}
    try:
        dataset, revision = dataset_of(headline.benchmark, data.fingerprint)
    except UsageError:
        source["source_type"] = "other"
        details["source"] = benchmark.publication.source
        return source
    source["source_type"] = "hf_dataset"
    source["hf_repo"] = dataset
    source["samples_number"] = headline.score.samples
    if revision is not None:
        details["revision"] = revision
    return source


def _metric_config(headline: Headline) -> dict[str, Any]:
    """The score's metric, with its unit, bounds and judges."""
    column = headline.column
    unit = unit_of(column.metric)
    least, most = _BOUNDS.get(unit, ("-Infinity", "Infinity"))
    return {
        "evaluation_description": column.label,
        "metric_id": column.metric,
        "metric_name": column.label,
        "metric_unit": "proportion" if unit == "fraction" else unit,
        "lower_is_better": not get_metric(column.metric).higher_is_better,
        "score_type": "continuous",
        "min_score": least,
        "max_score": most,
        "llm_scoring": _judging(headline),
        "additional_details": {"signature": headline.signature},
    }


def _score_details(headline: Headline) -> dict[str, Any]:
    """The score with its interval, its floors, and the numbers of items and clusters."""
    score = headline.score
    details = {
        "items": score.samples,
        "answered": score.answered,
        "judged": score.judged,
        "clusters": headline.run.entries[headline.column.task].scores.clusters,
        "chance": score.chance,
        "constant": score.constant,
        "constant_answer": score.constant_answer,
    }
    interval = None
    if score.interval:
        cluster = get_benchmark(headline.benchmark).cluster
        interval = {
            "lower": score.interval[0],
            "upper": score.interval[1],
            "confidence_level": CONFIDENCE,
            "method": f"{score.interval_method}, cluster: {cluster}",
        }
    return {
        "score": score.value,
        "details": {name: str(value) for name, value in details.items() if value is not None},
        "uncertainty": {"confidence_interval": interval, "num_samples": score.samples},
    }


def _generation_config(headline: Headline) -> dict[str, Any]:
    """The generation settings of the score's first task."""
    first_task = next(iter(headline.tasks.values()))
    settings = first_task.generation
    tokens = settings.get("max_new_tokens")
    has_limit = isinstance(tokens, int) and tokens > 0
    return {
        "generation_args": {
            "temperature": settings.get("temperature"),
            "top_p": settings.get("top_p"),
            "max_tokens": tokens if has_limit else None,
        },
        "additional_details": {"settings": json.dumps(settings, sort_keys=True)},
    }


def _judging(headline: Headline) -> dict[str, Any] | None:
    """The judges of a judged score; None for other scores."""
    if headline.score.judged is None:
        return None
    metric = headline.column.metric
    for judging in headline.run.manifest.judge.values():
        if metric in judging.rubric.metrics:
            judges = [_judge(name, facts) for name, facts in judging.judges.items()]
            by_majority = judging.combine == "majority"
            return {
                "judges": judges,
                "input_prompt": template_source(judging.rubric.template),
                "aggregation_method": "majority_vote" if by_majority else "average",
                "additional_details": {"rubric": judging.rubric.name},
            }
    return None


def _judge(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A judge with its settings."""
    temperature = facts.get("temperature")
    return {
        "model_info": {
            "name": name,
            "id": str(facts.get("model", name)),
            "additional_details": {},
        },
        "temperature": temperature if isinstance(temperature, int | float) else None,
        "additional_details": {key: json.dumps(value) for key, value in facts.items()},
    }


def sample_lines(members: Sequence[Headline], run: ScoredRun) -> Iterator[dict[str, Any]]:
    """A line for each headline score, and sample with a value of it; ``run`` has the samples."""
    for headline in members:
        _, full = _BOUNDS.get(unit_of(headline.column.metric), (0.0, float("inf")))
        for task in headline.tasks:
            for sample in run.samples[task]:
                value = sample.scores.get(headline.column.metric)
                if value is not None:
                    doubts = run.verification[sample.task].doubts(sample.sample_id)
                    yield _sample_line(headline, sample, value, full, doubts)


def _sample_line(
    headline: Headline, sample: Sample, value: float, full: float, doubts: str
) -> dict[str, Any]:
    """The line of a sample's ``value``, of which ``full`` would be the best one."""
    choices = sample.document.get("choices")
    options = None
    if isinstance(choices, dict):
        options = [str(text) for text in choices.values() if text]
    question = str(sample.document.get("question") or sample.prompt)
    metadata = {"task": sample.task, "cluster": sample.cluster, "status": sample.status}
    if doubts:
        metadata["unverified"] = doubts
    return {
        "evaluation_name": headline.column.task,
        "evaluation_result_id": headline.task_id,
        "sample_id": f"{sample.task}/{sample.sample_id}",
        "sample_hash": hashlib.sha256(f"{question}{sample.target}".encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {
            "raw": question,
            "formatted": sample.prompt,
            "reference": [sample.target],
            "choices": options,
        },
        "output": {"raw": list(sample.responses)},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": sample.filtered,
                "extraction_method": "custom",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": value, "is_correct": value >= full * (1 - 1e-9)},
        "metadata": metadata,
    }
