"""Documents for the harness, and the prompt functions that every task file names.

Chat back-ends get one user turn: the media, then one text part. Simple back-ends get the same media through
``doc_to_visual`` and the same text through ``doc_to_text``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.benchmarks.base import Document
from medtasks.border import at_border
from medtasks.data.media import default_cache
from medtasks.data.store import Prepared, open_prepared
from medtasks.errors import MediaError
from medtasks.prompts import render

if TYPE_CHECKING:
    from datasets import Dataset
    from PIL.Image import Image

__all__ = ["doc_to_messages", "doc_to_text", "doc_to_visual", "documents", "rows"]


def documents(benchmark: str, keep: Callable[[Document], bool] = lambda document: True) -> list[Document]:
    """Documents of the prepared records for which ``keep`` is true, in prepared order.

    Raises:
        NotPreparedError: the benchmark has not been prepared; the message holds the command.
        MediaError: a file that a kept record needs vanished or changed size since it was prepared.
        DataError: no record is kept.
    """
    from medtasks.benchmarks import get_benchmark

    module = _module(benchmark)
    prepared = open_prepared(benchmark)
    chosen = [
        document
        for document in ({"benchmark": benchmark, **module.document(record)} for record in prepared.records())
        if keep(document)
    ]
    _refuse_missing(prepared, chosen, get_benchmark(benchmark).prepare)
    return chosen


def rows(
    benchmark: str, keep: Callable[[Document], bool] = lambda document: True
) -> Callable[[Any], Dataset]:
    """A ``process_docs`` that puts the prepared documents in the place of the task file's placeholder."""

    @at_border
    def process_docs(placeholder: Dataset) -> Dataset:
        from datasets import Dataset

        del placeholder
        chosen = documents(benchmark, keep)
        if not chosen:
            _stop_without_rows(benchmark)
        return Dataset.from_list(chosen)

    return process_docs


@at_border
def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any]) -> str:
    """The prompt's text: the task's template over the fields that the benchmark lets a prompt see."""
    from medtasks.benchmarks import get_benchmark

    visible = get_benchmark(doc["benchmark"]).visible_fields
    return render(lmms_eval_specific_kwargs["template"], **{key: doc[key] for key in sorted(visible)})


@at_border
def doc_to_visual(doc: Mapping[str, Any]) -> list[Image]:
    """The document's images, RGB, in the order of the prompt; decoded once while they stay in the cache.

    Raises:
        MediaError: (as exit code 1) an image is missing, truncated or not an image.
    """
    prepared = open_prepared(doc["benchmark"])
    return [default_cache().load(prepared.media_path(name)) for name in doc["media"]]


@at_border
def doc_to_messages(
    doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """One user turn: every image in order, then the text of :func:`doc_to_text`."""
    content: list[dict[str, Any]] = [{"type": "image", "url": image} for image in doc_to_visual(doc)]
    content.append({"type": "text", "text": doc_to_text(doc, lmms_eval_specific_kwargs)})
    return [{"role": "user", "content": content}]


def _module(benchmark: str) -> Any:
    from importlib import import_module

    return import_module(f"medtasks.benchmarks.{benchmark}")


def _stop_without_rows(benchmark: str) -> None:
    from medtasks.benchmarks import get_benchmark
    from medtasks.errors import DataError

    raise DataError(
        f"the prepared data of {benchmark} hold no row for this task; prepare a source that has some: "
        f"{get_benchmark(benchmark).prepare}"
    )


def _refuse_missing(prepared: Prepared, chosen: list[Document], command: str) -> None:
    needed = {name for document in chosen for name in document["media"]}
    missing: list[Path] = sorted(
        prepared.media_path(name) for name in prepared.missing_media() if name in needed
    )
    if missing:
        rest = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise MediaError(
            f"{missing[0]}{rest}: gone or changed since the data were prepared; restore them, or prepare again: "
            f"{command}"
        )
