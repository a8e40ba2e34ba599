"""Which options of lmms-eval our tasks accept; ``docs/options.md`` describes every one of them.

Some options belong to ways of asking, scoring or comparing that our tasks do otherwise. The harness
would ignore them, or end with a traceback; here they are refused with what to use instead.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.catalog.spec import load_specs
from medtasks.core.errors import UsageError
from medtasks.core.settings import current_settings

REASONING_TAGS = '[["<think>", "</think>"], ["<analysis>", "</analysis>"]]'
"""lmms-eval's default of ``--reasoning_tags``."""

_LEAVE_OUT = "leave the option out"
_NOT_SUPPORTED = {
    "use_cache": (
        "--use_cache is not supported by tasks of medtasks, and resuming needs no cache: every "
        f"reply is stored as it arrives, and the same command continues; {_LEAVE_OUT}."
    ),
    "cache_requests": (
        "--cache_requests is not supported by tasks of medtasks: prompts are built in seconds, and "
        f"cached ones would outlive a change of data or templates; {_LEAVE_OUT}."
    ),
    "check_integrity": (
        "--check_integrity runs lmms-eval's unit tests, which its package does not contain; "
        "check a task with `medtasks validate TASK`."
    ),
    "apply_chat_template": (
        "--apply_chat_template is not supported by tasks of medtasks: they send messages, and the "
        f"back-end or the server applies the model's chat template to them; {_LEAVE_OUT}."
    ),
    "fewshot_as_multiturn": (
        "--fewshot_as_multiturn is set, but examples are part of a task's prompt here; "
        f"{_LEAVE_OUT}."
    ),
    "launcher_args": (
        "--launcher_args starts a judge for lmms-eval's own tasks; start a server and name it in "
        "MEDTASKS_JUDGE, or judge the finished run with `medtasks judge`."
    ),
    "baseline": (
        "--baseline is not supported by tasks of medtasks; compare two finished runs, with "
        "clusters and intervals, with `medtasks compare RUN BASELINE`."
    ),
    "max_tokens": (
        "--max_tokens limits no task of medtasks, because a run that stops midway has no scores; "
        "ask fewer questions with --limit N or MEDTASKS_SUBSET, or shorten responses with "
        "--gen_kwargs max_new_tokens=N."
    ),
    "swanlab_log_samples": (
        "--swanlab_log_samples is not supported by tasks of medtasks; use --wandb_log_samples, or "
        "`medtasks view`."
    ),
}
"""Options that our tasks have no use for, and the sentence that refuses each."""

_WITHOUT_EFFECT = {
    "log_samples_suffix": "model_outputs",
    "trust_remote_code": False,
    "process_with_media": False,
    "process_docs_parallel": 4,
    "agentic_trace_mode": "basic",
}
"""Options that change nothing for our tasks, with lmms-eval's defaults."""
_WITHOUT_EFFECT_ON_OURS = {"max_batch_size": None, "force_simple": False}
"""The same for our back-ends alone."""


def refuse_options(options: Mapping[str, Any], ours: Sequence[str]) -> None:
    """Refuse options that tasks of medtasks do not support.

    Args:
        options: by name, as in lmms-eval's parsed arguments; those that are missing have their
            default.
        ours: the tasks and groups of medtasks in the run.

    Raises:
        UsageError: the first of them that is not supported, with the option to use instead.
    """
    _refuse_examples(int(options.get("num_fewshot") or 0), ours)
    for name, sentence in _NOT_SUPPORTED.items():
        if options.get(name):
            raise UsageError(sentence)
    if options.get("reasoning_tags", REASONING_TAGS) != REASONING_TAGS:
        raise UsageError(
            "--reasoning_tags is not supported by tasks of medtasks: their filters remove "
            f"reasoning themselves, and the raw responses are kept; {_LEAVE_OUT}."
        )
    hub_arguments = str(options.get("hf_hub_log_args") or "").replace(" ", "").lower()
    if "push_samples_to_hub=true" in hub_arguments:
        raise UsageError(
            "--hf_hub_log_args has push_samples_to_hub, which would upload the model's whole "
            "result directory, whatever the licence of a benchmark allows; publish results with "
            "`medtasks export`."
        )


