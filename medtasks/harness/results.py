"""Our scores in the harness's own results, both printed and saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.core.errors import MedtasksError
from medtasks.core.files import replaced

if TYPE_CHECKING:
    from medtasks.runs.record import RunRecord
    from medtasks.runs.scores import Scores

KEY = "medtasks"


def replace_numbers(results: dict[str, Any], run: RunRecord) -> None:
    """Replace the harness's scores with ours, and add the pooled scores of groups. The harness sums floating-point
    numbers in the order in which processes deliver them, so its last digits vary."""
    from medtasks.metrics.registry import get_metric

    directions = results.setdefault("higher_is_better", {})
    for name, scores in run.scores.items():
        entry = results["results"].setdefault(name, {"alias": name})
        for key in [key for key in entry if key == " " or key.endswith(f",{KEY}")]:
            del entry[key]
        entry.update(_numbers(scores))
        better = {metric: get_metric(metric).higher_is_better for metric in scores.metrics}
        directions[name] = {**directions.get(name, {}), **better}
        if name in run.groups:
            results.setdefault("groups", {})[name] = dict(entry)


def replace_samples(results: dict[str, Any], run: RunRecord) -> None:
    """Put filtered responses, scores and status into the harness's sample log."""
    for name, samples in run.samples.items():
        known = {sample.sample_id: sample for sample in samples}
        for entry in results["samples"][name]:
            sample = known[entry["doc"]["sample_id"]]
            filtered = [repeat.filtered for repeat in sample.repeats] or [sample.filtered]
            entry.update(sample.scores, filtered_resps=filtered, status=sample.status)


def renew_numbers(folder: Path, run: RunRecord) -> Path | None:
    """Update the harness's results file beside ``folder`` after the run was judged. Returns the file, or None if there
    is none (the run was moved, or not made by the harness)."""
    path = _results_file(folder, run)
    if not path.is_file():
        return None
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        replace_numbers(results, run)
        with replaced(path) as partial:
            partial.write_text(json.dumps(results, indent=2, ensure_ascii=False), encoding="utf-8")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise MedtasksError(
            f"{path}: the harness's numbers could not be updated ({error}); those in {folder.name} are right."
        ) from error
    return path


def has_numbers(folder: Path, run: RunRecord) -> bool:
    """Whether the harness's results file beside ``folder``, if there is one, has the scores of ``run``."""
    path = _results_file(folder, run)
    if not path.is_file():
        return True
    try:
        written = json.loads(path.read_text(encoding="utf-8"))["results"]
        return all(_numbers(scores).items() <= written[name].items() for name, scores in run.scores.items())
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return False


def _results_file(folder: Path, run: RunRecord) -> Path:
    stamp = run.manifest.harness_stamp or folder.resolve().name.removesuffix("_medtasks")
    return folder.resolve().parent / f"{stamp}_results.json"


def _numbers(scores: Scores) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for metric, score in scores.metrics.items():
        absence = "no response" if score.answered == 0 else "not computed" if score.bounds is None else "awaits a judge"
        numbers[f"{metric},{KEY}"] = absence if score.value is None else score.value
    return numbers
