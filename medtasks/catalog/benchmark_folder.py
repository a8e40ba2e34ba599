"""Benchmark folders: benchmarks without code, described by a ``benchmark.yaml`` beside the prompt.

A folder has ``benchmark.yaml``, the prompt templates that it names, and the data and pictures or
their paths. :mod:`medtasks.catalog.benchmark_file` is the schema of ``benchmark.yaml``, and
:mod:`medtasks.catalog.folder_tasks` has the task files that follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from medtasks.catalog.benchmark_file import BenchmarkFile
from medtasks.catalog.marked_yaml import parse_yaml
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.findings import Finding, Place, finding
from medtasks.core.schema import Keys, field_name, own_problems, problems, shown

FILE_NAME = "benchmark.yaml"
"""The file that makes a directory a benchmark folder."""


@dataclass(frozen=True)
class BenchmarkFolder:
    """A benchmark folder whose ``benchmark.yaml`` is valid.

    Attributes:
        path: the folder.
        file: the content of its ``benchmark.yaml``.
        lines: the line of every key of it, by the path of keys.
    """

    path: Path
    file: BenchmarkFile
    lines: Mapping[Keys, int]

    @property
    def name(self) -> str:
        """The name of the benchmark."""
        return self.file.name

    @property
    def data(self) -> Path:
        """The file of rows."""
        return self.path / Path(self.file.data).expanduser()

    @property
    def images(self) -> Path:
        """The directory of the pictures that rows name by paths."""
        if self.file.images is None:
            return self.data.parent
        return self.path / Path(self.file.images).expanduser()

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the prompts' templates, which begin with the benchmark's name."""
        return tuple(f"{self.name}/{prompt}" for prompt in self.file.prompt)

    @property
    def template_directories(self) -> tuple[Path, ...]:
        """Where the templates are: in the folder itself or, if it was made into a package, in
        ``templates/``.
        """
        packaged = self.path / "templates" / self.name
        return (self.path, packaged) if packaged.is_dir() else (self.path,)

    @property
    def rubrics(self) -> dict[str, Path]:
        """The rubric's file by its name: that of the file, after the benchmark's name."""
        file = self.file.rubric
        if file is None:
            return {}
        stem = Path(file).stem
        name = stem if stem.startswith(f"{self.name}_") else f"{self.name}_{stem}"
        return {name: self.path / file}

    @property
    def row_columns(self) -> dict[Keys, str]:
        """Every column that ``benchmark.yaml`` names, by the keys that name it."""
        named: dict[Keys, str] = {}
        for key, value in self.file.columns:
            if isinstance(value, str):
                named["columns", key] = value
            elif isinstance(value, dict):
                named |= {("columns", key, letter): column for letter, column in value.items()}
            elif value:
                named |= {("columns", key, number): column for number, column in enumerate(value)}
        for key in ("breakdowns", "visible"):
            for number, column in enumerate(getattr(self.file, key)):
                named[key, number] = column
        return named

    def place(self, *keys: str | int) -> Place:
        """Where the value at ``keys`` is in ``benchmark.yaml``, or what it would be added to."""
        return _place(self.path / FILE_NAME, self.lines, keys)


def is_benchmark_folder(path: Path) -> bool:
    """Whether a directory has a ``benchmark.yaml``."""
    return (path / FILE_NAME).is_file()


def load_benchmark_folder(path: Path) -> BenchmarkFolder:
    """The benchmark folder at ``path``.

    Raises:
        UsageError: it is not a benchmark folder.
        MedtasksError: its ``benchmark.yaml`` is not valid; names the line, and counts the others.
    """
    folder, defects = read_benchmark_folder(path)
    if folder is None:
        first = defects[0]
        more = f" ({len(defects) - 1} more: medtasks validate {path})" if defects[1:] else ""
        place = f"{first.file}, line {first.line}"
        raise MedtasksError(f"{place}: {first.message}{more}")
    return folder


def read_benchmark_folder(path: Path) -> tuple[BenchmarkFolder | None, list[Finding]]:
    """The benchmark folder at ``path``, or None and everything that is wrong with its files.

    Raises:
        UsageError: there is no ``benchmark.yaml``.
    """
    file = path / FILE_NAME
    if not is_benchmark_folder(path):
        state = "has no benchmark.yaml" if path.is_dir() else "is not a directory"
        raise UsageError(
            f"{path}: {state}, expected a benchmark folder; check the path, or begin one with "
            "`medtasks new NAME --from ROWS`."
        )
    try:
        text = file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"not a readable UTF-8 file ({error})"
        return None, [finding("MT101", path.name, message, Place(file, 1), fix="fix or restore it")]
    marked = parse_yaml(text, file)
    if marked.defects:
        return None, marked.defects
    if not isinstance(marked.content, dict):
        message = f"the file contains {shown(marked.content)}, expected keys such as `name: my_vqa`"
        return None, [finding("MT102", path.name, message, Place(file, 1))]
    try:
        folder = BenchmarkFolder(path, BenchmarkFile.model_validate(marked.content), marked.lines)
    except ValidationError as error:
        return None, list(_schema_findings(error, path, marked.lines))
    defects = list(_missing_files(folder))
    return (None if defects else folder), defects


_CODES = {"extra_forbidden": "MT107", "missing": "MT110", "MT113": "MT113", "MT114": "MT114"}
"""The rule for each of pydantic's types of error; all others are MT109."""


def _schema_findings(
    error: ValidationError, path: Path, lines: Mapping[Keys, int]
) -> Iterator[Finding]:
    """The values of a ``benchmark.yaml`` that its schema refuses."""
    for problem in own_problems(list(problems(error, BenchmarkFile))):
        code = _CODES.get(problem.kind, "MT109")
        place = _place(path / FILE_NAME, lines, problem.keys)
        yield finding(code, path.name, problem.message, place, field_name(problem.keys))


def _missing_files(folder: BenchmarkFolder) -> Iterator[Finding]:
    """The files that a ``benchmark.yaml`` names, but that do not exist."""
    if not folder.data.is_file():
        yield _file_finding(folder, "MT109", "data", f"{folder.data}, expected a file of rows")
    elif not folder.images.is_dir():
        yield _file_finding(folder, "MT109", "images", f"{folder.images}, expected a directory")
    for prompt in folder.file.prompt:
        if not _is_in(folder.template_directories, prompt, ".j2"):
            state = f"{shown(prompt)}, expected a .j2 file in the folder"
            yield _file_finding(folder, "MT201", "prompt", state)
    rubric = folder.file.rubric
    if rubric is not None and not _is_in([folder.path], rubric, ".yaml"):
        state = f"{shown(rubric)}, expected a .yaml file in the folder"
        yield _file_finding(folder, "MT109", "rubric", state)


def _is_in(directories: Iterable[Path], name: str, suffix: str) -> bool:
    """Whether ``name`` is a file with this suffix directly in one of the directories."""
    if Path(name).name != name or not name.endswith(suffix):
        return False
    return any((directory / name).is_file() for directory in directories)


def _file_finding(folder: BenchmarkFolder, code: str, key: str, state: str) -> Finding:
    """The finding that a file named at ``key`` is not what was expected."""
    message = f"field `{key}` is {state}"
    return finding(code, folder.path.name, message, folder.place(key), key)


def _place(file: Path, lines: Mapping[Keys, int], keys: Keys) -> Place:
    """The line of the value at ``keys``, or of the mapping that lacks it."""
    for length in range(len(keys), 0, -1):
        if keys[:length] in lines:
            return Place(file, lines[keys[:length]])
    return Place(file, 1)
