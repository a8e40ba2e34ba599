"""Checks of one task file by itself: keys, types, what is required, and settings that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from medtasks.validation.codes import shown, suggestion
from medtasks.validation.findings import Finding
from medtasks.validation.task_keys import (
    GENERATION_KEYS,
    GROUP_KEYS,
    METADATA_KEYS,
    METRIC_KEYS,
    OUTPUT_TYPES,
    PIPELINE_KEYS,
    REQUIRED_FOR_GROUPS,
    REQUIRED_FOR_TASKS,
    REQUIRED_METADATA,
    TASK_KEYS,
    TEMPLATE_KEYS,
    Expected,
)
from medtasks.validation.task_text import TaskText, field_name
from medtasks.validation.yaml_text import Keys

__all__ = ["check_keys"]


def check_keys(task: TaskText) -> Iterator[Finding]:
    """Findings about the keys and values of one file, functions and names unresolved."""
    yield from task.defects
    if task.unreadable:
        return
    group = task.kind == "group"
    if ("group" in task.content) != group:
        found = "a group's file" if not group else "a task's file"
        folder = "groups/ below the benchmark's folder" if not group else "the benchmark's folder, above groups/"
        yield task.finding("MT115", f"this is {found}; move it to {folder}.", "group")
        return
    yield from _known(task, GROUP_KEYS if group else TASK_KEYS, (), "MT107")
    yield from _required(task, REQUIRED_FOR_GROUPS if group else REQUIRED_FOR_TASKS, (), "MT110")
    yield from _name(task)
    if isinstance(task.content.get("metadata"), dict):
        yield from _known(task, METADATA_KEYS, ("metadata",), "MT108")
        yield from _required(task, REQUIRED_METADATA, ("metadata",), "MT111")
    for key in ("breakdowns", "pooled", "learned", "rubrics"):
        yield from _twice(task, task.block("metadata").get(key), "metadata", key)
    if group:
        yield from _twice(task, task.content.get("task"), "task")
        return
    yield from _templates(task)
    yield from _metrics(task)
    yield from _filters(task)
    yield from _output_type(task)
    yield from _generation(task)


def _at(task: TaskText, keys: Keys) -> Any:
    value: Any = task.content
    for key in keys:
        value = value[key]
    return value


def _known(task: TaskText, known: Mapping[str, Expected], keys: Keys, code: str) -> Iterator[Finding]:
    """Unknown keys of the mapping at ``keys`` under ``code``, and values of wrong types."""
    for key, value in _at(task, keys).items():
        place = (*keys, key)
        if key not in known:
            message = f"the key {shown(key)} is unknown{suggestion(key, known)}, expected one of {', '.join(known)}"
            yield task.finding(code, f"{message}; correct or remove it.", *place)
        elif not known[key].fits(value):
            yield _wrong_type(task, known[key], value, place)


def _wrong_type(task: TaskText, expected: Expected, value: Any, keys: Keys) -> Finding:
    message = f"`{field_name(keys)}` is {shown(value)}, expected {expected.words}; correct the value."
    return task.finding("MT109", message, *keys)


def _required(task: TaskText, required: tuple[str, ...], keys: Keys, code: str) -> Iterator[Finding]:
    there = _at(task, keys)
    for key in required:
        if key not in there:
            field = field_name((*keys, key))
            yield task.finding(code, f"`{field}` is missing, expected in every {task.kind} file; add it.", *keys, key)


def _name(task: TaskText) -> Iterator[Finding]:
    name = task.content.get(task.kind)
    if isinstance(name, str) and name != task.name:
        message = f"`{task.kind}` is {shown(name)}, expected {task.name!r}, the name of the file; rename one of them."
        yield task.finding("MT106", message, task.kind)


def _twice(task: TaskText, values: Any, *keys: str | int) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, value in enumerate(values if isinstance(values, list) else []):
        if isinstance(value, str) and value in seen:
            message = f"`{field_name(keys)}` names {shown(value)} twice, expected once; remove one."
            yield task.finding("MT114", message, *keys, number)
        seen.add(str(value))


def _templates(task: TaskText) -> Iterator[Finding]:
    key = "lmms_eval_specific_kwargs"
    if not isinstance(task.content.get(key), dict):
        return
    yield from _required(task, ("template",), (key,), "MT110")
    for name, expected in TEMPLATE_KEYS.items():
        value = task.block(key).get(name)
        if name in task.block(key) and not expected.fits(value):
            yield _wrong_type(task, expected, value, (key, name))


def _metrics(task: TaskText) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, entry in task.entries("metric_list"):
        keys = ("metric_list", number)
        if not isinstance(entry, dict):
            yield _wrong_type(task, Expected("a mapping", lambda one: isinstance(one, dict)), entry, keys)
            continue
        yield from _known(task, METRIC_KEYS, keys, "MT107")
        yield from _required(task, tuple(METRIC_KEYS), keys, "MT110")
        name = entry.get("metric")
        if isinstance(name, str) and name in seen:
            yield task.finding("MT114", f"`metric_list` names {shown(name)} twice, expected once; remove one.", *keys)
        seen.add(str(name))


def _filters(task: TaskText) -> Iterator[Finding]:
    mapping = Expected("a mapping", lambda one: isinstance(one, dict))
    for number, entry in task.entries("filter_list"):
        keys: Keys = ("filter_list", number)
        if not isinstance(entry, dict):
            yield _wrong_type(task, mapping, entry, keys)
            continue
        yield from _known(task, PIPELINE_KEYS, keys, "MT107")
        yield from _required(task, tuple(PIPELINE_KEYS), keys, "MT110")
        name = entry.get("name")
        if isinstance(name, str) and name != "medtasks":
            message = f"`filter_list[{number}].name` is {shown(name)}, expected 'medtasks', under which scores are kept"
            yield task.finding("MT112", f"{message}; rename it.", *keys, "name")
        steps = entry.get("filter")
        for position, step in enumerate(steps if isinstance(steps, list) else []):
            if not isinstance(step, dict):
                yield _wrong_type(task, mapping, step, (*keys, "filter", position))
            else:
                yield from _required(task, ("function",), (*keys, "filter", position), "MT110")
                for key in [key for key in step if key != "function"]:
                    message = f"the key {shown(key)} is unknown, expected `function` alone; remove it"
                    yield task.finding(
                        "MT107", f"{message} (letters come from `Benchmark.options`).", *keys, "filter", position, key
                    )
    if len(list(task.entries("filter_list"))) > 1:
        message = (
            "`filter_list` has several pipelines, expected one, since a response is filtered once; remove the rest."
        )
        yield task.finding("MT112", message, "filter_list", 1)


def _output_type(task: TaskText) -> Iterator[Finding]:
    given = task.content.get("output_type")
    if isinstance(given, str) and given not in OUTPUT_TYPES:
        message = f"`output_type` is {shown(given)}{suggestion(given, OUTPUT_TYPES)}, expected one of "
        yield task.finding("MT112", f"{message}{', '.join(OUTPUT_TYPES)}; correct it.", "output_type")


def _generation(task: TaskText) -> Iterator[Finding]:
    settings = task.block("generation_kwargs")
    here = "generation_kwargs"
    for key, value in settings.items():
        if key not in GENERATION_KEYS:
            message = f"`{here}.{key[:80]}` is no setting that back-ends share{suggestion(key, GENERATION_KEYS)}"
            yield task.finding(
                "MT117", f"{message}, expected one of {', '.join(GENERATION_KEYS)}; check it.", here, key
            )
        elif not GENERATION_KEYS[key].fits(value):
            yield _wrong_type(task, GENERATION_KEYS[key], value, (here, key))
    temperature, samples = settings.get("temperature", 0), settings.get("do_sample")
    if isinstance(temperature, bool) or not isinstance(temperature, (int, float)):
        return
    if temperature > 0 and samples is not True:
        said = f"`{here}` has temperature {shown(temperature)}, which is ignored since `do_sample` is {shown(samples)}"
        yield task.finding("MT113", f"{said}; set do_sample: true, or temperature: 0.", here, "temperature")
    if temperature == 0 and samples is True:
        said = f"`{here}` has do_sample: true at temperature 0"
        yield task.finding("MT113", f"{said}; set a temperature above 0, or do_sample: false.", here, "do_sample")
    repeats = task.content.get("repeats", 1)
    if isinstance(repeats, int) and repeats > 1 and samples is not True:
        said = f"`repeats` is {shown(repeats)} without sampling, so every answer would be the same"
        yield task.finding("MT113", f"{said}; set do_sample: true and a temperature, or repeats: 1.", "repeats")
