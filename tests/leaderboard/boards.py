"""Invented boards for tests of pages, figures and exports: a small one, a hostile one, and a large
one.

No number here was measured. ``board()`` has three benchmarks (open answers, options with letters,
streaming), six models, one of them never run on the first benchmark, one without its score, one run
blind, and one not comparable.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from medtasks.leaderboard.exports.board_files import exports_of
from medtasks.leaderboard.schema.board import BenchmarkBoard, Board, BoardModel, BoardRun, Refused
from medtasks.leaderboard.schema.model_rankings import Pair, Ranked, Ranking
from medtasks.leaderboard.schema.plot_data import BoardPlot, LetterCounts, ModelUsage
from medtasks.leaderboard.schema.published_figures import Published
from medtasks.leaderboard.schema.score_tables import BoardColumn, BoardRow, BoardTable, Cell
from medtasks.leaderboard.site.run_samples import Answers, SampleKey, SampleText

from medtasks.metrics.timelines import Round, Timeline
from medtasks.runs.samples import Sample
from medtasks.runs.usage import RunUsage, Usage
from medtasks.stats.ranks import compact_letters

HOSTILE = '<img src=x onerror="hacked=1">\'"><script>window.hacked=1</script></script><!--\u2028]]>&lt;{{7*7}}'
"""Leaves element, attribute, script and comment; a link that must not be followed is
``HOSTILE_LINK``.
"""

HOSTILE_LINK = "javascript:window.hacked=1"

MODELS = (
    BoardModel(slug="aurora-72b", name="Aurora-VL 72B", family="Aurora", size="72B", type="general",
               link="https://example.org/aurora-72b", trained={"pond_vqa": "no", "series_mcq": "unknown"}),
    BoardModel(slug="aurora-8b", name="Aurora-VL 8B", family="Aurora", size="8B", type="general",
               link="https://example.org/aurora-8b", trained={"pond_vqa": "no", "series_mcq": "unknown"}),
    BoardModel(slug="birch-flash", name="Birch Flash", family="Birch", type="closed",
               notes=("Weights are not public; the service may change at any time.",)),
    BoardModel(slug="cedar-med-4b", name="Cedar-Med 4B", family="Cedar", size="4B", type="medical",
               trained={"pond_vqa": "yes", "series_mcq": "no", "stream_qa": "no"}),
    BoardModel(slug="dune-30b-a3b", name="Dune 30B-A3B", family="Dune", size="30B-A3B", type="general"),
    BoardModel(slug="uniform", name="Uniform guessing", family="baseline", type="baseline",
               trained={"pond_vqa": "no", "series_mcq": "no", "stream_qa": "no"}),
)  # fmt: skip
SKILL = {
    "aurora-72b": 0.9,
    "aurora-8b": 0.62,
    "birch-flash": 0.88,
    "cedar-med-4b": 0.7,
    "dune-30b-a3b": 0.64,
}


@dataclass(frozen=True)
class Made:
    """A benchmark to invent: its columns by table, the headline first."""

    name: str
    title: str
    shows: str
    tables: Mapping[str, tuple[str, tuple[BoardColumn, ...]]]
    plots: tuple[BoardPlot, ...]
    items: int = 2000


def column(
    task: str,
    metric: str,
    label: str,
    breakdown: str | None = None,
    group: str | None = None,
    **more: Any,
):
    key = ".".join(part for part in (task, metric, breakdown, group) if part)
    facts = {"unit": "fraction", "higher_is_better": True, **more}
    return BoardColumn(
        key=key, task=task, metric=metric, label=label, breakdown=breakdown, group=group, **facts
    )


def _pond() -> Made:
    levels = ("pond_vqa_level1", "pond_vqa_level2", "pond_vqa_level3")
    classes = ("color", "count", "instrument_location", "size")
    headline = (
        column("pond_vqa", "rougeL", "ROUGE-L"),
        column("pond_vqa", "chrf", "chrF", unit="points"),
    )
    by_level = tuple(column(task, "rougeL", f"Level {n}") for n, task in enumerate(levels, 1))
    other = tuple(
        column(f"pond_vqa_transformed_level{n}", "rougeL", f"Transformed, level {n}")
        for n in (1, 2, 3)
    )
    by_class = tuple(
        column(task, "rougeL", f"Level {n}: {group}", "question_class", group)
        for group in classes
        for n, task in enumerate(levels, 1)
    )
    keys = {"levels": by_level, "transformed": other, "classes": by_class}
    named = {name: tuple(one.key for one in columns) for name, columns in keys.items()}
    plots = (
        BoardPlot(name="class-ranks", title="Rank by class", kind="heatmap", table="classes", columns=named["classes"],
                  ranks=True, note="0 is the best of the models shown."),
        BoardPlot(name="classes", title="Classes of level 1", kind="radar", table="classes",
                  columns=named["classes"][::3]),
        BoardPlot(name="levels", title="Levels", kind="bars", table="levels", columns=named["levels"]),
        BoardPlot(name="transformed", title="Original against transformed images", kind="paired", table="levels",
                  columns=named["levels"], against=named["transformed"]),
        BoardPlot(name="cost", title="ROUGE-L against cost", kind="cost", table="headline", columns=(headline[0].key,)),
    )  # fmt: skip
    tables = {
        "headline": ("Headline", headline),
        "levels": ("Levels, original and transformed", by_level + other),
        "classes": ("Class by level", by_class),
    }
    return Made("pond_vqa", "PondVQA", "text", tables, plots)


def _series() -> Made:
    families = ("tel", "icr", "gts")
    headline = (column("series_mcq", "accuracy", "Accuracy", chance=0.2),)
    direct = tuple(
        column(f"series_mcq_{one}", "accuracy", one.upper(), chance=0.2) for one in families
    )
    staged = tuple(column(f"series_mcq_staged_{one}", "accuracy", f"{one.upper()} in stages", chance=0.2)
                   for one in families)  # fmt: skip
    keys = [tuple(one.key for one in columns) for columns in (direct, staged)]
    plots = (
        BoardPlot(name="families", title="Families", kind="bars", table="families", columns=keys[0], chance=0.2),
        BoardPlot(name="staged", title="Direct against stage-wise", kind="paired", table="families", columns=keys[0],
                  against=keys[1]),
        BoardPlot(name="letters", title="Letters chosen", kind="letters", table="headline", columns=keys[0][:1]),
    )  # fmt: skip
    tables = {
        "headline": ("Headline", headline),
        "families": ("Families, direct and stage-wise", direct + staged),
    }
    return Made("series_mcq", "Series-MCQ", "nothing", tables, plots, 900)


def _stream() -> Made:
    headline = (column("stream_qa", "overall", "Overall"),)
    parts = (
        column("stream_qa_future", "content", "Content"),
        column("stream_qa_future", "responsiveness", "Responsiveness"),
        column(
            "stream_qa_future",
            "signed_delay",
            "Delay",
            unit="seconds",
            higher_is_better=False,
            signed=True,
        ),
        column("stream_qa_open", "open_total", "Judged answers", unit="score"),
    )
    median = column(
        "stream_qa", "latency.median", "Median latency", unit="duration", higher_is_better=False
    )
    plots = (
        BoardPlot(name="parts", title="Content and responsiveness", kind="bars", table="parts",
                  columns=tuple(one.key for one in parts[:2])),
        BoardPlot(name="timelines", title="Streaming items", kind="timeline", table="headline",
                  columns=(headline[0].key,)),
        BoardPlot(name="latency", title="Overall against median latency", kind="latency", table="latency",
                  columns=(headline[0].key, median.key)),
    )  # fmt: skip
    tables = {
        "headline": ("Headline", headline),
        "parts": ("Parts of the score", parts),
        "latency": ("Latency: 1 × NVIDIA H200, one request at a time", (headline[0], median)),
    }
    return Made("stream_qa", "StreamQA", "media", tables, plots, 400)


SPANS = {"fraction": 1.0, "points": 100.0, "seconds": 8.0, "score": 5.0, "duration": 4.0}


def _cell(
    column: BoardColumn, skill: float, items: int, source: random.Random, signature: str
) -> Cell:
    span = SPANS[column.unit]
    share = min(
        max((skill if column.higher_is_better else 1 - skill) * source.uniform(0.75, 1.05), 0.02),
        0.99,
    )
    half = 1.96 * math.sqrt(share * (1 - share) / items)
    low, high = round((share - half) * span, 6), round((share + half) * span, 6)
    judged: dict[str, Any] = {}
    if column.metric == "open_total":
        judged = {
            "judged": items - 31,
            "bounds": (low, high),
            "incomplete": True,
            "judge": "judge-32b",
        }
    return Cell(
        value=round(share * span, 6), low=low, high=high, items=items, signature=signature, **judged
    )


def _signature(column: BoardColumn, mark: str = "1f0c2a7b") -> str:
    parts = f"task:{column.task}|v:1.0|prompt:{mark}|protocol:77aa01bc|data:5be3c1d2"
    return f"{column.metric}|{parts}|items:0d9e8f7a" + (
        f"|part:{column.group}" if column.group else ""
    )


def _ranking(column: BoardColumn, rows: Sequence[BoardRow], items: int) -> Ranking:
    valued = [(row.model, row.cells[column.key]) for row in rows if column.key in row.cells]
    sign = 1 if column.higher_is_better else -1
    found = sorted(
        ((m, c) for m, c in valued if c.value is not None),
        key=lambda one: (-sign * one[1].value, one[0]),
    )
    pairs = []
    for (first, one), (second, other) in combinations(found, 2):
        error = math.hypot(one.high - one.low, other.high - other.low) / 3.92
        difference = one.value - other.value
        p = math.erfc(abs(difference) / error / math.sqrt(2))
        gained = max(round(abs(difference) * items), 1)
        counts = {"wins": gained + 40, "losses": 40} if column.metric == "accuracy" else {}
        pairs.append(
            Pair(first=first, second=second, items=items, difference=round(difference, 6), p_value=p,
                 low=round(difference - 1.96 * error, 6), high=round(difference + 1.96 * error, 6),
                 p_holm=min(1.0, p * 10), clusters=items // 3, **counts)
        )  # fmt: skip
    letters = compact_letters(
        [(one.first, one.second) for one in pairs if one.p_holm <= 0.05], [m for m, _ in found]
    )
    ends = [sorted((sign * one.low, sign * one.high)) for _, one in found]
    ranked = []
    for place, ((model, _), (low, high)) in enumerate(zip(found, ends, strict=True)):
        best, worst = (
            1 + sum(one > high for one, _ in ends),
            len(found) - sum(one < low for _, one in ends),
        )
        ranked.append(
            Ranked(model=model, rank=place + 1, best=best, worst=worst, letters=letters[model])
        )
    return Ranking(
        column=column, items=items, clusters=items // 3, cluster="patient", signature=_signature(column),
        ranked=tuple(ranked), pairs=tuple(pairs), detectable=0.021 * SPANS[column.unit],
        unranked={model: cell.reason or "" for model, cell in valued if cell.value is None},
    )  # fmt: skip


def _timeline(model: str, source: random.Random) -> Timeline:
    rounds = tuple(
        Round(time=4.0 * n, answerable=n >= 4, positive=n >= 4 + source.randint(-1, 2), valid=n != 2,
              content=None if n < 4 else source.choice([0.0, 0.5, 1.0]), said="alert" if n >= 4 else "wait")
        for n in range(1, 9)
    )  # fmt: skip
    return Timeline(model=model, task="stream_qa_future", item="clip-07-q3", query_time=2.0, expected_time=15.5,
                    tolerance=3.0, rounds=rounds)  # fmt: skip


def _published(made: Made) -> tuple[Published, ...]:
    (first, *_), named = made.tables["headline"][1], ("Elm 13B", "Fir-Med 7B")
    figures = []
    for n, name in enumerate(named):
        facts = {
            "table": "Table 4", "source": "table 4 of the paper's version 2", "paper": "arXiv 0000.00001",
            "label": name.upper(), "model": name, "family": name.split()[0], "size": name.split()[1].split("-")[-1],
            "trained": ("unknown", "yes")[n], "type": ("general", "medical")[n], "judge": None,
            "row_notes": ("Published without intervals.",)[:n],
        }  # fmt: skip
        printed = {"printed": ("41.20", "55.0")[n], "value": (0.412, 0.55)[n], "rankable": True}
        unread = {
            "printed": None,
            "value": None,
            "rankable": False,
            "notes": ("Cut off in the scan.",),
        }
        figures += [
            Published(**facts, **printed, column=first.key),
            Published(**facts, **unread, column="Mean of all"),
        ]
    return tuple(figures)


def _benchmark(
    made: Made, models: Sequence[BoardModel], skill: Mapping[str, float]
) -> BenchmarkBoard:
    source = random.Random(made.name)
    tables = []
    for name, (title, columns) in made.tables.items():
        rows = []
        for facts in models:
            if facts.slug == "dune-30b-a3b" and made.name == "pond_vqa":
                continue
            cells = {one.key: _cell(one, skill.get(facts.slug, 0.22), made.items, source, _signature(one))
                     for one in columns}  # fmt: skip
            if facts.slug == "birch-flash" and made.name == "stream_qa":
                reason = "no judge has seen these responses; run `medtasks judge RESULTS`"
                unjudged = {
                    "value": None,
                    "items": made.items,
                    "signature": _signature(columns[-1]),
                    "judged": 0,
                }
                cells[columns[-1].key] = Cell(**unjudged, reason=reason)
            rows.append(BoardRow(model=facts.slug, cells=cells, runs=(f"run-{facts.slug}",)))
        apart = (_apart(models[0], columns, made, source, True, "blind: prompts without media"),
                 _apart(models[-2], columns, made, source, False, "run with --limit: 100 of 2,000 documents",
                        "prompt 9d8c7b6a instead of 1f0c2a7b"))  # fmt: skip
        tables.append(BoardTable(name=name, title=title, columns=columns, rows=tuple(rows), apart=apart,
                                 note="Invented numbers." if name != "headline" else ""))  # fmt: skip
    rankings = [_ranking(one, tables[0].rows, made.items) for one in tables[0].columns]
    letters = [LetterCounts(task="series_mcq_tel", model=facts.slug, gold=dict.fromkeys("ABCDE", 60),
                            chosen={**{one: 40 + source.randint(0, 40) for one in "ABCDE"}, "[none]": 4})
               for facts in models[:6]] if made.name == "series_mcq" else []  # fmt: skip
    return BenchmarkBoard(
        name=made.name, title=made.title, paper="arXiv 0000.00001", source=f"https://example.org/{made.name}",
        licence="CC BY-NC 4.0", language="en", intended_use="research", owner="medtasks", shows=made.shows,
        why="The data may be used under a signed agreement alone." if made.shows == "nothing" else "",
        rankings=tuple(rankings),
        tables=tuple(tables), plots=made.plots, letters=tuple(letters), published=_published(made),
        timelines=tuple(_timeline(one.slug, source) for one in models[:3]) if made.name == "stream_qa" else (),
        usage=tuple(_usage(row, made) for row in tables[0].rows) if made.name == "pond_vqa" else (),
        published_notes=("The paper's rows were not re-run here.",),
        published_gaps=("Table 9: only printed as a figure.",),
    )  # fmt: skip


def _usage(row: BoardRow, made: Made) -> ModelUsage:
    """Larger models are slower; nothing but time is known of a closed one."""
    size = 2 + len(row.model)
    known = {
        "prompt_tokens": 420 * made.items,
        "output_tokens": size * made.items,
        "peak_device_memory": size * 2**30,
    }
    counted = {} if row.model == "birch-flash" else known
    usage = Usage(
        samples=made.items,
        seconds=0.05 * size * made.items,
        time_to_first_answer=0.4 * size,
        **counted,
    )
    return ModelUsage(
        model=row.model, run=row.runs[0], score=next(iter(row.cells.values())), usage=usage
    )


def _apart(facts: BoardModel, columns: Sequence[BoardColumn], made: Made, source: random.Random, blind: bool,
           *reasons: str) -> BoardRow:  # fmt: skip
    items = made.items if blind else 100
    cells = {
        one.key: _cell(one, 0.3, items, source, _signature(one, "9d8c7b6a")) for one in columns
    }
    run = f"run-{facts.slug}-{'blind' if blind else 'limit'}"
    return BoardRow(model=facts.slug, cells=cells, runs=(run,), blind=blind, reasons=reasons)


def _run(key: str, slug: str, note: str = "") -> BoardRun:
    return BoardRun(
        key=key, folder=f"20261121_1027_{slug}_medtasks", digest=f"{random.Random(key).getrandbits(256):064x}",
        created="2026-11-21T10:27:12+00:00", model=slug, versions={"medtasks": "0.2.0", "lmms-eval": "0.7.3"},
        model_facts={"model": "medtasks_vlm", "pretrained": f"lab/{slug}", "revision": "0a1b2c"},
        settings={"batch_size": "8", "limit": "100" if "limit" in key else "None"},
        generation={"max_new_tokens": "64", "do_sample": "False"},
        protocols={"pond_vqa_level1": "77aa01bc", "series_mcq_tel": "77aa01bd", "stream_qa_future": "77aa01be"},
        prompts={"pond_vqa_level1": "1f0c2a7b", "series_mcq_tel": "1f0c2a7c", "stream_qa_future": "1f0c2a7d"},
        data={"pond_vqa": "5be3c1d2", "series_mcq": "5be3c1d3", "stream_qa": "5be3c1d4"},
        judges={"stream_qa_open": "judge-32b at 4c5d6e"},
        counts={"pond_vqa_level1": {"asked": 2000, "answered": 1998, "unparseable": 2}},
        commands=(f"lmms_eval --model medtasks_vlm --model_args pretrained=lab/{slug} --tasks pond_vqa",
                  "medtasks score RESULTS"),
        mini=False, notes=(note,) if note else (),
        usage=RunUsage() if "blind" in key else RunUsage(samples=2000, seconds=740.0, counters={"media_encoded": 9}),
    )  # fmt: skip


def _board(made: Sequence[Made], models: Sequence[BoardModel], skill: Mapping[str, float]) -> Board:
    runs = [_run(f"run-{one.slug}", one.slug) for one in models]
    runs.append(_run(f"run-{models[0].slug}-blind", models[0].slug, "blind: prompts without media"))
    runs.append(_run(f"run-{models[-2].slug}-limit", models[-2].slug, "run with --limit"))
    return Board(
        title="Invented leaderboard", medtasks="0.2.0", latest="2026-11-21T10:27:12+00:00", confidence=0.95,
        resamples=1000, seed=0, demonstration=False, models={one.slug: one for one in models},
        runs={one.key: one for one in runs}, benchmarks=tuple(_benchmark(one, models, skill) for one in made),
        refused=(Refused(folder="20261120_0900_medtasks", reason="manifest.json names no tasks."),),
    )  # fmt: skip


def board() -> Board:
    """Three benchmarks and six models; see the head of this module."""
    return _board((_pond(), _series(), _stream()), MODELS, SKILL)


def changed(
    made: Board, change: Callable[[dict[str, Any]], object], benchmark: str = "pond_vqa"
) -> Board:
    """The board with one benchmark alone, whose fields ``change`` edits."""
    fields = next(one for one in made.benchmarks if one.name == benchmark).model_dump()
    change(fields)
    return made.model_copy(update={"benchmarks": (BenchmarkBoard.model_validate(fields),)})


def large_board(models: int = 100) -> Board:
    """``models`` models on four benchmarks, the fourth with a table of 54 columns."""
    source = random.Random(0)
    kinds = ("general", "medical", "closed")
    facts = [BoardModel(slug=f"model-{n:03}", name=f"Invented model {n:03}", family=f"Family {n % 9}",
                        size=f"{2 + 7 * (n % 11)}B", type=kinds[n % 3],
                        link=f"https://example.org/model-{n:03}") for n in range(models)]  # fmt: skip
    skill = {one.slug: source.uniform(0.25, 0.95) for one in facts}
    wide = tuple(column(f"lake_vqa_level{n}", "rougeL", f"Level {n}: class {group:02}", "question_class",
                        f"class_{group:02}") for group in range(18) for n in (1, 2, 3))  # fmt: skip
    headline = tuple(column("lake_vqa", name, name) for name in ("rouge1", "rougeL", "meteor"))
    tables = {"headline": ("Headline", headline), "classes": ("Class by level", wide)}
    return _board(
        (_pond(), _series(), _stream(), Made("lake_vqa", "LakeVQA", "text", tables, ())),
        facts,
        skill,
    )


def held_samples(held: Mapping[tuple[str, str, str], Sequence[Sample]]) -> SampleText:
    """Samples that are in memory already, by benchmark, task and model."""
    return {SampleKey(*key): partial(Answers, rows) for key, rows in held.items()}


def sample(
    task: str, sample_id: str, filtered: str, scores: Mapping[str, float | None], **more: Any
) -> Sample:
    """A sample of an invented task."""
    facts = {
        "prompt": "Look.",
        "prompt_hash": "0",
        "target": "B",
        "responses": (filtered,),
        "document": {},
        **more,
    }
    return Sample(
        sample_id=sample_id, task=task, cluster="c", media=("a.png",), filtered=filtered, status="ok", scores=scores,
        statistics={}, **facts,
    )  # fmt: skip


def sample_text(hostile: bool = False) -> SampleText:
    """Samples of two tasks for all models: one whose texts may be shown, one of which scores alone
    may be.
    """
    held, end = {}, f" {HOSTILE}" if hostile else ""
    letters = {"choices": dict.fromkeys("ABCDE", "")}
    for number, facts in enumerate(MODELS):
        answers = [(place, (place * 7 + number * 5) % 9 / 8) for place in range(60)]
        task = f"pond_vqa_level1{end}"
        held["pond_vqa", task, facts.slug] = [
            sample(
                task, f"img-{place:03}{end}", f"A pond, {facts.name} says.{end}",
                {"rougeL": score, "exact_match": float(score == 1)}, target=f"A pale pond.{end}",
                document={"question": f"What is shown in image {place}?{end}"},
            )
            for place, score in answers
        ]  # fmt: skip
        task = "series_mcq_tel"
        held["series_mcq", task, facts.slug] = [
            sample(
                task,
                f"tel-{place}",
                "ABCDE"[place % 5],
                {"accuracy": float(score > 0.5)},
                document=letters,
            )
            for place, score in answers
        ]
    return held_samples(held)


def write_exports(made: Board, directory: Path) -> None:
    """Write the exports of a board below a directory."""
    for name, export in exports_of(made).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(export.make().encode("utf-8", "replace"))


KEYS = frozenset(
    {
        "slug",
        "key",
        "name",
        "model",
        "table",
        "columns",
        "against",
        "column",
        "first",
        "second",
        "runs",
    }
)
FIXED = frozenset({"unit", "test", "kind", "shows", "trained"})
OUTSIDE = frozenset({"versions", "model_facts", "settings", "generation", "protocols", "prompts", "data", "judges",
                     "judged_by", "counts", "gold", "chosen"})  # fmt: skip
"""Fields whose keys come from outside, too."""


def hostile_board() -> Board:
    """The small board with `HOSTILE` in every text that can come from outside, and links that must
    not be links.

    What the board calls safe (slugs, and keys of columns, runs, tables, plots and benchmarks) stays
    as it is.
    """
    return Board.model_validate(_poisoned(board().model_dump(), ""))


def _poisoned(value: Any, field: str) -> Any:
    if isinstance(value, dict):
        fixed = field if field in FIXED else None
        return {
            (f"{key} {HOSTILE}" if field in OUTSIDE else key): _poisoned(one, fixed or str(key))
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_poisoned(one, field) for one in value)
    # a safe key has no space; the name of a model, or of a published table or column, has
    if (
        not isinstance(value, str)
        or field in FIXED
        or (field in KEYS and re.fullmatch(r"[\w.-]+", value))
    ):
        return value
    return HOSTILE_LINK if field == "link" else f"{value} {HOSTILE}"
