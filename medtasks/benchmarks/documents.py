"""Documents for the harness, and the prompt functions that every task file names.

Chat back-ends get one user turn, media first; simple ones the same by ``doc_to_visual`` and
``doc_to_text``. A task's system prompt is a turn of its own, or the beginning of the text for
back-ends that take none (`SYSTEM_IN_TEXT`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from medtasks.answers.option_letter import join_stages
from medtasks.catalog.benchmark import Document
from medtasks.catalog.contents import raised_in
from medtasks.catalog.prompts import render
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core import errors
from medtasks.core.errors import (
    MediaError,
    MedtasksError,
    NoRowsError,
    NotPreparedError,
    first_line,
)
from medtasks.core.settings import current_settings
from medtasks.core.text import first_names
from medtasks.data.media.images import IMAGES, EncodedPicture, read_picture
from medtasks.data.media.video import FRAMES
from medtasks.data.media.windows import thin
from medtasks.data.prepared import Prepared
from medtasks.data.store import open_prepared

if TYPE_CHECKING:
    from datasets import Dataset
    from PIL.Image import Image


T = TypeVar("T")


@dataclass(frozen=True)
class Rows:
    """The rows of one subtask; as ``process_docs`` they replace the task file's placeholder.

    ``change`` turns all of the benchmark's documents into those of a variant; ``unusable`` gives
    the reason why a row of the subtask cannot be asked in this form (empty if it can): such rows
    are left out and counted. ``variants`` are the documents that ask a row of the subtask.
    """

    benchmark: str
    keep: Callable[[Document], bool]
    change: Callable[[list[Document]], list[Document]] | None = None
    unusable: Callable[[Document], str] | None = None
    variants: Callable[[Document], list[Document]] | None = None

    @classmethod
    def where(cls, benchmark: str, **fields: object) -> Rows:
        """The rows whose documents have these values."""
        return cls(benchmark, lambda row: all(row[name] == value for name, value in fields.items()))

    def documents(self, *, media: bool = True) -> list[Document]:
        """Documents of the prepared records that belong to this subtask, in prepared order.

        ``MEDTASKS_SUBSET`` restricts them to some clusters (`medtasks.core.settings.Subset`). With
        ``media``, their files must exist with the size (and, in a sample of 16, the content) they
        had, or a :class:`MediaError` is raised. No row is a :class:`NoRowsError`; errors of the
        benchmark's functions name function, row, file and line.
        """
        prepared = open_prepared(self.benchmark)
        rows = list(self._own(prepared))
        chosen = [document for document, reason in rows if not reason]
        command = get_benchmark(self.benchmark).prepare
        if not chosen:
            left_out = ", ".join(f"{count:,} {reason}" for reason, count in _counted(rows).items())
            why = f" (left out: {left_out})" if left_out else ""
            raise NoRowsError(
                f"the prepared data of {self.benchmark} have no rows for this task{why}; prepare a source that has "
                f"some: {command}"
            )
        if (subset := current_settings().subset) is not None:
            chosen = subset.of(chosen)
        if media:
            _refuse_missing(prepared, chosen, command)
        if self.variants is None:
            return chosen
        return [
            one
            for document in chosen
            for one in self._call_benchmark("variants", self.variants, document)
        ]

    def excluded(self) -> dict[str, int]:
        """How many rows of the subtask cannot be asked in this form, by reason."""
        prepared = open_prepared(self.benchmark)
        return {} if self.unusable is None else _counted(self._own(prepared))

    def _own(self, prepared: Prepared) -> Iterator[tuple[Document, str]]:
        """Documents of the subtask, each with the reason why it cannot be asked in this form; empty
        if it can.
        """
        documents_of = get_benchmark(self.benchmark).documents
        rows: Iterable[Document] = (
            {"benchmark": self.benchmark, **document}
            for record in prepared.records()
            for document in self._call_benchmark(
                "documents", lambda one: list(map(dict, documents_of(one))), record
            )
        )
        if self.change is not None:
            rows = self._call_benchmark("change", self.change, list(rows))
        for document in rows:
            if self._call_benchmark("keep", self.keep, document):
                reason = (
                    self._call_benchmark("unusable", self.unusable, document)
                    if self.unusable is not None
                    else ""
                )
                yield document, str(reason)

    def _call_benchmark(self, name: str, function: Callable[[Any], T], argument: Any) -> T:
        """The result of a function of the benchmark's package; errors name the function and the
        row.
        """
        try:
            return function(argument)
        except MedtasksError:
            raise
        except (Exception, SystemExit) as error:
            row = (
                argument.get("sample_id")
                if isinstance(argument, dict)
                else getattr(argument, "sample_id", None)
            )
            which = f" on row {row}" if row is not None else ""
            what = (
                f"`{name}` of {'benchmark' if name == 'documents' else 'rows of'} {self.benchmark}"
            )
            raise MedtasksError(
                f"{what} fails{which} {raised_in(error)}: {first_line(error)}."
            ) from error

    def dataset(self) -> Dataset:
        """The documents as the harness's dataset."""
        from datasets import Dataset

        return Dataset.from_list(self.documents())

    @errors.exit_with_sentence
    def __call__(self, placeholder: Dataset) -> Dataset:  # noqa: ARG002
        """:meth:`dataset`; the placeholder is ignored."""
        return self.dataset()


