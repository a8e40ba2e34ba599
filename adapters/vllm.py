"""``medtasks_vllm``: any vision-language checkpoint that vLLM serves, through vLLM's offline
API.
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from medtasks.harness.backends import adapter_facts, fingerprint_of
from medtasks.runs.replies import Probabilities, Reply

from ._answer_text import AnswerText
from ._base import (
    ChatRequest,
    Count,
    GeneratingAdapter,
    GeneratingArguments,
    GenerationSettings,
    Messages,
    cut_at_stop,
    ends_of_turn,
    media_in,
    read_messages,
    sample_seed,
)
from ._decoding import LETTERS, Letters
from ._pixels import content_hash

PICTURES_AT_ONCE = (
    128  # different pictures passed to the engine at once; prepared, they have some 10 MB each
)
MOST_PICTURES = (
    64  # per prompt by default: vLLM needs it in advance, and a window shows up to 64 frames
)
NAMED = (
    128  # most tokens whose log-probabilities vLLM gives at every step; five letters have about 100
)
COUNTERS = ("prefix_cache_queries", "prefix_cache_hits", "mm_cache_queries", "mm_cache_hits")
"""vLLM's counters in ``usage``: tokens looked up and found in its prefix cache, and media items."""


class VLLMArguments(GeneratingArguments):
    """Arguments of ``medtasks_vllm``. All others are passed to ``vllm.LLM``
    (``tensor_parallel_size``, ``quantization``, ``max_model_len``, …); a dictionary is written as
    JSON: ``limit_mm_per_prompt={"image": 128}``.
    """

    model_config = ConfigDict(extra="allow")

    batch_size: Count = 512  # requests passed to the engine at once, which schedules them by itself
    lora: str | None = None  # directory of a LoRA adapter


class MedtasksVLLM(GeneratingAdapter):
    """Generates answers with vLLM (``medtasks[vllm]``), without beam search. Requests are ordered
    by media, and pictures carry a hash of their content as their ``uuid``, so that vLLM finds them
    in its caches without hashing. One process serves all GPUs.
    """

    name = "medtasks_vllm"
    alone_when_sampling = False

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        given = VLLMArguments.read(arguments)
        super().__init__(given)
        if self.world_size > 1:
            raise UsageError(
                f"{self.world_size} processes were launched, but vLLM uses all GPUs from one; start it without a "
                "launcher and set tensor_parallel_size."
            )
        engine: dict[str, Any] = {"limit_mm_per_prompt": {"image": MOST_PICTURES}}
        for name, value in (given.model_extra or {}).items():
            engine[name] = value
            if isinstance(value, str) and value.startswith(
                "{"
            ):  # the harness's parser leaves such arguments as text
                try:
                    engine[name] = json.loads(value)
                except ValueError as error:
                    raise UsageError(
                        f"{name} is {value!r}, which is not valid JSON ({error})."
                    ) from error
        if engine.get("data_parallel_size", 1) != 1:
            raise UsageError(
                f"data_parallel_size is {engine['data_parallel_size']}, but vLLM's offline API runs one replica; set "
                "tensor_parallel_size, or start vllm serve --data-parallel-size and use --model async_openai."
            )
        self._model, self._adapter, self._facts = _load(given, engine)
        self._tokenizer = self._model.get_tokenizer()
        self._letters = Letters(self._tokenizer)
        self._answer_text = AnswerText(self._tokenizer)
        self._ends = ends_of_turn(self._tokenizer, self._tokenizer.eos_token_id)
        self.devices = math.prod(
            int(engine.get(f"{kind}_parallel_size") or 1) for kind in ("tensor", "pipeline")
        )
        self._usage = dict.fromkeys(COUNTERS, 0)
        config = self._model.llm_engine.vllm_config.model_config.hf_config
        self._placeholders = {
            getattr(config, f"{modality}_token_id", None) for modality in ("image", "video")
        } - {None}

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
        for asked, messages in self._portions(requests):
            sampling = [self._sampling(settings, request) for request in asked]
            try:
                outputs = self._model.chat(
                    messages, sampling, use_tqdm=False, lora_request=self._adapter
                )
            except (
                ValueError
            ) as error:  # raised for prompts that are too long or have too many pictures
                raise DataError(f"vLLM refused a request: {first_line(error)}") from error
            replies += [self._reply(*one, settings) for one in zip(outputs, asked, strict=True)]
        found: Counter[str] = Counter()
        for metric in self._model.get_metrics():
            found[metric.name] += getattr(metric, "value", 0)
        self._usage = {name: int(found[f"vllm:{name}"]) for name in COUNTERS}
        return replies

    def _portions(
        self, batch: Sequence[ChatRequest]
    ) -> Iterator[tuple[list[ChatRequest], list[Messages]]]:
        """Requests and their messages, in parts of limited size: vLLM prepares the pictures of a
        part at once.
        """
        asked: list[ChatRequest] = []
        portion: list[Messages] = []
        shown: set[str] = set()
        for request in batch:
            messages, pictures = read_messages(request.messages(self.task_dict), self._given), set()
            for part in media_in(messages, "image"):
                part["uuid"] = content_hash([part["image"]]).hex()
                part |= {"type": "image_pil", "image_pil": part.pop("image")}
                pictures.add(part["uuid"])
            if asked and len(shown | pictures) > PICTURES_AT_ONCE:
                yield asked, portion
                asked, portion, shown = [], [], set()
            asked.append(request)
            portion.append(messages)
            shown |= pictures
        yield asked, portion

    def _sampling(self, settings: GenerationSettings, request: ChatRequest) -> Any:
        """vLLM's settings of a request. Log-probabilities are those of the options' letters."""
        from vllm import SamplingParams

        engine, recorded = self._model.llm_engine, dict[str, Any]()
        if engine.vllm_config.speculative_config is None:  # it has none
            known = engine.model_config.get_vocab_size()
            tokens = self._letters.tokens.items()
            named = [
                token for token, letter in tokens if letter in request.options and token < known
            ]
            recorded = (
                {"logprob_token_ids": named[:NAMED]} if named else {"logprobs": 0}
            )  # the rarest are the last
        return SamplingParams(
            max_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            repetition_penalty=settings.repetition_penalty or 1.0,
            stop=list(settings.until) or None,
            stop_token_ids=self._ends,
            detokenize=bool(settings.until),
            **recorded,
            seed=sample_seed(self._given.seed, request.sample_id, request.repeat)
            if settings.sampling
            else None,
        )

    def _reply(self, output: Any, request: ChatRequest, settings: GenerationSettings) -> Reply:
        first, prompt = output.outputs[0], output.prompt_token_ids or ()
        if first.finish_reason not in ("stop", "length"):
            return Reply.failure(f"vLLM ended the request with {first.finish_reason!r}")
        in_thought = self._answer_text.begins_in_thought(prompt)
        text_of = functools.partial(self._answer_text.text_of, in_thought=in_thought)
        text = cut_at_stop(text_of(first.token_ids), settings.until)
        return Reply(
            text,
            input_tokens=len(prompt),
            output_tokens=len(first.token_ids),
            finish=first.finish_reason,
            vision_tokens=sum(token in self._placeholders for token in prompt)
            if self._placeholders
            else None,
            reused_tokens=output.num_cached_tokens,
            probabilities=probabilities(first, text, text_of, self._letters, request.options),
        )


