"""Scores and samples in the schema of Every Eval Ever (https://evalevalai.com), made of its own package's models.

The package is not among our optional dependencies: its bounds on `rich` contradict ours. Without its dependencies it
works, and its models need only pydantic.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.prompts import template_source
from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import UsageError, first_line
from medtasks.core.text import first_names
from medtasks.metrics.registry import get_metric
from medtasks.runs.samples import Sample
from medtasks.runs.scoring import RESAMPLES
from medtasks.stats.bootstrap import CONFIDENCE

from ..board.columns import unit_of
from ..board.numbers import safe_name
from ..intake.collect import find_everything
from ..verify.scored_run import ScoredRun, scored_run
from .publishable import Headline, dataset_of, headlines

INSTALL = "pip install --no-deps every-eval-ever (below Python 3.12 with --ignore-requires-python)"
_BOUNDS = {"fraction": (0.0, 1.0), "points": (0.0, 100.0)}
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


def write_records(
    results: Sequence[Path], out: Path, *, model: str, organization: str, relationship: str = "third_party"
) -> tuple[list[Path], list[str]]:
    """Write one record for each run and benchmark to ``out/BENCHMARK/OWNER/NAME/``; return the files, and notes.

    Samples are written beside a record where the benchmark's board layout lets texts be published.

    Args:
        results: result directories of one model, or trees that contain some.
        out: the directory ``data`` of the collection.
        model: the model's name on the hub, owner/name.
        organization: who reports the results.
        relationship: of those who evaluated to the model, one of `RELATIONSHIPS`.

    Raises:
        UsageError: the package is not installed, a name is wrong, or no score may be published.
        DataError: a run cannot be read.
    """
    try:
        kinds = import_module("every_eval_ever.eval_types"), import_module("every_eval_ever.instance_level_types")
    except ImportError as error:
        raise UsageError(f"every_eval_ever cannot be imported ({first_line(error)}); install it: {INSTALL}") from error
    if not all(model.split("/")) or model.count("/") != 1:
        raise UsageError(f"--model {model}: expected owner/name, as on the hub; fix it.")
    if relationship not in RELATIONSHIPS:
        raise UsageError(f"--relationship {relationship}: choose from {', '.join(RELATIONSHIPS)}.")
    found = headlines(results)
    notes = {
        f"not exported: {one.task_id} of {one.run.public.folder} ({one.refused})": None for one in found if one.refused
    }
    records: dict[tuple[str, str], list[Headline]] = {}
    for one in found:
        if not one.refused:
            records.setdefault((one.run.public.key, one.benchmark), []).append(one)
    if not records:
        raise UsageError(f"no score may be published: {first_names(notes, 3, '; ') or 'there is no headline score'}.")
    written: list[Path] = []
    for (key, benchmark), members in records.items():
        record = _Record(*kinds, benchmark, members, model, organization, relationship)
        folder = out / safe_name(benchmark) / model
        folder.mkdir(parents=True, exist_ok=True)
        stem = str(uuid.UUID(bytes=hashlib.sha256(f"{key} {benchmark} {model}".encode()).digest()[:16], version=4))
        layout = all_layouts()[benchmark]
        lines = []
        if layout.shows == "nothing":
            notes[f"{benchmark}: without samples. {layout.why}"] = None
        else:
            content = members[0].run.public.digest
            source = next(one for one in find_everything(results).runs if one.content == content)
            lines = list(record.samples(scored_run(source, whole=True).record.samples))
        if lines:
            text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
            written.append(folder / f"{stem}_samples.jsonl")
            written[-1].write_text(text, encoding="utf-8")
        named = f"data/{safe_name(benchmark)}/{model}/{stem}_samples.jsonl" if lines else ""
        path = folder / f"{stem}.json"
        path.write_text(
            json.dumps(record.aggregate(named, written, len(lines)), indent=1, ensure_ascii=False) + "\n",
            encoding="utf-8",
        )
        written.append(path)
    return written, list(notes)


class _Record:
    """The record of a run's headline scores on one benchmark."""

    def __init__(
        self, types: Any, instances: Any, benchmark: str, members: Sequence[Headline], model: str, organization: str,
        relationship: str,
    ) -> None:  # fmt: skip
        self._types, self._instances = types, instances
        self._benchmark, self._members, self._model = get_benchmark(benchmark), members, model
        self._organization, self._relationship = organization, relationship
        self._run: ScoredRun = members[0].run
        self._manifest = self._run.record.manifest
        self._id = f"{benchmark}/{model}/{self._run.public.key}"
        self._version = import_module("every_eval_ever.schema").get_schema_version()

    def aggregate(self, samples: str, written: Sequence[Path], rows: int) -> dict[str, Any]:
        """The aggregate record; ``samples`` is the path of its samples in the collection, which were written last."""
        types = self._types
        detailed = None
        if samples:
            detailed = types.DetailedEvaluationResults(
                format="jsonl",
                file_path=samples,
                hash_algorithm="sha256",
                checksum=hashlib.sha256(written[-1].read_bytes()).hexdigest(),
                total_rows=rows,
            )
        versions = {name: text for name, text in self._manifest.versions.items() if text != "absent"}
        log = types.EvaluationLog(
            schema_version=self._version,
            evaluation_id=self._id,
            evaluation_timestamp=self._manifest.created,
            retrieved_timestamp=str(int(time.time())),
            source_metadata=types.SourceMetadata(
                source_name="medtasks",
                source_type="evaluation_run",
                source_organization_name=self._organization,
                evaluator_relationship=self._relationship,
                additional_details={"run": self._run.public.key, "notes": "; ".join(self._run.public.notes)},
            ),
            eval_library=types.EvalLibrary(
                name="medtasks", version=self._manifest.versions.get("medtasks", "unknown"), additional_details=versions
            ),
            model_info=types.ModelInfo(
                name=str(self._run.public.model_facts.get("name", self._model)),
                id=self._model,
                developer=self._model.partition("/")[0],
                additional_details=dict(self._run.public.model_facts),
            ),
            evaluation_results=[self._result(one) for one in self._members],
            detailed_evaluation_results=detailed,
        )
        content: dict[str, Any] = log.model_dump(mode="json", exclude_none=True)
        return content

    def _result(self, one: Headline) -> Any:
        types, score, unit = self._types, one.score, unit_of(one.column.metric)
        least, most = _BOUNDS.get(unit, ("-Infinity", "Infinity"))
        interval = None
        if score.interval is not None:
            interval = types.ConfidenceInterval(
                lower=score.interval[0],
                upper=score.interval[1],
                confidence_level=CONFIDENCE,
                method=f"cluster bootstrap, cluster: {self._benchmark.cluster}",
            )
        counts = {
            name: str(value)
            for name, value in (
                ("items", score.samples), ("answered", score.answered), ("judged", score.judged),
                ("clusters", one.run.entries[one.column.task].scores.clusters), ("chance", score.chance),
            )
            if value is not None
        }  # fmt: skip
        return types.EvaluationResult(
            evaluation_result_id=one.task_id,
            evaluation_name=one.column.task,
            source_data=self._source(score.samples),
            evaluation_timestamp=self._manifest.created,
            metric_config=types.MetricConfig(
                evaluation_description=one.column.label,
                metric_id=one.column.metric,
                metric_name=one.column.label,
                metric_unit="proportion" if unit == "fraction" else unit,
                lower_is_better=not get_metric(one.column.metric).higher_is_better,
                score_type="continuous",
                min_score=least,
                max_score=most,
                llm_scoring=self._judging(one),
                additional_details={"signature": one.signature},
            ),
            score_details=types.ScoreDetails(
                score=score.value,
                details=counts,
                uncertainty=types.Uncertainty(
                    confidence_interval=interval, num_samples=score.samples, num_bootstrap_samples=RESAMPLES
                ),
            ),
            generation_config=self._generation(one),
        )

    def _source(self, items: int) -> Any:
        facts = self._manifest.data[self._benchmark.name]
        details = {"fingerprint": facts.fingerprint, "records": str(facts.records)}
        try:
            dataset, revision = dataset_of(self._benchmark.name, facts.fingerprint)
        except UsageError:
            details["source"] = self._benchmark.source
            return self._types.SourceDataPrivate(
                dataset_name=self._benchmark.title, source_type="other", additional_details=details
            )
        return self._types.SourceDataHf(
            dataset_name=self._benchmark.title,
            source_type="hf_dataset",
            hf_repo=dataset,
            samples_number=items,
            additional_details={**details, **({} if revision is None else {"revision": revision})},
        )

    def _judging(self, one: Headline) -> Any:
        judged = self._manifest.judge.values()
        rubric = next((facts for facts in judged if one.column.metric in facts.rubric.metrics), None)
        if rubric is None or one.score.judged is None:
            return None
        return self._types.LlmScoring(
            judges=[self._judge(name, facts) for name, facts in rubric.judges.items()],
            input_prompt=template_source(rubric.rubric.template),
            aggregation_method="majority_vote" if rubric.combine == "majority" else "average",
            additional_details={
                "rubric": rubric.rubric.name,
                "rubric_hash": rubric.rubric_hash,
                "judge_hash": rubric.judge_hash,
            },
        )

    def _judge(self, name: str, facts: dict[str, Any]) -> Any:
        temperature = facts.get("temperature")
        return self._types.JudgeConfig(
            model_info=self._types.ModelInfo(name=name, id=str(facts.get("model", name)), additional_details={}),
            temperature=temperature if isinstance(temperature, int | float) else None,
            additional_details={key: json.dumps(value) for key, value in facts.items()},
        )

    def _generation(self, one: Headline) -> Any:
        tasks = self._manifest.groups.get(one.column.task, (one.column.task,))
        facts = [self._manifest.tasks[name] for name in tasks]
        settings = facts[0].generation
        most = settings.get("max_new_tokens")
        return self._types.GenerationConfig(
            generation_args=self._types.GenerationArgs(
                temperature=settings.get("temperature"),
                top_p=settings.get("top_p"),
                max_tokens=most if isinstance(most, int) and most > 0 else None,
            ),
            additional_details={
                "prompts": ", ".join(sorted({one.prompt_hash for one in facts})),
                "protocols": ", ".join(sorted({one.protocol_hash for one in facts})),
                "settings": json.dumps(settings, sort_keys=True),
            },
        )

    def samples(self, whole: Mapping[str, Sequence[Sample]]) -> Iterator[dict[str, Any]]:
        """A line for each sample, of the run's samples by task, and headline score that the sample has a value of."""
        for one in self._members:
            tasks = self._manifest.groups.get(one.column.task, (one.column.task,))
            for sample in (sample for task in tasks for sample in whole[task]):
                value = sample.scores.get(one.column.metric)
                if value is not None:
                    yield self._sample(one, sample, value)

    def _sample(self, one: Headline, sample: Sample, value: float) -> dict[str, Any]:
        instances = self._instances
        choices = sample.document.get("choices")
        asked = str(sample.document.get("question") or sample.prompt)
        full = _BOUNDS.get(unit_of(one.column.metric), (0.0, float("inf")))[1]
        line = instances.InstanceLevelEvaluationLog(
            schema_version=self._version,
            evaluation_id=self._id,
            model_id=self._model,
            evaluation_name=one.column.task,
            evaluation_result_id=one.task_id,
            sample_id=f"{sample.task}/{sample.sample_id}",
            sample_hash=hashlib.sha256(f"{asked}{sample.target}".encode()).hexdigest(),
            interaction_type="single_turn",
            input=instances.Input(
                raw=asked,
                formatted=sample.prompt,
                reference=[sample.target],
                choices=list(map(str, filter(None, choices.values()))) if isinstance(choices, dict) else None,
            ),
            output=instances.Output(raw=list(sample.responses)),
            answer_attribution=[
                instances.AnswerAttributionItem(
                    turn_idx=0,
                    source="output.raw",
                    extracted_value=sample.filtered,
                    extraction_method="custom",
                    is_terminal=True,
                )
            ],
            evaluation=instances.Evaluation(score=value, is_correct=value >= full * (1 - 1e-9)),
            metadata={"task": sample.task, "cluster": sample.cluster, "status": sample.status},
        )
        content: dict[str, Any] = line.model_dump(mode="json", exclude_none=True)
        return content
