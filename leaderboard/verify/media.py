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
from medtasks.data.media.frame_store import FRAMES
from medtasks.data.media.images import IMAGES
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
    """The media of a sample: the number of pictures and, for frames, their times and the start and
    end of the window that they are of, if it is stated.

    ``absent`` says why there are none to show.
    """

    count: int = 0
    times: tuple[float, ...] = ()
    window: tuple[float, float] | None = None
    absent: str = ""


def shown_media(sample: Sample, manifest: RunManifest) -> Shown:
    """The number of the sample's pictures and the times of its frames, or why none can be shown."""
    try:
        document = _document(sample.task, sample.sample_id, manifest)
    except MedtasksError as error:
        fix = _fix_for_missing_data(sample.task, manifest)
        return Shown(absent=f"Pictures need the data of this run; {fix} ({first_line(error)})")
    return Shown(
        count=_count(document),
        times=tuple(document.get("times") or ()),
        window=_window(document),
    )


def _window(document: Document) -> tuple[float, float] | None:
    """The start and the end of a document's window, if it states both."""
    start, end = document.get("window_start"), document.get("window_end")
    if start is None or end is None:
        return None
    return float(start), float(end)


def _fix_for_missing_data(task: str, manifest: RunManifest) -> str:
    """What a user can do if the documents that the run was asked are not on this machine."""
    benchmark = load_spec(task).metadata.benchmark
    facts = manifest.data.get(benchmark)
    if facts is not None and facts.mini:
        # miniature data are generated here when needed; if they differ from those of the run,
        # another version of medtasks made those, and this one cannot make them again
        return "run the model again"
    return f"prepare them: {get_benchmark(benchmark).data.prepare}"


def picture(task: str, sample_id: str, manifest: RunManifest, number: int, small: bool) -> bytes:
    """Picture or frame ``number`` of a sample as models get it: RGB, upright.

    It is a PNG, or a JPEG if it is to be ``small``.

    Raises:
        MedtasksError: the data are not prepared, or there is no such picture.
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
    """All pictures or frames of a sample as models get them, in order.

    Raises:
        MedtasksError: the data are not prepared.
    """
    document = _document(task, sample_id, manifest)
    return [_image(document, number, manifest) for number in range(_count(document))]


def _count(document: Document) -> int:
    return len(document.get("frames") or document["media"])


def _image(document: Document, number: int, manifest: RunManifest) -> Image:
    """Picture or frame ``number`` of a document, from the data of the run."""
    benchmark, frames, names = document["benchmark"], document.get("frames"), document["media"]
    mini = manifest.data[benchmark].mini
    prepared = open_directory(prepare_mini(benchmark)) if mini else open_prepared(benchmark)
    if not 0 <= number < _count(document):
        raise MediaError(f"{document['sample_id']}: has no picture {number}.")
    if not frames:
        return IMAGES.load(prepared.media_path(names[number]))
    video = names[0]
    item_frames = prepared.item_frames.get(document["item_id"], ())
    # all frames are loaded: the page asks for the others next
    loaded = FRAMES.load(prepared.media_path(video), prepared.videos[video], frames, item_frames)
    return loaded[number]


def _document(task: str, sample_id: str, manifest: RunManifest) -> Document:
    """A sample's document in the data prepared here."""
    benchmark = load_spec(task).metadata.benchmark
    if benchmark not in manifest.data:
        raise MediaError(f"the run's manifest names no data of {benchmark}.")
    documents = local_documents(task, manifest)
    if sample_id not in documents:
        raise MediaError(f"{task}: the data prepared here have no sample {sample_id}.")
    return documents[sample_id]
