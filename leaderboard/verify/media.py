"""Pictures from the data prepared here. Results choose none of them: a sample's id finds its
document in the data.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks.catalog.benchmark import Document
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MediaError, MedtasksError, first_line
from medtasks.data.media.images import IMAGES
from medtasks.data.media.video import FRAMES
from medtasks.data.miniatures import prepare_mini
from medtasks.data.prepared import open_directory
from medtasks.data.store import open_prepared
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.local_documents import local_documents

if TYPE_CHECKING:
    from PIL.Image import Image

SMALL = 320
"""Longer side of a small picture, in pixels."""


@dataclass(frozen=True)
class Shown:
    """The media of a sample: how many pictures there are, and the times of frames; or why there are
    none to show.
    """

    count: int = 0
    times: tuple[float, ...] = ()
    absent: str = ""


def shown_media(sample: Sample, manifest: RunManifest) -> Shown:
    """What can be shown of the sample's media."""
    try:
        document = _document(sample.task, sample.sample_id, manifest)
    except MedtasksError as error:
        benchmark = load_spec(sample.task).metadata.benchmark
        facts = manifest.data.get(benchmark)
        fix = (
            "run the model again"
            if facts and facts.mini
            else f"prepare them: {get_benchmark(benchmark).data.prepare}"
        )
        return Shown(absent=f"Pictures need the data of this run; {fix} ({first_line(error)})")
    return Shown(_count(document), tuple(document.get("times") or ()))


def picture(task: str, sample_id: str, manifest: RunManifest, number: int, small: bool) -> bytes:
    """Picture or frame ``number`` of a sample as models get it (RGB, upright), as PNG; a ``small``
    one as JPEG.

    `MedtasksError` if the data are not prepared, or there is no such picture.
    """
    image = _image(_document(task, sample_id, manifest), number, manifest)
    stream = io.BytesIO()
    if small:
        image = image.copy()
        image.thumbnail((SMALL, SMALL))
        image.save(stream, "JPEG", quality=88)
    else:
        image.save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def pictures(task: str, sample_id: str, manifest: RunManifest) -> list[Image]:
    """All pictures or frames of a sample as models get them, in order; errors are those of
    :func:`picture`.
    """
    document = _document(task, sample_id, manifest)
    return [_image(document, number, manifest) for number in range(_count(document))]


def _count(document: Document) -> int:
    return len(document.get("frames") or document["media"])


def _image(document: Document, number: int, manifest: RunManifest) -> Image:
    benchmark, frames, names = document["benchmark"], document.get("frames"), document["media"]
    mini = manifest.data[benchmark].mini
    prepared = open_directory(prepare_mini(benchmark)) if mini else open_prepared(benchmark)
    if not 0 <= number < _count(document):
        raise MediaError(f"{document['sample_id']}: has no picture {number}.")
    if not frames:
        return IMAGES.load(prepared.media_path(names[number]))
    also = prepared.item_frames.get(document["item_id"], ())
    # all of them: the page asks for the others next
    return FRAMES.load(prepared.media_path(names[0]), prepared.videos[names[0]], frames, also)[
        number
    ]


def _document(task: str, sample_id: str, manifest: RunManifest) -> Document:
    benchmark = load_spec(task).metadata.benchmark
    if benchmark not in manifest.data:
        raise MediaError(f"the run's manifest names no data of {benchmark}.")
    documents = local_documents(task, manifest)
    if sample_id not in documents:
        raise MediaError(f"{task}: the data prepared here have no sample {sample_id}.")
    return documents[sample_id]
