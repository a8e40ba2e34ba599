"""What a package describes about a benchmark: its paper, its data, how answers are scored."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from medtasks.catalog.board_layout import PublishedPart
from medtasks.catalog.items import Item, Joined, SampleView, Turn, Value, sample_items
from medtasks.catalog.records import Record
from medtasks.core.errors import MedtasksError

Document: TypeAlias = dict[str, Any]
"""A record as the harness sees it; docs/architecture.md lists the keys that all benchmarks share.
"""


@dataclass(frozen=True)
class PrepareCommand:
    """``medtasks prepare <benchmark>``, for a benchmark whose preparation needs more than
    ``DataSource.read``.

    Args:
        run: a generator that prepares data and yields each prepared dataset. Its first parameter
            opens a progress bar (`medtasks.data.prepare_commands.Bars`); the others, annotated for
            typer, are the command's options.
        examples: lines for ``--help``.
    """

    run: Callable[..., Iterable[Any]]
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class HubFiles:
    """Files of a dataset on the Hugging Face hub.

    Args:
        dataset: the name of the dataset.
        patterns: the files that are fetched.
        revision: the commit from which they are fetched; None for the newest one.
    """

    dataset: str
    patterns: tuple[str, ...]
    revision: str | None = None


@dataclass(frozen=True)
class AutomaticPreparation:
    """How a run prepares missing data by itself, once the user has agreed to the download.

    Args:
        files: what is fetched from the hub.
        options: the options of the benchmark's ``medtasks prepare`` command.
        is_limit: whether ``files`` are the most that is fetched, and less may be enough.
        original: the benchmark whose prepared data the command needs.
    """

    files: tuple[HubFiles, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    is_limit: bool = False
    original: str | None = None


ABSTENTION = "This cannot be told from the image."
"""The answer of a model that does not know, unless the documents define another."""


def one_document(record: Any) -> list[Document]:
    """The document of a record with an ``answer``: this is the target, other fields keep their
    names.
    """
    if not hasattr(record, "answer"):
        raise MedtasksError(
            f"the benchmark does not define how a {type(record).__name__} becomes documents; "
            "give the record an `answer`, or set `documents`."
        )
    fields = record.model_dump(mode="json", exclude={"answer"})
    return [{"abstention": ABSTENTION, **fields, "target": record.answer}]


def shipped(module: str) -> Callable[[Path], None]:
    """A `DataSource.mini` that copies the directory ``mini`` beside the file ``module``."""

    def mini(source: Path) -> None:
        shutil.copytree(
            Path(module).with_name("mini"),
            source,
            copy_function=shutil.copyfile,
            dirs_exist_ok=True,
        )

    return mini


@dataclass(frozen=True)
class Publication:
    """Where a benchmark comes from, and what its scores may be used for.

    Args:
        paper: the paper's identifier, such as ``arXiv 2605.15574``.
        source: the repository or dataset of the release.
        licence: the licence of records and media.
        language: language of questions and answers, an ISO 639 code.
        intended_use: what scores may be used for.
        bibliography: a BibTeX file with the paper's entry, which methods sections cite; by default
            the entry is made of the benchmark's title and ``paper``.
        figures: a CSV file of published scores (`leaderboard.schema.reference`).
        shows: which part of a sample may be published, unless a board layout states it
            (`medtasks.catalog.board_layout.BoardLayout`).
    """

    paper: str
    source: str
    licence: str
    language: str = "en"
    intended_use: str = "research"
    bibliography: Path | None = None
    figures: Path | None = None
    shows: PublishedPart = "nothing"


@dataclass(frozen=True)
class LocalFiles:
    """Files of this machine, which are prepared when their benchmark is first used.

    Args:
        rows: the file of rows.
        media: the directory of the pictures that rows name.
        state: a hash of everything that the records depend on, pictures excepted.
    """

    rows: Path
    media: Path
    state: Callable[[], str]


@dataclass(frozen=True)
class DataSource:
    """How a release becomes records, and records become documents.

    Args:
        prepare: the shell command that prepares the data, for messages.
        record: the type of the records.
        read: yields the records of a release (`medtasks.data.release.Release`).
        documents: turns a record into the harness's documents; by default one, whose target is the
            record's ``answer``.
        hub: the release's dataset on the Hugging Face hub, then the files to fetch (patterns), for
            ``--source hub``. Unless there is a ``command``, a run fetches them by itself once the
            user has agreed.
        local: the files of a benchmark folder, which need no command.
        command: replaces the generic ``medtasks prepare`` command.
        mini: writes a source directory of miniature data.
        prepare_mini: prepares that source directory into a second directory; by default with
            ``read``.
        version: version of the miniature data.
        doubt: why a document's gold answer is doubtful, for ``medtasks validate``; None if it is
            not.
        revision: the commit of ``hub``; None for the newest one, which the manifest records.
        automatic: how a run prepares the data by itself if there is a ``command``; None if a user
            has to do something first.
    """

    prepare: str
    record: type[Record] = Record
    read: Callable[[Any], Iterable[Record]] | None = None
    documents: Callable[[Any], list[Document]] = one_document
    hub: tuple[str, ...] = ()
    local: LocalFiles | None = None
    command: PrepareCommand | None = None
    mini: Callable[[Path], None] | None = None
    prepare_mini: Callable[[Path, Path], object] | None = None
    version: str = "1"
    doubt: Callable[[Mapping[str, Any]], str | None] | None = None
    revision: str | None = None
    automatic: AutomaticPreparation | None = None

    @property
    def hub_files(self) -> HubFiles | None:
        """The files that ``hub`` names; None without ``hub``."""
        if not self.hub:
            return None
        dataset, *patterns = self.hub
        return HubFiles(dataset, tuple(patterns), self.revision)


@dataclass(frozen=True)
class RecordCounts:
    """How many records a complete preparation has.

    Args:
        kinds: names the counts of the data manifest that a record belongs to.
        published: the expected counts. ``rows`` excludes kinds that start with ``apart``.
        apart: prefix of the kinds that share one count of that name.
        coverage: the source and the task under which a record is counted as prepared or not; None
            if it is not counted.
    """

    kinds: Callable[[Any], Iterable[str]] | None = None
    published: Mapping[str, int] = field(default_factory=dict)
    apart: str | None = None
    coverage: Callable[[Any], tuple[str, str] | None] | None = None


@dataclass(frozen=True)
class ScoringRules:
    """How answered samples become scores.

    Args:
        join: joins samples into items. A benchmark with its own ``join`` does not support repeats.
        pooled: metrics over several tasks, computed from an item's other values.
        errors: rates of kinds of error (`medtasks.benchmarks.error_kinds.Errors`), which are pooled
            as well.
        to_judge: by rubric, whether its judge is asked about a document and filtered response; a
            rubric without an entry is always asked.
        parts: the breakdown whose groups count only their own part of an item.
        levels: tasks of increasing difficulty; gaps between adjacent levels are reported.
    """

    join: Callable[[Sequence[SampleView]], Joined] = sample_items
    pooled: Mapping[str, Callable[[Item], Value | None]] = field(default_factory=dict)
    errors: Any = None
    to_judge: Mapping[str, Callable[[Mapping[str, Any], str], bool]] = field(default_factory=dict)
    parts: str | None = None
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class StreamRules:
    """What is particular to streams.

    Args:
        timeline: a sample's turn in its item, for the leaderboard's timelines.
        sampled_frames: whether documents show at most ``MEDTASKS_MAX_FRAMES`` frames of their
            windows, which makes the variable part of the protocol.
    """

    timeline: Callable[[SampleView], Turn] | None = None
    sampled_frames: bool = False


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Args:
        name: the benchmark's identifier, the first part of its tasks' names.
        title: its name as people write it.
        publication: paper, source and licence.
        data: how the data are prepared.
        cluster: what samples of one cluster share, such as ``patient``; intervals resample
            clusters.
        visible_fields: the only document fields that a prompt template can see, so that no template
            leaks the gold answer.
        breakdowns: by name, the groups of an item's first sample; an item may be in several groups,
            or in none.
        options: the letters that every document offers, unless it has options of its own.
        null_option: the option that says that no other one is right.
        scoring: how answers are scored.
        counts: how many records are expected.
        stream: what is particular to streams.
        requires_media: whether every document must have media; false for a benchmark of text.
    """

    name: str
    title: str
    publication: Publication
    data: DataSource
    cluster: str
    visible_fields: frozenset[str]
    breakdowns: Mapping[str, Callable[[SampleView], tuple[str, ...]]]
    options: tuple[str, ...] = ()
    null_option: str | None = None
    scoring: ScoringRules = ScoringRules()
    counts: RecordCounts = RecordCounts()
    stream: StreamRules = StreamRules()
    requires_media: bool = True

    def option_count(self, document: Mapping[str, Any]) -> int:
        """The number of options that a guess at the document chooses from.

        0 for an open answer, and where several options may be selected.
        """
        if document.get("multi_select"):
            return 0
        options = document.get("choices") or document.get("options") or self.options
        if isinstance(options, Mapping):
            return sum(text is not None for text in options.values())
        return len(options)

    @property
    def repeatable(self) -> bool:
        """Whether a question may be asked several times (``repeats``)."""
        return self.scoring.join is sample_items
