"""Runs of invented models on miniature data of which some gold answers are wrong: on these
questions, the models know another option to be right.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from invented_runs import Invented, write_runs

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.spec import leaf_tasks

Planted = Mapping[tuple[str, str], str]
"""The options that are right instead, by task and sample id."""


def models(count: int, lowest: float = 0.5, highest: float = 0.9) -> list[Invented]:
    """Models of evenly spaced accuracies."""
    step = (highest - lowest) / max(1, count - 1)
    return [
        Invented(f"invented/Voter-{n}-7B", "noisy_oracle", seed=n, accuracy=lowest + n * step)
        for n in range(count)
    ]


def planted_in(group: str, every: int) -> Planted:
    """Every so many questions of a group, with an option that is right instead of the gold one."""
    planted = {}
    number = 0
    for task in leaf_tasks(group):
        for document in task_documents(task):
            number += 1
            if number % every == 0:
                others = sorted(set(document["choices"]) - {document["target"]})
                planted[task, document["sample_id"]] = others[number % len(others)]
    return planted


def write_voters(root: Path, voters: Sequence[Invented], group: str, planted: Planted) -> None:
    """Write the runs of models that know the planted answers as well as the other ones."""
    folders = write_runs(root, voters, [group], judged=False)
    for voter in voters:
        generator = random.Random(voter.seed)

        def answer(sample: dict[str, Any], voter=voter, generator=generator) -> None:
            truth = planted.get((sample["task"], sample["sample_id"]))
            if truth is None:
                return
            others = sorted(set(sample["document"]["choices"]) - {truth})
            is_right = generator.random() < (voter.accuracy or 0)
            sample["responses"] = [truth if is_right else generator.choice(others)]

        edit_samples(folders[voter.folder], answer)


def edit_samples(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Edit every sample of a run."""
    for file in sorted((folder / "samples").glob("*.jsonl")):
        lines = []
        for line in file.read_text(encoding="utf-8").splitlines():
            sample = json.loads(line)
            edit(sample)
            lines.append(json.dumps(sample, ensure_ascii=False, sort_keys=True))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