def _refuse_examples(shots: int, ours: Sequence[str]) -> None:
    """Refuse a number of examples; advise the tasks that have an example in their prompt."""
    if not shots:
        return
    specs = load_specs()
    one_shot_tasks = [f"{name}_1shot" for name in ours if f"{name}_1shot" in specs]
    advice = f"run {', '.join(one_shot_tasks)}" if one_shot_tasks else _LEAVE_OUT
    raise UsageError(
        f"--num_fewshot is {shots}, but examples are part of a task's prompt here: {advice}."
    )


def refuse_incomplete(options: Mapping[str, Any]) -> None:
    """Refuse options of a command line that need another one, or a number in another range.

    Raises:
        UsageError: the harness would answer it with a traceback and exit code 0, or ignore it.
    """
    for name, contents in (("predict_only", "responses"), ("log_samples", "samples")):
        if options.get(name) and not options.get("output_path"):
            raise UsageError(f"--{name} needs --output_path DIR, the directory of its {contents}.")
    is_logged = options.get("log_samples") or options.get("predict_only")
    if options.get("wandb_log_samples") and not (options.get("wandb_args") and is_logged):
        raise UsageError("--wandb_log_samples needs --wandb_args project=NAME and --log_samples.")
    limit = options.get("limit")
    offset = options.get("offset")
    if isinstance(limit, (int, float)) and limit < 0 and limit != -1:
        expected = "a number of documents, a share below 1, or -1 for all"
        raise UsageError(f"--limit is {limit}, expected {expected}.")
    if isinstance(offset, int) and offset < 0:
        expected = "the number of documents to skip, 0 or more"
        raise UsageError(f"--offset is {offset}, expected {expected}.")


def name_those_without_effect(asked: Mapping[str, Any], *, our_back_end: bool) -> None:
    """Print the options of a command that are set and change nothing for our tasks.

    Args:
        asked: the arguments of ``simple_evaluate``; nothing is printed for those of a program.
        our_back_end: whether the back-end is one of ours, which ignores more of them.
    """
    if asked["cli_args"] is None or current_settings().rank > 0:
        return
    options = vars(asked["cli_args"])
    defaults = dict(_WITHOUT_EFFECT)
    if our_back_end:
        defaults |= _WITHOUT_EFFECT_ON_OURS
    changed = [name for name, default in defaults.items() if options.get(name, default) != default]
    if changed:
        names = ", ".join(f"--{name}" for name in changed)
        message = f"medtasks: without effect on tasks of medtasks: {names}"
        print(message, file=sys.stderr, flush=True)


def refuse(asked: Mapping[str, Any], ours: Sequence[str]) -> None:
    """Refuse a run of our tasks that cannot work, by the arguments of ``simple_evaluate``.

    Raises:
        UsageError: an option is not supported by our tasks, or the back-end cannot be used.
    """
    command = vars(asked["cli_args"]) if asked.get("cli_args") is not None else {}
    refuse_options({**command, **asked}, ours)
    model = asked.get("model")
    if isinstance(model, str):
        force_simple = bool(asked.get("force_simple"))
        _refuse_back_end(model, str(asked.get("model_args")), force_simple=force_simple)


def _refuse_back_end(model: str, model_args: str, *, force_simple: bool) -> None:
    """Refuse a back-end that cannot be imported, or cannot run our tasks with these arguments."""
    from medtasks.harness.backends import lack_of

    if model == "llava_hf" and force_simple:
        raise UsageError(
            "llava_hf cannot run our tasks with --force_simple, where it may answer a request with "
            "the response to another one; leave the option out."
        )
    lack = lack_of(model, force_simple=force_simple)
    if lack is not None:
        fix = f": {lack.fix}" if lack.fix else ""
        raise UsageError(f"back-end {model} cannot be used: {lack.reason}{fix}")
    is_placed = current_settings().processes > 1 or "device_map" in model_args
    if model == "llava_hf" and not is_placed:  # its default device_map is empty
        raise UsageError(
            f"{model} needs device_map in --model_args, for example device_map=auto: transformers "
            "refuses its empty default."
        )
