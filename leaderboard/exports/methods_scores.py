"""Paragraphs of a methods section about how answers were scored and compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from medtasks.core.text import counted
from medtasks.metrics.registry import facts_of
from medtasks.runs.signature import PROTOCOL_PARTS

from ..schema.board import BoardRun
from ..schema.model_rankings import Ranking
from ..schema.numbers import UNITS, shown
from .methods_source import MethodsSource, ReportedScore
from .prose import Citation, Code, Paragraph, Sentence, enumerated
from .statistics_words import comparison_sentences, interval_sentences

_SOFTWARE = {"lmms-eval": "zhang2024lmmseval"}
"""Packages with a reference, by its key."""
_PARTS_OF_SCORES = ("confidence-of", "timing")
"""Parts of a protocol that only some metrics depend on."""
_PANEL = (
    "The judge hash covers the rubric with its prompt, the models and their settings, and how "
    "verdicts are combined."
)
_UNJUDGED = "Responses without a valid verdict were counted and excluded from the score."
_COMPARABLE = "Scores with equal signatures are comparable."
_HASH = re.compile(r"[0-9a-f]{8,64}")
_JUDGE_HASH = re.compile(r"judge (?P<hash>[0-9a-f]{8,64})")


def scores_paragraph(source: MethodsSource) -> Paragraph:
    """An item for each headline score."""
    items = [_described_score(score) for score in source.scores]
    return Paragraph("Scores", (), tuple(items))


def _described_score(score: ReportedScore) -> Sentence:
    """The score's metric with its reference, its items, and the settings of the metric."""
    metric = score.parts["metric"]
    lead = f"{score.column.label} ({UNITS[score.column.unit]}): "
    pieces: list[str | Code | Citation] = [lead, Code(metric)]
    for key in facts_of(metric).cited:
        pieces += [" ", Citation(key)]
    pieces += [" of ", Code(score.scope)]
    for key, value in score.parts.items():
        if key in _PARTS_OF_SCORES or key not in ("metric", *PROTOCOL_PARTS):
            pieces += [", ", Code(f"{key}:{value}" if value else key)]
    return (*pieces, f"; {_counted_items(score)}.")


def _counted_items(score: ReportedScore) -> str:
    """The number of items, with that of clusters if the score is ranked."""
    ranking = score.ranking
    if ranking is None:
        return counted(max(cell.items for cell in score.cells), "item")
    clusters = f"{counted(ranking.clusters, 'cluster')} (by {ranking.cluster})"
    return f"{counted(ranking.items, 'item')} in {clusters}"


def judging_paragraph(source: MethodsSource) -> Paragraph:
    """The judges and rubrics of the judged scores; empty if no score is judged."""
    judged = [score for score in source.scores if "judge" in score.parts]
    if not judged:
        return Paragraph("Judging", ())
    names: dict[str, None] = {}
    labels: dict[str, None] = {}
    for score in judged:
        labels[score.column.label] = None
        for cell in score.cells:
            if cell.judge:
                names[cell.judge] = None
    panels = source.values("judge")
    hashes = enumerated([(Code(panel),) for panel in panels])
    by_judges = f" by {', '.join(names)}" if names else ""
    lead = f"Open answers were judged{by_judges} (judge "
    sentences: list[Sentence] = [(lead, *hashes, f") for these scores: {'; '.join(labels)}.")]
    for rubric, description in _rubrics(source.runs, panels):
        sentences.append(("Rubric ", Code(rubric), f": {description}."))
    sentences += [(_PANEL,), (_UNJUDGED,)]
    return Paragraph("Judging", tuple(sentences))


def _rubrics(runs: Iterable[BoardRun], panels: Sequence[str]) -> list[tuple[str, str]]:
    """The rubrics of the runs whose judges are in the signatures, with descriptions, each once."""
    hashes = set(_HASH.findall(" ".join(panels)))
    rubrics: dict[tuple[str, str], None] = {}
    for run in runs:
        for rubric, description in run.judges.items():
            judge = _JUDGE_HASH.search(description)
            if judge is not None and judge["hash"] in hashes:
                rubrics[rubric, description] = None
    return list(rubrics)


def statistics_paragraph(source: MethodsSource) -> Paragraph:
    """How intervals were computed and models compared, and the differences that can be detected."""
    rankings = source.benchmark.rankings
    sentences: list[Sentence] = []
    methods: set[str] = set()
    for score in source.scores:
        for cell in score.cells:
            if cell.interval_method is not None:
                methods.add(cell.interval_method)
    if methods:
        clusters = list(dict.fromkeys(ranking.cluster for ranking in rankings))
        sentences += interval_sentences(source.board, clusters, methods)
    compared = [ranking for ranking in rankings if len(ranking.ranked) > 1]
    if compared:
        sentences += comparison_sentences(source.board)
    differences = _detectable_differences(compared)
    if differences:
        lead = "Minimum detectable differences between two models (80 % power at level 0.05): "
        sentences.append((lead, *enumerated(differences), "."))
    return Paragraph("Statistics", tuple(sentences))


def _detectable_differences(rankings: Iterable[Ranking]) -> list[Sentence]:
    """The minimum detectable difference of each ranking that has one."""
    differences: list[Sentence] = []
    for ranking in rankings:
        if ranking.detectable is not None:
            difference = shown(ranking.detectable, ranking.column.unit)
            differences.append((f"{ranking.column.label} {difference}",))
    return differences


def software_paragraph(source: MethodsSource) -> Paragraph:
    """The packages that scored, and those that ran the models, with their versions."""
    board = source.board
    computed = f"Scores, intervals and tests were computed with medtasks {board.medtasks} "
    sentences: list[Sentence] = [(computed, Citation("medtasks"), ".")]
    versions = dict.fromkeys(run.versions.get("medtasks", board.medtasks) for run in source.runs)
    if versions.keys() - {board.medtasks}:
        sentences.append((f"The runs were made with medtasks {', '.join(versions)}.",))
    packages = _other_packages(source.runs)
    if packages:
        sentences.append(("Versions: ", *enumerated(packages), "."))
    return Paragraph("Software", tuple(sentences))


def _other_packages(runs: Iterable[BoardRun]) -> list[Sentence]:
    """The packages of the runs but ours, with all their versions, and a reference if there is
    one.
    """
    versions_of: dict[str, dict[str, None]] = {}
    for run in runs:
        for package, version in run.versions.items():
            if version != "absent" and not package.startswith("medtasks"):
                versions_of.setdefault(package, {})[version] = None
    packages: list[Sentence] = []
    for package, versions in versions_of.items():
        pieces: list[str | Code | Citation] = [f"{package} {', '.join(versions)}"]
        if package in _SOFTWARE:
            pieces += [" ", Citation(_SOFTWARE[package])]
        packages.append(tuple(pieces))
    return packages


def signatures_paragraph(source: MethodsSource) -> Paragraph:
    """An item for each headline score's signature."""
    items = [(f"{score.column.label}: ", Code(score.signature)) for score in source.scores]
    return Paragraph("Signatures", ((_COMPARABLE,),), tuple(items))
