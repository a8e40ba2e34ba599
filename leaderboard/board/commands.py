"""The commands that reproduce a run, without secrets and local paths."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from medtasks.catalog.registry import get_benchmark
from medtasks.core.redaction import HIDDEN, shown, shown_argument
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.scores import COVERAGE
from medtasks.runs.verdicts import IMPORTED

_SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
_USUAL_SEEDS = [0, 1234, 1234, 1234]
_OPTIONS = ("num_fewshot", "system_instruction", "limit", "offset", "repeats", "batch_size")
_USUAL: dict[str, tuple[Any, ...]] = {"offset": (0,), "repeats": (1,)}


def commands(manifest: RunManifest, folder: str) -> tuple[str, ...]:
    """One line each to prepare the data, run or score, and judge; ``folder`` is the name of the run's directory."""
    prepared = [get_benchmark(name).prepare for name, facts in manifest.data.items() if not facts.mini]
    elsewhere = "layout" in manifest.model
    lines = [*prepared, *(_scored_elsewhere(manifest) if elsewhere else [_run(manifest)])]
    lines += [_judged(name, facts, folder) for name, facts in manifest.judge.items() if not _imported(facts)]
    if manifest.scored is not None:
        lines.append(f"medtasks score {_word(folder)} --out NEW_DIR")
    return tuple(lines)


def named_tasks(manifest: RunManifest) -> list[str]:
    """The value of ``--tasks``: the run's widest groups, and all tasks outside them."""
    widest: dict[str, set[str]] = {}
    for name, members in sorted(manifest.groups.items(), key=lambda one: -len(one[1])):
        if not any(set(members) <= others for others in widest.values()):
            widest[name] = set(members)
    covered = {task for members in widest.values() for task in members}
    groups = [name for name in manifest.groups if name in widest]
    return [*groups, *(task for task in manifest.tasks if task not in covered)]


def _run(manifest: RunManifest) -> str:
    settings = manifest.settings
    arguments = {
        option: shlex.quote(shown_argument(_pairs(settings[option]))) if settings.get(option) else ""
        for option in ("model_args", "gen_kwargs")
    }
    given = {
        "model": _word(settings.get("model") or manifest.model.get("model", HIDDEN)),
        "model_args": arguments["model_args"],
        "tasks": _word(",".join(named_tasks(manifest))),
        "gen_kwargs": arguments["gen_kwargs"],
    }
    for option in _OPTIONS:
        value = settings.get(option)
        if value is not None and value not in _USUAL.get(option, ("",)):
            given[option] = _word(value)
    seeds = [settings.get(key) for key in _SEEDS]
    if None not in seeds and seeds != _USUAL_SEEDS:
        given["seed"] = ",".join(map(str, seeds))
    options = [f"--{option} {value}" for option, value in given.items() if value]
    return " ".join([*_environment(manifest), "lmms-eval", *options, "--output_path results"])


def _environment(manifest: RunManifest) -> list[str]:
    words = ["MEDTASKS_DATA=mini"] if any(facts.mini for facts in manifest.data.values()) else []
    if any(task.blind for task in manifest.tasks.values()) and not manifest.model.get("blind"):
        words.append("MEDTASKS_BLIND=1")
    words += sorted({f"MEDTASKS_SUBSET={task.subset}" for task in manifest.tasks.values() if task.subset})
    caps = {task.frames["cap"] for task in manifest.tasks.values() if task.frames.get("cap") is not None}
    return words + [f"MEDTASKS_MAX_FRAMES={cap}" for cap in sorted(caps)]


def _scored_elsewhere(manifest: RunManifest) -> list[str]:
    facts = manifest.model
    names = named_tasks(manifest) if facts["layout"] != "lmms-eval" else list(manifest.tasks)
    file, model = facts.get("predictions", HIDDEN), facts.get("model", HIDDEN)
    files = file if isinstance(file, Mapping) else {}
    imported = dict.fromkeys(judge for one in manifest.judge.values() if _imported(one) for judge in one.judges)
    verdicts = [f"--verdicts-of {_word(judge)}" for judge in imported]
    lines = []
    for name in names:
        source = f"medtasks score {_word(files.get(name, file))} --from {_word(facts['layout'])}"
        options = f"--task {_word(name)} --model {_word(model)}"
        lines.append(" ".join([*_environment(manifest), source, options, *verdicts, "--out NEW_DIR"]))
    return lines


def _imported(facts: RubricFacts) -> bool:
    """Whether the verdicts were imported with the predictions."""
    return any(IMPORTED in identity for identity in facts.judges.values())


def _judged(rubric: str, facts: RubricFacts, folder: str) -> str:
    words = [f"medtasks judge {_word(folder)} --rubric {_word(rubric)}"]
    for identity in facts.judges.values():
        known = {key: value for key, value in identity.items() if value is not None and value != {}}
        plain = all(isinstance(value, (str, int, float)) and "," not in str(value) for value in known.values())
        judge = {"model": known.get("model", HIDDEN), "base_url": HIDDEN, **known}
        words.append(f"--judge {_word(_pairs(judge)) if plain else 'judge.yaml'}")
    if len(facts.judges) > 1:
        words.append(f"--combine {facts.combine}")
    if facts.threshold != COVERAGE:
        words.append(f"--threshold {facts.threshold:g}")
    return " ".join(words)


def _pairs(given: Any) -> str:
    if isinstance(given, Mapping):
        return ",".join(f"{key}={value}" for key, value in given.items())
    return str(given)


def _word(value: Any) -> str:
    return shlex.quote(shown(value))
