"""Shared by all back-ends: settings, the harness's requests as typed records, batches, data-parallel replicas."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, ClassVar

import torch
from accelerate import Accelerator
from lmms_eval import utils
from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.api.model import lmms
from loguru import logger
from pydantic import ConfigDict, Field, ValidationError
from tqdm import tqdm
from typing_extensions import Self

from medtasks.core.errors import MedtasksError, UsageError, exit_with_sentence
from medtasks.core.schema import Frozen, first_problem
from medtasks.core.settings import current_settings
from medtasks.harness.requests import REPEAT, is_padding, isolated
from medtasks.runs.replies import Reply

from .policies import option_letters

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class Settings(Frozen):
    """User settings; ``source`` is the option or key they come from."""

    source: ClassVar[str] = "generation_kwargs"

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Validate ``given``; None and empty strings leave a setting at its default. Raises :class:`UsageError`."""
        try:
            return cls.model_validate({name: value for name, value in given.items() if value not in (None, "")})
        except ValidationError as error:
            raise UsageError(f"{cls.source}: {first_problem(error, cls)}.") from error


class Arguments(Settings):
    """``--model_args`` of a back-end; numbers are accepted as text (the harness parses ``revision=12`` as a number).
    The harness passes these three fields to every back-end; those that use one redeclare it."""

    model_config = ConfigDict(coerce_numbers_to_str=True)
    source: ClassVar[str] = "model_args"

    batch_size: Any = None
    max_batch_size: Any = None
    device: Any = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One ``generate_until`` request of a chat task.

    ``repeat`` counts requests for the same document, from 0; ``media`` names the document's media, in order, and
    ``item_id`` the streaming item it belongs to (else the sample itself); ``options`` are the letters to choose from.
    """

    position: int
    task: str
    split: str
    doc_id: int
    prompt: str
    settings: Mapping[str, Any]
    to_messages: Callable[[Any], list[dict[str, Any]]]
    sample_id: str
    media: tuple[str, ...]
    item_id: str
    repeat: int
    options: tuple[str, ...] = ()

    def messages(self, task_dict: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The chat messages of this request, made by its own task; this decodes the images."""
        return self.to_messages(task_dict[self.task][self.split][self.doc_id])


