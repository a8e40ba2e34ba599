"""Shared by all back-ends: requests from the harness, replies to it, data-parallel replicas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import torch
from accelerate import Accelerator
from lmms_eval import utils
from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.api.model import lmms
from loguru import logger
from tqdm import tqdm

from medtasks.core.errors import MedtasksError, UsageError, exit_with_sentence
from medtasks.core.settings import Settings, current_settings
from medtasks.harness.isolation import isolated
from medtasks.runs.replies import Reply

from ._requests import ChatRequest, plan_batches, read_requests
from ._settings import GeneratingArguments, GenerationSettings, read_settings

_LAUNCH_ON_CPU = "ACCELERATE_USE_CPU=true torchrun --nproc_per_node N"


class MedtasksAdapter(lmms):  # type: ignore[misc]
    """Base of the back-ends: chat requests are answered by :meth:`answer`.

    Each process is a data-parallel replica on ``device``: ``auto`` (a GPU if there is one),
    ``cpu``, ``cuda`` or ``cuda:N``; with several processes each takes its own GPU. ``rank`` is the
    global process index, so several nodes do not evaluate the same documents twice.
    """

    is_simple = False
    # whether a model answers, so that its work is measured
    runs_model = False
    # whether the model is in this process, so that its memory is the model's
    holds_model = False
    # whether the model is on the first GPUs of this machine, but not in this process
    names_devices = False
    # the number that each process uses
    devices = 1
    # whether one response to a multi-round task contains all rounds
    answers_all_rounds = False

    @classmethod
    @exit_with_sentence
    def create_from_arg_string(
        cls, arg_string: str, additional_config: dict[str, Any] | None = None
    ) -> Any:
        """Create the back-end from ``key=value,…`` and the harness's own options.

        The former have precedence. ``--batch_size 1`` is the harness's default, so it is ignored.
        """
        try:
            arguments = utils.simple_parse_args_string(arg_string or "")
        except ValueError as error:
            raise UsageError(
                f"model_args is {arg_string!r}, but must be key=value pairs with commas between "
                "them."
            ) from error
        options = additional_config or {}
        options = {name: value for name, value in options.items() if value is not None}
        if str(options.get("batch_size")) == "1":
            del options["batch_size"]
        return cls(**{**options, **arguments})

    def __init__(self, device: str = "cpu") -> None:
        """Join the other processes of the command, and choose the device of this one.

        Raises:
            UsageError: the device does not exist, or does not fit the processes.
        """
        super().__init__()
        settings = current_settings()
        gpus = torch.cuda.device_count()
        _refuse_device(device, gpus, settings.processes)
        self.accelerator = _joined_processes(device, gpus, settings)
        self._rank = self.accelerator.process_index
        self._world_size = self.accelerator.num_processes
        if settings.processes == 1:
            self.device: torch.device = _device_of_only_process(device, self.accelerator.device)
        else:
            self.device = _device_among_processes(device, self.accelerator.device)

    def batches(self, requests: list[ChatRequest]) -> Iterable[list[ChatRequest]]:
        """``requests`` in batches, in processing order; one batch by default.

        Replies are stored after each batch, so slow back-ends should make small ones.
        """
        return [requests] if requests else []

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, in order; subclasses implement it.

        Raises:
            UsageError: a setting or a document is not supported by the back-end.
            MedtasksError: media cannot be read, the model rejects an input, or a sample is too
                large for the device.
        """
        raise NotImplementedError

    def stream(self, requests: list[Any]) -> Iterator[list[tuple[int, Reply]]]:
        """Yield positions in ``requests`` and :func:`isolated` replies, without padding."""
        chat_requests = read_requests(requests, self.task_dict)
        with tqdm(
            total=len(chat_requests),
            desc="medtasks",
            unit="request",
            disable=self.rank != 0 or len(chat_requests) < 2,
        ) as bar:
            for answered in isolated(self.batches(chat_requests), self.answer):
                bar.update(len(answered))
                yield [(request.position, reply) for request, reply in answered]

    def replies(self, requests: list[Any]) -> list[Reply]:
        """The replies to ``requests`` in order; padding requests get an empty text."""
        reply_at = dict(chain.from_iterable(self.stream(requests)))
        return [reply_at.get(position, Reply("")) for position in range(len(requests))]

    def generate_until(self, requests: list[Any]) -> list[GenerationResult]:
        """:meth:`replies` for tasks that the harness scores, where a failed reply ends the run."""
        results = []
        for reply in self.replies(requests):
            if reply.failed is not None:
                raise MedtasksError(reply.failed)
            counts = TokenCounts(reply.input_tokens, reply.output_tokens)
            results.append(GenerationResult(reply.text, counts))
        return results

    def loglikelihood(self, requests: list[Any]) -> Any:
        """Not supported: no medtasks task needs likelihoods.

        The rounds of its tasks are run by medtasks itself.
        """
        raise NotImplementedError(
            f"{type(self).__name__} answers single prompts; other requests are not supported."
        )

    generate_until_multi_round = loglikelihood


