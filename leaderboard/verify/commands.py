"""The commands that repeat a run: prepare its data, run or score it, and judge it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from medtasks.catalog.registry import get_benchmark
from medtasks.core.redaction import HIDDEN, shown, shown_argument
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.scoring.judge_identity import IMPORTED
from medtasks.scoring.scores import COVERAGE

_SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
_USUAL_SEEDS = [0, 1234, 1234, 1234]
_OPTIONS = ("num_fewshot", "system_instruction", "limit", "offset", "repeats", "batch_size")
_USUAL: dict[str, tuple[Any, ...]] = {"offset": (0,), "repeats": (1,)}
"""Values of options that are left out, as is the empty text."""


def commands(manifest: RunManifest, folder: str) -> tuple[str, ...]:
    """One line each to prepare the data, run or score, and judge.

    ``folder`` is the name of the run's directory.
    """
    lines = []
    for name, data in manifest.data.items():
        if not data.mini:
            lines.append(get_benchmark(name).data.prepare)
    if manifest.model.get("layout"):
        lines += _score_commands(manifest)
    else:
        words = [*_environment(manifest), "lmms-eval", *_options(manifest)]
        lines.append(" ".join([*words, "--output_path results"]))
    for rubric, facts in manifest.judge.items():
        if not _is_imported(facts):
            lines.append(_judge_command(rubric, facts, folder))
    if manifest.scored is not None:
        lines.append(f"medtasks score {_word(folder)} --out NEW_DIR")
    return tuple(lines)


def _environment(manifest: RunManifest) -> list[str]:
    """The environment variables that the run was made with, as ``NAME=value`` before a command."""
    subsets: set[str] = set()
    frame_caps: set[int] = set()
    paces: set[str] = set()
    is_blind = False
    for facts in manifest.tasks.values():
        is_blind = is_blind or facts.blind
        if facts.subset:
            subsets.add(facts.subset)
        if facts.pace:
            paces.add(facts.pace)
        cap = facts.frames.get("cap")
        if cap is not None:
            frame_caps.add(cap)

    environment = []
    if manifest.miniature:
        environment.append("MEDTASKS_DATA=mini")
    if is_blind and not manifest.model.get("blind"):
        environment.append("MEDTASKS_BLIND=1")
    for pace in sorted(paces):
        environment.append(f"MEDTASKS_PACE={pace}")
    for subset in sorted(subsets):
        environment.append(f"MEDTASKS_SUBSET={subset}")
    for cap in sorted(frame_caps):
        environment.append(f"MEDTASKS_MAX_FRAMES={cap}")
    return environment


def _is_imported(facts: RubricFacts) -> bool:
    """Whether the verdicts were made with another tool."""
    return any(IMPORTED in identity for identity in facts.judges.values())


def _score_commands(manifest: RunManifest) -> Iterator[str]:
    """The commands that score predictions made elsewhere: one for each task or widest group."""
    layout = manifest.model["layout"]
    predictions = manifest.model.get("predictions", HIDDEN)
    model = manifest.model.get("model", HIDDEN)
    options = [f"--verdicts-of {_word(judge)}" for judge in _imported_judges(manifest)]
    epoch = manifest.model.get("epoch")
    if epoch:
        options.append(f"--epoch {_word(epoch)}")
    names = list(manifest.tasks) if layout == "lmms-eval" else _named_tasks(manifest)
    for name in names:
        file = predictions
        if isinstance(predictions, Mapping):
            file = predictions.get(name, predictions)
        words = [
            *_environment(manifest),
            f"medtasks score {_word(file)}",
            f"--from {_word(layout)}",
            f"--task {_word(name)}",
            f"--model {_word(model)}",
            *options,
            "--out NEW_DIR",
        ]
        yield " ".join(words)


def _imported_judges(manifest: RunManifest) -> list[str]:
    """The judges whose verdicts were made with another tool, each once."""
    judges: dict[str, None] = {}
    for facts in manifest.judge.values():
        if _is_imported(facts):
            judges.update(dict.fromkeys(facts.judges))
    return list(judges)


def _judge_command(rubric: str, facts: RubricFacts, folder: str) -> str:
    words = [f"medtasks judge {_word(folder)} --rubric {_word(rubric)}"]
    for identity in facts.judges.values():
        words.append(f"--judge {_judge_argument(identity)}")
    if len(facts.judges) > 1:
        words.append(f"--combine {facts.combine}")
    if facts.threshold != COVERAGE:
        words.append(f"--threshold {facts.threshold:g}")
    return " ".join(words)


def _judge_argument(identity: Mapping[str, Any]) -> str:
    """The value of ``--judge``: settings, or a file if they do not fit on a command line."""
    settings = {}
    for key, value in identity.items():
        if value is None or value == {}:
            continue
        if not isinstance(value, (str, int, float)) or "," in str(value):
            return "judge.yaml"
        settings[key] = value
    # the model and the address come first, as users write them
    ordered = {"model": settings.get("model", HIDDEN), "base_url": HIDDEN, **settings}
    return _word(_as_arguments(ordered))


def _named_tasks(manifest: RunManifest) -> list[str]:
    """The value of ``--tasks``: the groups that no other group contains, then ungrouped tasks.

    Of groups with the same tasks, only the first is named.
    """
    tasks_by_group = {name: set(members) for name, members in manifest.groups.items()}

    def size(group: str) -> int:
        return len(tasks_by_group[group])

    widest: list[set[str]] = []
    widest_names: set[str] = set()
    for name in sorted(tasks_by_group, key=size, reverse=True):  # a container before its parts
        tasks = tasks_by_group[name]
        is_contained = any(tasks <= wider for wider in widest)
        if not is_contained:
            widest.append(tasks)
            widest_names.add(name)
    grouped_tasks = set().union(*widest)
    groups = [name for name in manifest.groups if name in widest_names]
    ungrouped = [task for task in manifest.tasks if task not in grouped_tasks]
    return [*groups, *ungrouped]


def _options(manifest: RunManifest) -> list[str]:
    """The options of ``lmms-eval`` with the run's settings, without those that are the default."""
    settings = manifest.settings
    options = {
        "model": _word(settings.get("model") or manifest.model.get("model", HIDDEN)),
        "model_args": "",
        "tasks": _word(",".join(_named_tasks(manifest))),
    }
    for option in ("model_args", "gen_kwargs"):
        if settings.get(option):
            options[option] = shlex.quote(shown_argument(_as_arguments(settings[option])))
    for option in _OPTIONS:
        value = settings.get(option)
        if value is not None and value not in _USUAL.get(option, ("",)):
            options[option] = _word(value)
    seeds = [settings.get(key) for key in _SEEDS]
    if None not in seeds and seeds != _USUAL_SEEDS:
        options["seed"] = ",".join(map(str, seeds))
    return [f"--{option} {value}" for option, value in options.items() if value]


def _as_arguments(settings: Any) -> str:
    """``key=value,key=value`` for a mapping, other values as text."""
    if isinstance(settings, Mapping):
        return ",".join(f"{key}={value}" for key, value in settings.items())
    return str(settings)


def _word(value: Any) -> str:
    """The value as one word of a command line, without secrets."""
    return shlex.quote(shown(value))
