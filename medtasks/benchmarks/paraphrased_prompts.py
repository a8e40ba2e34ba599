"""Questions asked with several paraphrased prompts: their documents, and the scores over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medtasks.benchmarks.variant_answers import (
    has_several_answers,
    selected_option,
    value_for_all,
)
from medtasks.catalog.benchmark import Benchmark, Document
from medtasks.catalog.items import SampleView, Value
from medtasks.catalog.statuses import FAILED
from medtasks.catalog.task_model import prompt_metric
from medtasks.metrics import variants as measures


def why_not_paraphrasable(document: Document) -> str:
    """Why a question cannot be compared under several prompts; empty if it can."""
    if has_several_answers(document):
        return "not_one_answer"
    if "options" in document and not document["options"]:
        return "no_options"
    return ""


def paraphrased_documents(
    templates: Sequence[str], metric: str, document: Document
) -> list[Document]:
    """The question with each of the prompt ``templates``, which are compared by ``metric``."""
    name = document["sample_id"]
    documents = []
    for number, template in enumerate(templates, start=1):
        paraphrase = {
            **document,
            "sample_id": f"{name}~p{number}",
            "prompt_of": name,
            "prompt": number,
            "prompt_template": template,
            "prompts": len(templates),
            "prompt_metric": metric,
            # of the cluster's own name, which stripped runs do not have
            "prompt_half": measures.half_of(document["cluster"]),
        }
        documents.append(paraphrase)
    return documents


def prompt_scores(
    benchmark: Benchmark, samples: Sequence[SampleView], values: Sequence[Mapping[str, Value]]
) -> dict[str, Value]:
    """The scores of `prompt_metrics` of one question.

    ``values`` are the metrics under each prompt, as if the question were asked with it alone.
    """
    document = samples[0].document
    scores = [by_metric[document["prompt_metric"]] for by_metric in values]
    answered = [sample for sample in samples if sample.status != FAILED]
    failed = len(answered) < len(samples)
    over_prompts = _value_over_prompts(scores, document["prompt_half"], failed=failed)
    derived = {
        measures.WORST: over_prompts,
        measures.BEST: over_prompts,
        measures.SPREAD: over_prompts,
        measures.AGREEMENT: Value(statistics=(0.0, 0.0)),
    }
    if benchmark.options or document.get("options"):
        options = {selected_option(benchmark, sample) for sample in answered}
        same_option = len(options) < 2 and None not in options
        derived[measures.AGREEMENT] = value_for_all(same_option, failed=failed)
    for number, score in enumerate(scores, start=1):
        derived[prompt_metric(number)] = score
    return derived


def _value_over_prompts(scores: Sequence[Value], half: int, *, failed: bool) -> Value:
    """The statistics from which the best and worst prompt and the spread are computed."""
    rows = [score.statistics for score in scores if score.statistics is not None]
    if len(rows) < len(scores):
        return Value(failed=failed)
    return Value(statistics=tuple(measures.prompt_statistics(rows, half).tolist()))