def _joined_processes(device: str, gpus: int, settings: Settings) -> Accelerator:
    """The connection of this process to the others of the command, all of which have joined."""
    kind = device.partition(":")[0]
    runs_on_cpu = kind == "cpu" or (kind == "auto" and not gpus)
    # only a group of processes needs the choice: of gloo on CPU, or of nccl
    accelerator = Accelerator(cpu=runs_on_cpu and settings.processes > 1)
    _check_processes(accelerator.num_processes, settings)
    return accelerator


def _device_of_only_process(device: str, accelerate_device: torch.device) -> torch.device:
    """The device that was asked for; with ``auto`` accelerate's if it is a GPU, else the CPU."""
    if device != "auto":
        return torch.device(device)
    if accelerate_device.type == "cuda":
        return accelerate_device
    return torch.device("cpu")


def _device_among_processes(device: str, accelerate_device: torch.device) -> torch.device:
    """The device that accelerate chose for this process, a GPU if ``device`` asks for one.

    Raises:
        UsageError: a GPU was asked for, but accelerate's launcher chose another kind of device.
    """
    if device == "cuda" and accelerate_device.type != "cuda":
        raise UsageError(
            f"device={device} was given, but these processes run on {accelerate_device.type}."
        )
    return accelerate_device


def _check_processes(joined: int, settings: Settings) -> None:
    """Refuse a run that not all launched processes joined; warn if only one was launched."""
    if joined != settings.processes:
        raise UsageError(
            f"{settings.processes} processes were launched, but accelerate joined "
            f"{joined}; on CPU launch them with {_LAUNCH_ON_CPU}."
        )
    if settings.alone_on_cpu:
        logger.warning(
            f"accelerate launch --cpu started one process only; for several use {_LAUNCH_ON_CPU}"
        )


def _refuse_device(device: str, gpus: int, processes: int) -> None:
    """Refuse a GPU that does not exist, or one for several processes."""
    kind, _, index = device.partition(":")
    if kind == "cuda" and int(index or 0) >= gpus:
        fix = "use a lower number" if gpus else "use device=cpu"
        raise UsageError(
            f"device={device} was given, but torch sees {gpus or 'no'} GPU here; {fix}."
        )
    if index and processes > 1:
        raise UsageError(
            f"device={device} would put {processes} processes on one GPU; with device=cuda each "
            "takes its own."
        )


_DESCRIBED = {
    "batch_size",
    "max_pixels",
    "min_pixels",
    "max_new_tokens",
    "system_prompt",
    "seed",
    "blind",
}
"""Arguments that the description of a back-end states."""


class GeneratingAdapter(MedtasksAdapter):
    """Answers batch by batch; greedy by default.

    Settings in a task's ``generation_kwargs`` that are not in `GenerationSettings` are reported as
    ignored.
    """

    name: str
    runs_model = True
    # whether each sampled answer is a separate batch
    alone_when_sampling = True

    def __init__(self, arguments: GeneratingArguments, device: str = "cpu") -> None:
        """Prepare for batches on ``device``; subclasses load the model."""
        super().__init__(device)
        least, most = arguments.min_pixels, arguments.max_pixels
        if least is not None and most is not None and least > most:
            raise UsageError(f"min_pixels is {least}, which is more than max_pixels ({most}).")
        self._arguments = arguments
        self.batch_size: int = arguments.batch_size
        self._facts: dict[str, Any] = {}
        self._settings = arguments.model_dump(include=_DESCRIBED)
        self._usage: dict[str, int] = {}
        self._ignored: set[str] = set()

    def describe(self) -> dict[str, Any]:
        """Provenance of the answers, JSON-serializable: checkpoint, versions and limits.

        ``usage`` counts this replica's work so far; replicas' counts may be summed.
        """
        return {
            "model": self.name,
            **self._facts,
            **self._settings,
            "ignored_generation_settings": sorted(self._ignored),
            "usage": dict(self._usage),
        }

    def batches(self, requests: list[ChatRequest]) -> Iterable[list[ChatRequest]]:
        """``requests`` in batches of at most `batch_size` with equal settings."""
        return list(
            plan_batches(requests, self.batch_size, alone_when_sampling=self.alone_when_sampling)
        )

    def settings_of(self, requests: list[ChatRequest]) -> GenerationSettings:
        """The settings of a batch, which are equal."""
        return read_settings(requests[0].settings, self._arguments.max_new_tokens)

    def report_ignored(self, settings: GenerationSettings) -> None:
        """Warn about settings without effect, each once, and remember them for `describe`."""
        not_reported = set(settings.ignored) - self._ignored
        if not_reported:
            self._ignored |= not_reported
            names = ", ".join(sorted(not_reported))
            logger.warning(f"{self.name}: generation settings without effect: {names}")
