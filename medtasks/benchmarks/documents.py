"""The documents of a task for the harness, and the prompt functions that every task file names.

Chat back-ends get one user turn, media first; simple ones the same by ``doc_to_visual`` and
``doc_to_text``. A task's system prompt is a turn of its own, or the beginning of the text for
back-ends that take none (`SYSTEM_IN_TEXT`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from medtasks.answers.stages import join_stages
from medtasks.benchmarks.rows import Rows
from medtasks.catalog.benchmark import Document
from medtasks.catalog.prompts import render
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import MedtasksError
from medtasks.core.settings import current_settings
from medtasks.data.media.frame_store import FRAMES
from medtasks.data.media.images import IMAGES, EncodedPicture, read_picture
from medtasks.data.store import open_prepared

if TYPE_CHECKING:
    from PIL.Image import Image


def task_documents(task: str, *, media: bool = True) -> list[Document]:
    """Documents of a task, as the harness will see them."""
    return task_rows(task).documents(media=media)


def task_rows(task: str) -> Rows:
    """The rows of a task."""
    spec = load_spec(task)
    rows = spec.function("process_docs")
    if not isinstance(rows, Rows):
        function = spec.resolved["process_docs"]
        raise MedtasksError(
            f"{spec.path}: field `process_docs`: {function} is not a medtasks.api.Rows; fix it."
        )
    return rows


def prompt_text(doc: Mapping[str, Any], template: str, **values: str) -> str:
    """The prompt's text: ``template`` rendered with the visible fields and ``values``.

    A document of a paraphrased question names its own template, which is used instead.
    """
    if "prompt_of" in doc:
        template = doc["prompt_template"]
    visible = get_benchmark(doc["benchmark"]).visible_fields
    return render(template, **_present(doc, visible), **values)


def _present(doc: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    """The ``fields`` that the document has, without options that only other documents have."""
    present = {name: doc[name] for name in sorted(fields) if name in doc}
    choices = present.get("choices")
    if choices:
        # a dataset pads missing options with None
        own = {letter: text for letter, text in choices.items() if text is not None}
        present["choices"] = own
    return present


def doc_to_visual(doc: Mapping[str, Any]) -> list[Image]:
    """The document's images or video frames, RGB, in the order of the prompt.

    There are none in a blind run.
    """
    if current_settings().blind:
        return []
    return all_pictures(doc)


def all_pictures(doc: Mapping[str, Any]) -> list[Image]:
    """As :func:`doc_to_visual`, but in a blind run as well: judges see the media."""
    prepared = open_prepared(doc["benchmark"])
    if doc.get("frames"):
        name = doc["media"][0]
        further = prepared.item_frames.get(doc["item_id"], ())
        path = prepared.media_path(name)
        return FRAMES.load(path, prepared.videos[name], doc["frames"], further)
    paths = [prepared.media_path(name) for name in doc["media"]]
    return [IMAGES.load(path, paths) for path in paths]


_EncodedPictures: TypeAlias = dict[tuple[str, str], EncodedPicture]
"""By benchmark and name of the file."""

_ENCODED: ContextVar[_EncodedPictures | None] = ContextVar("encoded", default=None)


@contextmanager
def encoded_pictures() -> Iterator[None]:
    """Within the block, :func:`user_turn` decodes no image.

    Each file is one `EncodedPicture`, for another process.
    """
    token = _ENCODED.set({})
    try:
        yield
    finally:
        _ENCODED.reset(token)


def user_turn(doc: Mapping[str, Any], text: str) -> dict[str, Any]:
    """One user turn: every picture in order, then the text.

    Video frames also carry their ``time`` in seconds.
    """
    content: list[dict[str, Any]] = []
    for picture in _pictures_of_turn(doc):
        content.append({"type": "image", "url": picture})
    if doc.get("frames") and content:
        for part, time in zip(content, doc["times"], strict=True):
            part["time"] = time
    content.append({"type": "text", "text": text})
    return {"role": "user", "content": content}


def _pictures_of_turn(doc: Mapping[str, Any]) -> Sequence[Image | EncodedPicture]:
    """The turn's images: encoded within :func:`encoded_pictures`, otherwise decoded.

    Video frames are always decoded.
    """
    encoded = _ENCODED.get()
    if encoded is None or doc.get("frames") or current_settings().blind:
        return doc_to_visual(doc)
    pictures = []
    benchmark = doc["benchmark"]
    for name in doc["media"]:
        key = benchmark, name
        if key not in encoded:
            path = open_prepared(benchmark).media_path(name)
            encoded[key] = EncodedPicture(str(path), read_picture(path))
        pictures.append(encoded[key])
    return pictures


SYSTEM_IN_TEXT = "system_in_text"
"""Key of ``lmms_eval_specific_kwargs``, set for back-ends that take no system prompt."""


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any]) -> str:
    """The prompt as one text for the harness: the system prompt, if any, comes first."""
    text = prompt_text(doc, lmms_eval_specific_kwargs["template"])
    system = lmms_eval_specific_kwargs.get("system_template")
    if system is None:
        return text
    return f"{render(system)}\n\n{text}"


def doc_to_messages(
    doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The prompt as chat messages for the harness: the system prompt, if any, then a user turn."""
    system = lmms_eval_specific_kwargs.get("system_template")
    if system is None or lmms_eval_specific_kwargs.get(SYSTEM_IN_TEXT):
        return [user_turn(doc, doc_to_text(doc, lmms_eval_specific_kwargs))]
    system_turn = {"role": "system", "content": [{"type": "text", "text": render(system)}]}
    text = prompt_text(doc, lmms_eval_specific_kwargs["template"])
    return [system_turn, user_turn(doc, text)]