def _counted(rows: Iterable[tuple[Document, str]]) -> dict[str, int]:
    return dict(sorted(Counter(reason for _, reason in rows if reason).items()))


def task_documents(task: str, *, media: bool = True) -> list[Document]:
    """Documents of the task called ``task``, as the harness will see them."""
    return task_rows(task).documents(media=media)


def task_rows(task: str) -> Rows:
    """The rows of the task called ``task``."""
    spec = load_spec(task)
    rows = spec.function("process_docs")
    if not isinstance(rows, Rows):
        named = spec.resolved["process_docs"]
        raise MedtasksError(
            f"{spec.path}: field `process_docs`: {named} is not a medtasks.api.Rows; fix it."
        )
    return rows


def prompt_text(doc: Mapping[str, Any], template: str, **values: str) -> str:
    """The prompt's text: ``template``, or that of a paraphrase, rendered with the visible fields
    and ``values``.
    """
    visible = get_benchmark(doc["benchmark"]).visible_fields
    if "prompt_of" in doc:
        template = doc["prompt_template"]
    return render(template, **{key: doc[key] for key in sorted(visible) if key in doc}, **values)


def doc_to_visual(doc: Mapping[str, Any]) -> list[Image]:
    """The document's images or video frames, RGB, in the order of the prompt; none in a blind
    run.
    """
    return [] if current_settings().blind else all_pictures(doc)


def all_pictures(doc: Mapping[str, Any]) -> list[Image]:
    """As :func:`doc_to_visual`, in a blind run as well: judges see the media."""
    prepared = open_prepared(doc["benchmark"])
    if doc.get("frames"):
        video = prepared.videos[doc["media"][0]]
        also = prepared.item_frames.get(doc["item_id"], ())
        return FRAMES.load(prepared.media_path(doc["media"][0]), video, doc["frames"], also)
    paths = [prepared.media_path(name) for name in doc["media"]]
    return [IMAGES.load(path, paths) for path in paths]


_ENCODED: ContextVar[dict[tuple[str, str], EncodedPicture] | None] = ContextVar(
    "encoded", default=None
)


@contextmanager
def encoded_pictures() -> Iterator[None]:
    """Within the block, :func:`user_turn` decodes no image: each file is one `EncodedPicture`, for
    another process.
    """
    token = _ENCODED.set({})
    try:
        yield
    finally:
        _ENCODED.reset(token)


def user_turn(doc: Mapping[str, Any], text: str) -> dict[str, Any]:
    """One user turn: every picture in order, then the text. Video frames also carry their ``time``
    in seconds.
    """
    encoded, pictures = _ENCODED.get(), list[Any]()
    if encoded is None or doc.get("frames") or current_settings().blind:
        pictures = doc_to_visual(doc)
    else:
        for name in doc["media"]:
            key = doc["benchmark"], name
            if key not in encoded:
                path = open_prepared(doc["benchmark"]).media_path(name)
                encoded[key] = EncodedPicture(str(path), read_picture(path))
            pictures.append(encoded[key])
    content: list[dict[str, Any]] = [{"type": "image", "url": picture} for picture in pictures]
    if doc.get("frames") and content:
        content = [{**part, "time": time} for part, time in zip(content, doc["times"], strict=True)]
    return {"role": "user", "content": [*content, {"type": "text", "text": text}]}


SYSTEM_IN_TEXT = "system_in_text"
"""Key of ``lmms_eval_specific_kwargs``, set for back-ends that take no system prompt."""


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any]) -> str:
    """:func:`prompt_text` of the task's template, after its system prompt if it has one, for the
    harness.
    """
    text = prompt_text(doc, lmms_eval_specific_kwargs["template"])
    system = lmms_eval_specific_kwargs.get("system_template")
    return text if system is None else f"{render(system)}\n\n{text}"


