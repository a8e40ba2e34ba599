"""The only room that knows lmms-eval's internals.

lmms-eval calls :func:`model_manifests` (entry-point group ``lmms_eval.models``) while ``lmms_eval.models`` is
imported, before any task index exists. From there medtasks adds its task files to the index and, once the
evaluator is loaded, wraps its two functions:

- ``evaluate``: per-task numbers are replaced by ours, which do not depend on the number of processes, and groups
  get scores pooled over all their samples;
- ``simple_evaluate``: the run's folder (samples, scores, manifest) is written beside what the harness writes.

Where a judge is configured (``MEDTASKS_JUDGE``), it is asked while our back-ends infer, and before scores are made.

It also makes ``--use_cache`` survive a kill: the harness stores responses when all are there, and looks for those
of finished runs alone. Ours are stored batch by batch, and those of a killed run are found again.

Whatever fails in here is reported in one sentence, and the harness goes on without it.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from medtasks.border import at_border
from medtasks.errors import HarnessError, MedtasksError, UsageError
from medtasks.packages import task_packages
from medtasks.task_files import task_files

if TYPE_CHECKING:
    from medtasks.spec import TaskSpec

__all__ = ["SUPPORTED", "check_version", "model_manifests", "renew_numbers", "run_tasks", "task_index"]

SUPPORTED = ">=0.7.3,<0.8"
FILTER = "medtasks"
_MARK = "__medtasks__"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_KEY = "medtasks"
_ASKED: ContextVar[Mapping[str, Any]] = ContextVar("asked", default=MappingProxyType({}))
"""What ``simple_evaluate`` was asked: ``evaluate`` is not told how the model was chosen."""
LONGEST_WAIT = 600.0
"""Seconds that a process waits for its last verdicts; the first process asks for the rest once all have answered."""

_MODELS = {
    "medtasks_vlm": "medtasks.adapters.vlm.MedtasksVLM",
    "medtasks_baseline": "medtasks.adapters.baseline.MedtasksBaseline",
    "medtasks_replay": "medtasks.adapters.replay.MedtasksReplay",
}


def check_version(found: str) -> None:
    """Refuse an lmms-eval that these internals were not read off.

    Raises:
        HarnessError: ``found`` lies outside :data:`SUPPORTED`; says what to install.
    """
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion

    try:
        fits = SpecifierSet(SUPPORTED).contains(found, prereleases=True)
    except InvalidVersion:
        fits = False
    if not fits:
        raise HarnessError(
            f"medtasks works with lmms-eval {SUPPORTED}, but {found} is installed; "
            f'install one that fits: pip install "lmms-eval{SUPPORTED}"'
        )


def model_manifests() -> list[Any]:
    """Payload of the entry point: our back-ends' manifests, after our tasks were made known.

    Never raises: a failure is reported on standard error and lmms-eval runs without medtasks.
    """
    try:
        check_version(version("lmms-eval"))
        _watch_task_manager()
        from lmms_eval.models.registry_v2 import ModelManifest

        return [ModelManifest(model_id=name, chat_class_path=path) for name, path in _MODELS.items()]
    except Exception as error:
        _step_aside(error)
        return []


def task_index() -> dict[str, dict[str, Any]]:
    """Our entries of the harness's task index, made from the folder layout without parsing YAML."""
    index: dict[str, dict[str, Any]] = {}
    for name, kind, path in task_files():
        index[name] = {"type": kind, "yaml_path": str(path)}
        if kind == "group":
            index[name]["task"] = -1  # the harness's sign for "read the members from the file"
    return index


def run_tasks(
    model: str,
    model_args: str,
    tasks: list[str],
    output: Path,
    *,
    limit: int | None = None,
    gen_kwargs: str | None = None,
    batch_size: int = 1,
) -> Path:
    """Evaluate ``tasks`` (all ours) with the real harness in this process, and return the run's folder.

    The index holds our tasks alone, which saves the seconds that the harness's own two thousand take.
    """
    from lmms_eval import evaluator
    from lmms_eval.loggers import EvaluationTracker
    from lmms_eval.tasks import TaskManager

    _wrap_evaluator()
    results = evaluator.simple_evaluate(
        model=model,
        model_args=model_args,
        tasks=tasks,
        batch_size=batch_size,
        limit=limit,
        gen_kwargs=gen_kwargs,
        log_samples=False,
        bootstrap_iters=0,
        evaluation_tracker=EvaluationTracker(output_path=str(output)),
        task_manager=TaskManager(
            "WARNING",
            include_path=[str(package.tasks) for package in task_packages() if package.tasks.is_dir()],
            include_defaults=False,
            model_name=model,
        ),
        verbosity="WARNING",
        datetime_str=datetime.now().strftime("%Y%m%d_%H%M%S"),
    )
    return Path(results[_KEY]["folder"])