WITHHELD = frozenset({"choices", "options"})
"""Fields that no template of stage 1 may use."""


class TextRound(NamedTuple):
    """What a simple back-end gets after a round, in the order that lmms-eval unpacks.

    ``media`` and ``text`` are the next prompt, and None if there is none because the conversation
    ``is_over``. ``outputs`` are then the final response, otherwise the responses so far. No
    ``state`` is passed from round to round.
    """

    media: list[Any] | None
    text: str | None
    is_over: bool
    outputs: list[str]
    state: None = None


class MessagesRound(NamedTuple):
    """What a chat back-end gets after a round: as `TextRound`, with the next prompt as messages."""

    messages: list[dict[str, Any]] | None
    is_over: bool
    outputs: list[str]
    state: None = None


def stage_text(
    doc: Mapping[str, Any],
    lmms_eval_specific_kwargs: Mapping[str, Any],
    previous_output: Sequence[str] | None = None,
    round_idx: int | None = None,
    previous_round_info: object = None,  # noqa: ARG001  (the harness passes it)
) -> str | TextRound:
    """The prompt of stage 1 or, after ``round_idx`` rounds, the round that follows."""
    if not round_idx:
        return first_prompt(doc, lmms_eval_specific_kwargs["stage1_template"])
    outputs = list(previous_output or ())
    if round_idx > 1:
        return TextRound(None, None, is_over=True, outputs=[join_stages(outputs)])
    text = second_prompt(doc, lmms_eval_specific_kwargs["template"], outputs[0])
    return TextRound([], text, is_over=False, outputs=outputs)


def stage_messages(
    doc: Mapping[str, Any],
    lmms_eval_specific_kwargs: Mapping[str, Any],
    round_idx: int | None = None,
    previous_output: Sequence[str] | None = None,
    previous_round_info: object = None,  # noqa: ARG001  (the harness passes it)
) -> list[dict[str, Any]] | MessagesRound:
    """As :func:`stage_text`, for chat back-ends: one user turn per stage, images in the first."""
    stage = stage_text(doc, lmms_eval_specific_kwargs, previous_output, round_idx)
    if isinstance(stage, str):
        return [user_turn(doc, stage)]
    messages = None
    if stage.text is not None:
        messages = [{"role": "user", "content": [{"type": "text", "text": stage.text}]}]
    return MessagesRound(messages, stage.is_over, stage.outputs)


def first_prompt(doc: Mapping[str, Any], template: str) -> str:
    """The prompt of stage 1: ``template`` with the visible fields, the options withheld."""
    visible = get_benchmark(doc["benchmark"]).visible_fields - WITHHELD
    return render(template, **_present(doc, visible))


def second_prompt(doc: Mapping[str, Any], template: str, first_response: str) -> str:
    """The prompt of stage 2: ``template`` with the visible fields and the response to stage 1."""
    return prompt_text(doc, template, observations=first_response.strip())


def asked_prompt(spec: TaskSpec, doc: Mapping[str, Any]) -> str:
    """The text with which a task asks about ``doc``, as samples log it: of two stages the first."""
    if spec.stage1_template is not None:
        return first_prompt(doc, spec.stage1_template)
    return doc_to_text(doc, {"template": spec.template, "system_template": spec.system_template})
