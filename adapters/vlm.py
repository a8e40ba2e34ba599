"""``medtasks_vlm``: any transformers image-text-to-text checkpoint as a chat back-end of lmms-eval."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from jinja2 import TemplateError
from lmms_eval.api.instance import TokenCounts
from loguru import logger
from tqdm import tqdm
from transformers import StoppingCriteriaList

from medtasks.border import at_border
from medtasks.errors import DataError, MedtasksError, UsageError

from ._arguments import read_flag, read_integer, read_number, read_text
from ._base import MedtasksAdapter, Response, refuse_unknown
from ._batches import plan_batches
from ._checkpoint import CheckpointChoice, load_checkpoint
from ._generation import GenerationSettings, StopAtText, cut_at_stop, sample_seed
from ._messages import Conversation, PixelLimits, read_messages, video_inputs, without_media
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


@dataclass(frozen=True)
class Answer:
    """One generated answer; ``finish`` is ``stop`` or, where the token limit cut it off, ``length``."""

    text: str
    input_tokens: int
    output_tokens: int
    finish: str

    def response(self) -> Response:
        """As the harness takes it."""
        counts = TokenCounts(input_tokens=self.input_tokens, output_tokens=self.output_tokens)
        return Response(self.text, counts, finish=self.finish)


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
        Samples per padded batch; sampling always runs one by one so that a draw depends on its seed alone.
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
        batch_size: int | str = 1,
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
        self.batch_size = read_integer("batch_size", batch_size, least=1)
        self._limits = PixelLimits(
            None if min_pixels is None else read_integer("min_pixels", min_pixels, least=1),
            None if max_pixels is None else read_integer("max_pixels", max_pixels, least=1),
        )
        self._max_new_tokens = (
            None if max_new_tokens is None else read_integer("max_new_tokens", max_new_tokens, least=1)
        )
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
        self._model = loaded.model
        self._processor = loaded.processor
        if self._native_video and not hasattr(self._processor, "video_processor"):
            raise UsageError(f"video=native was asked for, but the processor of {name} takes no videos; leave it out.")
        self._checkpoint_facts = loaded.facts
        self.finish: dict[str, dict[str, list[str]]] = defaultdict(dict)
        self._finish_counts: Counter[str] = Counter()
        self._ignored: set[str] = set()

    def describe(self) -> dict[str, Any]:
        """What produced the answers, as JSON: checkpoint, versions, limits, and how answers ended so far.

        ``finish`` counts this replica's answers; ``length`` are those cut off at ``max_new_tokens``.
        """
        return {
            "model": "medtasks_vlm",
            **self._checkpoint_facts,
            "batch_size": self.batch_size,
            "max_pixels": self._limits.most,
            "min_pixels": self._limits.least,
            "max_new_tokens": self._max_new_tokens,
            "system_prompt": self._system_prompt,
            "seed": self._seed,
            "video": "native" if self._native_video else "images",
            "blind": self._blind,
            "finish": {kind: self._finish_counts[kind] for kind in ("stop", "length")},
            "ignored_generation_settings": sorted(self._ignored),
        }

    def generate_until(self, requests: list[Any]) -> list[Response]:
        """Answer ``requests`` in their order; a padding request is answered with an empty text, unread.

        Raises
        ------
        UsageError
            For settings out of range.
        MedtasksError
            For media that cannot be read, an input that the model does not take, or a batch too large for the GPU.
        """
        read = read_requests(requests, self.task_dict)
        answers = [Response("", TokenCounts(input_tokens=0, output_tokens=0)) for _ in read]
        total = sum(not request.padding for request in read)
        with tqdm(
            total=total, desc="medtasks_vlm", unit="sample", disable=self.rank != 0 or not self.show_progress
        ) as bar:
            for settings, batch in plan_batches(read, self.batch_size, self._max_new_tokens):
                self._note_ignored(settings)
                for request, answer in self._answer(batch, settings):
                    self._record(request, answer)
                    answers[request.position] = answer.response()
                bar.update(len(batch))
        return answers

    def plan_requests(self, requests: list[Any]) -> list[list[int]]:
        """Positions of the requests of each batch, in the order of answering."""
        planned = plan_batches(read_requests(requests, self.task_dict), self.batch_size, self._max_new_tokens)
        return [[request.position for request in batch] for _, batch in planned]

    def _note_ignored(self, settings: GenerationSettings) -> None:
        fresh = set(settings.ignored) - self._ignored
        if fresh:
            self._ignored |= fresh
            logger.warning(f"medtasks_vlm: generation settings without effect: {', '.join(sorted(fresh))}")

    def _record(self, request: ChatRequest, answer: Answer) -> None:
        self.finish[request.task].setdefault(request.sample_id, []).append(answer.finish)
        self._finish_counts[answer.finish] += 1

    def _answer(self, batch: Sequence[ChatRequest], settings: GenerationSettings) -> list[tuple[ChatRequest, Answer]]:
        conversations = [
            read_messages(
                without_media(request.messages(self.task_dict)) if self._blind else request.messages(self.task_dict),
                self._limits,
                self._system_prompt,
                native_video=self._native_video,
            )
            for request in batch
        ]
        answered: list[tuple[ChatRequest, Answer]] = []
        # Processors disagree about rows without images (or videos) beside rows with some: they never share a batch.
        for kind in product((True, False), repeat=2):
            rows = [i for i, talk in enumerate(conversations) if (bool(talk.images), bool(talk.videos)) == kind]
            if rows:
                seed = sample_seed(self._seed, batch[rows[0]].sample_id, batch[rows[0]].repeat)
                try:
                    answers = self._generate([conversations[i] for i in rows], settings, seed)
                except (ValueError, TemplateError) as error:  # how processors and templates refuse an input
                    named = ", ".join(batch[i].sample_id for i in rows)
                    raise DataError(f"The model cannot take sample(s) {named}: {error}") from error
                answered += [(batch[i], answer) for i, answer in zip(rows, answers, strict=True)]
        return answered

    def _generate(self, conversations: Sequence[Conversation], settings: GenerationSettings, seed: int) -> list[Answer]:
        try:
            inputs = self._encode(conversations)
            prompt_length = inputs["input_ids"].shape[1]
            extra: dict[str, Any] = {}
            if settings.until and settings.num_beams == 1:
                stop = StopAtText(self._processor.tokenizer, prompt_length, settings.until)
                extra["stopping_criteria"] = StoppingCriteriaList([stop])
            gpus = [self._device] if self._device.type == "cuda" else []
            with torch.inference_mode(), torch.random.fork_rng(devices=gpus):
                if settings.sampling:
                    torch.manual_seed(seed)
                output = self._model.generate(**inputs, generation_config=self._configure(settings), **extra)
        except torch.cuda.OutOfMemoryError as error:
            raise MedtasksError(
                f"The GPU ran out of memory on {len(conversations)} samples; lower batch_size (now "
                f"{self.batch_size}) or max_pixels (now {self._limits.most or 'not set'})."
            ) from error
        prompt_tokens = inputs["attention_mask"].sum(dim=1).tolist()
        rows = output[:, prompt_length:].tolist()
        return [self._read_row(row, tokens, settings) for row, tokens in zip(rows, prompt_tokens, strict=True)]

    def _encode(self, conversations: Sequence[Conversation]) -> Any:
        tokenizer = self._processor.tokenizer
        texts = [
            self._processor.apply_chat_template(talk.messages, tokenize=False, add_generation_prompt=True)
            for talk in conversations
        ]
        images = [talk.images for talk in conversations]
        # A template that writes the start token itself must not get a second one.
        starts = tokenizer.bos_token is not None and texts[0].startswith(tokenizer.bos_token)
        inputs = self._processor(
            text=texts,
            images=images if images[0] else None,
            **video_inputs([video for talk in conversations for video in talk.videos]),
            padding=True,
            return_tensors="pt",
            add_special_tokens=not starts,
        )
        return inputs.to(device=self._device, dtype=self._model.dtype)

    def _configure(self, settings: GenerationSettings) -> Any:
        config = settings.configure(self._model.generation_config)
        tokenizer = self._processor.tokenizer
        if config.eos_token_id is None:
            config.eos_token_id = tokenizer.eos_token_id
        config.pad_token_id = tokenizer.pad_token_id
        return config

    def _read_row(self, row: list[int], prompt_tokens: int, settings: GenerationSettings) -> Answer:
        tokenizer = self._processor.tokenizer
        ends = self._configure(settings).eos_token_id
        ends = set(ends) if isinstance(ends, (list, tuple)) else {ends}
        end = next((i for i, token in enumerate(row) if token in ends), None)
        if end is None:
            while row and row[-1] == tokenizer.pad_token_id:  # it met a stop string before others ended
                row = row[:-1]
        else:
            row = row[: end + 1]
        full = tokenizer.decode(row, skip_special_tokens=True)
        text = cut_at_stop(full, settings.until)
        finish = "stop" if end is not None or text != full else "length"
        return Answer(text, int(prompt_tokens), len(row), finish)