def _load(given: VLLMArguments, engine: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """vLLM's engine, the request for the LoRA adapter if there is one, and JSON-serializable
    facts.
    """
    try:
        import vllm
        from vllm import LLM
    except ImportError as error:
        raise UsageError(
            f"vLLM cannot be imported ({first_line(error)}), expected what pip install 'medtasks[vllm]' installs."
        ) from error
    name, lora = given.pretrained, given.lora
    try:
        model = LLM(
            model=name,
            seed=given.seed % 2**31,
            disable_log_stats=False,
            enable_lora=lora is not None,
            **engine,
        )
    except Exception as error:  # vLLM, transformers and drivers raise many types
        # the first line of a validation error is only a count
        reason = first_problem(error) if isinstance(error, ValidationError) else first_line(error)
        raise MedtasksError(f"{name}: vLLM cannot serve it: {reason}") from error
    adapter = None
    if lora is not None:
        from vllm.lora.request import LoRARequest

        adapter = LoRARequest("adapter", 1, lora)
    config = model.llm_engine.vllm_config.model_config
    local, revision = fingerprint_of(name), engine.get("revision")
    facts = {
        "pretrained": name,
        "revision": revision
        if local
        else getattr(config.hf_config, "_commit_hash", None) or revision,
        **local,
        "lora": adapter_facts(lora),
        "architecture": config.architectures[0],
        "dtype": str(config.dtype).removeprefix("torch."),
        "engine": dict(sorted(engine.items())),
        "vllm": vllm.__version__,
    }
    return model, adapter, facts


def probabilities(
    given: Any,
    text: str,
    text_of: Callable[[Sequence[int]], str],
    letters: Letters,
    options: Sequence[str],
) -> Probabilities | None:
    """Those of a completion of vLLM: its log-probabilities are the model's own, before penalties
    and sampling settings. None if vLLM gave none.
    """
    ended = given.finish_reason == "stop" and not isinstance(given.stop_reason, str)
    tokens = list(given.token_ids)[: -1 if ended else None]
    steps = list(given.logprobs or ())[: len(tokens)]
    if len(steps) < len(tokens):
        return None
    shares = []
    for token, step in zip(tokens, steps, strict=True):
        of = dict.fromkeys(LETTERS, 0.0)
        for candidate, one in step.items():
            if token in letters.tokens and candidate in letters.tokens:
                of[letters.tokens[candidate]] += math.exp(one.logprob)
        shares.append([*of.values()])
    chosen = [step[token].logprob for token, step in zip(tokens, steps, strict=True)]
    return letters.probabilities(tokens, text, text_of, chosen, shares, options)[0]