def _step_aside(error: BaseException) -> None:
    text = str(error) if isinstance(error, MedtasksError) else f"{type(error).__name__}: {error}"
    print(f"medtasks: {text} (lmms-eval goes on without medtasks)", file=sys.stderr, flush=True)


def _watch_task_manager() -> None:
    from lmms_eval.tasks import TaskManager

    original = TaskManager.initialize_tasks
    if getattr(original, _MARK, False):
        return

    @functools.wraps(original)
    def initialize_tasks(self: Any, include_path: Any = None, include_defaults: bool = True) -> Any:
        index = original(self, include_path=include_path, include_defaults=include_defaults)
        try:
            if include_defaults:
                _add_tasks(index)
            _wrap_evaluator()
        except Exception as error:
            _step_aside(error)
        return index

    setattr(initialize_tasks, _MARK, True)
    TaskManager.initialize_tasks = initialize_tasks


def _add_tasks(index: dict[str, Any]) -> None:
    for name, entry in task_index().items():
        taken = index.get(name)
        if taken is not None and Path(str(taken["yaml_path"])).resolve() != Path(entry["yaml_path"]).resolve():
            print(
                f"medtasks: task {name} is already defined by {taken['yaml_path']}; that one is used, not "
                f"{entry['yaml_path']}; rename one of them.",
                file=sys.stderr,
                flush=True,
            )
            continue
        index[name] = entry


def _wrap_evaluator() -> None:
    """Wrap the evaluator's two functions where it is loaded; while it is still being imported, later."""
    evaluator: Any = sys.modules.get("lmms_eval.evaluator")
    if evaluator is None or not hasattr(evaluator, "request_caching_arg_to_dict"):  # its last definition
        return
    if not getattr(evaluator.simple_evaluate, _MARK, False):
        evaluator.evaluate = _with_our_scores(evaluator.evaluate)
        evaluator.simple_evaluate = _with_run_folder(evaluator.simple_evaluate)
        _wrap_response_cache()


def _wrap_response_cache() -> None:
    from lmms_eval.caching.response_cache import ResponseCache

    if not getattr(ResponseCache.execute, _MARK, False):
        ResponseCache.execute = _stored_by_batch(ResponseCache.execute)
        ResponseCache.create = classmethod(_with_killed_runs(ResponseCache.create.__func__))


def _stored_by_batch(original: Callable[..., Any]) -> Callable[..., Any]:
    """Run our back-ends one batch at a time, each stored before the next begins; others run as they are."""

    @at_border
    @functools.wraps(original)
    def execute(self: Any, lm: Any, reqtype: str, requests: list[Any]) -> list[Any]:
        if reqtype not in _BY_BATCH or not hasattr(lm, "plan_requests"):
            return list(original(self, lm, reqtype, requests))
        from lmms_eval.api.instance import GenerationResult
        from loguru import logger
        from tqdm import tqdm

        # The harness takes an empty response for a failure; ours is what the model said, and is not asked for again.
        self._is_valid_response = lambda response, reqtype: response is not None  # noqa: ARG005
        responses: list[Any] = [None if not _is_padding(request) else GenerationResult("") for request in requests]
        hits = self._hits
        logger.disable("lmms_eval.caching.response_cache")  # it reports every call, which is every batch
        lm.show_progress = False
        try:
            with tqdm(total=responses.count(None), unit="sample", disable=lm.rank != 0) as bar:
                for batch in lm.plan_requests(requests):
                    answers = original(self, lm, reqtype, [requests[position] for position in batch])
                    for position, answer in zip(batch, answers, strict=True):
                        responses[position] = answer
                    bar.update(len(batch))
        finally:
            lm.show_progress = True
            logger.enable("lmms_eval.caching.response_cache")
        logger.info(f"medtasks: {self._hits - hits} of {len(requests)} responses were in the cache")
        return responses

    setattr(execute, _MARK, True)
    return execute


_BY_BATCH = ("generate_until", "generate_until_multi_round")


def _is_padding(request: Any) -> bool:
    return bool((request.metadata or {}).get("__padding_only__", False))


