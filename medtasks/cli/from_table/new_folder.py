"""``medtasks new NAME --from ROWS``, from the table to the benchmark folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from medtasks.catalog.benchmark_file import BenchmarkFile, BenchmarkName
from medtasks.catalog.benchmark_folder import BenchmarkFolder
from medtasks.catalog.folders_in_use import refuse_other_folder
from medtasks.cli.benchmark_folders import (
    add_benchmark_folder,
    refuse_names_of_packages,
    taken_by_harness,
)
from medtasks.cli.console import fail, write
from medtasks.cli.from_table.columns import TableColumn, TableColumns
from medtasks.cli.from_table.folder_files import (
    FolderFacts,
    FolderSources,
    benchmark_text,
    require_absent,
    write_folder,
)
from medtasks.cli.from_table.picture_folder import has_urls, picture_folder, picture_paths
from medtasks.cli.from_table.proposal import Proposal
from medtasks.cli.from_table.review import Ask, decided
from medtasks.cli.from_table.wishes import Wishes
from medtasks.core.errors import DataError, UsageError
from medtasks.core.schema import first_problem, shown
from medtasks.core.text import counted, printable
from medtasks.data.folder_rows import read_folder, undecodable_pictures
from medtasks.data.release import Release
from medtasks.data.row_faults import RowFault
from medtasks.data.sources import content_of, encoding_of
from medtasks.data.table_formats import TableFormat, format_of_table

_MOST_FAULTS = 10
"""Faulty rows that are printed; the others are counted."""
_ACRONYMS = frozenset(["ct", "cxr", "ecg", "eeg", "icu", "mcq", "mri", "pet", "qa", "us", "vqa"])


@dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        name: the name of the benchmark.
        table: the file of rows.
        target: the folder to write.
        wishes: what is not to be guessed.
        title: the benchmark's name for people; by default from ``name``.
        licence: of rows and pictures.
        images: the directory that paths of pictures are relative to; by default it is searched.
        copy: whether rows and pictures are copied; by default if they are small.
        encoding: that of a text file which is not in UTF-8.
        judge: whether a judge scores open answers.
        add: whether the folder's tasks are made available.
    """

    name: str
    table: Path
    target: Path
    wishes: Wishes
    title: str | None = None
    licence: str = "unknown"
    images: Path | None = None
    copy: bool | None = None
    encoding: str | None = None
    judge: bool = False
    add: bool = True


def new_folder(request: Request, ask: Ask | None) -> None:
    """Write the benchmark folder for a table of questions.

    ``ask`` asks a person; None if there is no terminal.

    Raises:
        UsageError: a choice is open, or an option is wrong.
        DataError: the table cannot be read, or rows are faulty; nothing is written then. Pictures
            that are not copied are only decoded when the folder is added.
    """
    _require_name(request.name)
    require_absent(request.target)
    facts = FolderFacts(
        name=request.name,
        title=request.title or title_of(request.name),
        licence=request.licence,
        rubric=request.judge,
    )
    with _in_utf8(request) as (table, text):
        columns = TableColumns.of_file(table)
        proposal = decided(columns, request.wishes, ask)
        _require_open_answers(request, proposal)
        pictures = [columns[name] for name in proposal.images]
        sources = _sources(request, pictures, text)
        is_local = not has_urls(pictures)
        checked = benchmark_text(request.target, facts, proposal, sources)
        checked_folder = _checked_folder(request, checked, table, sources.images, is_local=is_local)
        if request.add:
            _require_free_names(checked_folder)
        _require_sound_rows(checked_folder, decode=bool(sources.copied_pictures))
        names = write_folder(request.target, facts, proposal, sources)
    write(printable(f"wrote {request.target}: {', '.join(names)}"))
    for path in sources.elsewhere:
        write(printable(f"  not copied: {path}"))
    if request.add:
        add_benchmark_folder(request.target)


def _sources(request: Request, pictures: Sequence[TableColumn], text: str | None) -> FolderSources:
    """Where the rows and the ``pictures`` that they name are; ``text`` are rows to be written."""
    paths = picture_paths(pictures)
    images = request.images or picture_folder(request.table, list(paths))
    return FolderSources(
        table=request.table.resolve(),
        images=images.resolve(),
        pictures=paths,
        copy=request.copy,
        text=text,
    )


def _require_open_answers(request: Request, proposal: Proposal) -> None:
    """Refuse ``--judge`` for answers that are compared with a letter or label."""
    kind = proposal.answers.kind
    if request.judge and kind != "open":
        raise UsageError(
            f"--judge: answers are {kind}, which need no judge; leave it out, or pass "
            "--answers open."
        )


def title_of(name: str) -> str:
    """A title from the name of a benchmark.

    >>> title_of("my_cxr_study")
    'My CXR study'
    """
    words = [word.upper() if word in _ACRONYMS else word for word in name.split("_")]
    title = " ".join(words)
    return title[:1].upper() + title[1:]


