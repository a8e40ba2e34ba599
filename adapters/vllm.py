"""``medtasks_vllm``: any vision-language checkpoint that vLLM serves, through vLLM's offline API."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import TokenCounts
from loguru import logger

from medtasks.border import at_border
from medtasks.errors import DataError, MedtasksError, UsageError, first_line

from ._arguments import read_flag, read_integer, read_limit, read_number, read_text
from ._base import MedtasksAdapter, Response
from ._batches import plan_batches
from ._fingerprint import METHOD, fingerprint_directory
from ._generation import GenerationSettings, sample_seed
from ._messages import Conversation, PixelLimits, read_messages, without_media
from ._pictures import digest
from ._requests import ChatRequest, read_requests

__all__ = ["MedtasksVLLM"]

AT_ONCE = 512
"""Requests handed to the engine at once by default. It schedules them by itself; what is answered is kept each time."""
PICTURES_AT_ONCE = 128
"""Different pictures among them: their prepared pixels, some 10 MB each, wait in memory until the engine has them."""
MOST_PICTURES = 64
"""Pictures per prompt by default: vLLM wants to know the most in advance, and MedStreamBench shows up to 64 frames."""
COUNTERS = {
    "prefix_cache_queries": "vllm:prefix_cache_queries",
    "prefix_cache_hits": "vllm:prefix_cache_hits",
    "mm_cache_queries": "vllm:mm_cache_queries",
    "mm_cache_hits": "vllm:mm_cache_hits",
    "prompt_tokens": "vllm:prompt_tokens",
    "output_tokens": "vllm:generation_tokens",
}
"""What ``usage`` calls vLLM's counters: tokens and media items that were looked up in its caches, and those found."""