def _with_killed_runs(original: Callable[..., Any]) -> Callable[..., Any]:
    """Find the responses of killed runs again, and tie those of our tasks to the prepared data."""

    @at_border
    @functools.wraps(original)
    def create(cls: Any, cache_root: str, **kwargs: Any) -> Any:
        root = Path(cache_root).absolute()
        _recover_runs(cls, root.parent if root.suffix == ".db" else root, kwargs.get("global_rank", 0))
        cache = original(cls, cache_root, **kwargs)
        for name, spec, _ in _our_tasks(kwargs.get("task_dict") or {}):
            known = cache._task_fingerprints.get(name, "")
            cache._task_fingerprints[name] = f"{known}-{_data_state(spec)}"
        return cache

    return create


def _recover_runs(cache: Any, root: Path, rank: int) -> None:
    """Merge what killed runs have stored; the first process does, the others wait for it."""
    import sqlite3

    import torch
    from loguru import logger

    if rank == 0:
        for shard in sorted(root.glob("runs/*/rank_*.db")):
            if (shard.parent / ".merged").exists():
                continue
            try:
                cache.merge_shards([str(shard)], str(root / "cache.db"))
            except sqlite3.Error as error:
                logger.warning(f"medtasks: {shard} holds no responses that can be read ({error}); it is left out")
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()


def _data_state(spec: TaskSpec) -> str:
    """Which pixels a task's documents show: prepared data, how many frames at most, or none."""
    from medtasks.benchmarks.documents import is_blind
    from medtasks.data.media.windows import frame_cap
    from medtasks.data.store import open_prepared

    fingerprint = open_prepared(spec.metadata.benchmark).manifest.fingerprint[:16]
    return f"{fingerprint}-{frame_cap() or 'all'}{'-blind' if is_blind() else ''}"


def _our_tasks(task_dict: Mapping[Any, Any]) -> Iterator[tuple[str, TaskSpec, Any]]:
    """Name, specification and harness object of each of our leaf tasks in a (nested) task dictionary."""
    from medtasks.spec import load_specs

    specs = load_specs()
    for key, value in task_dict.items():
        if isinstance(value, Mapping):
            yield from _our_tasks(value)
        elif isinstance(key, str) and key in specs and _is_ours(value):
            yield key, specs[key], value


def _is_ours(task: Any) -> bool:
    metadata = getattr(getattr(task, "config", None), "metadata", None)
    return isinstance(metadata, dict) and "benchmark" in metadata


def _our_groups(task_dict: Mapping[Any, Any]) -> Iterator[str]:
    from medtasks.spec import load_specs

    specs = load_specs()
    for key, value in task_dict.items():
        if isinstance(value, Mapping):
            name = getattr(key, "group_name", key)
            if name in specs:
                yield name
            yield from _our_groups(value)


def _with_our_scores(original: Callable[..., Any]) -> Callable[..., Any]:
    @at_border
    @functools.wraps(original)
    def evaluate(*args: Any, **kwargs: Any) -> Any:
        call = inspect.signature(original).bind(*args, **kwargs)
        call.apply_defaults()
        task_dict = call.arguments["task_dict"]
        ours = list(_our_tasks(task_dict))
        if not ours:
            return original(*args, **kwargs)
        from medtasks.judge.config import configured_judges
        from medtasks.judge.rubric import load_rubric

        _refuse_repeated_streams(ours)
        _choose_rounds(call.arguments["lm"], [task for _, _, task in ours])
        asked_for_samples = call.arguments["log_samples"]
        # The raw responses are in the sample log alone; where the user did not ask for it, it is taken out again.
        call.arguments["log_samples"] = True
        judges = configured_judges()
        for rubric in judges.rubrics if judges is not None else ():
            load_rubric(rubric)  # a name that nobody knows is told before the model is asked, not after
        live = _judge_meanwhile(call.arguments["lm"], judges)
        results = original(*call.args, **call.kwargs)
        if live is not None:
            live.finish(LONGEST_WAIT)
        model = _model_facts(call.arguments["lm"])
        # The harness never leaves the process group, and a thread of it that outlives the interpreter aborts
        # the process: a finished run would end with a failure's exit code.
        atexit.register(_leave_process_group)
        if results is None:  # not the first process
            return None
        from medtasks.results.run import collect_run
        from medtasks.spec import leaf_tasks

        run = collect_run(
            tasks=[
                (
                    spec,
                    results["samples"][name],
                    dict(task.config.generation_kwargs or {}),
                    len(task.eval_docs),
                )
                for name, spec, task in ours
            ],
            groups={
                name: [leaf for leaf in leaf_tasks(name) if leaf in results["samples"]]
                for name in dict.fromkeys(_our_groups(task_dict))
            },
            model=model,
            judging=None if judges is None else functools.partial(_judge, judges, model, live),
        )
        _replace_numbers(results, run)
        if not asked_for_samples:
            del results["samples"]
        results[_KEY] = run
        return results

    setattr(evaluate, _MARK, True)
    return evaluate