def read_documents(rows: Any, names: Collection[str], numbers: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """The documents with these numbers, or all; those of a dataset with the fields ``names`` alone, so that no image
    is decoded, and read at once, in a third of the time."""
    numbers = range(len(rows)) if numbers is None else numbers
    if not hasattr(rows, "column_names"):
        return [rows[number] for number in numbers]
    kept = [name for name in rows.column_names if name in names]
    columns = rows.select_columns(kept)[list(numbers)] if kept else {}
    return [{name: values[place] for name, values in columns.items()} for place in range(len(numbers))]


def read_requests(instances: Iterable[Any], task_dict: Mapping[str, Any]) -> list[ChatRequest]:
    """Read lmms-eval instances of chat tasks, without those that only fill up a replica. A document without
    ``sample_id`` (of a task that is not ours) gets the id ``<task>-<doc_id>``."""
    groups: dict[tuple[str, str], list[tuple[int, Any]]] = defaultdict(list)
    for position, instance in enumerate(instances):
        if not is_padding(instance):
            groups[instance.args[4:]].append((position, instance))
    read = []
    for (task, split), asked in groups.items():
        numbers = [instance.args[3] for _, instance in asked]
        rows = read_documents(task_dict[task][split], ("sample_id", "item_id", "media", "choices"), numbers)
        seen: Counter[int] = Counter()
        for (position, instance), row in zip(asked, rows, strict=True):
            context, to_messages, settings, doc_id, *_ = instance.args
            sample_id = str(row.get("sample_id") or f"{task}-{doc_id}")
            read.append(
                ChatRequest(
                    position=position,
                    task=task,
                    split=split,
                    doc_id=doc_id,
                    prompt=context if isinstance(context, str) else "",
                    settings=settings or {},
                    to_messages=to_messages,
                    sample_id=sample_id,
                    # If the media have no names, only a document's own repeats are known to share them.
                    media=tuple(map(str, row.get("media") or (sample_id,))),
                    item_id=str(row.get("item_id") or sample_id),
                    repeat=(instance.metadata or {}).get(REPEAT, seen[doc_id]),
                    options=option_letters(row),
                )
            )
            seen[doc_id] += 1
    return sorted(read, key=lambda request: request.position)


class MedtasksAdapter(lmms):  # type: ignore[misc]
    """Base of the back-ends: chat requests, answered by :meth:`answer`, one data-parallel replica per process. ``rank``
    is the global process index, so several nodes do not evaluate the same documents twice."""

    is_simple = False
    runs_model = False  # whether a model answers, so that its work is measured
    holds_model = False  # whether the model is in this process, so that its memory is the model's
    devices = 1  # that each process uses
    answers_all_rounds = False  # whether one response to a multi-round task contains all rounds

    @classmethod
    @exit_with_sentence
    def create_from_arg_string(cls, arg_string: str, additional_config: dict[str, Any] | None = None) -> Any:
        """Create the back-end from ``key=value,…``, which takes precedence over the harness's own options.
        ``--batch_size 1`` is the harness's default, so it is ignored."""
        try:
            arguments = utils.simple_parse_args_string(arg_string or "")
        except ValueError as error:
            raise UsageError(
                f"model_args is {arg_string!r}, but must be key=value pairs with commas between them."
            ) from error
        harness = {key: value for key, value in (additional_config or {}).items() if value is not None}
        if str(harness.get("batch_size")) == "1":
            del harness["batch_size"]
        return cls(**{**harness, **arguments})

    def join_replicas(self, device: str = "cpu") -> None:
        """Join the replicas of this run on ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``cuda:N``. With
        several processes each takes its own GPU."""
        settings, gpus = current_settings(), torch.cuda.device_count()
        kind, _, index = device.partition(":")
        if kind == "cuda" and int(index or 0) >= gpus:
            fix = "use a lower number" if gpus else "use device=cpu"
            raise UsageError(f"device={device} was given, but torch sees {gpus or 'no'} GPU here; {fix}.")
        if index and settings.processes > 1:
            raise UsageError(
                f"device={device} would put {settings.processes} processes on one GPU; with device=cuda each takes its "
                "own."
            )
        # Matters only with several processes: it selects the process group's backend (gloo or nccl).
        on_cpu = kind == "cpu" or (kind == "auto" and not gpus)
        self.accelerator = Accelerator(cpu=on_cpu and settings.processes > 1)
        self._rank, self._world_size = self.accelerator.process_index, self.accelerator.num_processes
        self.device: torch.device = self.accelerator.device
        several = "ACCELERATE_USE_CPU=true torchrun --nproc_per_node N"
        if self._world_size != settings.processes:
            raise UsageError(
                f"{settings.processes} processes were launched, but accelerate joined {self._world_size}; on CPU "
                f"launch them with {several}."
            )
        if settings.alone_on_cpu:
            logger.warning(f"accelerate launch --cpu started one process only; for several use {several}")
        if settings.processes == 1 and (kind != "auto" or self.device.type != "cuda"):
            self.device = torch.device("cpu" if kind == "auto" else device)
        if kind == "cuda" and self.device.type != "cuda":
            raise UsageError(f"device={device} was given, but these processes run on {self.device.type}.")

    def batches(self, requests: list[ChatRequest]) -> Iterable[list[ChatRequest]]:
        """``requests`` in batches, in processing order; one by default. Replies are stored after each batch, so slow
        back-ends should make small ones."""
        return [requests] if requests else []

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, in order; what subclasses implement.

        Raises:
            UsageError: a setting or a document is not supported by the back-end.
            MedtasksError: media cannot be read, the model rejects an input, or a sample is too large for the device.
        """
        raise NotImplementedError

    def stream(self, requests: list[Any]) -> Iterator[list[tuple[int, Reply]]]:
        """Yield positions in ``requests`` and :func:`isolated` replies, without those to padding."""
        read = read_requests(requests, self.task_dict)
        with tqdm(total=len(read), desc="medtasks", unit="request", disable=self.rank != 0 or not read) as bar:
            for answered in isolated(self.batches(read), lambda request: request.task, self.answer):
                bar.update(len(answered))
                yield [(request.position, reply) for request, reply in answered]

    def replies(self, requests: list[Any]) -> list[Reply]:
        """The replies to ``requests`` in order; padding requests get an empty text."""
        answered = dict(chain.from_iterable(self.stream(requests)))
        return [answered.get(position, Reply("")) for position in range(len(requests))]

    def generate_until(self, requests: list[Any]) -> list[GenerationResult]:
        """:meth:`replies` for other tasks, which the harness scores; so a failed one ends the run."""
        results = []
        for reply in self.replies(requests):
            if reply.failed is not None:
                raise MedtasksError(reply.failed)
            results.append(GenerationResult(reply.text, TokenCounts(reply.input_tokens, reply.output_tokens)))
        return results

    def loglikelihood(self, requests: list[Any]) -> Any:
        """Not supported: no medtasks task needs likelihoods, and medtasks runs the rounds of its tasks itself."""
        raise NotImplementedError(f"{type(self).__name__} answers single prompts; other requests are not supported.")

    generate_until_multi_round = loglikelihood
