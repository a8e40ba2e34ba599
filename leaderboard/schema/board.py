"""The leaderboard as data: the content of ``board.json``, and the source of pages and exports.

Nothing here is computed. Fractions are 0 to 1 and points 0 to 100; ``unit`` says which. Models are
identified by their ``slug``. All text is untrusted and must be escaped when shown.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from medtasks.metrics.facts import Unit as Unit
from medtasks.metrics.timelines import Round as Round
from medtasks.metrics.timelines import Timeline as Timeline
from medtasks.runs.usage import RunUsage, Usage
from medtasks.scoring.scores import Reliability

Trained: TypeAlias = Literal["yes", "no", "unknown"]
NonEmpty = Annotated[str, Field(min_length=1)]

FORMATS = ("svg", "png", "pdf")
"""Of figures as files."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Cell(_Frozen):
    """One score of one model (`medtasks.scoring.scores.MetricScore`).

    ``low`` and ``high`` are its 95 % interval, by ``interval_method``. Scores with equal
    ``signature`` are comparable. ``judge`` names the judges of a judged score.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    interval_method: str | None = Field(default=None, exclude_if=lambda method: method is None)
    items: int
    answered: int | None = None
    judged: int | None = None
    judge: str = ""
    bounds: tuple[float, float] | None = None
    incomplete: bool = False
    reason: str | None = None
    signature: str


class BoardColumn(_Frozen):
    """A column of a table, or an axis of a plot.

    ``key`` is unique on the board, and safe in URLs and file names. ``chance`` is the score of
    uniform guessing, if defined, ``constant`` that of always giving ``constant_answer``, the most
    frequent correct option, and ``blind`` the best score of a run without media, of the model
    ``blind_model``: floors that a score has to exceed. A ``signed`` score is best at 0, but early
    and late errors cancel in its mean, so models are never ranked by it, regardless of
    ``higher_is_better``. ``remark`` belongs to the label, such as whether an error could harm a
    patient.
    """

    key: str
    task: str
    metric: str
    label: str
    breakdown: str | None = None
    group: str | None = None
    unit: Unit
    higher_is_better: bool
    signed: bool = False
    chance: float | None = None
    constant: float | None = None
    constant_answer: str | None = None
    blind: float | None = None
    blind_model: str | None = None
    remark: str = ""


class BoardRow(_Frozen):
    """A model's scores by column key, without columns it was not run on.

    ``runs`` are keys of `Board.runs`; ``reasons`` say in a sentence each why the row is not
    comparable with the others.
    """

    model: str
    cells: dict[str, Cell]
    runs: tuple[str, ...]
    blind: bool = False
    reasons: tuple[str, ...] = ()


class BoardTable(_Frozen):
    """Rows that are comparable in every column they share, and in ``apart`` those that are not."""

    name: str
    title: str
    note: str = ""
    columns: tuple[BoardColumn, ...]
    rows: tuple[BoardRow, ...]
    apart: tuple[BoardRow, ...] = ()

    @property
    def every_row(self) -> tuple[BoardRow, ...]:
        return (*self.rows, *self.apart)


class Ranked(_Frozen):
    """A model's place in a ranking.

    ``rank`` is 1 for the best value (ties share it), ``best`` to ``worst`` is its 95 % interval;
    models with a letter in common do not differ significantly (5 %, Holm).
    """

    model: str
    rank: int
    best: int | None
    worst: int | None
    letters: tuple[str, ...]


class Pair(_Frozen):
    """The difference ``first`` - ``second`` on the items that both have.

    Its fields are those of `medtasks.stats.paired.PairedDifference`; ``p_holm`` is the p-value
    after Holm's correction over all pairs of the ranking. ``wins`` and ``losses`` count items that
    only the first, or only the second, has right (for accuracies).
    """

    first: str
    second: str
    items: int
    clusters: int
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    p_holm: float | None
    wins: int | None = None
    losses: int | None = None
    reason: str | None = None
    warning: str | None = None
    standard_error: float | None = None
    cautions: tuple[str, ...] = Field(default=(), exclude=True)


class Ranking(_Frozen):
    """The comparison of all comparable models by one headline column, best first.

    ``detectable`` is the minimum detectable difference between two of these models (80 % power at
    level 0.05, median over pairs), in the column's unit. ``warning`` is about too few clusters, and
    about pairs. ``unranked`` gives by comparable model the reason why it has no rank.
    """

    column: BoardColumn
    items: int
    clusters: int
    cluster: str
    signature: str
    ranked: tuple[Ranked, ...]
    pairs: tuple[Pair, ...]
    detectable: float | None
    warning: str | None = None
    unranked: dict[str, str] = {}


class BoardPlot(_Frozen):
    """A figure of a benchmark.

    Its numbers come from ``table`` (a name), or from the benchmark's ``letters``, ``reliability``,
    ``timelines`` or ``usage``.
    """

    name: str
    title: str
    kind: Literal[
        "bars",
        "cost",
        "coverage",
        "heatmap",
        "letters",
        "paired",
        "radar",
        "reliability",
        "timeline",
    ]
    table: str
    columns: tuple[str, ...]
    against: tuple[str, ...] = ()
    ranks: bool = False
    chance: float | None = None
    note: str = ""


class LetterCounts(_Frozen):
    """How often each letter was right and chosen in one task.

    ``chosen`` includes extraction failures, in brackets. ``preference`` is as in
    `medtasks.scoring.scores.Letters`.
    """

    task: str
    model: str
    gold: dict[str, int]
    chosen: dict[str, int]
    preference: dict[str, tuple[float, float | None, float | None]] = {}


class ModelReliability(_Frozen):
    """Accuracy by confidence of one model in one task or group."""

    task: str
    model: str
    reliability: Reliability


class Published(_Frozen):
    """A figure in a table of a paper, not re-run.

    ``label`` is its model as printed, ``model`` as the board shows it, and ``row_notes`` are about
    all figures of the model there. ``why`` says why a figure that is not ``rankable`` must not be
    compared with ours. ``value`` is in the unit of the board's column (percentages become
    fractions).
    """

    table: NonEmpty
    source: NonEmpty
    paper: NonEmpty
    label: NonEmpty
    model: NonEmpty
    family: NonEmpty
    size: str | None
    type: str
    trained: Trained
    judge: str | None
    column: NonEmpty
    printed: str | None
    rankable: bool
    why: str = ""
    notes: tuple[NonEmpty, ...] = ()
    row_notes: tuple[NonEmpty, ...] = ()
    value: float | None


class ModelUsage(_Frozen):
    """What a model's run used for the benchmark's first headline score, with that score.

    ``run`` is a key of `Board.runs`, ``cost`` the cost of all answers, in the currency of the
    organiser's prices.
    """

    model: str
    run: str
    score: Cell
    usage: Usage
    cost: float | None = None


class TextOnly(_Frozen):
    """The items on which the blind runs of all ``models`` have the full score.

    They are the ``answered`` ones of so many ``items``; ``expected`` is the share on which
    independent uniform guesses would all be right, if defined.
    """

    task: str
    metric: str
    models: tuple[str, ...]
    items: int
    expected: float | None
    answered: tuple[str, ...]


class OrderChange(_Frozen):
    """Two models whose order depends on the prompt.

    ``first`` is better under the prompts ``ahead``, numbered from 1, and worse under those
    ``behind``.
    """

    first: str
    second: str
    ahead: tuple[int, ...]
    behind: tuple[int, ...]


class PromptOrder(_Frozen):
    """How the order of models by one task's score depends on the prompt.

    These are the ``changes`` among all ``pairs`` of models, and Kendall's tau-b between two
    prompts, its mean and lowest value; None if models are tied under all of them.
    """

    task: str
    prompts: int
    pairs: int
    changes: tuple[OrderChange, ...]
    tau: float | None
    lowest_tau: float | None


class SizeCorrelation(_Frozen):
    """Pearson's r between the logarithm of the number of parameters and a score.

    It is over so many ``models`` whose size is stated: of runs, or of the rows of a ``published``
    table.
    """

    column: BoardColumn
    published: str
    models: int
    r: float


class TypeMeans(_Frozen):
    """The mean of a score over the models of each type, and the number of models.

    Types are closed, general and medical.
    """

    column: BoardColumn
    means: dict[str, float]
    models: dict[str, int]


class BenchmarkBoard(_Frozen):
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
    members: dict[str, tuple[str, ...]] = {}
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


class BoardRun(_Frozen):
    """A run: the name of its directory without the path, and the SHA-256 of the content.

    ``protocols`` and ``prompts`` map tasks to protocol and prompt hashes, ``filters``, ``frames``
    and ``presentation`` to how answers are extracted, how frames are chosen, and how the back-end
    changes prompts, ``judged_by`` tasks and groups to the names of their judges, ``rejudged``
    rubrics to how far their verdicts agree with those that the organiser asked for again;
    ``commands`` reproduce the run. ``notes`` are what a reader must know (blind, rescored,
    miniature data, limit, coverage, superseded). ``cost`` is that of all answers, in the currency
    of the organiser's prices.
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
    filters: dict[str, str] = {}
    frames: dict[str, str] = {}
    presentation: dict[str, str] = {}
    data: dict[str, str]
    judges: dict[str, str]
    judged_by: dict[str, str] = {}
    rejudged: dict[str, str] = {}
    counts: dict[str, dict[str, int]]
    commands: tuple[str, ...]
    mini: bool
    notes: tuple[str, ...] = ()
    usage: RunUsage = RunUsage()
    cost: float | None = None


class BoardModel(_Frozen):
    """A model as the board shows it.

    ``trained`` says by benchmark whether the model was trained on that benchmark's data.
    """

    slug: str
    name: str
    family: str
    size: str | None = None
    type: str = "unknown"
    link: str | None = None
    trained: dict[str, Trained] = {}
    notes: tuple[str, ...] = ()


class Refused(_Frozen):
    """A directory that is not on the board, and why.

    ``has_run`` tells whether it contains a result directory at all.
    """

    folder: str
    reason: str
    has_run: bool = True


class Board(_Frozen):
    """A whole leaderboard; the same results give the same board, at any time and in any order.

    With ``demonstration``, results on miniature data are ranked; ``latest`` is the time of the
    newest run.
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
