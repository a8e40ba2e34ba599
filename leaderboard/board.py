"""What a leaderboard says: the one model that pages, exports and checks are made of, and that ``board.json`` holds.

Nothing here is computed. Fractions stay fractions (0..1) and points points (0..100): ``unit`` says which. A model is
known by its ``slug`` everywhere. All text may come from strangers: whoever shows it escapes it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

Trained: TypeAlias = Literal["yes", "no", "unknown"]
Unit: TypeAlias = Literal["fraction", "points", "seconds", "score"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Cell(_Frozen):
    """One score of one model. ``value`` is None where ``reason`` says why; ``low`` and ``high`` are the 95 %
    cluster-bootstrap interval, where there is one. ``answered``, ``judged``, ``bounds`` and ``incomplete`` as in
    `medtasks.results.scoring.MetricScore`. ``signature`` is the reproducibility signature: equal ones are comparable.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    items: int
    answered: int | None = None
    judged: int | None = None
    bounds: tuple[float, float] | None = None
    incomplete: bool = False
    reason: str | None = None
    signature: str


class BoardColumn(_Frozen):
    """A column of a table, or an axis of a plot; ``key`` is unique on the board, and safe in addresses and file names.

    ``chance`` is the score of uniform guessing, where that has one. A ``signed`` score is best at 0, but what is
    too early and what is too late cancel in its mean: no model is ranked by it, whatever ``higher_is_better`` says.
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


class BoardRow(_Frozen):
    """A model's scores by column key; a column that the model was not run on is absent. ``run`` is `RunFacts.key`."""

    model: str
    cells: dict[str, Cell]
    runs: tuple[str, ...]
    blind: bool = False


class Apart(_Frozen):
    """A row that shares no ranking with the others, and why, a sentence for each difference."""

    row: BoardRow
    reasons: tuple[str, ...]


class BoardTable(_Frozen):
    """Rows that are comparable in every column they share, then those that are not."""

    name: str
    title: str
    note: str = ""
    columns: tuple[BoardColumn, ...]
    rows: tuple[BoardRow, ...]
    apart: tuple[Apart, ...] = ()


class Ranked(_Frozen):
    """A model's place: ``rank`` counts the models that are better by value (ties share it), ``best`` to ``worst`` is
    the 95 % interval of ranks, models with a letter in common cannot be told apart (5 %, Holm)."""

    model: str
    rank: int
    best: int | None
    worst: int | None
    letters: tuple[str, ...]


class Pair(_Frozen):
    """``first`` - ``second`` on the items that both have, with its 95 % interval; ``p_value`` of the cluster sign-flip
    test (`medtasks.stats.paired_difference`), ``p_holm`` after Holm's correction over all pairs of the ranking.
    ``wins`` and ``losses`` count items where only the first, or only the second, is right (accuracies alone).
    ``reason`` says why there is no interval or test, ``warning`` what so few ``clusters`` cannot show."""

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


class Ranking(_Frozen):
    """The comparison of all comparable models by one headline column, best first.

    ``detectable`` is the smallest difference that a comparison of two of these models finds with chance 0.8 at level
    0.05 (median over pairs), in the column's unit; None where models never differ, or clusters are too few to find
    anything. ``warning`` tells of too few clusters. ``unranked`` are comparable models without a value, and why.
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
    """A figure; the numbers are those of ``table`` (a table's name), of `BenchmarkBoard.letters` or ``timelines``."""

    name: str
    title: str
    kind: Literal["bars", "heatmap", "letters", "paired", "radar", "timeline"]
    table: str
    columns: tuple[str, ...]
    against: tuple[str, ...] = ()
    ranks: bool = False
    chance: float | None = None
    note: str = ""


class LetterCounts(_Frozen):
    """How often each letter was right and chosen in one task; ``chosen`` has extraction failures in brackets, too."""

    task: str
    model: str
    gold: dict[str, int]
    chosen: dict[str, int]


class Round(_Frozen):
    """One round of a streaming item; ``said`` is the extracted response."""

    time: float
    answerable: bool
    positive: bool
    valid: bool
    content: float | None
    said: str


class Timeline(_Frozen):
    """A streaming item as one model answered it; times as in the item (seconds, or frames)."""

    model: str
    task: str
    item: str
    query_time: float
    expected_time: float | None
    tolerance: float
    rounds: tuple[Round, ...]


class PublishedCell(_Frozen):
    """A published figure; ``value`` is in ``unit`` of the column here (a published percentage is a fraction)."""

    column: str
    printed: str | None
    value: float | None
    rankable: bool
    notes: tuple[str, ...] = ()


class Published(_Frozen):
    """What one table of a paper prints for one model: published, not re-run."""

    table: str
    source: str
    paper: str
    label: str
    model: str
    family: str
    size: str | None
    type: str
    trained: Trained
    judge: str | None
    cells: tuple[PublishedCell, ...]
    notes: tuple[str, ...]


class BenchmarkBoard(_Frozen):
    """One benchmark. ``tables[0]`` is the headline table (name ``headline``); ``published`` cells name its columns or
    those of other tables by the paper's own headings."""

    name: str
    title: str
    paper: str
    source: str
    licence: str
    language: str
    intended_use: str
    owner: str
    shows: Literal["nothing", "text", "media"]
    why: str
    rankings: tuple[Ranking, ...]
    tables: tuple[BoardTable, ...]
    plots: tuple[BoardPlot, ...]
    letters: tuple[LetterCounts, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    published: tuple[Published, ...] = ()
    published_notes: tuple[str, ...] = ()
    published_gaps: tuple[str, ...] = ()


class RunFacts(_Frozen):
    """A result folder: by the last part of its name alone, and by the SHA-256 of what it holds.

    ``protocols`` maps task to its protocol hash, ``prompts`` to its prompt hash; ``commands`` say how to repeat it.
    ``notes`` name everything that a reader must know (blind, rescored, miniature data, limit, coverage, superseded).
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
    data: dict[str, str]
    judges: dict[str, str]
    counts: dict[str, dict[str, int]]
    commands: tuple[str, ...]
    mini: bool
    notes: tuple[str, ...] = ()


class ModelFacts(_Frozen):
    """A model as the board shows it; ``trained`` says by benchmark whether it was trained on the benchmark's data."""

    slug: str
    name: str
    family: str
    size: str | None = None
    type: str = "unknown"
    link: str | None = None
    trained: dict[str, Trained] = {}
    notes: tuple[str, ...] = ()


class Refused(_Frozen):
    """A folder that is on no table, and why."""

    folder: str
    reason: str


class Board(_Frozen):
    """A whole leaderboard; the same results give the same board, whenever and in whatever order they are read.

    ``demonstration`` says that results on miniature data are shown; ``latest`` is the time of the newest run.
    """

    schema_version: int = 1
    title: str
    medtasks: str
    latest: str | None
    confidence: float
    resamples: int
    seed: int
    demonstration: bool
    models: dict[str, ModelFacts]
    runs: dict[str, RunFacts]
    benchmarks: tuple[BenchmarkBoard, ...]
    refused: tuple[Refused, ...] = ()
