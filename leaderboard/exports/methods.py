"""How a benchmark's headline scores were made: the methods section of a paper, and its references.

Everything is read from the board: signatures (`medtasks.runs.signature`), and the facts of the runs
in the headline table. The section names every part of every signature, so that a reader can tell
what would have to be equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from medtasks.core.text import counted
from medtasks.metrics.registry import facts_of
from medtasks.runs.samples import UNKNOWN_PROMPT
from medtasks.runs.signature import PROTOCOL_PARTS

from ..schema.board import BenchmarkBoard, Board, BoardRun
from ..schema.numbers import UNITS, shown, shown_name
from .methods_source import MethodsSource, ReportedScore
from .prose import Citation, Code, Paragraph, Sentence, as_latex, as_markdown, citations, enumerated
from .references import own_entry, paper_entry, paper_key, shipped_entries
from .statistics_words import comparison_sentences, interval_sentences

_SOFTWARE = {"lmms-eval": "zhang2024lmmseval"}
_SETTINGS = {
    "temperature": "temperature {}",
    "max_new_tokens": "at most {} new tokens",
    "step": "a step of {}",
}
"""Settings in words; others are named as they are."""
_ORDER = {key: place for place, key in enumerate(_SETTINGS)}
_OF_SCORES = ("confidence-of", "timing")
"""Parts of a protocol that only some metrics depend on."""
_PROTOCOL = (
    "A prompt's hash covers its templates; a protocol's also the task file, answer options, metrics, "
    "generation settings, frames, and how the back-end presents the prompt."
)
_PROTOCOL_WORDS = {"version": "task version", "prompt": "prompt", "protocol": "protocol"}
_PANEL = "A judge's hash covers the rubric with its prompt, the models and their settings, and how verdicts are combined."
_RULES = "Answers were extracted from responses by fixed rules, the same for every model (filter=version): "
_COMPARABLE = "Scores with equal signatures are comparable."
_JUDGE_HASH = re.compile(r"judge (?P<hash>[0-9a-f]{8,64})")


def methods_of(board: Board, benchmark: BenchmarkBoard) -> list[Paragraph]:
    """The paragraphs of the methods section; one sentence if the headline table has no score."""
    source = MethodsSource.of(board, benchmark)
    if not source.scores:
        return [Paragraph("Methods", (("No comparable run has a headline score.",),))]
    paragraphs = [
        _data(source),
        _prompts(source),
        _decoding(source),
        _extraction(source),
        _scores(source),
        _judging(source),
        _statistics(source),
        _software(source),
        _signatures(source),
    ]
    return [paragraph for paragraph in paragraphs if paragraph.sentences or paragraph.items]


def methods_markdown(board: Board, benchmark: BenchmarkBoard) -> str:
    """The methods section in Markdown, with citations as Pandoc reads them."""
    return as_markdown(f"Methods: {benchmark.title}", methods_of(board, benchmark))


def methods_latex(board: Board, benchmark: BenchmarkBoard) -> str:
    """The methods section in LaTeX; it needs no package."""
    return as_latex(f"Methods: {benchmark.title}", methods_of(board, benchmark))


def references_of(board: Board, benchmark: BenchmarkBoard) -> str:
    """The BibTeX entries that the methods section cites, in the order of their mention."""
    known = shipped_entries()
    known[paper_key(benchmark)] = paper_entry(benchmark)
    known["medtasks"] = own_entry(board)
    return "\n\n".join(known[key] for key in citations(methods_of(board, benchmark))) + "\n"


# --- the paragraphs ---


def _data(source: MethodsSource) -> Paragraph:
    benchmark = source.benchmark
    sentences: list[Sentence] = []
    if source.board.demonstration:
        sentences.append(("Miniature data: a demonstration, not a benchmark result.",))
    origin = f" ({benchmark.source}; licence: {benchmark.licence})."
    evaluated = f"Models were evaluated on {benchmark.title} "
    sentences.append((evaluated, Citation(paper_key(benchmark)), origin))
    fingerprints = [(Code(fingerprint),) for fingerprint in source.values("data")]
    if fingerprints:
        lead = "The prepared data have the fingerprint "
        sentences.append((lead, *enumerated(fingerprints), "."))
    samples = [_named_samples(scope, score) for scope, score in source.scopes.items()]
    sentences.append(("Samples: ", *enumerated(samples), "."))
    for subset in source.values("subset"):
        lead = "Only a random subset of the clusters was asked: "
        sentences.append((lead, Code(subset), " (share@seed)."))
    return Paragraph("Data", tuple(sentences))


def _named_samples(scope: str, score: ReportedScore) -> Sentence:
    items = score.parts.get("items")
    if items is None:
        return (Code(scope), f" {counted(score.cells[0].items, 'item')}")
    number = items.partition("-")[0]
    return (Code(scope), f" {number} (", Code(items), ")")


def _prompts(source: MethodsSource) -> Paragraph:
    version = source.board.medtasks
    sentences: list[Sentence] = [
        (f"Prompts, media and their order are those of the task files of medtasks {version}.",)
    ]
    protocols = [_named_protocol(scope, score) for scope, score in source.scopes.items()]
    named = [protocol for protocol in protocols if protocol]
    if named:
        sentences.append((*enumerated(named), "."))
        sentences.append((_PROTOCOL,))
    if any(value.startswith(UNKNOWN_PROMPT) for value in source.values("prompt")):
        sentences.append(("Predictions were made with other tools, so their prompts are unknown.",))
    if source.values("blind"):
        sentences.append(("Prompts were sent without media (blind: yes).",))
    for options in source.values("harness"):
        sentences.append(("Options of the harness change the prompts (", Code(options), ")."))
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


def _decoding(source: MethodsSource) -> Paragraph:
    sentences: list[Sentence] = []
    by_settings = source.by_value(lambda run: run.generation)
    for settings, tasks in by_settings.items():
        lead = "Responses were generated with "
        if len(by_settings) > 1:
            named = f"{counted(len(tasks), 'task')} ({', '.join(tasks)})"
            lead = f"Responses in {named} were generated with "
        sentences.append((lead, *_settings_words(settings), "."))
    models = []
    for run in source.runs:
        described = []
        if back_end := run.model_facts.get("model"):
            described.append(f"back-end {back_end}")
        for key, value in run.model_facts.items():
            if key not in ("name", "model"):
                described.append(f"{key} {value}")
        lead = f"{shown_name(source.board, run.model)}: {', '.join(described)}; run "
        models.append((lead, Code(run.key), f" of {run.created[:10]}."))
    return Paragraph("Models and decoding", tuple(sentences), tuple(models))


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
    return enumerated(words) or ("the back-end's own settings",)


def _extraction(source: MethodsSource) -> Paragraph:
    sentences: list[Sentence] = []
    by_filters = source.by_value(lambda run: run.filters)
    names = [*by_filters] or source.values("filters")
    rules = [(Code(name or "none"),) for name in names]
    if rules:
        sentences.append((_RULES, *enumerated(rules), "."))
    for scope, score in source.scopes.items():
        combined = score.parts.get("filters")
        if combined is not None and combined not in by_filters:
            together = (" together have the hash ", Code(combined), ".")
            sentences.append(("The filters of ", Code(scope), *together))
    return Paragraph("Answer extraction", tuple(sentences))


def _scores(source: MethodsSource) -> Paragraph:
    items: list[Sentence] = []
    for score in source.scores:
        metric = score.parts["metric"]
        lead = f"{score.column.label} ({UNITS[score.column.unit]}): "
        sentence: list[str | Code | Citation] = [lead, Code(metric)]
        for key in facts_of(metric).cited:
            sentence += [" ", Citation(key)]
        sentence += [" of ", Code(score.scope)]
        for key, value in score.parts.items():
            if key in _OF_SCORES or key not in ("metric", *PROTOCOL_PARTS):
                sentence += [", ", Code(f"{key}:{value}" if value else key)]
        items.append((*sentence, f"; {_counted_items(score)}."))
    return Paragraph("Scores", (), tuple(items))


def _counted_items(score: ReportedScore) -> str:
    ranking = score.ranking
    if ranking is None:
        return counted(max(cell.items for cell in score.cells), "item")
    clusters = f"{counted(ranking.clusters, 'cluster')} (by {ranking.cluster})"
    return f"{counted(ranking.items, 'item')} in {clusters}"


def _judging(source: MethodsSource) -> Paragraph:
    judged = [score for score in source.scores if "judge" in score.parts]
    if not judged:
        return Paragraph("Judging", ())
    sentences: list[Sentence] = []
    panels = source.values("judge")
    names = dict.fromkeys(cell.judge for score in judged for cell in score.cells if cell.judge)
    labels = "; ".join(dict.fromkeys(score.column.label for score in judged))
    by = f" by {', '.join(names)}" if names else ""
    hashes = enumerated([(Code(panel),) for panel in panels])
    lead = f"Open answers were judged{by} (judge "
    sentences.append((lead, *hashes, f"), for the scores {labels}."))
    for rubric, stated in _rubrics(source.runs, panels):
        sentences.append(("Rubric ", Code(rubric), f": {stated}."))
    sentences.append((_PANEL,))
    sentences.append(("Responses without a valid verdict are left out of the score, and counted.",))
    return Paragraph("Judging", tuple(sentences))


def _rubrics(runs: Iterable[BoardRun], panels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The rubrics of the runs whose judges are in the signatures, each once."""
    wanted = set(re.findall(r"[0-9a-f]{8,64}", " ".join(panels)))
    known: dict[tuple[str, str], None] = {}
    for run in runs:
        for rubric, stated in run.judges.items():
            judge = _JUDGE_HASH.search(stated)
            if judge is not None and judge["hash"] in wanted:
                known[rubric, stated] = None
    yield from known