def _judge_meanwhile(lm: Any, config: Any) -> Any:
    """Judge answers as our back-ends give them; other back-ends hand all over at the end, and are judged then."""
    import os

    if config is None or not hasattr(lm, "on_answer"):
        return None
    from medtasks.results.live import LiveJudging

    live = LiveJudging(config, share=int(os.environ.get("WORLD_SIZE", "1")))
    lm.on_answer = live.take
    return live


def _judge(config: Any, model: Mapping[str, Any], live: Any, samples: dict[str, Any]) -> Any:
    """Verdicts for a run's samples. A judge that fails costs no finished inference: the run is saved without."""
    from medtasks.results.adjudication import judge_all, model_names, wanted_rubrics
    from medtasks.results.judge_report import report_lines
    from medtasks.results.run import data_facts
    from medtasks.spec import load_spec

    if not any(load_spec(name).metadata.rubrics for name in samples):
        return samples, {}
    benchmarks = sorted({load_spec(name).metadata.benchmark for name in samples})
    if live is not None and live.reason is not None:
        print(f"medtasks: judging during inference stopped: {live.reason}", flush=True)
    try:
        judged = judge_all(
            samples,
            wanted_rubrics(samples, config.rubrics),
            config,
            judged_names=model_names(model, _ASKED.get()),
            fingerprints={name: data_facts(name).fingerprint for name in benchmarks},
        )
    except MedtasksError as error:
        print(f"medtasks: not judged, the run is saved without; `medtasks judge` goes on. {error}", flush=True)
        return samples, {}
    print("\n".join(report_lines(judged, config)), flush=True)
    return judged.samples, judged.facts


def _refuse_repeated_streams(ours: list[tuple[str, TaskSpec, Any]]) -> None:
    """A streaming item has one response per round; which repeats of its rounds belong together nobody says."""
    for name, spec, task in ours:
        if spec.metadata.benchmark == "medstreambench" and (task.config.repeats or 1) > 1:
            raise UsageError(
                f"{name}: repeats is {task.config.repeats}, expected 1: streaming items are scored once; run it again "
                "with another seed instead."
            )


def _choose_rounds(lm: Any, tasks: list[Any]) -> None:
    """Let a back-end that can run several rounds by itself do so; for the others the harness runs them one by one.

    Most back-ends have the method and raise NotImplementedError, or hand the requests on as they are; one that runs
    rounds asks the task what comes next and says what was answered before.
    """
    method = getattr(type(lm), "generate_until_multi_round", None)
    try:
        runs_rounds = method is not None and "previous_output" in inspect.getsource(method)
    except (OSError, TypeError):
        runs_rounds = False
    if not (runs_rounds or hasattr(lm, "plan_requests")):
        return
    for task in tasks:
        if task.OUTPUT_TYPE == "generate_until_agentic":
            task.OUTPUT_TYPE = task.config.output_type = "generate_until_multi_round"


