"""``medtasks_vllm``: any vision-language checkpoint that vLLM serves, through its offline API."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, ValidationError

from medtasks.core.errors import (
    DataError,
    MedtasksError,
    UsageError,
    exit_with_sentence,
    first_line,
)
from medtasks.core.schema import first_problem
from medtasks.harness.model_facts import adapter_facts, fingerprint_of
from medtasks.runs.replies import Probabilities, Reply

from ._answer_text import AnswerText, cut_at_stop, ends_of_turn
from ._base import GeneratingAdapter
from ._decoding import LETTERS, LetterTokens
from ._messages import Messages, media_in, read_messages
from ._pixels import content_hash
from ._requests import ChatRequest, sample_seed
from ._settings import Count, GeneratingArguments, GenerationSettings

PICTURES_AT_ONCE = 128
"""Different pictures passed to the engine at once; prepared, they have some 10 MB each."""
MOST_PICTURES = 64
"""Per prompt by default: vLLM needs it in advance, and a window shows up to 64 frames."""
NAMED = 128
"""Most tokens whose log-probabilities vLLM returns at every step; five letters have about 100."""
COUNTERS = ("prefix_cache_queries", "prefix_cache_hits", "mm_cache_queries", "mm_cache_hits")
"""vLLM's counters in ``usage``: tokens looked up and found in its prefix cache, and media items."""


class VLLMArguments(GeneratingArguments):
    """Arguments of ``medtasks_vllm``.

    All others are passed to ``vllm.LLM`` (``tensor_parallel_size``, ``quantization``,
    ``max_model_len``, …); a dictionary is written as JSON: ``limit_mm_per_prompt={"image": 128}``.
    """

    model_config = ConfigDict(extra="allow")

    # requests passed to the engine at once, which schedules them by itself
    batch_size: Count = 512
    # directory of a LoRA adapter
    lora: str | None = None


class MedtasksVLLM(GeneratingAdapter):
    """Generates answers with vLLM (``medtasks[vllm]``), without beam search.

    Requests are ordered by media, and pictures carry a hash of their content as their ``uuid``, so
    that vLLM finds them in its caches without hashing. One process serves all GPUs.
    """

    name = "medtasks_vllm"
    alone_when_sampling = False

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        settings = VLLMArguments.read(arguments)
        super().__init__(settings)
        if self.world_size > 1:
            raise UsageError(
                f"{self.world_size} processes were launched, but vLLM uses all GPUs from one; "
                "start it without a launcher and set tensor_parallel_size."
            )
        engine = _engine_arguments(settings.model_extra or {})
        self._model = _load_model(settings, engine)
        self._lora_request = _lora_request(settings.lora)
        self._facts = _facts(settings, engine, self._model)
        self._tokenizer = self._model.get_tokenizer()
        self._letters = LetterTokens(self._tokenizer)
        self._answer_text = AnswerText(self._tokenizer)
        self._ends = ends_of_turn(self._tokenizer, self._tokenizer.eos_token_id)
        tensor_parallel = int(engine.get("tensor_parallel_size") or 1)
        pipeline_parallel = int(engine.get("pipeline_parallel_size") or 1)
        self.devices = tensor_parallel * pipeline_parallel
        self._usage = dict.fromkeys(COUNTERS, 0)
        config = self._model.llm_engine.vllm_config.model_config.hf_config
        self._placeholders: set[int] = set()
        for modality in ("image", "video"):
            token = getattr(config, f"{modality}_token_id", None)
            if token is not None:
                self._placeholders.add(token)

    def clean(self) -> None:
        """Stop the engine; the harness calls this once it has all answers."""
        self._model = None
        super().clean()

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, whose settings are equal."""
        settings = self.settings_of(requests)
        if settings.num_beams != 1:
            raise UsageError(
                f"num_beams is {settings.num_beams}, but medtasks_vllm has no beam search."
            )
        replies: list[Reply] = []
        for portion, messages in self._portions(requests):
            sampling = [self._sampling(settings, request) for request in portion]
            try:
                outputs = self._model.chat(
                    messages, sampling, use_tqdm=False, lora_request=self._lora_request
                )
            # raised for prompts that are too long or have too many pictures
            except ValueError as error:
                raise DataError(f"vLLM refused a request: {first_line(error)}") from error
            for output, request in zip(outputs, portion, strict=True):
                replies.append(self._reply(output, request, settings))
        counts: Counter[str] = Counter()
        for metric in self._model.get_metrics():
            counts[metric.name] += getattr(metric, "value", 0)
        self._usage = {name: int(counts[f"vllm:{name}"]) for name in COUNTERS}
        return replies

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
            pictures: set[str] = set()
            for part in media_in(messages, "image"):
                part["uuid"] = content_hash([part["image"]]).hex()
                part["type"] = "image_pil"
                part["image_pil"] = part.pop("image")
                pictures.add(part["uuid"])
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
        """vLLM's settings that record the probabilities of the options' letters."""
        engine = self._model.llm_engine
        if engine.vllm_config.speculative_config is not None:  # it records none
            return {}
        vocabulary = engine.model_config.get_vocab_size()
        tokens: list[int] = []
        for token, letter in self._letters.tokens.items():
            if letter in options and token < vocabulary:
                tokens.append(token)
        if not tokens:
            return {"logprobs": 0}
        # the rarest are the last
        return {"logprob_token_ids": tokens[:NAMED]}

    def _reply(self, output: Any, request: ChatRequest, settings: GenerationSettings) -> Reply:
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


def _engine_arguments(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``vllm.LLM``: our defaults and the user's."""
    engine: dict[str, Any] = {"limit_mm_per_prompt": {"image": MOST_PICTURES}}
    for name, value in extra.items():
        engine[name] = value
        # the harness's parser leaves dictionaries as text
        if isinstance(value, str) and value.startswith("{"):
            try:
                engine[name] = json.loads(value)
            except ValueError as error:
                raise UsageError(
                    f"{name} is {value!r}, which is not valid JSON ({error})."
                ) from error
    if engine.get("data_parallel_size", 1) != 1:
        raise UsageError(
            f"data_parallel_size is {engine['data_parallel_size']}, but vLLM's offline API runs "
            "one replica; set tensor_parallel_size, or start vllm serve --data-parallel-size and "
            "use --model async_openai."
        )
    return engine


