"""Which judges decided: their names for readers, and a hash of everything that their decision
depends on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.catalog.rubric import Rubric, rubric_hash
from medtasks.core.files import canonical_json, short_hash
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.verdict import STUB, Rule

IMPORTED = "imported"
"""Used in place of the hashes of rubric and template for imported verdicts: their judge's prompt is
not known.
"""


def judges_of(facts: RubricFacts) -> str:
    """The models that judged under a rubric; a stub is marked as such."""
    models = {str(settings.get("model", name)) for name, settings in facts.judges.items()}
    return ", ".join(f"{model} (a stub)" if model == STUB else model for model in sorted(models))


def judge_names(manifest: RunManifest) -> dict[str, str]:
    """The judges of each judged task and group."""
    names = {}
    for task in manifest.tasks:
        names[task] = _judges_of_tasks(manifest, (task,))
    for group, tasks in manifest.groups.items():
        names[group] = _judges_of_tasks(manifest, tasks)
    return {name: judges for name, judges in names.items() if judges}


def _judges_of_tasks(manifest: RunManifest, tasks: Sequence[str]) -> str:
    """The judges of any of the tasks."""
    judges = set()
    for facts in manifest.judge.values():
        if set(tasks) & set(facts.tasks):
            judges.add(judges_of(facts))
    return ", ".join(sorted(judges))


def judge_hash(
    rubric: Rubric, template: str, judges: Mapping[str, Mapping[str, Any]], rule: Rule
) -> str:
    """Hash of everything that determines the decision of ``judges``, with that of the rubric's
    ``template``; their order and local names do not matter.
    """
    if any(IMPORTED in settings for settings in judges.values()):
        return short_hash(canonical_json([IMPORTED, rubric_hash(rubric), *judges.values()]))
    settings_of_judges = sorted(canonical_json(settings) for settings in judges.values())
    parts = [rubric_hash(rubric, template), settings_of_judges]
    if len(judges) > 1:
        parts.append(rule)
    return short_hash(canonical_json(parts))