class MedtasksVLLM(MedtasksAdapter):
    """Generates answers with vLLM. Install ``medtasks[vllm]``.

    Arguments
    ---------
    pretrained
        Checkpoint directory or hub id.
    batch_size
        Requests handed to the engine at once (512 when absent). They are ordered by media, so that vLLM's prefix and
        multimodal caches find what the request before left there. The harness's own ``--batch_size 1`` is no limit.
    lora
        Directory of a LoRA adapter.
    max_pixels, min_pixels, max_new_tokens, system_prompt, seed, blind, max_failed
        As ``medtasks_vlm`` takes them.
    anything else
        Goes to ``vllm.LLM`` as it is: ``tensor_parallel_size``, ``data_parallel_size``, ``quantization``,
        ``max_model_len``, ``gpu_memory_utilization``, ``dtype``, ``revision``, ``limit_mm_per_prompt``, …

    Pictures carry the digest of what they show as their ``uuid``, so that vLLM's caches know them without hashing.
    One process serves all GPUs; start it without ``accelerate launch``. Greedy by default; a task's
    ``generation_kwargs`` may set what ``medtasks_vlm`` takes, without ``num_beams``.
    """

    @at_border
    def __init__(
        self,
        pretrained: object = None,
        batch_size: int | str | None = None,
        lora: object = None,
        max_pixels: int | None = None,
        min_pixels: int | None = None,
        max_new_tokens: int | None = None,
        system_prompt: object = None,
        seed: int = 0,
        blind: bool = False,
        max_failed: float | None = None,
        device: object = None,  # noqa: ARG002  (the harness passes them; vLLM finds its own devices and batches)
        max_batch_size: object = None,  # noqa: ARG002
        **engine: Any,
    ) -> None:
        super().__init__()
        name = read_text(pretrained)
        if name is None:
            raise UsageError("medtasks_vllm: pretrained is missing, expected a directory or a hub id.")
        self.batch_size = AT_ONCE if batch_size is None else read_integer("batch_size", batch_size, least=1)
        self._limits = PixelLimits(read_limit("min_pixels", min_pixels), read_limit("max_pixels", max_pixels))
        self._max_new_tokens = read_limit("max_new_tokens", max_new_tokens)
        self._system_prompt = read_text(system_prompt)
        self._seed = read_integer("seed", seed, least=0)
        self._blind = read_flag("blind", blind)
        self.max_failed = None if max_failed is None else read_number("max_failed", max_failed, least=0, most=1)
        self.join_replicas("cpu")
        if self.world_size > 1:
            raise UsageError(
                f"{self.world_size} processes were launched, but vLLM uses all GPUs from one; start it without a "
                "launcher and set tensor_parallel_size or data_parallel_size."
            )
        self._engine = {"limit_mm_per_prompt": {"image": MOST_PICTURES}, **engine}
        self._lora = read_text(lora)
        self._model = self._load(name)
        self._facts = self._describe_checkpoint(name)
        self._usage = dict.fromkeys(COUNTERS, 0)
        self._finish_counts: Counter[str] = Counter()
        self.finish: dict[str, dict[str, list[str]]] = defaultdict(dict)
        self._ignored: set[str] = set()

    def describe(self) -> dict[str, Any]:
        """What produced the answers, as JSON: checkpoint, engine, limits, how answers ended, cache hits and tokens."""
        return {
            "model": "medtasks_vllm",
            **self._facts,
            "batch_size": self.batch_size,
            "engine": dict(sorted(self._engine.items())),
            "max_pixels": self._limits.most,
            "min_pixels": self._limits.least,
            "max_new_tokens": self._max_new_tokens,
            "system_prompt": self._system_prompt,
            "seed": self._seed,
            "blind": self._blind,
            "finish": {kind: self._finish_counts[kind] for kind in ("stop", "length")},
            "ignored_generation_settings": sorted(self._ignored),
            "usage": self._usage,
        }

    def plan_requests(self, requests: list[Any]) -> list[list[int]]:
        """Positions of the requests of each batch, in the order of answering."""
        read = read_requests(requests, self.task_dict)
        return [[request.position for request in batch] for _, batch in self._plan(read)]

    def generate_until(self, requests: list[Any]) -> list[Response]:
        """Answer ``requests`` in their order; a padding request is answered with an empty text, unread.

        Raises
        ------
        UsageError
            For settings out of range, or that vLLM does not have.
        MedtasksError
            For media that cannot be read, or an input that the model does not take.
        """
        read = read_requests(requests, self.task_dict)
        answers = [Response("", TokenCounts(input_tokens=0, output_tokens=0)) for _ in read]
        for settings, batch in self._plan(read):
            for request, answer in zip(batch, self._answer(settings, batch), strict=True):
                self.finish[request.task].setdefault(request.sample_id, []).append(answer.finish or "stop")
                self._finish_counts[answer.finish or "stop"] += 1
                answers[request.position] = answer
        self._count()
        return answers

    def clean(self) -> None:
        """Stop the engine, as the harness asks for it once it has all answers."""
        self._model = None
        super().clean()

    def _plan(self, read: Sequence[ChatRequest]) -> list[tuple[GenerationSettings, list[ChatRequest]]]:
        return list(plan_batches(read, self.batch_size, self._max_new_tokens, alone_when_sampling=False))

    def _answer(self, settings: GenerationSettings, batch: Sequence[ChatRequest]) -> list[Response]:
        self._note_ignored(settings)
        return [answer for part in self._portions(batch) for answer in self._ask(settings, *zip(*part, strict=True))]

    def _portions(self, batch: Sequence[ChatRequest]) -> Iterator[list[tuple[ChatRequest, list[dict[str, Any]]]]]:
        """Requests and their messages, as many as do not show too many pictures: vLLM prepares all that it is given."""
        portion: list[tuple[ChatRequest, list[dict[str, Any]]]] = []
        shown: set[str] = set()
        for request in batch:
            messages = self._messages(request)
            pictures = {part["uuid"] for message in messages for part in message["content"] if "uuid" in part}
            if portion and len(shown | pictures) > PICTURES_AT_ONCE:
                yield portion
                portion, shown = [], set()
            portion.append((request, messages))
            shown |= pictures
        yield portion

    def _ask(
        self, settings: GenerationSettings, requests: Sequence[ChatRequest], messages: Sequence[list[dict[str, Any]]]
    ) -> list[Response]:
        try:
            outputs = self._model.chat(
                list(messages),
                [self._sampling(settings, request) for request in requests],
                use_tqdm=self.show_progress,
                lora_request=self._lora_request(),
            )
        except ValueError as error:  # how vLLM refuses a prompt that is too long, or has too many pictures
            raise DataError(f"vLLM refused a request: {first_line(error)}") from error
        return [_response(output) for output in outputs]

    def _messages(self, request: ChatRequest) -> list[dict[str, Any]]:
        messages = request.messages(self.task_dict)
        talk = read_messages(without_media(messages) if self._blind else messages, self._limits, self._system_prompt)
        return _for_vllm(talk)

    def _sampling(self, settings: GenerationSettings, request: ChatRequest) -> Any:
        from vllm import SamplingParams

        if settings.num_beams != 1:
            raise UsageError(f"num_beams is {settings.num_beams}, but medtasks_vllm has no beam search.")
        return SamplingParams(
            max_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            repetition_penalty=settings.repetition_penalty or 1.0,
            stop=list(settings.until) or None,
            seed=sample_seed(self._seed, request.sample_id, request.repeat) if settings.sampling else None,
        )

    def _load(self, name: str) -> Any:
        try:
            from vllm import LLM
        except ImportError as error:
            raise UsageError(
                f"vLLM cannot be imported ({first_line(error)}), expected what pip install 'medtasks[vllm]' installs."
            ) from error
        try:
            return LLM(
                model=name,
                seed=self._seed % 2**31,
                disable_log_stats=False,
                enable_lora=self._lora is not None,
                **self._engine,
            )
        except Exception as error:  # whatever vLLM, transformers or a driver may raise
            raise MedtasksError(f"{name}: vLLM cannot serve it: {first_line(error)}") from error

    def _lora_request(self) -> Any:
        if self._lora is None:
            return None
        from vllm.lora.request import LoRARequest

        return LoRARequest("adapter", 1, self._lora)

    def _describe_checkpoint(self, name: str) -> dict[str, Any]:
        import vllm

        config = self._model.llm_engine.vllm_config.model_config
        facts: dict[str, Any] = {"pretrained": name, "revision": self._engine.get("revision")}
        directory = Path(name).expanduser()
        if directory.is_dir():
            facts |= {"fingerprint": fingerprint_directory(directory), "fingerprint_method": METHOD}
        else:
            facts["revision"] = getattr(config.hf_config, "_commit_hash", None) or facts["revision"]
        facts["lora"] = None
        if self._lora is not None:
            adapter = Path(self._lora).expanduser()
            own = {"fingerprint": fingerprint_directory(adapter)} if adapter.is_dir() else {}
            facts["lora"] = {"path": self._lora, **own}
        return {
            **facts,
            "architecture": config.architectures[0],
            "dtype": str(config.dtype).removeprefix("torch."),
            "vllm": vllm.__version__,
        }

    def _count(self) -> None:
        found: Counter[str] = Counter()
        for metric in self._model.get_metrics():
            found[metric.name] += getattr(metric, "value", 0)
        self._usage = {name: int(found[counter]) for name, counter in COUNTERS.items()}

    def _note_ignored(self, settings: GenerationSettings) -> None:
        fresh = set(settings.ignored) - self._ignored
        if fresh:
            self._ignored |= fresh
            logger.warning(f"medtasks_vllm: generation settings without effect: {', '.join(sorted(fresh))}")


def _for_vllm(talk: Conversation) -> list[dict[str, Any]]:
    """The conversation with its pictures in place, each with the digest of what it shows."""
    images = iter(talk.images)
    messages = []
    for message in talk.messages:
        parts = []
        for part in message["content"]:
            if part["type"] == "image":
                image = next(images)
                parts.append({"type": "image_pil", "image_pil": image, "uuid": digest([image]).hex()})
            else:
                parts.append(part)
        messages.append({"role": message["role"], "content": parts})
    return messages


def _response(output: Any) -> Response:
    first = output.outputs[0]
    counts = TokenCounts(input_tokens=len(output.prompt_token_ids or ()), output_tokens=len(first.token_ids))
    if first.finish_reason not in ("stop", "length"):
        return Response("", counts, failed=f"vLLM ended the request with {first.finish_reason!r}")
    return Response(first.text, counts, finish=first.finish_reason)