def _load_model(arguments: VLLMArguments, engine: Mapping[str, Any]) -> Any:
    try:
        from vllm import LLM
    except ImportError as error:
        raise UsageError(
            f"vLLM cannot be imported ({first_line(error)}), expected what "
            "pip install 'medtasks[vllm]' installs."
        ) from error
    name = arguments.pretrained
    try:
        return LLM(
            model=name,
            seed=arguments.seed % 2**31,
            disable_log_stats=False,
            enable_lora=arguments.lora is not None,
            **engine,
        )
    except Exception as error:  # vLLM, transformers and drivers raise many types
        # the first line of a validation error is only a count
        reason = first_problem(error) if isinstance(error, ValidationError) else first_line(error)
        raise MedtasksError(f"{name}: vLLM cannot serve it: {reason}") from error


def _lora_request(directory: str | None) -> Any:
    if directory is None:
        return None
    from vllm.lora.request import LoRARequest

    return LoRARequest("adapter", 1, directory)


def _facts(arguments: VLLMArguments, engine: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """JSON-serializable facts about checkpoint and engine."""
    import vllm

    config = model.llm_engine.vllm_config.model_config
    fingerprint = fingerprint_of(arguments.pretrained)
    revision = engine.get("revision")
    if not fingerprint:  # from the hub, so the commit is known
        revision = getattr(config.hf_config, "_commit_hash", None) or revision
    return {
        "pretrained": arguments.pretrained,
        "revision": revision,
        **fingerprint,
        "lora": adapter_facts(arguments.lora),
        "architecture": config.architectures[0],
        "dtype": str(config.dtype).removeprefix("torch."),
        "engine": dict(sorted(engine.items())),
        "vllm": vllm.__version__,
    }


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
    tokens = list(completion.token_ids)
    stopped_at_text = isinstance(completion.stop_reason, str)
    if completion.finish_reason == "stop" and not stopped_at_text:
        tokens = tokens[:-1]  # without the token that ends the answer
    steps = list(completion.logprobs or ())[: len(tokens)]
    if len(steps) < len(tokens):
        return None
    chosen: list[float] = []
    shares: list[list[float]] = []
    for token, candidates in zip(tokens, steps, strict=True):
        chosen.append(candidates[token].logprob)
        share_of_letter = dict.fromkeys(LETTERS, 0.0)
        if token in letters.tokens:
            for candidate, estimate in candidates.items():
                if candidate in letters.tokens:
                    share_of_letter[letters.tokens[candidate]] += math.exp(estimate.logprob)
        shares.append([*share_of_letter.values()])
    result, _ = letters.probabilities(tokens, text, text_of, chosen, shares, options)
    return result
