"""``medtasks new PACKAGE --package --from FOLDER``: a benchmark folder as a package.

The package has the folder's files, the task files that follow from them, and a module with the
functions that the task files name. The module has the name of the benchmark, so that tasks,
templates, rubrics and scores keep their names. So do the functions: runs of the folder and of the
package have the same protocol.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
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
from medtasks.cli.scaffold.rendering import rendered, require_empty, write_texts
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
    copied = list(_own_files(folder))
    texts = rendered("folder", _fields(package, folder, copied))
    module = f"src/{folder.name}"
    texts[f"{module}/{FILE_NAME}"] = _described(folder)
    texts[f"{module}/tasks/placeholder.jsonl"] = PLACEHOLDER
    for name, text in task_texts(folder).items():
        texts[f"{module}/tasks/{folder.name}/{name}.yaml"] = _of_package(text, folder)
    for template in folder.path.glob("*.j2"):
        path = f"{module}/templates/{folder.name}/{template.name}"
        texts[path] = template.read_text(encoding="utf-8")
    for name, rubric in folder.rubrics.items():
        texts[f"{module}/rubrics/{name}.yaml"] = rubric.read_text(encoding="utf-8")
    write_texts(target, texts)
    for file in copied:
        copy = target / module / file.relative_to(folder.path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return folder


def files_elsewhere(folder: BenchmarkFolder) -> tuple[Path, ...]:
    """The data file and the directory of the pictures where they are outside of the folder."""
    root = folder.path.resolve()
    paths = (folder.data.resolve(), folder.images.resolve())
    return tuple(path for path in paths if not path.is_relative_to(root))


def _fields(package: str, folder: BenchmarkFolder, copied: list[Path]) -> dict[str, str]:
    """What the package's own files are rendered with."""
    scoring = folder_scoring(folder.file)
    patterns = [FILE_NAME, "tasks/**/*", "templates/**/*"]
    if folder.rubrics:
        patterns.append("rubrics/*")
    for file in copied:
        first, *rest = file.relative_to(folder.path).parts
        pattern = f"{first}/**/*" if rest else first
        if pattern not in patterns:
            patterns.append(pattern)
    return {
        "package": package,
        "module": folder.name,
        "benchmark": folder.name,
        "title": folder.file.title,
        "description": json.dumps(f"{folder.file.title}: tasks for medtasks and lmms-eval"),
        "files": json.dumps(patterns),
        "rows": f"{ROWS}{folder.name}",
        "scoring": scoring.function,
        "metric": scoring.metrics[0],
        "tasks": ",".join(task_names(folder.file)),
        "template": folder.templates[0],
    }


def _own_files(folder: BenchmarkFolder) -> Iterator[Path]:
    """The data file and the pictures that are in the folder itself.

    They are all files below the directory of the pictures. If that is the folder, those that have
    another purpose are left out.
    """
    root = folder.path.resolve()
    data = folder.data.resolve()
    if data.is_relative_to(root):
        yield folder.path / data.relative_to(root)
    images = folder.images.resolve()
    if not images.is_relative_to(root):
        return
    with_purpose = {(root / FILE_NAME), data, *root.glob("*.j2")}
    with_purpose.update(rubric.resolve() for rubric in folder.rubrics.values())
    for file in sorted(images.rglob("*")):
        path = file.relative_to(root)
        is_hidden = any(part.startswith(".") for part in path.parts)
        if file.is_file() and file not in with_purpose and not is_hidden:
            yield folder.path / path


def _described(folder: BenchmarkFolder) -> str:
    """The text of ``benchmark.yaml`` in the package.

    Files outside of the folder are named by their absolute paths. The rubric is left out: the task
    files name it.
    """
    lines = (folder.path / FILE_NAME).read_text(encoding="utf-8").splitlines(keepends=True)
    root = folder.path.resolve()
    for key, path in (("data", folder.data), ("images", folder.images)):
        if (key,) in folder.lines and not path.resolve().is_relative_to(root):
            _replace_value(folder, lines, key, f"{key}: {json.dumps(str(path.resolve()))}\n")
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
