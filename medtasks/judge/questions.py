"""The questions that judges are asked about the responses in samples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from medtasks.benchmarks.documents import all_pictures
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import FAILED
from medtasks.judge.pipeline import Question
from medtasks.judge.user_message import ImageSource
from medtasks.runs.samples import Sample
from medtasks.scoring.rubric_scorer import judged_responses

if TYPE_CHECKING:
    from PIL.Image import Image


def questions_of(
    samples: Mapping[str, Sequence[Sample]],
    tasks: Sequence[str],
    rubric: Rubric,
    fingerprints: Mapping[str, str] | None = None,
) -> list[Question]:
    """A question for every response in ``tasks`` that ``rubric`` is to be asked about.

    Args:
        samples: the samples of a run, by task.
        tasks: the tasks that are judged under the rubric.
        rubric: the rubric that judges get.
        fingerprints: those of the prepared data, by benchmark, if judges see images or frames; by
            default, questions have none.
    """
    questions = []
    for task in tasks:
        asks = load_spec(task).benchmark.scoring.to_judge.get(rubric.name)
        for sample in samples[task]:
            if sample.status == FAILED:
                continue
            document = sample.whole_document()
            images: tuple[ImageSource, ...] = ()
            if fingerprints:
                images = _image_sources(document, fingerprints[document["benchmark"]])
            for number, text in enumerate(judged_responses(sample)):
                if asks is None or asks(document, text):
                    name = question_name(sample, number)
                    questions.append(Question(name, document, text, images))
    return questions


def question_name(sample: Sample, number: int) -> str:
    """The name of the question about one of a sample's responses, counted from 0."""
    return f"{sample.task}/{sample.sample_id}#{number}"


def _image_sources(document: Mapping[str, Any], fingerprint: str) -> tuple[ImageSource, ...]:
    """The document's images or frames, each identified by data and name, to be loaded later."""
    names = document["media"]
    if document.get("frames"):
        video = names[0]
        names = [f"{video}@{frame}" for frame in document["frames"]]
    images = []
    for place, name in enumerate(names):
        key = hashlib.sha256(f"{fingerprint}/{name}".encode()).hexdigest()
        images.append(ImageSource(key, partial(_picture_at, document, place)))
    return tuple(images)


def _picture_at(document: Mapping[str, Any], place: int) -> Image:
    """The document's image at ``place``, also in a blind run: its judge is not blind."""
    return all_pictures(document)[place]
