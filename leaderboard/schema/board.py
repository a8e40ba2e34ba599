"""The leaderboard as data: the content of ``board.json``, and the source of pages and exports.

Nothing here is computed. Fractions are 0 to 1 and points 0 to 100; ``unit`` says which. Models are
identified by their ``slug``. All text is untrusted and must be escaped when shown.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from medtasks.metrics.timelines import Timeline
from medtasks.runs.usage import RunUsage
from medtasks.scoring.latency import RunLatency

from .board_record import BoardRecord
from .model_findings import PromptOrder, SizeCorrelation, TextOnly, TypeMeans
from .model_rankings import Ranking
from .plot_data import BoardPlot, LetterCounts, ModelReliability, ModelUsage
from .published_figures import Published, Trained
from .score_tables import BoardTable


class BenchmarkBoard(BoardRecord):
    """The board of one benchmark.

    ``tables[0]`` is the headline table (name ``headline``); ``published`` figures name a column of
    the board, or the paper's own heading if there is none; ``published_problem`` says why the file
    of published figures cannot be read. ``usage`` has the models that are ranked by the first
    headline score and report any. ``bibtex`` is the entry of the paper, empty if the package has
    none; ``members`` are the tasks of each task or group in the headline table.
    """

    name: str
    title: str
    paper: str
    source: str
    licence: str
    language: str
    intended_use: str
    bibtex: str = ""
    members: dict[str, tuple[str, ...]] = Field(default={})
    owner: str
    shows: Literal["nothing", "text", "media"]
    why: str
    rankings: tuple[Ranking, ...]
    tables: tuple[BoardTable, ...]
    plots: tuple[BoardPlot, ...]
    letters: tuple[LetterCounts, ...] = ()
    reliability: tuple[ModelReliability, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    usage: tuple[ModelUsage, ...] = ()
    text_only: TextOnly | None = None
    prompt_order: PromptOrder | None = None
    published: tuple[Published, ...] = ()
    published_notes: tuple[str, ...] = ()
    published_gaps: tuple[str, ...] = ()
    published_problem: str = ""
    size_correlations: tuple[SizeCorrelation, ...] = ()
    type_means: tuple[TypeMeans, ...] = ()

    @property
    def published_rows(self) -> list[dict[str, Published]]:
        """The figures of each model in each table, by column."""
        rows: dict[tuple[str, str], dict[str, Published]] = {}
        for figure in self.published:
            row = rows.setdefault((figure.table, figure.label), {})
            row[figure.column] = figure
        return list(rows.values())


class BoardRun(BoardRecord):
    """A run: the name of its directory without the path, and the SHA-256 of the content.

    ``protocols`` and ``prompts`` map tasks to protocol and prompt hashes, ``filters``, ``frames``
    and ``presentation`` to how answers are extracted, how frames are chosen, and how the back-end
    changes prompts, ``judged_by`` tasks and groups to the names of their judges, ``rejudged``
    rubrics to how far their verdicts agree with those that the organiser asked for again;
    ``commands`` reproduce the run. ``notes`` are what a reader must know (blind, rescored,
    miniature data, limit, coverage, superseded). ``trained_on`` says by benchmark what the record
    beside the model's weights states. ``cost`` is that of all answers, in the currency of the
    organiser's prices. ``latency`` is as the run states it; nobody can check it.
    """

    key: str
    folder: str
    digest: str
    created: str
    model: str
    versions: dict[str, str]
    model_facts: dict[str, str]
    settings: dict[str, str]
    generation: dict[str, str]
    protocols: dict[str, str]
    prompts: dict[str, str]
    filters: dict[str, str] = Field(default={})
    frames: dict[str, str] = Field(default={})
    presentation: dict[str, str] = Field(default={})
    data: dict[str, str]
    judges: dict[str, str]
    judged_by: dict[str, str] = Field(default={})
    rejudged: dict[str, str] = Field(default={})
    counts: dict[str, dict[str, int]]
    commands: tuple[str, ...]
    mini: bool
    notes: tuple[str, ...] = ()
    trained_on: dict[str, str] = Field(default={})
    usage: RunUsage = RunUsage()
    latency: RunLatency | None = None
    cost: float | None = None


class BoardModel(BoardRecord):
    """A model as the board shows it.

    ``trained`` says by benchmark whether the model was trained on that benchmark's data, and
    ``trained_on`` what its training record states.
    """

    slug: str
    name: str
    family: str
    size: str | None = None
    type: str = "unknown"
    link: str | None = None
    trained: dict[str, Trained] = Field(default={})
    trained_on: dict[str, str] = Field(default={})
    notes: tuple[str, ...] = ()


class Refused(BoardRecord):
    """A directory that is not on the board, and why.

    ``has_run`` tells whether it contains a result directory at all.
    """

    folder: str
    reason: str
    has_run: bool = True


class Board(BoardRecord):
    """A whole leaderboard; the same results give the same board, at any time and in any order.

    With ``demonstration``, results on miniature data are ranked; ``latest`` is the time of the
    newest run. ``human_notes`` say which ratings by people are not used, and why.
    """

    schema_version: int = 1
    title: str
    medtasks: str
    latest: str | None
    confidence: float
    resamples: int
    seed: int
    demonstration: bool
    models: dict[str, BoardModel]
    runs: dict[str, BoardRun]
    benchmarks: tuple[BenchmarkBoard, ...]
    refused: tuple[Refused, ...] = ()
    human_notes: tuple[str, ...] = ()
