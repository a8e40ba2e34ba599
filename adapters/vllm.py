"""``medtasks_vllm``: any vision-language checkpoint that vLLM serves, through its offline API."""

from __future__ import annotations

import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from medtasks.core.errors import DataError, UsageError, exit_with_sentence, first_line
from medtasks.runs.replies import Probabilities, Reply, ReplyTiming

from ._answer_text import AnswerText, cut_at_stop, ends_of_turn
from ._base import GeneratingAdapter
from ._letter_tokens import LETTERS, LetterTokens, RecordedAnswer
from ._messages import Messages, media_in, read_messages
from ._pixels import content_hash
from ._requests import ChatRequest, sample_seed
from ._settings import GenerationSettings
from ._vllm_engine import (
    VLLMArguments,
    engine_arguments,
    engine_facts,
    load_engine,
    lora_request,
    number_of_gpus,
    placeholder_tokens,
)

PICTURES_AT_ONCE = 128
"""Different pictures passed to the engine at once; prepared, they have some 10 MB each."""
MOST_RECORDED = 128
"""Most tokens whose log-probabilities vLLM returns at every step; five letters have about 100."""
COUNTERS = ("prefix_cache_queries", "prefix_cache_hits", "mm_cache_queries", "mm_cache_hits")
"""vLLM's counters in ``usage``: tokens looked up and found in its prefix cache, and media items."""


class MedtasksVLLM(GeneratingAdapter):
    """Generates answers with vLLM (``medtasks[vllm]``), without beam search.

    Requests are ordered by media, and pictures carry a hash of their content as their ``uuid``, so
    that vLLM finds them in its caches without hashing. One process serves all GPUs.
    """

    name = "medtasks_vllm"
    names_devices = True
    alone_when_sampling = False

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        """Start the engine with `VLLMArguments`; an error ends the process with one sentence."""
        settings = VLLMArguments.read(arguments)
        super().__init__(settings)
        if self.world_size > 1:
            raise UsageError(
                f"{self.world_size} processes were launched, but vLLM uses all GPUs from one; "
                "start it without a launcher and set tensor_parallel_size."
            )
        engine = engine_arguments(settings.model_extra or {})
        self._model = load_engine(settings, engine)
        self._lora_request = lora_request(settings.lora)
        self._facts = engine_facts(settings, engine, self._model)
        self._tokenizer = self._model.get_tokenizer()
        self._letters = LetterTokens(self._tokenizer)
        self._answer_text = AnswerText(self._tokenizer)
        self._ends = ends_of_turn(self._tokenizer, self._tokenizer.eos_token_id)
        self._placeholders = placeholder_tokens(self._model)
        self.devices = number_of_gpus(engine)
        self._usage = dict.fromkeys(COUNTERS, 0)

    def clean(self) -> None:
        """Stop the engine; the harness calls this once it has all answers."""
        self._model = None
        super().clean()

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, whose settings are equal."""
        settings = self.settings_of(requests)
        self.report_ignored(settings)
        if settings.num_beams != 1:
            raise UsageError(
                f"num_beams is {settings.num_beams}, but medtasks_vllm has no beam search."
            )
        replies: list[Reply] = []
        for portion, messages in self._portions(requests):
            began = time.monotonic()
            outputs = self._outputs(portion, messages, settings)
            whole = ReplyTiming(
                time.monotonic() - began, began, batch=len(portion), in_flight=len(portion)
            )
            for output, request in zip(outputs, portion, strict=True):
                reply = self._reply(output, request, settings)
                timing = timing_of_output(output.metrics, whole)
                replies.append(replace(reply, timing=timing if reply.failed is None else None))
        self._usage = self._counts_of_engine()
        return replies

    def _outputs(
        self,
        requests: Sequence[ChatRequest],
        messages: Sequence[Messages],
        settings: GenerationSettings,
    ) -> Sequence[Any]:
        """vLLM's outputs for requests with these messages, in order."""
        sampling = [self._sampling(settings, request) for request in requests]
        try:
            outputs: Sequence[Any] = self._model.chat(
                messages, sampling, use_tqdm=False, lora_request=self._lora_request
            )
        # raised for prompts that are too long or have too many pictures
        except ValueError as error:
            raise DataError(f"vLLM refused a request: {first_line(error)}") from error
        return outputs

    def _counts_of_engine(self) -> dict[str, int]:
        """The engine's `COUNTERS` since it started, each summed over its processes."""
        counts: Counter[str] = Counter()
        for metric in self._model.get_metrics():
            counts[metric.name] += getattr(metric, "value", 0)
        return {name: int(counts[f"vllm:{name}"]) for name in COUNTERS}

    def _portions(
        self, batch: Sequence[ChatRequest]
    ) -> Iterator[tuple[list[ChatRequest], list[Messages]]]:
        """Yield requests and their messages in portions of limited size.

        vLLM prepares the pictures of a portion at once.
        """
        portion: list[ChatRequest] = []
        messages_of_portion: list[Messages] = []
        pictures_of_portion: set[str] = set()
        for request in batch:
            messages = read_messages(request.messages(self.task_dict), self._arguments)
            pictures = _identify_pictures(messages)
            if portion and len(pictures_of_portion | pictures) > PICTURES_AT_ONCE:
                yield portion, messages_of_portion
                portion, messages_of_portion, pictures_of_portion = [], [], set()
            portion.append(request)
            messages_of_portion.append(messages)
            pictures_of_portion |= pictures
        yield portion, messages_of_portion

    def _sampling(self, settings: GenerationSettings, request: ChatRequest) -> Any:
        """vLLM's settings of a request. Log-probabilities are those of the options' letters."""
        from vllm import SamplingParams

        seed: int | None = None
        if settings.sampling:
            seed = sample_seed(self._arguments.seed, request.sample_id, request.repeat)
        return SamplingParams(
            max_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            repetition_penalty=settings.repetition_penalty or 1.0,
            stop=list(settings.until) or None,
            stop_token_ids=self._ends,
            detokenize=bool(settings.until),
            **self._recorded_probabilities(request.options),
            seed=seed,
        )

    def _recorded_probabilities(self, options: Sequence[str]) -> dict[str, Any]:
        """vLLM's settings that record the probabilities of the options' letters.

        Without options, only the generated tokens' are recorded; with speculative decoding, none.
        """
        engine = self._model.llm_engine
        if engine.vllm_config.speculative_config is not None:
            return {}
        vocabulary = engine.model_config.get_vocab_size()
        tokens: list[int] = []
        for token, letter in self._letters.tokens.items():
            if letter in options and token < vocabulary:
                tokens.append(token)
        if not tokens:
            return {"logprobs": 0}  # only that of each generated token
        # tokenizers number frequent tokens first, so this leaves out the rarest
        return {"logprob_token_ids": tokens[:MOST_RECORDED]}

    def _reply(self, output: Any, request: ChatRequest, settings: GenerationSettings) -> Reply:
        """The reply in vLLM's output for a request, with probabilities and numbers of tokens."""
        completion = output.outputs[0]
        prompt = output.prompt_token_ids or ()
        if completion.finish_reason not in ("stop", "length"):
            return Reply.failure(f"vLLM ended the request with {completion.finish_reason!r}")
        vision_tokens: int | None = None
        if self._placeholders:
            vision_tokens = sum(token in self._placeholders for token in prompt)
        in_thought = self._answer_text.begins_in_thought(prompt)
        text_of = functools.partial(self._answer_text.text_of, in_thought=in_thought)
        text = cut_at_stop(text_of(completion.token_ids), settings.until)
        return Reply(
            text,
            input_tokens=len(prompt),
            output_tokens=len(completion.token_ids),
            finish=completion.finish_reason,
            vision_tokens=vision_tokens,
            reused_tokens=output.num_cached_tokens,
            probabilities=probabilities(completion, text, text_of, self._letters, request.options),
        )


