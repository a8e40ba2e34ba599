"""``medtasks_vlm``: any transformers image-text-to-text checkpoint as a chat back-end of lmms-eval."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from lmms_eval.api.instance import TokenCounts
from loguru import logger
from tqdm import tqdm

from medtasks.border import at_border
from medtasks.errors import DataError, UsageError

from ._ahead import Ahead
from ._answering import Answering
from ._arguments import read_flag, read_integer, read_limit, read_number, read_text
from ._base import MedtasksAdapter, Response, refuse_unknown
from ._batches import plan_batches
from ._checkpoint import CheckpointChoice, load_checkpoint
from ._decoding import Answer
from ._generation import GenerationSettings, sample_seed
from ._messages import Conversation, PixelLimits, read_messages, without_media
from ._reading import Prompt
from ._requests import ChatRequest, read_requests

__all__ = ["MedtasksVLM"]

ARGUMENTS = (
    "pretrained",
    "revision",
    "dtype",
    "device",
    "attn_implementation",
    "peft",
    "batch_size",
    "batch_tokens",
    "share_prefix",
    "max_pixels",
    "min_pixels",
    "max_new_tokens",
    "trust_remote_code",
    "system_prompt",
    "seed",
    "video",
    "blind",
    "max_failed",
)
MOST_ROWS = 32
"""Samples per batch by default: what is answered is kept batch by batch, so more could be lost with a killed run."""

Batch = tuple[GenerationSettings, list[ChatRequest]]


class MedtasksVLM(MedtasksAdapter):
    """Generates answers with a vision-language checkpoint.

    Arguments
    ---------
    pretrained
        Checkpoint directory, hub id, or the word ``tiny`` (a small random model, built when first needed).
    revision, attn_implementation, trust_remote_code
        As transformers takes them; code from the hub runs only where ``trust_remote_code=true`` is given.
    dtype
        ``auto`` (the checkpoint's own on a GPU, float32 on CPU), ``float32``, ``bfloat16`` or ``float16``.
    device
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``. Under ``accelerate launch`` each process takes its own GPU.
    peft
        Directory or hub id of a PEFT adapter; LoRA weights are merged into the model.
    batch_size
        Samples per batch at most (32 when absent); sampling always runs one by one so that a draw depends on its seed
        alone. The harness's own ``--batch_size 1`` sets no limit: it is what the harness passes by default.
    batch_tokens
        Tokens per batch at most, padding and the longest possible answers included; by default those whose keys and
        values take a quarter of the device's free memory. A batch that runs out of memory is halved.
    share_prefix
        What prompts have in common (pictures, frames, system message) is computed once; ``false`` computes every
        prompt from the start. A model with which sharing changes the scores of tokens falls back to that by itself.
    max_pixels, min_pixels
        Limits per image in pixels (width times height); larger images are scaled down, smaller ones up.
    max_new_tokens
        Takes the place of the tasks' own limit.
    system_prompt
        Takes the place of the tasks' own system message.
    seed
        Together with sample id and repeat it seeds each sampled answer.
    video
        ``images`` (the default: frames of a video are a list of images) or ``native`` (they are one video, with
        their times, for checkpoints whose processor takes videos).
    blind
        With ``true`` every prompt goes without its images and frames: what can the text alone answer?
    max_failed
        Share of requests that may fail (0.01 when absent) before the run ends with exit code 1.

    Greedy by default; a task's ``generation_kwargs`` may set temperature, top_p, top_k, num_beams,
    repetition_penalty, max_new_tokens (512 when absent), do_sample and until. ``finish`` tells per task and
    sample id how each answer ended, one entry per repeat. Errors in arguments, checkpoint or media end the
    process with one sentence and exit code 1.
    """

    @at_border
    def __init__(
        self,
        pretrained: object = None,
        revision: object = None,
        dtype: str = "auto",
        device: str = "auto",
        attn_implementation: str | None = None,
        peft: object = None,
        batch_size: int | str | None = None,
        batch_tokens: int | None = None,
        share_prefix: bool = True,
        max_pixels: int | None = None,
        min_pixels: int | None = None,
        max_new_tokens: int | None = None,
        trust_remote_code: bool = False,
        system_prompt: object = None,
        seed: int = 0,
        video: str = "images",
        blind: bool = False,
        max_failed: float | None = None,
        max_batch_size: object = None,  # noqa: ARG002  (the harness passes it; batches are never searched for)
        **unknown: Any,
    ) -> None:
        super().__init__()
        refuse_unknown("medtasks_vlm", ARGUMENTS, unknown)
        name = read_text(pretrained)
        if name is None:
            raise UsageError("medtasks_vlm: pretrained is missing, expected a directory, a hub id or tiny.")
        self.batch_size = MOST_ROWS if batch_size is None else read_integer("batch_size", batch_size, least=1)
        self._batch_tokens = read_limit("batch_tokens", batch_tokens)
        sharing = read_flag("share_prefix", share_prefix)
        self._limits = PixelLimits(read_limit("min_pixels", min_pixels), read_limit("max_pixels", max_pixels))
        self._max_new_tokens = read_limit("max_new_tokens", max_new_tokens)
        self._system_prompt = read_text(system_prompt)
        self._seed = read_integer("seed", seed, least=0)
        if video not in ("images", "native"):
            raise UsageError(f"video is {video!r}, expected images or native.")
        self._blind = read_flag("blind", blind)
        self._native_video = video == "native"
        self.max_failed = None if max_failed is None else read_number("max_failed", max_failed, least=0, most=1)
        choice = CheckpointChoice(
            pretrained=name,
            revision=read_text(revision),
            dtype=dtype,
            attn_implementation=read_text(attn_implementation),
            peft=read_text(peft),
            trust_remote_code=read_flag("trust_remote_code", trust_remote_code),
        )
        own_device = self.join_replicas(device)
        loaded = load_checkpoint(choice, own_device, self._limits, progress=self.rank == 0 and name != "tiny")
        if self._native_video and not hasattr(loaded.processor, "video_processor"):
            raise UsageError(f"video=native was asked for, but the processor of {name} takes no videos; leave it out.")
        self._checkpoint_facts = loaded.facts
        self._answering = Answering(
            loaded.model,
            loaded.processor,
            share_prefix=sharing,
            batch_tokens=self._batch_tokens,
        )
        self._ahead: Ahead[Batch, list[tuple[Conversation, Prompt]]] = Ahead(self._read)
        self._planned: list[Batch] = []
        self.finish: dict[str, dict[str, list[str]]] = defaultdict(dict)
        self._finish_counts: Counter[str] = Counter()
        self._ignored: set[str] = set()

    def describe(self) -> dict[str, Any]:
        """What produced the answers, as JSON: checkpoint, versions, limits, and how answers ended so far.

        ``finish`` counts this replica's answers; ``length`` are those cut off at ``max_new_tokens``. ``share_prefix``
        is true, or the reason why every prompt is computed from the start. ``usage`` is what this replica computed.
        """
        return {
            "model": "medtasks_vlm",
            **self._checkpoint_facts,
            "batch_size": self.batch_size,
            "batch_tokens": self._batch_tokens,
            "share_prefix": self._answering.not_shared or True,
            "max_pixels": self._limits.most,
            "min_pixels": self._limits.least,
            "max_new_tokens": self._max_new_tokens,
            "system_prompt": self._system_prompt,
            "seed": self._seed,
            "video": "native" if self._native_video else "images",
            "blind": self._blind,
            "finish": {kind: self._finish_counts[kind] for kind in ("stop", "length")},
            "ignored_generation_settings": sorted(self._ignored),
            "usage": self._answering.usage(),
        }

    def generate_until(self, requests: list[Any]) -> list[Response]:
        """Answer ``requests`` in their order; a padding request is answered with an empty text, unread.

        Raises
        ------
        UsageError
            For settings out of range.
        MedtasksError
            For media that cannot be read, an input that the model does not take, or a sample too large for the device.
        """
        read = read_requests(requests, self.task_dict)
        answers = [Response("", TokenCounts(input_tokens=0, output_tokens=0)) for _ in read]
        total = sum(not request.padding for request in read)
        batches = list(plan_batches(read, self.batch_size, self._max_new_tokens))
        with tqdm(
            total=total, desc="medtasks_vlm", unit="sample", disable=self.rank != 0 or not self.show_progress
        ) as bar:
            for number, batch in enumerate(batches, start=1):
                following = batches[number] if number < len(batches) else self._planned_after(batch)
                for request, answer in self._answer(batch, following):
                    self._record(request, answer)
                    answers[request.position] = answer.response()
                bar.update(len(batch[1]))
        return answers

    def plan_requests(self, requests: list[Any]) -> list[list[int]]:
        """Positions of the requests of each batch, in the order of answering."""
        read = read_requests(requests, self.task_dict)
        self._planned = list(plan_batches(read, self.batch_size, self._max_new_tokens))
        self._ahead.forget()
        return [[request.position for request in batch] for _, batch in self._planned]

    def clean(self) -> None:
        """Free the model, as the harness asks for it once it has all answers."""
        self._answering.free()
        super().clean()

    def _planned_after(self, batch: Batch) -> Batch | None:
        """The batch that comes next according to the plan, so that it can be read meanwhile."""
        if batch not in self._planned:
            return None
        del self._planned[: self._planned.index(batch) + 1]
        return self._planned[0] if self._planned else None

    def _answer(self, batch: Batch, following: Batch | None) -> list[tuple[ChatRequest, Answer]]:
        settings, requests = batch
        self._note_ignored(settings)
        read = self._ahead.take(batch, following)
        seed = sample_seed(self._seed, requests[0].sample_id, requests[0].repeat)
        answers = self._answering.answer([talk for talk, _ in read], [prompt for _, prompt in read], settings, seed)
        return list(zip(requests, answers, strict=True))

    def _read(self, batch: Batch) -> list[tuple[Conversation, Prompt]]:
        return [self._read_one(request) for request in batch[1]]

    def _read_one(self, request: ChatRequest) -> tuple[Conversation, Prompt]:
        messages = request.messages(self.task_dict)
        talk = read_messages(
            without_media(messages) if self._blind else messages,
            self._limits,
            self._system_prompt,
            native_video=self._native_video,
        )
        try:
            return talk, self._answering.read(talk)
        except DataError as error:
            raise DataError(f"The model cannot take sample {request.sample_id}: {error}") from error

    def _note_ignored(self, settings: GenerationSettings) -> None:
        fresh = set(settings.ignored) - self._ignored
        if fresh:
            self._ignored |= fresh
            logger.warning(f"medtasks_vlm: generation settings without effect: {', '.join(sorted(fresh))}")

    def _record(self, request: ChatRequest, answer: Answer) -> None:
        self.finish[request.task].setdefault(request.sample_id, []).append(answer.finish)
        self._finish_counts[answer.finish] += 1
