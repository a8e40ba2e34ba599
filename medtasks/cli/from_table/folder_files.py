"""The files of a new benchmark folder, which are written together or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from medtasks.catalog.benchmark_folder import FILE_NAME
from medtasks.catalog.records import Where
from medtasks.cli.from_table.prompts import prompt_template
from medtasks.cli.from_table.proposal import Proposal
from medtasks.core.errors import UsageError
from medtasks.core.files import is_file
from medtasks.core.replacement import temporary_beside

MOST_COPIED = 20 * 2**20
"""Bytes of rows and pictures that are copied unless the user says otherwise."""
_TEMPLATES = Path(__file__).parent / "files"


@dataclass(frozen=True)
class FolderSources:
    """Where the rows and pictures of a new folder are.

    Attributes:
        table: the file of rows.
        images: the directory that paths of pictures are relative to.
        pictures: the paths of pictures that rows name, with the first row that names each.
        copy: whether rows and pictures are copied; by default if they are small.
        text: the rows as they are written if their encoding changes; None to copy the file.
    """

    table: Path
    images: Path
    pictures: Mapping[str, Where]
    copy: bool | None = None
    text: str | None = None

    @property
    def is_copied(self) -> bool:
        """Whether rows are copied into the folder."""
        if self.copy is not None or self.text is not None:
            return self.copy is not False
        return self.table.stat().st_size <= MOST_COPIED

    @property
    def copied_pictures(self) -> dict[str, Path]:
        """The pictures that are copied by their paths below ``images``; none if one is missing,
        they are large, or a path leads elsewhere.
        """
        if not self.is_copied or not self.pictures:
            return {}
        files = {path: self.images / path for path in self.pictures}
        size = 0
        for path, file in files.items():
            parts = PurePosixPath(path).parts
            if "\\" in path or path.startswith("/") or ".." in parts or not is_file(file):
                return {}
            size += file.stat().st_size
        is_small = size + self.table.stat().st_size <= MOST_COPIED
        return files if is_small or self.copy else {}

    @property
    def elsewhere(self) -> list[Path]:
        """The file of rows and the directory of pictures, unless they are copied."""
        paths: list[Path] = []
        if not self.is_copied:
            paths.append(self.table)
        if self.pictures and not self.copied_pictures:
            paths.append(self.images)
        return paths

    @property
    def copied_images(self) -> str:
        """The directory of the copied pictures; empty if their paths name directories already."""
        return "" if all("/" in path for path in self.copied_pictures) else "images"


@dataclass(frozen=True)
class FolderFacts:
    """What a new folder states about the benchmark besides its columns."""

    name: str
    title: str
    licence: str
    rubric: bool


def require_absent(target: Path) -> None:
    """Raise a `UsageError` if there is a file or directory ``target``."""
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target}: exists already; remove it, or give another directory (--out).")


def write_folder(
    target: Path, facts: FolderFacts, proposal: Proposal, sources: FolderSources
) -> list[str]:
    """Write a benchmark folder and return the names of its files, with pictures as their
    directory.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(target) as folder:
        for name, text in _texts(target, facts, proposal, sources).items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
        if sources.is_copied and sources.text is None:
            shutil.copyfile(sources.table, folder / sources.table.name)
        for path, file in sources.copied_pictures.items():
            copied = folder / sources.copied_images / path
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)
        names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
        folder.rename(target)
    return names


def _texts(
    target: Path, facts: FolderFacts, proposal: Proposal, sources: FolderSources
) -> Mapping[str, str]:
    """The texts of the folder's files, by their names."""
    prompt = prompt_template(
        proposal.answers.kind,
        proposal.language,
        has_instructions=proposal.instructions is not None,
    )
    texts = {
        FILE_NAME: benchmark_text(target, facts, proposal, sources),
        "question.j2": prompt,
    }
    if sources.text is not None:
        texts[sources.table.name] = sources.text
    if facts.rubric:
        for name in ("rubric.yaml", "judge.j2"):
            text = (_TEMPLATES / name).read_text(encoding="utf-8")
            texts[name] = text.replace("<<name>>", facts.name)
    return texts


def benchmark_text(
    target: Path, facts: FolderFacts, proposal: Proposal, sources: FolderSources
) -> str:
    """The text of ``benchmark.yaml``."""
    return "".join(f"{line}\n" for line in _benchmark_lines(target, facts, proposal, sources))


def _benchmark_lines(
    target: Path, facts: FolderFacts, proposal: Proposal, sources: FolderSources
) -> Iterator[str]:
    """Yield the lines of ``benchmark.yaml``."""
    yield f"name: {facts.name}"
    yield f"title: {_yaml(facts.title)}"
    yield f"language: {_yaml(proposal.language)}"
    yield f"licence: {_yaml(facts.licence)}  # of rows and pictures"
    yield ""
    yield from _source_lines(target, proposal, sources)
    if proposal.fixed_question:
        yield f"question: {_yaml(proposal.fixed_question)}  # of every row"
    yield "columns:  # their names in the file"
    for key, value in _columns(proposal).items():
        yield f"  {key}: {_yaml(value)}"
    yield ""
    yield f"answers: {proposal.answers.kind}  # options, yes/no, closed (labels) or open"
    if proposal.answers.form != "letter or text":
        yield f"answer_form: {proposal.answers.form}"
    if proposal.breakdowns:
        yield f"breakdowns: {_yaml(list(proposal.breakdowns))}  # scores for each value"
    yield "prompt: question.j2"
    if facts.rubric:
        yield "rubric: rubric.yaml  # by which a judge scores answers"


def _source_lines(target: Path, proposal: Proposal, sources: FolderSources) -> Iterator[str]:
    """Yield the lines that state where rows and pictures are."""
    data = sources.table.name if sources.is_copied else _path_from(target, sources.table)
    yield f"data: {_yaml(data)}"
    if not proposal.images:
        return
    if sources.copied_pictures:
        if sources.copied_images:
            yield f"images: {sources.copied_images}"
    elif sources.pictures and (sources.is_copied or sources.images != sources.table.parent):
        yield f"images: {_yaml(_path_from(target, sources.images))}"


def _path_from(target: Path, path: Path) -> str:
    """A path as the folder ``target`` states it: relative if both are in one directory tree."""
    target, path = target.resolve(), path.resolve()
    if path.is_relative_to(target.parent):
        return PurePosixPath(os.path.relpath(path, target)).as_posix()
    return path.as_posix()


def _columns(proposal: Proposal) -> dict[str, Any]:
    """The content of ``columns``."""
    images = proposal.images[0] if len(proposal.images) == 1 else list(proposal.images)
    columns = {
        "question": proposal.question or None,
        "image": images or None,
        "options": proposal.options,
        "answer": proposal.answer,
        "id": proposal.id,
        "cluster": proposal.cluster,
        "instructions": proposal.instructions,
    }
    return {key: value for key, value in columns.items() if value is not None}


def _yaml(value: Any) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, width=10**6, sort_keys=False
    )
    return text.removesuffix("...\n").strip()
