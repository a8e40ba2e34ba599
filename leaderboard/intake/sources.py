"""What a run is read from: a result directory, or lmms-eval's logs alone, converted as by ``medtasks score``."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from medtasks.catalog.spec import leaf_tasks, load_specs
from medtasks.core.errors import DataError
from medtasks.importers.layouts import Layout
from medtasks.importers.run import PredictionFile, score_predictions
from medtasks.runs.manifest import RunManifest
from medtasks.runs.record import RunFolder, contents_hash
from medtasks.runs.samples import Sample

_LOG = re.compile(r"(?P<stamp>.+)_samples_(?P<task>[a-z0-9_]+)\.jsonl", re.I)
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)")
_SETTINGS = (
    "model", "model_args", "model_backend", "batch_size", "device", "limit", "offset", "gen_kwargs", "random_seed",
    "numpy_seed", "torch_seed", "fewshot_seed",
)  # fmt: skip
_LAYOUT: Layout = "lmms-eval"
_ASKED = ("system_instruction", "num_fewshot", "apply_chat_template", "repeats", "predict_only")


@dataclass(frozen=True)
class HarnessRun:
    """The logs of one run of the harness in ``directory``, by task; ``stamp`` is the prefix of their names.

    It has the properties and methods of `RunFolder`.
    """

    directory: Path
    stamp: str
    logs: Mapping[str, Path]

    @property
    def name(self) -> str:
        return f"{self.directory.resolve().name}/{self.stamp}"

    @property
    def files(self) -> list[Path]:
        results = self.directory / f"{self.stamp}_results.json"  # may be missing
        return [*self.logs.values(), *([results] if results.is_file() else [])]

    @property
    def content(self) -> str:
        return contents_hash({path.name.removeprefix(self.stamp): path for path in self.files})

    def contains(self) -> tuple[Collection[str], Mapping[str, bool]]:
        return self.logs, {}  # no data are named

    def read(self) -> tuple[RunManifest, Mapping[str, Sequence[Sample]]]:
        """Manifest and samples of the run as one of ours: responses joined with the prepared documents.

        The model comes from the results file; prompt, generation settings and frames are unknown.
        """
        config: dict[str, Any] = {}
        for results in self.files[len(self.logs) :]:
            try:
                config = dict(json.loads(results.read_text(encoding="utf-8"))["config"])
            except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise DataError(
                    f"{results}: not the results of lmms-eval (no settings in field `config`); restore it."
                ) from error
        settings = {key: config.get(key) for key in _SETTINGS}
        given = config.get("resolved_cli_args")
        settings |= {key: given.get(key) for key in _ASKED} if isinstance(given, dict) else {}
        model = str(config.get("model") or "unknown")
        stamp = _STAMP.fullmatch(self.stamp)  # it has no time zone
        created = "{}-{}-{}T{}:{}:{}+00:00".format(*stamp.groups()) if stamp else self.stamp
        made = [
            score_predictions(PredictionFile(path, _LAYOUT, task, model=model), created)
            for task, path in self.logs.items()
        ]
        samples = {task: found for one in made for task, found in one.samples.items()}
        groups = {name: leaf_tasks(name) for name, spec in load_specs().items() if spec.kind == "group"}
        predictions = {task: path.name for task, path in self.logs.items()}
        update = {
            "model": {"model": model, "predictions": predictions, "layout": _LAYOUT, "sha256": self.content},
            "settings": settings,
            "tasks": {task: facts for one in made for task, facts in one.manifest.tasks.items()},
            "groups": {name: members for name, members in groups.items() if {*members} <= samples.keys()},
            "data": {name: facts for one in made for name, facts in one.manifest.data.items()},
        }
        return made[-1].manifest.model_copy(update=update), samples


Source: TypeAlias = "RunFolder | HarnessRun"


def harness_runs(directory: Path, names: Iterable[str]) -> list[HarnessRun]:
    """The runs with logs among the file ``names`` of ``directory``, except those with a directory of ours."""
    logs: dict[str, dict[str, Path]] = {}
    for match in filter(None, map(_LOG.fullmatch, sorted(names))):
        spec = load_specs().get(match["task"])
        if spec is not None and spec.kind == "task":
            logs.setdefault(match["stamp"], {})[match["task"]] = directory / match[0]
    stamps = set()
    for path in directory.glob("*_medtasks/manifest.json") if logs else ():
        with contextlib.suppress(OSError, ValueError, AttributeError):  # reported when the directory itself is read
            stamps.add(json.loads(path.read_bytes()).get("harness_stamp", ""))
    return [
        HarnessRun(directory, stamp, members)
        for stamp, members in logs.items()
        if stamp not in stamps and not (directory / f"{stamp}_medtasks").is_dir()
    ]