def _with_run_folder(original: Callable[..., Any]) -> Callable[..., Any]:
    @at_border
    @functools.wraps(original)
    def simple_evaluate(*args: Any, **kwargs: Any) -> Any:
        call = inspect.signature(original).bind(*args, **kwargs)
        call.apply_defaults()
        asked = _ASKED.set({"model_args": call.arguments.get("model_args")})
        try:
            results = original(*args, **kwargs)
        finally:
            _ASKED.reset(asked)
        if results is None or _KEY not in results:
            return results
        from medtasks.results.run import finish_run
        from medtasks.results.summary import summary

        tracker = call.arguments["evaluation_tracker"]
        directory = None
        if tracker is not None and tracker.output_path:
            stamp = str(call.arguments["datetime_str"]).replace(":", "-")
            model_folder = tracker.general_config_tracker.model_name_sanitized or ""
            directory = Path(tracker.output_path) / model_folder / f"{stamp}_medtasks"
        run = results[_KEY]
        settings = _settings(results["config"], call.arguments)
        # From here on `results` is what the harness dumps as JSON: keep it small.
        results[_KEY] = {"folder": str(directory) if directory else None, "intervals": run.intervals()}
        try:
            finished = finish_run(run, settings, directory, created=_now())
        except OSError as error:
            raise MedtasksError(f"{directory}: the run's folder could not be written: {error}.") from error
        print(summary(finished, directory), flush=True)
        return results

    setattr(simple_evaluate, _MARK, True)
    return simple_evaluate


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _settings(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked of the harness, secrets redacted by it; paths of this machine stay out."""
    kept = ("model", "model_args", "model_backend", "batch_size", "device", "limit", "offset", "gen_kwargs")
    seeds = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
    return {
        **{key: config.get(key) for key in (*kept, *seeds)},
        "system_instruction": arguments.get("system_instruction"),
        "apply_chat_template": arguments.get("apply_chat_template"),
        "num_fewshot": arguments.get("num_fewshot"),
        "repeats": arguments.get("repeats"),
        "predict_only": arguments.get("predict_only"),
    }


def _leave_process_group() -> None:
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _model_facts(lm: Any) -> dict[str, Any]:
    """What the back-end says of itself, with the counts of all replicas added up."""
    import os

    import torch

    own = lm.describe() if hasattr(lm, "describe") else {"model": type(lm).__name__}
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    replicas: list[Any] = [own]
    if processes > 1 and torch.distributed.is_initialized():
        replicas = [None] * processes
        torch.distributed.all_gather_object(replicas, own)
    finish: dict[str, int] = {}
    for replica in replicas:
        for kind, count in (replica or {}).get("finish", {}).items():
            finish[kind] = finish.get(kind, 0) + count
    return {**own, **({"finish": finish} if finish else {}), "processes": processes}


def _replace_numbers(results: dict[str, Any], run: Any) -> None:
    """Put our scores where the harness prints and saves its own, and add the pooled ones of groups.

    Its own add floating-point numbers in the order in which the processes happened to deliver them.
    """
    from medtasks.metrics import get_metric

    directions = results.setdefault("higher_is_better", {})
    for name, scores in {**run.tasks, **run.groups}.items():
        better = {metric: get_metric(metric).higher_is_better for metric in scores.metrics}
        directions[name] = {**directions.get(name, {}), **better}
    for name, scores in run.tasks.items():
        entry = results["results"][name]
        for key in [key for key in entry if key.endswith(f",{FILTER}")]:
            del entry[key]
        entry.update(_numbers(scores, run.standard_errors[name]))
        results["configs"][name] = _without_addresses(results["configs"][name])
    for name, scores in run.groups.items():
        entry = results["results"].setdefault(name, {"alias": name})
        entry.pop(" ", None)
        entry.update(_numbers(scores, run.standard_errors[name]))
        results.setdefault("groups", {})[name] = dict(entry)


def renew_numbers(folder: Path, run: Any) -> Path | None:
    """Put the scores of a run that was judged later into the results file that the harness wrote beside ``folder``.

    The file, replaced in one step; None where there is none (a run that was moved, or scored elsewhere).

    Raises:
        MedtasksError: the file is no result of the harness, or cannot be written.
    """
    from medtasks.results.run import standard_errors

    stamp = folder.resolve().name.removesuffix("_medtasks")
    path = folder.resolve().parent / f"{stamp}_results.json"
    if not path.is_file():
        return None
    errors = standard_errors(run.samples, run.manifest.groups)
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        for kind, entries in (("results", {**run.tasks, **run.groups}), ("groups", run.groups)):
            for name, scores in entries.items():
                if name in results.get(kind, {}):
                    results[kind][name].update(_numbers(scores, errors[name]))
        if isinstance(results.get(_KEY), dict):
            results[_KEY]["intervals"] = run.intervals()
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(json.dumps(results, indent=2, ensure_ascii=False), encoding="utf-8")
        partial.replace(path)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise MedtasksError(
            f"{path}: the harness's numbers could not be renewed ({error}); those in {folder.name} are right."
        ) from error
    return path


def _numbers(scores: Any, standard_errors: Mapping[str, float | None]) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for metric, score in scores.metrics.items():
        numbers[f"{metric},{FILTER}"] = "not computed" if score.value is None else score.value
        error = standard_errors.get(metric)
        numbers[f"{metric}_stderr,{FILTER}"] = "N/A"
        numbers[f"{metric}_stderr_clt,{FILTER}"] = "N/A"
        numbers[f"{metric}_stderr_clustered,{FILTER}"] = "N/A" if error is None else error
    return numbers


def _without_addresses(value: Any) -> Any:
    """``value`` with functions named instead of printed with their memory address, which differs by run."""
    if isinstance(value, Mapping):
        return {key: _without_addresses(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_addresses(item) for item in value]
    if isinstance(value, str):
        return _ADDRESS.sub("", value)
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    return value