def doc_to_messages(
    doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The prompt as chat messages, for the harness: the task's system prompt, if it has one, and
    :func:`user_turn`.
    """
    system = lmms_eval_specific_kwargs.get("system_template")
    if system is None or lmms_eval_specific_kwargs.get(SYSTEM_IN_TEXT):
        return [user_turn(doc, doc_to_text(doc, lmms_eval_specific_kwargs))]
    first = {"role": "system", "content": [{"type": "text", "text": render(system)}]}
    return [first, user_turn(doc, prompt_text(doc, lmms_eval_specific_kwargs["template"]))]


_SAMPLED, _SAMPLED_BYTES = (
    16,
    64 * 2**20,
)  # media files of a task compared by content before a run, and their size


def _refuse_missing(prepared: Prepared, chosen: list[Document], command: str) -> None:
    if prepared.manifest.references_only:
        raise NotPreparedError(
            f"{prepared.manifest.benchmark} is prepared without media, which is enough for scoring but not for running "
            f"models; prepare its media, too: {command}"
        )
    needed = {name for document in chosen for name in document["media"]}
    # every size, and the content of some files; `medtasks validate` compares all
    names = needed.intersection(prepared.missing_media())
    if not names:
        small = [
            entry.path
            for entry in prepared.media
            if entry.path in needed and entry.bytes <= _SAMPLED_BYTES
        ]
        names = {*prepared.changed_media({small[place] for place in thin(len(small), _SAMPLED)})}
    if names:
        raise MediaError(
            f"{first_names(sorted(str(prepared.media_path(name)) for name in names), 1)}: missing or changed since the "
            f"data were prepared; restore them, or prepare again: {command}"
        )


WITHHELD = frozenset({"choices", "options"})  # no template of stage 1 may use them


def stage_text(
    doc: Mapping[str, Any],
    lmms_eval_specific_kwargs: Mapping[str, Any],
    previous_output: Sequence[str] | None = None,
    round_idx: int | None = None,
    previous_round_info: object = None,  # noqa: ARG001  (the harness passes it)
) -> str | tuple[list[Any] | None, str | None, bool, list[str] | None, None]:
    """The prompt of stage 1 or, once there are responses, what the harness needs for the next
    round: media (none), text, whether this was the last round, the outputs so far, and no state.
    """
    if not round_idx:
        return first_prompt(doc, lmms_eval_specific_kwargs["stage1_template"])
    outputs = list(previous_output or ())
    if round_idx == 1:
        text = prompt_text(
            doc, lmms_eval_specific_kwargs["template"], observations=outputs[0].strip()
        )
        return [], text, False, outputs, None
    return None, None, True, [join_stages(outputs)], None


def stage_messages(
    doc: Mapping[str, Any],
    lmms_eval_specific_kwargs: Mapping[str, Any],
    round_idx: int | None = None,
    previous_output: Sequence[str] | None = None,
    previous_round_info: object = None,  # noqa: ARG001  (the harness passes it)
) -> list[dict[str, Any]] | tuple[list[dict[str, Any]] | None, bool, list[str] | None, None]:
    """As :func:`stage_text`, for chat back-ends: one user turn a stage, images only in the
    first.
    """
    stage = stage_text(doc, lmms_eval_specific_kwargs, previous_output, round_idx)
    if isinstance(stage, str):
        return [user_turn(doc, stage)]
    _, text, last, outputs, _ = stage
    turns = (
        None if text is None else [{"role": "user", "content": [{"type": "text", "text": text}]}]
    )
    return turns, last, outputs, None


def first_prompt(doc: Mapping[str, Any], template: str) -> str:
    """The prompt of stage 1: ``template`` with the benchmark's visible fields, the options
    withheld.
    """
    visible = get_benchmark(doc["benchmark"]).visible_fields - WITHHELD
    return render(template, **{key: doc[key] for key in sorted(visible) if key in doc})


def asked_prompt(spec: TaskSpec, doc: Mapping[str, Any]) -> str:
    """The text with which a task asks about ``doc``, as samples log it: of two stages the first."""
    if spec.stage1_template is not None:
        return first_prompt(doc, spec.stage1_template)
    return doc_to_text(doc, {"template": spec.template, "system_template": spec.system_template})