def _require_name(name: str) -> None:
    """Refuse a name that no benchmark can have."""
    try:
        TypeAdapter(BenchmarkName).validate_python(name)
    except ValidationError as error:
        raise UsageError(
            f"{shown(name)} cannot be the name of a benchmark, expected a name of lower-case "
            "letters, digits and underscores such as my_vqa; give another name."
        ) from error


def _require_free_names(folder: BenchmarkFolder) -> None:
    """Refuse a name that prevents the folder from being added, before it is written."""
    refuse_other_folder(folder.name, folder.path)
    taken = taken_by_harness(folder.file)
    if taken:
        raise UsageError(
            f"{folder.name}: lmms-eval has a task {taken[0]} already; give another name."
        )
    refuse_names_of_packages(folder.file)


# --- encodings ---


@contextmanager
def _in_utf8(request: Request) -> Iterator[tuple[Path, str | None]]:
    """The table in a Unicode encoding, and its text if that is new.

    Raises:
        UsageError: it is in none, and no encoding is given; the message shows what the most
            frequent other one would read.
    """
    if request.encoding is None:
        if format_of_table(request.table) in (TableFormat.CSV, TableFormat.JSON):
            _require_unicode(request.table)
        yield request.table, None
        return
    try:
        text = content_of(request.table).decode(request.encoding)
    except LookupError as error:
        raise UsageError(
            f"--encoding {request.encoding}: is unknown, expected a name such as cp1252."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{request.table.name}: is not in {request.encoding} ({error.reason}); give another "
            "--encoding."
        ) from error
    if request.copy is False:
        raise UsageError("--encoding: the rows are written in UTF-8; leave --no-copy out.")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / request.table.name
        table.write_text(text, encoding="utf-8", newline="")
        yield table, text


def _require_unicode(path: Path) -> None:
    """Refuse a text file that is not in UTF-8, nor marked as another encoding of Unicode."""
    data = content_of(path)
    try:
        data.decode(encoding_of(data))
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        excerpt = _in_windows_encoding(data, error.start)
        fix = "save the file as UTF-8 (in Excel: CSV UTF-8)"
        if excerpt:
            fix = f"if {shown(excerpt)} is correct there, pass --encoding cp1252, otherwise {fix}"
        raise UsageError(
            f"{path.name}, line {number}, column {column}: byte 0x{data[error.start]:02x} is not "
            f"UTF-8; {fix}."
        ) from error


def _in_windows_encoding(data: bytes, position: int) -> str:
    """The text around a byte as it is in Windows-1252, without its line's beginning and end; empty
    if it is none.
    """
    line_begin = data.rfind(b"\n", 0, position) + 1
    before = data[max(line_begin, position - 20) : position]
    after = data[position : position + 20].partition(b"\n")[0]
    try:
        text = (before + after).decode("cp1252").strip()
    except UnicodeDecodeError:
        return ""
    return text if text.replace("\t", " ").isprintable() else ""


# --- rows ---


def _checked_folder(
    request: Request, text: str, table: Path, images: Path, *, is_local: bool
) -> BenchmarkFolder:
    """The folder as it will be with this text of ``benchmark.yaml``, with the rows in ``table``.

    If pictures are not local, the columns with their URLs are left out: they are fetched when the
    folder is added.

    Raises:
        UsageError: the text is not valid, as an option is wrong.
    """
    content = {**yaml.safe_load(text), "data": str(table.resolve()), "images": str(images)}
    content.pop("rubric", None)  # its file does not exist yet
    if not is_local:
        del content["columns"]["image"]
    try:
        file = BenchmarkFile.model_validate(content)
    except ValidationError as error:
        problem = first_problem(error, source=content)
        raise UsageError(f"{request.table.name}: {problem}; correct the options.") from error
    return BenchmarkFolder(request.target, file, {})


def _require_sound_rows(folder: BenchmarkFolder, *, decode: bool) -> None:
    """Read all rows as they will be read from the folder, and ``decode`` their picture files.

    Raises:
        DataError: a row is faulty; the first ones are printed.
    """
    reading = read_folder(folder, Release(folder.data))
    faults = reading.faults
    if decode and not faults:
        faults = list(undecodable_pictures(folder, reading))
    if faults:
        raise _faulty(faults)


def _faulty(faults: Sequence[RowFault]) -> DataError:
    """The error that rows are faulty, after the first faults have been printed."""
    if len(faults) == 1:
        return DataError(f"{faults[0]} Nothing was written.")
    for fault in faults[:_MOST_FAULTS]:
        fail(fault)
    more = len(faults) - _MOST_FAULTS
    rest = f" ({more:,} more are not shown)" if more > 0 else ""
    return DataError(
        f"{counted(len(faults), 'fault')}{rest}: nothing was written; correct the rows and run the "
        "same command again."
    )
