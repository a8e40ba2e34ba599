"""Where the harness writes its results, and our scores in them, both printed and saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.core.errors import MedtasksError
from medtasks.core.replacement import replaced
from medtasks.runs.manifest import local_stamp

if TYPE_CHECKING:
    from medtasks.scoring.run_record import RunRecord
    from medtasks.scoring.scores import MetricScore

KEY = "medtasks"
_STAMP = "%Y%m%d_%H%M%S"


def stamp_of(asked: Mapping[str, Any]) -> str:
    """The time in the name of a run's result directory, such as ``20261129_084809+0800``.

    In a command it is that of the harness's own files, when the run began in the time zone of
    ``--timezone``, with the offset that their names lack. A program has no such files, or names
    them itself: there it is the local time.
    """
    command = asked.get("cli_args")
    if command is None:
        return local_stamp()
    # as the harness itself reads the name
    zone: Any = import_module("pytz").timezone(command.timezone)
    begun = datetime.strptime(str(asked["datetime_str"]), _STAMP)
    return str(zone.localize(begun).strftime(f"{_STAMP}%z"))


def results_of_model(tracker: Any) -> Path | None:
    """The directory where the harness writes the model's results; None if it writes none."""
    if tracker is None or not tracker.output_path:
        return None
    model_name = tracker.general_config_tracker.model_name_sanitized or ""
    return Path(tracker.output_path) / model_name


def new_folder(parent: Path, stamp: str) -> Path:
    """A result directory that does not exist yet: two runs may end within one second."""
    folder = parent / f"{stamp}_medtasks"
    for number in range(2, 1000):
        if not folder.exists():
            break
        folder = parent / f"{stamp}-{number}_medtasks"
    return folder


def replace_numbers(results: dict[str, Any], run: RunRecord) -> None:
    """Replace the harness's scores with ours, and add the pooled scores of groups, and intervals.

    The harness sums floating-point numbers in the order in which processes deliver them, so its
    last digits vary.
    """
    from medtasks.metrics.registry import get_metric
    from medtasks.scoring.group_scores import standard_errors

    errors = standard_errors(run.tables, run.manifest.groups)
    directions = results.setdefault("higher_is_better", {})
    for name, scores in {**run.tasks, **run.groups}.items():
        entry = results["results"].setdefault(name, {"alias": name})
        direction = directions.setdefault(name, {})
        for key in list(entry):
            if key == " " or key.endswith(f",{KEY}"):
                del entry[key]
        for metric, score in scores.metrics.items():
            entry |= _numbers_of_metric(metric, score, errors[name].get(metric))
            direction[metric] = get_metric(metric).higher_is_better
        if name in run.groups:
            results.setdefault("groups", {})[name] = dict(entry)
    results.setdefault(KEY, {})["intervals"] = run.intervals()


def _numbers_of_metric(
    metric: str, score: MetricScore, error: float | None
) -> dict[str, float | str]:
    """A score and its clustered standard error under the harness's names; others are N/A."""
    return {
        f"{metric},{KEY}": _value_or_reason(score),
        f"{metric}_stderr,{KEY}": "N/A",
        f"{metric}_stderr_clt,{KEY}": "N/A",
        f"{metric}_stderr_clustered,{KEY}": "N/A" if error is None else error,
    }


def _value_or_reason(score: MetricScore) -> float | str:
    """The value of a score, or in words why there is none."""
    if score.value is not None:
        return score.value
    return str(score.state.value)


def replace_samples(results: dict[str, Any], run: RunRecord) -> None:
    """Put filtered responses, scores and status into the harness's sample log."""
    for name, samples in run.samples.items():
        sample_of = {sample.sample_id: sample for sample in samples}
        for entry in results["samples"][name]:
            sample = sample_of[entry["doc"]["sample_id"]]
            filtered = [repeat.filtered for repeat in sample.repeats] or [sample.filtered]
            entry.update(sample.scores, filtered_resps=filtered, status=sample.status)


def renew_numbers(folder: Path, run: RunRecord) -> Path | None:
    """Update the harness's results file beside ``folder`` after the run was judged.

    Returns the file, or None if there is none (the run was moved, or not made by the harness), or
    if it has these numbers.

    Raises:
        MedtasksError: the file cannot be read or written.
    """
    stamp = run.manifest.harness_stamp or folder.resolve().name.removesuffix("_medtasks")
    path = folder.resolve().parent / f"{stamp}_results.json"
    if not path.is_file():
        return None
    try:
        before = path.read_text(encoding="utf-8")
        results = json.loads(before)
        replace_numbers(results, run)
        if results == json.loads(before):
            return None
        with replaced(path) as partial:
            partial.write_text(json.dumps(results, indent=2, ensure_ascii=False), encoding="utf-8")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise MedtasksError(
            f"{path}: the harness's numbers could not be updated ({error}); "
            f"those in {folder.name} are right."
        ) from error
    return path