def timing_of_output(metrics: Any, portion: ReplyTiming) -> ReplyTiming:
    """The timing of a request from vLLM's own metrics, or else that of its ``portion``.

    vLLM's engine notes when a request was queued, scheduled, and had its first and last token, as
    readings of its own monotonic clock. While the engine worked on requests that were passed
    before, a request was queued.
    """
    queued = getattr(metrics, "queued_ts", 0.0)
    scheduled = getattr(metrics, "scheduled_ts", 0.0)
    first_token = getattr(metrics, "first_token_ts", 0.0)
    last_token = getattr(metrics, "last_token_ts", 0.0)
    if not 0 < queued <= scheduled <= first_token <= last_token:
        return portion
    return ReplyTiming(
        last_token - scheduled,
        portion.sent + scheduled - queued,
        queued=scheduled - queued,
        first_token=first_token - scheduled,
        in_flight=portion.in_flight,
    )


def _identify_pictures(messages: Messages) -> set[str]:
    """Give each picture in ``messages`` the form that vLLM takes; return the pictures' ids."""
    pictures: set[str] = set()
    for part in media_in(messages, "image"):
        part["uuid"] = content_hash([part["image"]]).hex()
        part["type"] = "image_pil"
        part["image_pil"] = part.pop("image")
        pictures.add(part["uuid"])
    return pictures


def probabilities(
    completion: Any,
    text: str,
    text_of: Callable[[Sequence[int]], str],
    letters: LetterTokens,
    options: Sequence[str],
) -> Probabilities | None:
    """The probabilities of a completion of vLLM; None if vLLM returned none.

    They are the model's own, before penalties and sampling settings.
    """
    tokens = _answer_tokens(completion)
    steps = list(completion.logprobs or ())[: len(tokens)]
    if len(steps) < len(tokens):
        return None
    chosen: list[float] = []
    shares: list[list[float]] = []
    for token, candidates in zip(tokens, steps, strict=True):
        chosen.append(candidates[token].logprob)
        if token in letters.tokens:
            shares.append(_letter_shares(candidates, letters))
        else:
            shares.append([0.0] * len(LETTERS))
    answer = RecordedAnswer(tokens, text, text_of, chosen, shares)
    return letters.probabilities(answer, options).probabilities


def _answer_tokens(completion: Any) -> list[int]:
    """The tokens of a completion of vLLM, without the token that ended the answer if one did."""
    tokens = list(completion.token_ids)
    stopped_at_text = isinstance(completion.stop_reason, str)
    if completion.finish_reason == "stop" and not stopped_at_text:
        return tokens[:-1]
    return tokens


def _letter_shares(candidates: Mapping[int, Any], letters: LetterTokens) -> list[float]:
    """The probability of each of `LETTERS` among the recorded candidates for a token."""
    share_of_letter = dict.fromkeys(LETTERS, 0.0)
    for candidate, estimate in candidates.items():
        if candidate in letters.tokens:
            share_of_letter[letters.tokens[candidate]] += math.exp(estimate.logprob)
    return [*share_of_letter.values()]
