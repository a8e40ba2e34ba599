"""Paragraphs of a methods section about what models were asked, and how answers were read."""

from __future__ import annotations

import json
from collections.abc import Iterable

from medtasks.core.text import counted
from medtasks.runs.samples import UNKNOWN_PROMPT

from ..schema.board import BoardRun
from ..schema.numbers import shown_name
from .methods_source import MethodsSource, ReportedScore
from .prose import Citation, Code, Paragraph, Sentence, enumerated
from .references import paper_key

_SETTINGS = {
    "temperature": "temperature {}",
    "max_new_tokens": "at most {} new tokens",
    "step": "a step of {}",
}
"""Settings in words; others are named as they are."""
_ORDER = {key: place for place, key in enumerate(_SETTINGS)}
_PROTOCOL_WORDS = {"version": "task version", "prompt": "prompt", "protocol": "protocol"}
_HASHES = (
    "The prompt hash covers the templates. The protocol hash also covers the task file, answer "
    "options, metrics, generation settings, frames, and the back-end's presentation of the prompt."
)
_RULES = (
    "Answers were extracted from the responses by fixed rules, which are the same for every model "
    "(filter=version): "
)


def data_paragraph(source: MethodsSource) -> Paragraph:
    """The benchmark with its paper, source and licence, the prepared data, and the samples."""
    benchmark = source.benchmark
    sentences: list[Sentence] = []
    if source.board.demonstration:
        sentences.append(("Miniature data: a demonstration, not a benchmark result.",))
    origin = f" ({benchmark.source}; licence: {benchmark.licence})."
    evaluated = f"Models were evaluated on {benchmark.title} "
    sentences.append((evaluated, Citation(paper_key(benchmark)), origin))
    fingerprints = source.values("data")
    if fingerprints:
        lead = "The fingerprint of the prepared data is "
        sentences.append((lead, *_enumerated_codes(fingerprints), "."))
    samples = [_named_samples(scope, score) for scope, score in source.scopes.items()]
    sentences.append(("Samples: ", *enumerated(samples), "."))
    for subset in source.values("subset"):
        lead = "Only a random subset of the clusters was used: "
        sentences.append((lead, Code(subset), " (share@seed)."))
    return Paragraph("Data", tuple(sentences))


def _named_samples(scope: str, score: ReportedScore) -> Sentence:
    """A task or group with the number of its samples, and their hash if the signature has it."""
    items = score.parts.get("items")
    if items is None:
        return (Code(scope), f" {counted(score.cells[0].items, 'item')}")
    number = items.partition("-")[0]
    return (Code(scope), f" {number} (", Code(items), ")")


def prompts_paragraph(source: MethodsSource) -> Paragraph:
    """Where prompts come from, their hashes, and everything that changed them."""
    version = source.board.medtasks
    sentences: list[Sentence] = [
        (f"Prompts, media and their order follow the task files of medtasks {version}.",)
    ]
    protocols = [_named_protocol(scope, score) for scope, score in source.scopes.items()]
    with_hashes = [protocol for protocol in protocols if protocol]
    if with_hashes:
        sentences.append((*enumerated(with_hashes), "."))
        sentences.append((_HASHES,))
    if any(value.startswith(UNKNOWN_PROMPT) for value in source.values("prompt")):
        sentences.append(
            ("The predictions were made with other tools, so their prompts are unknown.",)
        )
    if source.values("blind"):
        sentences.append(("Prompts were sent without media (blind: yes).",))
    for pace in source.values("pace"):
        sentences.append(("Rounds of streams were sent when they were due (", Code(pace), ")."))
    for options in source.values("harness"):
        sentences.append(
            ("The prompts were changed by options of the harness (", Code(options), ").")
        )
    for frames, tasks in source.by_value(lambda run: run.frames).items():
        windows = "windows, in seconds or in indices of an image sequence, with "
        lead = f"Frames ({counted(len(tasks), 'task')}) were sampled from {windows}"
        sentences.append((lead, *_settings_words(frames), "."))
    for presentation, tasks in source.by_value(lambda run: run.presentation).items():
        lead = f"A back-end changed the prompts of {counted(len(tasks), 'task')}: "
        sentences.append((lead, *_settings_words(presentation), "."))
    return Paragraph("Prompts", tuple(sentences))


def _named_protocol(scope: str, score: ReportedScore) -> Sentence:
    """Version, prompt and protocol of a task or group, as far as the signature has them."""
    stated: list[str | Code | Citation] = []
    for part, label in _PROTOCOL_WORDS.items():
        value = score.parts.get(part)
        if value is not None:
            stated += [", " if stated else "", f"{label} ", Code(value)]
    return (Code(scope), " (", *stated, ")") if stated else ()


def decoding_paragraph(source: MethodsSource) -> Paragraph:
    """How responses were generated, and an item for each model's run."""
    sentences: list[Sentence] = []
    by_settings = source.by_value(lambda run: run.generation)
    for settings, tasks in by_settings.items():
        lead = "Responses were generated with "
        if len(by_settings) > 1:
            named = f"{counted(len(tasks), 'task')} ({', '.join(tasks)})"
            lead = f"Responses in {named} were generated with "
        sentences.append((lead, *_settings_words(settings), "."))
    models = [_described_run(source, run) for run in source.runs]
    return Paragraph("Models and decoding", tuple(sentences), tuple(models))


def _described_run(source: MethodsSource, run: BoardRun) -> Sentence:
    """The run's model with its back-end and settings, and the run's key and date."""
    facts = []
    back_end = run.model_facts.get("model")
    if back_end:
        facts.append(f"back-end {back_end}")
    for key, value in run.model_facts.items():
        if key not in ("name", "model"):
            facts.append(f"{key} {value}")
    trained_on = run.trained_on.get(source.benchmark.name)
    if trained_on is not None:
        facts.append(trained_on)
    lead = f"{shown_name(source.board, run.model)}: {', '.join(facts)}; run "
    return (lead, Code(run.key), f" of {run.created[:10]}.")


def _settings_words(settings: str) -> Sentence:
    """Settings, which are JSON, in words, without those that are not set."""
    try:
        values = json.loads(settings)
    except ValueError:
        return (Code(settings),)
    if not isinstance(values, dict):
        return (Code(settings),)
    words: list[Sentence] = []
    for key in sorted(values, key=lambda name: (_ORDER.get(name, len(_ORDER)), name)):
        value = values[key]
        if value in (None, [], ""):
            continue
        if key not in _SETTINGS:
            words.append((Code(f"{key}={value}"),))
            continue
        number = f"{value:,}" if isinstance(value, int) else str(value)
        words.append((_SETTINGS[key].format(number),))
    return enumerated(words) or ("the default settings of the back-end",)


def extraction_paragraph(source: MethodsSource) -> Paragraph:
    """The filters with their versions, and the hashes of several filters together."""
    sentences: list[Sentence] = []
    by_filters = source.by_value(lambda run: run.filters)
    filters = [*by_filters] or source.values("filters")
    if filters:
        names = [name or "none" for name in filters]
        sentences.append((_RULES, *_enumerated_codes(names), "."))
    for scope, score in source.scopes.items():
        combined = score.parts.get("filters")
        if combined is not None and combined not in by_filters:
            together = (" together have the hash ", Code(combined), ".")
            sentences.append(("The filters of ", Code(scope), *together))
    return Paragraph("Answer extraction", tuple(sentences))


def _enumerated_codes(names: Iterable[str]) -> Sentence:
    """The names in typewriter type, as a list in a sentence."""
    return enumerated([(Code(name),) for name in names])
