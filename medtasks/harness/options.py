"""Which options of lmms-eval our tasks accept; ``docs/options.md`` describes every one of them.

Some options belong to ways of asking, scoring or comparing that our tasks do otherwise. The harness
would ignore them, or end with a traceback; here they are refused with what to use instead.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.core.errors import UsageError
from medtasks.core.settings import current_settings
from medtasks.data.store import open_prepared

REASONING_TAGS = '[["<think>", "</think>"], ["<analysis>", "</analysis>"]]'
"""lmms-eval's default of ``--reasoning_tags``."""

_LEAVE_OUT = "leave the option out"
_NOT_SUPPORTED = {
    "use_cache": (
        "--use_cache is not supported by tasks of medtasks, and resuming needs no cache: every reply "
        f"is stored as it arrives, and the same command continues; {_LEAVE_OUT}."
    ),
    "cache_requests": (
        "--cache_requests is not supported by tasks of medtasks: prompts are built in seconds, and "
        f"cached ones would outlive a change of data or templates; {_LEAVE_OUT}."
    ),
    "check_integrity": (
        "--check_integrity runs lmms-eval's unit tests, which its package does not contain; check a "
        "task with `medtasks validate TASK`."
    ),
    "apply_chat_template": (
        "--apply_chat_template is not supported by tasks of medtasks: they send messages, and the "
        f"back-end or the server applies the model's chat template to them; {_LEAVE_OUT}."
    ),
    "fewshot_as_multiturn": (
        f"--fewshot_as_multiturn is set, but examples are part of a task's prompt here; {_LEAVE_OUT}."
    ),
    "launcher_args": (
        "--launcher_args starts a judge for lmms-eval's own tasks; start a server and name it in "
        "MEDTASKS_JUDGE, or judge the finished run with `medtasks judge`."
    ),
    "baseline": (
        "--baseline is not supported by tasks of medtasks; compare two finished runs, with clusters "
        "and intervals, with `medtasks compare RUN BASELINE`."
    ),
    "max_tokens": (
        "--max_tokens limits no task of medtasks, because a run that stops midway has no scores; ask "
        "fewer questions with --limit N or MEDTASKS_SUBSET, or shorten responses with "
        "--gen_kwargs max_new_tokens=N."
    ),
    "swanlab_log_samples": (
        "--swanlab_log_samples is not supported by tasks of medtasks; use --wandb_log_samples, or `medtasks view`."
    ),
}
"""Options without any use for our tasks, and the sentence that refuses each."""

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


def refuse_options(given: Mapping[str, Any], ours: Sequence[str]) -> None:
    """Refuse options that tasks of medtasks do not support.

    Args:
        given: options by name, as in lmms-eval's parsed arguments; those that are missing have
        their default.
        ours: the tasks and groups of medtasks that are asked for.

    Raises:
        UsageError: the first of them that is not supported, with what to use instead.
    """
    if shots := int(given.get("num_fewshot") or 0):
        shown = [f"{name}_1shot" for name in ours if f"{name}_1shot" in load_specs()]
        advice = f"run {', '.join(shown)}" if shown else _LEAVE_OUT
        reason = "examples are part of a task's prompt here"
        raise UsageError(f"--num_fewshot is {shots}, but {reason}: {advice}.")
    for name, sentence in _NOT_SUPPORTED.items():
        if given.get(name):
            raise UsageError(sentence)
    if given.get("reasoning_tags", REASONING_TAGS) != REASONING_TAGS:
        raise UsageError(
            "--reasoning_tags is not supported by tasks of medtasks: their filters remove reasoning "
            f"themselves, and the raw responses are kept; {_LEAVE_OUT}."
        )
    hub_arguments = str(given.get("hf_hub_log_args") or "").replace(" ", "").lower()
    if "push_samples_to_hub=true" in hub_arguments:
        raise UsageError(
            "--hf_hub_log_args has push_samples_to_hub, which would upload the model's whole result "
            "directory, whatever the licence of a benchmark allows; publish results with "
            "`medtasks export`."
        )


def refuse_incomplete(given: Mapping[str, Any]) -> None:
    """Refuse options of a command line that need another one, or a number in another range.

    Raises:
        UsageError: the harness would answer it with a traceback and exit code 0, or ignore it.
    """
    for name in ("predict_only", "log_samples"):
        if given.get(name) and not given.get("output_path"):
            kept = "responses" if name == "predict_only" else "samples"
            raise UsageError(f"--{name} needs --output_path DIR, the directory of its {kept}.")
    logged = given.get("log_samples") or given.get("predict_only")
    if given.get("wandb_log_samples") and not (given.get("wandb_args") and logged):
        raise UsageError("--wandb_log_samples needs --wandb_args project=NAME and --log_samples.")
    limit, offset = given.get("limit"), given.get("offset")
    if isinstance(limit, (int, float)) and limit < 0 and limit != -1:
        expected = "a number of documents, a share below 1, or -1 for all"
        raise UsageError(f"--limit is {limit}, expected {expected}.")
    if isinstance(offset, int) and offset < 0:
        expected = "the number of documents to skip, 0 or more"
        raise UsageError(f"--offset is {offset}, expected {expected}.")


def name_those_without_effect(asked: Mapping[str, Any], *, our_back_end: bool) -> None:
    """Print the options of a command that differ from their default and change nothing for our
    tasks.

    Args:
        asked: the arguments of ``simple_evaluate``; nothing is printed for those of a program.
        our_back_end: whether the back-end is one of ours, which ignores more of them.
    """
    if asked["cli_args"] is None or current_settings().rank > 0:
        return
    given = vars(asked["cli_args"])
    defaults = {**_WITHOUT_EFFECT, **(_WITHOUT_EFFECT_ON_OURS if our_back_end else {})}
    changed = [name for name, default in defaults.items() if given.get(name, default) != default]
    if changed:
        names = ", ".join(f"--{name}" for name in changed)
        message = f"medtasks: without effect on tasks of medtasks: {names}"
        print(message, file=sys.stderr, flush=True)


def refuse(asked: Mapping[str, Any], ours: Sequence[str]) -> None:
    """Refuse what the arguments of ``simple_evaluate`` ask for in vain: options that our tasks do
    not support, data that are not prepared, and back-ends that cannot be used."""
    from medtasks.harness.backends import lack_of

    command = vars(asked["cli_args"]) if asked.get("cli_args") is not None else {}
    refuse_options({**command, **asked}, ours)
    leaves = [leaf for name in ours for leaf in leaf_tasks(name)]
    for benchmark in dict.fromkeys(load_spec(leaf).metadata.benchmark for leaf in leaves):
        open_prepared(benchmark)
    model, simple = asked.get("model"), bool(asked.get("force_simple"))
    if not isinstance(model, str):
        return
    if model == "llava_hf" and simple:
        raise UsageError(
            "llava_hf cannot run our tasks with --force_simple, where it may answer a request with the "
            "response to another one; leave the option out."
        )
    if lack := lack_of(model, force_simple=simple):
        fix = f": {lack.fix}" if lack.fix else ""
        raise UsageError(f"back-end {model} cannot be used: {lack.found}{fix}")
    placed = current_settings().processes > 1 or "device_map" in str(asked.get("model_args"))
    if model == "llava_hf" and not placed:  # its default device_map is empty
        raise UsageError(
            f"{model} needs device_map in --model_args, for example device_map=auto: transformers "
            "refuses its empty default."
        )
