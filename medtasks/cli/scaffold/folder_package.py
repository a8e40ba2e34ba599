"""``medtasks new PACKAGE --package --from FOLDER``: a benchmark folder as a package.

The package has the folder's files, the task files generated from them, and a module with the
functions that the task files name. The module is named after the benchmark, so that tasks,
templates, rubrics, scores and functions keep their names, and runs of the folder and of the package
have the same protocol.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from glob import escape
from pathlib import Path

from medtasks.catalog.benchmark_folder import FILE_NAME, BenchmarkFolder, load_benchmark_folder
from medtasks.catalog.folder_tasks import (
    CODE,
    PLACEHOLDER,
    ROWS,
    folder_scoring,
    task_names,
    task_texts,
)
from medtasks.cli.scaffold import check_module_name, check_package_name
from medtasks.cli.scaffold.rendering import as_toml, rendered, require_empty, write_texts
from medtasks.core.errors import UsageError

_PUBLIC_API = "medtasks.api"


def write_folder_package(target: Path, package: str, source: Path) -> BenchmarkFolder:
    """Write the benchmark folder at ``source`` as a package into ``target``, and return the folder.

    Raises:
        UsageError: a name cannot be used, or ``target`` is not empty.
        MedtasksError: ``benchmark.yaml`` is not valid.
    """
    folder = load_benchmark_folder(source)
    check_package_name(package)
    check_module_name(folder.name, f"the package would be imported as {folder.name}")
    require_empty(target)
    texts = _module_texts(folder)
    copied = [path for path in _own_files(folder) if path.as_posix() not in texts]
    module = Path("src", folder.name)
    fields = _fields(package, folder, copied)
    files = {**rendered("project", fields), **rendered("folder", fields)}
    files |= {(module / path).as_posix(): text for path, text in texts.items()}
    write_texts(target, files)
    for path in copied:
        copy = target / module / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder.path / path, copy)
    return folder


def files_elsewhere(folder: BenchmarkFolder) -> tuple[Path, ...]:
    """The data file and the directory of the pictures, if they are outside of the folder."""
    root = folder.path.resolve()
    paths = (folder.data.resolve(), folder.images.resolve())
    return tuple(path for path in paths if not path.is_relative_to(root))


def _module_texts(folder: BenchmarkFolder) -> dict[str, str]:
    """The texts of the module's files that are generated from the folder, by their paths."""
    texts = {FILE_NAME: _described(folder), "tasks/placeholder.jsonl": PLACEHOLDER}
    for name, text in task_texts(folder).items():
        texts[f"tasks/{folder.name}/{name}.yaml"] = _of_package(text, folder)
    for template in sorted(folder.path.glob("*.j2")):
        path = f"templates/{folder.name}/{template.name}"
        texts[path] = template.read_text(encoding="utf-8")
    for name, rubric in folder.rubrics.items():
        texts[f"rubrics/{name}.yaml"] = rubric.read_text(encoding="utf-8")
    return texts


def _fields(package: str, folder: BenchmarkFolder, copied: list[Path]) -> dict[str, str]:
    """The values that the templates of the package's own files are rendered with."""
    scoring = folder_scoring(folder.file)
    return {
        "package": package,
        "module": folder.name,
        "benchmark": folder.name,
        "variant": "",
        "test": as_toml(["pytest"]),
        "title": folder.file.title,
        "description": as_toml(f"{folder.file.title}: tasks for medtasks and lmms-eval"),
        "files": as_toml(_patterns(folder, copied)),
        "rows": f"{ROWS}{folder.name}",
        "scoring": scoring.function,
        "metric": scoring.metrics[0],
        "tasks": ",".join(task_names(folder.file)),
        "template": folder.templates[0],
    }


def _patterns(folder: BenchmarkFolder, copied: list[Path]) -> list[str]:
    """Patterns of the module's files that are not code, for setuptools."""
    patterns = [FILE_NAME, "tasks/**/*", "templates/**/*"]
    if folder.rubrics:
        patterns.append("rubrics/*")
    patterns += map(_pattern, copied)
    return list(dict.fromkeys(patterns))


def _pattern(path: Path) -> str:
    """A pattern of a file: all files of its top directory, or all that have its suffix."""
    if len(path.parts) > 1:
        return f"{escape(path.parts[0])}/**/*"
    if path.suffix:
        return f"*{escape(path.suffix)}"
    return escape(path.name)


def _own_files(folder: BenchmarkFolder) -> Iterator[Path]:
    """The paths of the data file and of the pictures that are in the folder itself.

    Pictures are all files below their directory. If that is the folder, files with another purpose
    and code are left out.
    """
    root = folder.path.resolve()
    data = folder.data.resolve()
    if data.is_relative_to(root):
        yield data.relative_to(root)
    images = folder.images.resolve()
    if not images.is_relative_to(root):
        return
    with_purpose = {root / FILE_NAME, data, *root.glob("*.j2")}
    with_purpose.update(rubric.resolve() for rubric in folder.rubrics.values())
    for file in sorted(images.rglob("*")):
        path = file.relative_to(root)
        is_hidden = any(part.startswith(".") for part in path.parts)
        is_code = file.suffix in (".py", ".pyc")
        if file.is_file() and file not in with_purpose and not is_hidden and not is_code:
            yield path


def _described(folder: BenchmarkFolder) -> str:
    """The text of ``benchmark.yaml`` in the package.

    Files outside of the folder are named by their absolute paths, those in it by relative ones. The
    rubric is left out: the task files name it.
    """
    lines = (folder.path / FILE_NAME).read_text(encoding="utf-8").splitlines(keepends=True)
    root = folder.path.resolve()
    values = {"data": folder.file.data, "images": folder.file.images}
    for key, path in (("data", folder.data.resolve()), ("images", folder.images.resolve())):
        value = values[key]
        if value is None:
            continue
        is_inside = path.is_relative_to(root)
        is_plain = not value.startswith(("/", "~")) and ".." not in Path(value).parts
        if not is_inside or not is_plain:
            stated = path.relative_to(root) if is_inside else path
            _replace_value(folder, lines, key, f"{key}: {as_toml(stated.as_posix())}\n")
    if folder.rubrics:
        _replace_value(folder, lines, "rubric", "")
    return "".join(lines)


def _replace_value(folder: BenchmarkFolder, lines: list[str], key: str, line: str) -> None:
    """Replace the line of a key of ``benchmark.yaml``."""
    position = folder.lines[(key,)] - 1
    if not re.match(rf"{key}\s*:\s*\S", lines[position]):
        raise UsageError(f"{folder.place(key)}: write `{key}` and its value on one line.")
    lines[position] = line


def _of_package(text: str, folder: BenchmarkFolder) -> str:
    """The text of a task file, with the functions of the package and of the public API."""
    text = text.replace(f"!function {CODE}.", f"!function {folder.name}.")
    return text.replace("medtasks.benchmarks.documents.", f"{_PUBLIC_API}.")
