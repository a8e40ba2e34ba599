"""The commands that reproduce a run, without secrets and local paths."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from medtasks.catalog.registry import get_benchmark
from medtasks.core.redaction import HIDDEN, shown, shown_argument
from medtasks.runs.manifest import RunManifest
from medtasks.runs.scores import COVERAGE
from medtasks.runs.verdicts import IMPORTED

_SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
_USUAL_SEEDS = [0, 1234, 1234, 1234]
_OPTIONS = ("num_fewshot", "system_instruction", "limit", "offset", "repeats", "batch_size")
_USUAL: dict[str, tuple[Any, ...]] = {"offset": (0,), "repeats": (1,)}


def commands(manifest: RunManifest, folder: str) -> tuple[str, ...]:
    """One line each to prepare the data, run or score, and judge; ``folder`` is the name of the run's directory."""
    lines = [get_benchmark(name).prepare for name, facts in manifest.data.items() if not facts.mini]

    environment = ["MEDTASKS_DATA=mini"] if any(facts.mini for facts in manifest.data.values()) else []
    if any(task.blind for task in manifest.tasks.values()) and not manifest.model.get("blind"):
        environment.append("MEDTASKS_BLIND=1")
    environment += sorted({f"MEDTASKS_SUBSET={task.subset}" for task in manifest.tasks.values() if task.subset})
    caps = {task.frames["cap"] for task in manifest.tasks.values() if task.frames.get("cap") is not None}
    environment += [f"MEDTASKS_MAX_FRAMES={cap}" for cap in sorted(caps)]

    imported = {name: any(IMPORTED in one for one in facts.judges.values()) for name, facts in manifest.judge.items()}
    if layout := manifest.model.get("layout"):
        file, model = manifest.model.get("predictions", HIDDEN), manifest.model.get("model", HIDDEN)
        judges = dict.fromkeys(judge for name in imported if imported[name] for judge in manifest.judge[name].judges)
        verdicts = [f"--verdicts-of {_word(judge)}" for judge in judges]
        for name in _named_tasks(manifest) if layout != "lmms-eval" else manifest.tasks:
            of_task = _word(file.get(name, file) if isinstance(file, Mapping) else file)
            source = f"medtasks score {of_task} --from {_word(layout)} --task {_word(name)} --model {_word(model)}"
            lines.append(" ".join([*environment, source, *verdicts, "--out NEW_DIR"]))
    else:
        lines.append(" ".join([*environment, "lmms-eval", *_options(manifest), "--output_path results"]))

    for rubric, facts in manifest.judge.items():
        if imported[rubric]:
            continue
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
        lines.append(" ".join(words))
    if manifest.scored is not None:
        lines.append(f"medtasks score {_word(folder)} --out NEW_DIR")
    return tuple(lines)


def _named_tasks(manifest: RunManifest) -> list[str]:
    """The value of ``--tasks``: the run's widest groups, and all tasks outside them."""
    widest: dict[str, set[str]] = {}
    for name, members in sorted(manifest.groups.items(), key=lambda one: -len(one[1])):
        if not any({*members} <= others for others in widest.values()):
            widest[name] = {*members}
    covered = set().union(*widest.values())
    return [
        *(name for name in manifest.groups if name in widest),
        *(one for one in manifest.tasks if one not in covered),
    ]


def _options(manifest: RunManifest) -> list[str]:
    settings = manifest.settings

    def pairs(option: str) -> str:
        return shlex.quote(shown_argument(_pairs(settings[option]))) if settings.get(option) else ""

    given = {
        "model": _word(settings.get("model") or manifest.model.get("model", HIDDEN)),
        "model_args": pairs("model_args"),
        "tasks": _word(",".join(_named_tasks(manifest))),
        "gen_kwargs": pairs("gen_kwargs"),
    }
    for option in _OPTIONS:
        value = settings.get(option)
        if value is not None and value not in _USUAL.get(option, ("",)):
            given[option] = _word(value)
    seeds = [settings.get(key) for key in _SEEDS]
    if None not in seeds and seeds != _USUAL_SEEDS:
        given["seed"] = ",".join(map(str, seeds))
    return [f"--{option} {value}" for option, value in given.items() if value]


def _pairs(given: Any) -> str:
    if isinstance(given, Mapping):
        return ",".join(f"{key}={value}" for key, value in given.items())
    return str(given)


def _word(value: Any) -> str:
    return shlex.quote(shown(value))
