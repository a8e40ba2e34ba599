"""What all three adapters share: how they are created, which requests they refuse, which replica they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import torch
from accelerate import Accelerator
from lmms_eval import utils
from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms
from loguru import logger

from medtasks.border import at_border
from medtasks.errors import UsageError

__all__ = ["MedtasksAdapter", "refuse_unknown"]

PADDING = "__padding_only__"
"""Where the harness marks a request that only fills up a replica."""


class MedtasksAdapter(lmms):  # type: ignore[misc]
    """Base of the back-ends: chat requests, ``generate_until`` only, one data-parallel replica per process.

    Replicas never talk to each other; the harness gathers their results. ``rank`` is the global process
    index, so several nodes do not evaluate the same documents twice.
    """

    is_simple = False
    show_progress = True
    """Whether ``generate_until`` shows a bar; whoever calls it batch by batch shows one of its own."""

    on_answer: Callable[[str, Mapping[str, Any], str], None] | None = None
    """Told (task, document, answer) of every answer as soon as it is there."""

    def tell(self, request: Any, text: str) -> None:
        """Pass one answer on to ``on_answer``."""
        if self.on_answer is not None:
            self.on_answer(request.task, self.task_dict[request.task][request.split][request.doc_id], text)

    def plan_requests(self, requests: list[Any]) -> list[list[int]]:
        """Positions in ``requests`` that are answered together, in the order of answering, padding left out.

        What has been answered is safe as soon as a batch is done, so a back-end that works for its answers plans
        small batches; the default is one of all.
        """
        return [[number for number, request in enumerate(requests) if not (request.metadata or {}).get(PADDING)]]

    @classmethod
    @at_border
    def create_from_arg_string(cls, arg_string: str, additional_config: dict[str, Any] | None = None) -> Any:
        """Create the adapter from ``key=value,…``; what stands there wins over the harness's own options.

        Raises
        ------
        UsageError
            Where ``arg_string`` is not a list of ``key=value`` pairs (as exit code 1, like all errors here).
        """
        try:
            arguments = utils.simple_parse_args_string(arg_string or "")
        except ValueError as error:
            raise UsageError(
                f"model_args is {arg_string!r}, but must be key=value pairs with commas between them."
            ) from error
        harness = {key: value for key, value in (additional_config or {}).items() if value is not None}
        return cls(**{**harness, **arguments})

    def join_replicas(self, device: str = "cpu") -> torch.device:
        """Take this process's place among the replicas and return the device that ``device`` means for it.

        ``device`` is ``auto`` (a GPU where there is one), ``cpu``, ``cuda`` or ``cuda:N``. With several
        processes each takes its own GPU, so ``cuda:N`` is refused.

        Raises
        ------
        UsageError
            Where the device is unknown, not on this machine, or contradicts how the processes were launched.
        """
        replicas = int(os.environ.get("WORLD_SIZE", "1"))
        kind, index = _read_device(device)
        _check_device(device, kind, index, replicas)
        # A lone process picks its device itself; with several the process group depends on it (gloo or nccl).
        on_cpu = kind == "cpu" or (kind == "auto" and not torch.cuda.is_available())
        self.accelerator = Accelerator(cpu=on_cpu and replicas > 1)
        if self.accelerator.num_processes != replicas:
            joined = self.accelerator.num_processes
            raise UsageError(
                f"{replicas} processes were launched, but accelerate joined {joined}; on CPU launch them with "
                "ACCELERATE_USE_CPU=true torchrun --nproc_per_node N."
            )
        _warn_of_lone_process(replicas)
        self._rank = self.accelerator.process_index
        self._world_size = self.accelerator.num_processes
        own: torch.device = self.accelerator.device
        if self._world_size > 1:
            if kind == "cuda" and own.type != "cuda":
                raise UsageError(f"device={device} was asked for, but these processes run on {own.type}.")
        elif kind != "auto":
            own = torch.device(device)
        elif own.type != "cuda":
            own = torch.device("cpu")
        self._device = own
        return own

    @property
    def device(self) -> torch.device:
        """Where this replica's tensors live; the harness puts its own counts there."""
        return self._device

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        """Refused: no medtasks task asks for likelihoods."""
        raise NotImplementedError(f"{type(self).__name__} generates text; log-likelihood requests are not supported.")

    @at_border
    def generate_until_multi_round(self, requests: list[Any]) -> list[str]:
        """Answer tasks of several rounds: every round of all requests together, so that they are batched.

        Which round comes next, and what the outcome is, the task says (`doc_to_messages` with ``round_idx`` and
        ``previous_output``); the harness's padding requests are answered with an empty text, unread.
        """
        outcomes = [""] * len(requests)
        said: dict[int, list[str]] = {}
        pending = dict(enumerate(requests))
        for number in count():
            texts = [result.text for result in self.generate_until(list(pending.values()))]
            for position, text in zip(list(pending), texts, strict=True):
                said.setdefault(position, []).append(text)
                following = self._following(requests[position], said[position], number + 1)
                if isinstance(following, str):
                    outcomes[position] = following
                    del pending[position]
                else:
                    pending[position] = following
            if not pending:
                break
        return outcomes

    def _following(self, request: Any, said: list[str], number: int) -> Any:
        """The request of round ``number`` after what was ``said``, or the outcome where that was all."""
        if (request.metadata or {}).get(PADDING):
            return ""
        context, to_messages, settings, doc_id, task, split = request.args
        document = self.task_dict[task][split][doc_id]
        messages, done, outputs, _ = to_messages(document, round_idx=number, previous_output=said)
        if done:
            return (outputs or said)[-1]
        text = "\n".join(part["text"] for turn in messages for part in turn["content"] if part["type"] == "text")
        arguments = (text or context, lambda _: messages, settings, doc_id, task, split)
        return Instance(request_type="generate_until", arguments=arguments, idx=0, metadata=request.metadata)


def refuse_unknown(model: str, known: tuple[str, ...], unknown: dict[str, Any]) -> None:
    """Raise :class:`UsageError` where ``unknown`` holds an argument; harness-wide ones may be None."""
    if unknown:
        raise UsageError(f"{model}: unknown argument {', '.join(sorted(unknown))}; known are {', '.join(known)}.")


def _warn_of_lone_process(replicas: int) -> None:
    """Say that ``accelerate launch --cpu --num_processes N`` starts one process, whatever N is.

    The launcher leaves a master address behind when it was asked for several, but no world size.
    """
    forced = os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true"
    if replicas == 1 and forced and "MASTER_ADDR" in os.environ and "WORLD_SIZE" not in os.environ:
        logger.warning(
            "accelerate launch --cpu started one process only; for several use "
            "ACCELERATE_USE_CPU=true torchrun --nproc_per_node N"
        )


def _read_device(device: str) -> tuple[str, int | None]:
    kind, colon, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (colon and (kind != "cuda" or not number.isdecimal())):
        raise UsageError(f"device is {device!r}, expected auto, cpu, cuda or cuda:N.")
    return kind, int(number) if colon else None


def _check_device(device: str, kind: str, index: int | None, replicas: int) -> None:
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device={device} was asked for, but torch sees no GPU here; use device=cpu.")
    if index is None:
        return
    if replicas > 1:
        raise UsageError(
            f"device={device} would put {replicas} processes on one GPU; with device=cuda each takes its own."
        )
    if index >= torch.cuda.device_count():
        raise UsageError(f"device={device} was asked for, but torch sees {torch.cuda.device_count()} GPU(s) here.")
