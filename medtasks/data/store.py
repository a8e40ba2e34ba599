"""``medtasks prepare``: from records to prepared data, in a hidden directory that replaces the
finished one when complete; and the prepared data of a benchmark, or its miniature.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel, ValidationError
from typing_extensions import Unpack

from medtasks.catalog.benchmark import Benchmark, PrepareCommand
from medtasks.catalog.contents import once, raised_in
from medtasks.catalog.records import Record
from medtasks.catalog.registry import all_benchmarks, benchmark_owner, get_benchmark
from medtasks.core.cache import writable_cache
from medtasks.core.errors import (
    DamagedDataError,
    DataError,
    MediaError,
    MedtasksError,
    NotPreparedError,
    UsageError,
    first_line,
)
from medtasks.core.files import held, recover_directory, replace_directory, temporary_beside
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.hub import hub_tree
from medtasks.data.media.images import KnownMedia, MediaIndex, index_media
from medtasks.data.prepared import (
    DataManifest,
    Prepared,
    Source,
    data_root,
    is_mini,
    open_directory,
)
from medtasks.data.progress import Progress
from medtasks.data.release import Release
from medtasks.data.writing import Contents, Exclusions, media_of, remove_other_media, write_contents

NAMED = 10
_KEPT = Path(
    "media"
)  # in the prepared data: pictures that were fetched, unpacked, or taken out of rows

T = TypeVar("T", bound=BaseModel)

Bars = Callable[[str], AbstractContextManager[Progress]]  # opens a progress bar with that title
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Directory to prepare into (default: below MEDTASKS_DATA).",
        show_default=False,
    ),
]
Workers = Annotated[
    int, typer.Option("--workers", help="Threads that verify pictures; 0 chooses a number.", min=0)
]


class Options(TypedDict, total=False):
    """Options of every ``medtasks prepare`` command, a listener to progress, and whether these are
    miniature data.
    """

    references_only: Annotated[
        bool,
        typer.Option(
            "--references-only",
            help="Questions and answers without media: enough to score predictions, not to run models.",
        ),
    ]
    workers: Workers
    progress: Progress | None
    mini: bool


class PictureOptions(Options, total=False):
    """Those of a benchmark whose rows are refused unless they have all of their pictures."""

    allow_missing_media: Annotated[
        bool,
        typer.Option(
            "--allow-missing-media", help="Leave out rows without pictures and count them."
        ),
    ]


@dataclass
class Preparation:
    """A directory beside the finished data (``out``, by default below the data root), as a context
    manager that locks these against other preparations. The files of an interrupted one are reused.
    Entering raises :class:`UsageError` if ``out`` is not prepared data, or has media that data
    without media would replace.
    """

    name: str
    out: Path | None
    _: KW_ONLY
    allow_missing_media: bool = False
    references_only: bool = False
    workers: int = 0
    progress: Progress | None = None
    mini: bool = False

    def __post_init__(self) -> None:
        self.benchmark = get_benchmark(self.name)
        self.target = (self.out or data_root() / self.name).resolve()  # `.` has no name
        self.directory = self.target.with_name(f".{self.target.name}.partial")
        self._held = ExitStack()

    def __enter__(self) -> Preparation:
        with ExitStack() as stack:
            try:
                self.target.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(
                    held(self.target, "prepared", ", or give another directory with --out")
                )
                recover_directory(self.target)
                foreign = self.target.exists() and not (self.target / "manifest.json").is_file()
                if foreign and (not self.target.is_dir() or any(self.target.iterdir())):
                    raise UsageError(
                        f"{self.target}: exists and does not contain prepared data; give a new directory with --out."
                    )
                with contextlib.suppress(DataError):  # no readable data there
                    if (
                        self.references_only
                        and not open_directory(self.target).manifest.references_only
                    ):
                        raise UsageError(
                            f"{self.target}: already has prepared data with media; give another directory with --out."
                        )
                self.directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(
                    f"{self.target}: cannot be written ({error.strerror}); give another directory with --out."
                ) from error
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @contextmanager
    def progress_log(
        self, name: str, kind: type[T]
    ) -> Iterator[tuple[list[T], Callable[[T], None]]]:
        """What interrupted passes wrote to the log ``name``, and a function that appends an entry
        to it.
        """
        log = self.directory / f"{name}.progress.jsonl"
        known: list[T] = []
        for line in (
            log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else ()
        ):
            with contextlib.suppress(ValidationError):  # the line that a crash cut off
                known.append(kind.model_validate_json(line))
        with log.open("a", encoding="utf-8", buffering=1) as stream:
            stream.write("\n")  # ends the line that a crash may have cut off
            yield known, lambda entry: print(entry.model_dump_json(), file=stream)

    def index(self, root: Path, names: set[str], progress: Progress | None = None) -> MediaIndex:
        """Verify ``names`` below ``root``, except those that an interrupted pass has verified."""
        with self.progress_log("media", KnownMedia) as (known, write):
            return index_media(
                root, names, workers=self.workers, known=known, write=write, progress=progress
            )

    def finish(
        self,
        source: Source,
        records: Sequence[Record],
        root: Path = _KEPT,
        *,
        details: Mapping[str, Mapping[str, int]] | None = None,
        unavailable: Mapping[str, MediaError] | None = None,
    ) -> Prepared:
        """Verify the pictures of ``records`` below ``root`` (unless references only), and write the
        rows that are left. ``unavailable`` are the media that could not be fetched, and why.
        """
        if not records:
            raise DataError(f"{source.name}: has no row, expected at least one; fetch it again.")
        names = (
            set() if self.references_only else {name for record in records for name in record.media}
        )
        not_fetched = {name: error for name, error in (unavailable or {}).items() if name in names}
        files = self._files_below(root)
        index = self.index(files, names - not_fetched.keys(), self.progress)
        index = replace(index, errors={**index.errors, **not_fetched})
        if index.errors and not self.allow_missing_media:
            raise _unusable(records, index.errors)
        left_out = dict(_without_pictures(records, index.errors, files))
        if len(left_out) == len(records):
            raise DataError(
                f"{source.name}: no row is left, because none has a picture; check --images."
            )
        return self.complete(source, records, root, index, details or {}, left_out=left_out)

    def complete(
        self,
        source: Source,
        records: Sequence[Record],
        root: Path,
        index: MediaIndex,
        details: Mapping[str, Mapping[str, int]],
        *,
        left_out: Mapping[str, str] | None = None,
        original: DataManifest | None = None,
    ) -> Prepared:
        """Write records, media index and manifest, and replace ``target``. Records that are
        ``left_out``, a reason by sample id, are counted, and the media with errors are named.
        ``original`` is the manifest of the prepared data that the records were made of: what was
        left out then is not there now, and all media of ``index`` are kept.
        """
        if original is not None:
            kept, exclusions = records, Exclusions.of_manifest(original)
        else:
            reasons = left_out or {}
            kept = [record for record in records if record.sample_id not in reasons]
            exclusions = Exclusions.of(records, reasons, index.errors, self._files_below(root))
            index = media_of(kept, index)
        remove_other_media(self.directory / _KEPT, index.entries)
        contents = Contents(
            source=source,
            records=kept,
            all_records=records,
            media=index.entries,
            uniform=index.uniform,
            media_root=self._written_root(root),
            exclusions=exclusions,
            details=details,
            references_only=self.references_only,
            mini=self.mini,
        )
        write_contents(self.directory, self.benchmark, contents)
        for log in self.directory.glob("*.progress.jsonl"):
            log.unlink()
        replace_directory(self.target, self.directory)
        return open_directory(self.target)

    def _files_below(self, root: Path) -> Path:
        return self.directory / _KEPT if root == _KEPT else root.resolve()

    def _written_root(self, root: Path) -> Path:
        """The media root as the manifest states it."""
        if root == _KEPT:
            return root
        # miniature data are moved with their pictures
        return Path(os.path.relpath(root, self.directory)) if self.mini else root.resolve()


def _unusable(records: Sequence[Record], errors: Mapping[str, MediaError]) -> MediaError:
    rows = first_names(
        str(row) for row, record in enumerate(records, start=1) if errors.keys() & set(record.media)
    )
    named = " ".join(map(str, [*errors.values()][:NAMED]))
    rest = f" And {len(errors) - NAMED} more." if len(errors) > NAMED else ""
    return MediaError(
        f"{len(errors)} of the pictures cannot be used (rows {rows}): {named}{rest} Or leave out and count their rows "
        "with --allow-missing-media."
    )


def _without_pictures(
    records: Sequence[Record], errors: Mapping[str, MediaError], files: Path
) -> Iterator[tuple[str, str]]:
    """The id of each record that lacks a usable picture, and whether that is missing or
    unreadable.
    """
    for record in records:
        unusable = [name for name in record.media if name in errors]
        if unusable:
            there = all((files / name).is_file() for name in unusable)
            yield record.sample_id, "unreadable_image" if there else "missing_image"


def prepare_package(
    benchmark: Benchmark,
    source: Path,
    out: Path | None = None,
    *,
    media: Path | None = None,
    **options: Unpack[PictureOptions],
) -> Prepared:
    """Prepare the records that ``benchmark.read`` yields of the release ``source`` (``hub``: of
    `Benchmark.hub`). Pictures are below ``media`` (default: ``source``), in ZIP archives there, or
    in the rows.
    """
    if benchmark.read is None:
        raise UsageError(
            f"{benchmark.name} cannot read data; its package must set `read` of the Benchmark."
        )
    origin = Source(kind="package", name=source.name)
    if str(source) == "hub" and not source.exists():
        if not benchmark.hub:
            raise UsageError(
                f"{benchmark.name} is not on the hub; give its files with --source DIR."
            )
        source, commit = hub_tree(*benchmark.hub)
        origin = Source(kind="hub", name=benchmark.hub[0], revision=commit)
    with Preparation(benchmark.name, out, **options) as place:
        release = Release(
            source, media, None if place.references_only else place.directory / "media"
        )
        records: list[Record] = []
        try:
            for record in benchmark.read(release):
                if not isinstance(record, benchmark.record):
                    found, expected = type(record).__name__, benchmark.record.__name__
                    raise DataError(
                        f"{benchmark.name}: read() returned a {found}, expected {expected}."
                    )
                records.append(record)
        except MedtasksError:
            raise
        except Exception as error:
            raise DataError(
                f"{source}: the reader of {benchmark.name} failed after {len(records)} records "
                f"({type(error).__name__}: {error}); check the source, or report it to the package's authors."
            ) from error
        names = [record.sample_id for record in records]
        if twice := sorted(name for name, times in Counter(names).items() if times > 1):
            rows = first_names(
                str(row) for row, name in enumerate(names, start=1) if name == twice[0]
            )
            where = f"{shown(twice[0])} (rows {rows})"
            raise DataError(
                f"{source}: {len(twice)} sample ids are duplicated, such as {where}; make them unique."
            )
        release.unpack(place.progress)
        return place.finish(origin, records, release.media_root)


def parameters_of(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """The parameters of ``function``, with command options in place of ``**options:
    Unpack[Options]``.
    """
    defaults = inspect.signature(Preparation).parameters
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter
            continue
        for name, hint in sorted(
            get_type_hints(get_args(parameter.annotation)[0], include_extras=True).items()
        ):
            if get_origin(hint) is Annotated:
                yield defaults[name].replace(annotation=hint)


def prepare_command(prepare: Callable[..., Prepared], title: str, *examples: str) -> PrepareCommand:
    """The command whose options are the typer-annotated parameters of ``prepare``, which also takes
    ``progress``, a bar headed ``title``; the first line of its docstring is the command's help.
    """

    def run(bars: Bars, **options: Any) -> Iterator[Prepared]:
        with bars(title) as bar:
            prepared = prepare(progress=bar, **options)
        yield prepared

    first = next(iter(inspect.signature(run).parameters.values()))
    options = [one for one in parameters_of(prepare) if get_origin(one.annotation) is Annotated]
    run.__signature__ = inspect.Signature([first, *options])  # type: ignore[attr-defined]
    run.__doc__ = (prepare.__doc__ or "").partition("\n\n")[0]
    return PrepareCommand(run, examples)


# --- what is prepared, and miniature data: drawn pictures and rows, prepared on first use ---

_PARTS = ("records.jsonl", "media.jsonl")
"""Files of prepared data beside their manifest."""
MINI_VERSION = "7"  # bumped when the shared preparation code changes


def open_prepared(benchmark: str) -> Prepared:
    """The prepared data of ``benchmark``; or its miniature, made on first use (:func:`is_mini`).

    Raises:
        NotPreparedError: there are none; with the command that prepares them.
        DamagedDataError: they cannot be read, or the miniature data cannot be made.
    """
    if is_mini(benchmark):
        return open_directory(prepare_mini(benchmark))
    directory = data_root() / benchmark
    try:
        recover_directory(directory)
        is_prepared = (directory / "manifest.json").is_file()
        left = [] if is_prepared else [name for name in _PARTS if (directory / name).exists()]
    except OSError as error:
        raise DamagedDataError(
            f"{directory}: cannot be read ({error.strerror}); give access to it."
        ) from error
    command = get_benchmark(benchmark).prepare
    if left:
        raise DamagedDataError(
            f"{directory}: has {left[0]}, but no manifest.json; prepare the data again: {command}"
        )
    if not is_prepared:
        raise NotPreparedError(
            f"{benchmark} is not prepared in {data_root()}; run: {command} "
            "(or set MEDTASKS_DATA=mini to try the miniature data)"
        )
    prepared = open_directory(directory)
    if prepared.manifest.benchmark != benchmark:
        found = shown(prepared.manifest.benchmark)
        raise DamagedDataError(
            f"{directory / 'manifest.json'}: field `benchmark` is {found}, expected {benchmark!r}; prepare the data "
            f"again: {command}"
        )
    return prepared


def prepare_mini(benchmark: str) -> Path:
    """Directory of the prepared miniature data of ``benchmark``, made on first use, and again if
    they are damaged.

    Safe for several processes: each works in its own directory, and the first to finish wins.

    Raises:
        UsageError: the benchmark has no miniature data.
        DamagedDataError: they cannot be written.
        MedtasksError: the benchmark's package cannot make them.
    """
    # the hash separates data made by different versions of the package
    version = _code_hash(benchmark_owner(benchmark).tasks.parent)
    target = writable_cache() / f"mini-{MINI_VERSION}" / f"{benchmark}-{version}"
    prepared = target / "prepared"
    if _is_whole(prepared):
        return prepared
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(target) as work:
            _make_mini(benchmark, work)
            replace_directory(target, work)
    except OSError as error:
        if not _is_whole(prepared):  # else another process was first
            raise DamagedDataError(
                f"{target}: the miniature data of {benchmark} cannot be written ({_reason(error)}); free some space, "
                "or set MEDTASKS_CACHE to another directory."
            ) from error
    return prepared


def _reason(error: OSError) -> str:
    """Why a file cannot be written; of several that were copied, the first."""
    if isinstance(error, shutil.Error):
        *_, first = error.args[0][0]
        return str(first)
    return error.strerror or str(error)


def _is_whole(prepared: Path) -> bool:
    """Whether the prepared data are there as they were prepared."""
    try:
        changed = (prepared / "manifest.json").stat().st_mtime_ns
    except OSError:
        return False
    return _was_whole(prepared, changed)


@functools.lru_cache(maxsize=32)  # every document opens its dataset
def _was_whole(prepared: Path, manifest_mtime_ns: int) -> bool:
    del manifest_mtime_ns  # part of the key, so data that were made again are looked at again
    try:
        return open_directory(prepared).is_whole()
    except DamagedDataError:
        return False


def _make_mini(benchmark: str, work: Path) -> None:
    """Draw the miniature release of ``benchmark`` below ``work``, and prepare it there."""
    known = get_benchmark(benchmark)
    if known.mini is None:
        names = ", ".join(one.name for one in all_benchmarks().values() if one.mini is not None)
        raise UsageError(f"there are no miniature data for {benchmark!r}; choose from {names}.")
    source = work / "source"
    source.mkdir()
    try:
        known.mini(source)
    except OSError:
        raise
    except Exception as error:
        where = raised_in(error)
        raise MedtasksError(
            f"`mini` of benchmark {benchmark} fails {where}: {first_line(error)}."
        ) from error
    try:
        prepare = known.prepare_mini or partial(prepare_package, known, mini=True)
        prepare(source, work / "prepared")
    except MedtasksError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from error
        # the directory that its message names is deleted now
        text = re.sub(rf"{re.escape(str(work))}/source(/|: )", "", str(error))
        raise MedtasksError(f"miniature data of {benchmark}: {text}") from error


@once
def _code_hash(folder: Path) -> str:
    """Hash of a package's code and data; miniature data are prepared again after every change."""
    digest = hashlib.sha256()
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"
    ):
        text = path.suffix in (".py", ".json", ".jsonl", ".yaml")
        content = path.read_bytes() if text else str(path.stat().st_size).encode()
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:16]