def _statistics(source: MethodsSource) -> Paragraph:
    sentences: list[Sentence] = []
    clusters = [*dict.fromkeys(ranking.cluster for ranking in source.benchmark.rankings)]
    cells = [cell for score in source.scores for cell in score.cells]
    methods = {cell.interval_method for cell in cells if cell.interval_method is not None}
    if methods:
        sentences += interval_sentences(source.board, clusters, methods)
    compared = [ranking for ranking in source.benchmark.rankings if len(ranking.ranked) > 1]
    if compared:
        sentences += comparison_sentences(source.board)
        smallest = [
            (f"{ranking.column.label} {shown(ranking.detectable, ranking.column.unit)}",)
            for ranking in compared
            if ranking.detectable is not None
        ]
        if smallest:
            lead = "Minimum detectable differences between two models (80 % power at level 0.05): "
            sentences.append((lead, *enumerated(smallest), "."))
    return Paragraph("Statistics", tuple(sentences))


def _software(source: MethodsSource) -> Paragraph:
    board = source.board
    packages: dict[str, dict[str, None]] = {}
    for run in source.runs:
        for package, version in run.versions.items():
            if version != "absent" and not package.startswith("medtasks"):
                packages.setdefault(package, {})[version] = None
    computed = f"Scores, intervals and tests were computed with medtasks {board.medtasks} "
    sentences: list[Sentence] = [(computed, Citation("medtasks"), ".")]
    ran = dict.fromkeys(run.versions.get("medtasks", board.medtasks) for run in source.runs)
    if {*ran} - {board.medtasks}:
        sentences.append((f"The runs were made with medtasks {', '.join(ran)}.",))
    named: list[Sentence] = []
    for package, versions in packages.items():
        cited = (" ", Citation(_SOFTWARE[package])) if package in _SOFTWARE else ()
        named.append((f"{package} {', '.join(versions)}", *cited))
    if named:
        sentences.append(("Versions: ", *enumerated(named), "."))
    return Paragraph("Software", tuple(sentences))


def _signatures(source: MethodsSource) -> Paragraph:
    items = [(f"{score.column.label}: ", Code(score.signature)) for score in source.scores]
    return Paragraph("Signatures", ((_COMPARABLE,),), tuple(items))
