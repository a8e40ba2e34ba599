"""The board of one benchmark: its layout, filled with scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.board_layout import BoardLayout
from medtasks.catalog.registry import benchmark_owner, get_benchmark
from medtasks.catalog.spec import leaf_tasks
from medtasks.judge.corrected_scores import CorrectedRun

from ..rank.comparability import ComparabilityGroups
from ..schema.board import BenchmarkBoard, BoardModel
from ..schema.model_rankings import Ranking
from ..schema.score_tables import BoardColumn
from ..verify.scored_run import ScoredRun
from .column_ranking import column_ranking
from .columns import board_columns
from .confidences import confidence_section
from .corrected import corrected_tables
from .costs import cost_section
from .latencies import latency_section
from .layout_section import layout_section
from .media_gain import media_gain
from .model_traits import trait_section
from .paper_files import PaperFiles, read_paper_files
from .prompt_ranks import prompt_section
from .sensitivity import WrongGolds, wrong_gold_tables
from .table_source import TableSource
from .training_notes import with_training_note
from .usage import Prices


def benchmark_board(
    layout: BoardLayout,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    models: Mapping[str, BoardModel],
    prices: Prices,
    *,
    published: bool,
    corrected: Mapping[str, CorrectedRun],
    wrong_golds: WrongGolds = (),
    gold_notes: Sequence[str] = (),
) -> BenchmarkBoard:
    """A benchmark's layout, filled with scores.

    What neither a run nor, if ``published``, a paper fills is left out. ``corrected`` are the
    scores that people's labels correct, by the digest of the run. With ``wrong_golds``, a table
    shows the headline scores without these questions; ``gold_notes`` say which verdicts on gold
    answers are not used.
    """
    benchmark = get_benchmark(layout.benchmark)
    papers = read_paper_files(benchmark, with_figures=published)
    headline = board_columns(layout.headline, runs, groups)
    rankings = _rankings(headline, groups)
    source = TableSource(runs, groups, _model_ranks(rankings))

    section = layout_section(layout, source, papers.reference)
    columns = list(chain.from_iterable(table.columns for table in section.tables))
    gains = media_gain(benchmark, headline, columns, groups)
    prompts = prompt_section(columns, partial(column_ranking, groups))
    confidences = confidence_section(headline, source)
    by_people = corrected_tables(headline, columns, groups, corrected, models)
    sensitivity = wrong_gold_tables(headline, groups, wrong_golds, gold_notes)
    tables = (*section.tables, *gains.tables, *prompts.tables, *confidences.tables)
    plots = (*section.plots, *gains.plots, *confidences.plots)
    costs = cost_section(headline, section.headline_rows, groups, prices, plots)
    latencies = latency_section(headline, section.headline_rows, groups, models, plots)
    traits = trait_section(tables, section.figures, models)
    tables = tuple(with_training_note(table, benchmark.name, models) for table in tables)
    headline_table, *further_tables = tables
    return BenchmarkBoard(
        **_description(benchmark, layout),
        **_paper_fields(papers),
        members={column.task: leaf_tasks(column.task) for column in headline},
        rankings=tuple(rankings),
        tables=(headline_table, *by_people, *further_tables, *sensitivity, *latencies.tables),
        plots=(*plots, *latencies.plots, *costs.plots),
        letters=section.answers.letters,
        reliability=tuple(confidences.reliability),
        timelines=section.answers.timelines,
        usage=tuple(costs.usage),
        text_only=gains.text_only,
        prompt_order=prompts.order,
        published=section.figures,
        size_correlations=traits.size_correlations,
        type_means=traits.type_means,
    )


def _paper_fields(papers: PaperFiles) -> dict[str, Any]:
    """The fields of a board that its paper fills, apart from the figures."""
    return {
        "bibtex": papers.bibtex,
        "published_notes": papers.reference.notes,
        "published_gaps": papers.reference.gaps,
        "published_problem": papers.problem,
    }


def _description(benchmark: Benchmark, layout: BoardLayout) -> dict[str, Any]:
    """The fields of a board that describe the benchmark."""
    publication = benchmark.publication
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "paper": publication.paper,
        "source": publication.source,
        "licence": publication.licence,
        "language": publication.language,
        "intended_use": publication.intended_use,
        "owner": benchmark_owner(benchmark.name).owner,
        "shows": layout.shows,
        "why": layout.why,
    }


def _rankings(columns: Sequence[BoardColumn], groups: ComparabilityGroups) -> list[Ranking]:
    """The rankings by those of the columns that rank models."""
    rankings = []
    for column in columns:
        ranking = column_ranking(groups, column)
        if ranking is not None:
            rankings.append(ranking)
    return rankings


def _model_ranks(rankings: Sequence[Ranking]) -> dict[str, tuple[float, ...]]:
    """The ranks of each model by all headline scores; infinite where it has none."""
    ranks_by_model: dict[str, list[float]] = {}
    for number, ranking in enumerate(rankings):
        for ranked in ranking.ranked:
            ranks = ranks_by_model.setdefault(ranked.model, [math.inf] * len(rankings))
            ranks[number] = float(ranked.rank)
    return {model: tuple(ranks) for model, ranks in ranks_by_model.items()}
