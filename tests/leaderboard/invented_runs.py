"""Result folders of invented models on the miniature data: baseline policies asked directly, no
harness, no model.

``shared_runs`` writes them once for the whole test process; ``write_run_of`` writes one more,
changed as a test needs.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from medtasks.adapters.policies import PolicyQuestion, make_policy, with_confidence

from medtasks.answers.stages import join_stages
from medtasks.benchmarks.documents import asked_prompt, task_documents
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.judge.judge_run import judge_all
from medtasks.judge.settings import JudgeConfig, JudgeSettings
from medtasks.judge.stub import MODEL, StubJudge
from medtasks.runs.manifest import RunManifest, versions
from medtasks.runs.protocol import task_facts
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.scoring.finished_run import data_facts
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.learned_scores import with_learned_metrics
from medtasks.scoring.run_folder import write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scored_samples import scored_samples

GROUPS = ("kvasir_vqa_x1", "mi_cxr", "med_cmr", "medstreambench")
"""The four benchmarks; other tracks (``kvasir_vqa_x1_transformed``, ``mi_cxr_cot``,
``mi_cxr_stagewise``) work, too.
"""

START = datetime(2026, 11, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Invented:
    """A model that answers by a baseline's policy; ``name`` is what its manifest calls
    ``pretrained``.
    """

    name: str
    policy: str
    seed: int = 0
    accuracy: float | None = None

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[2]


MODELS = (
    Invented("invented/Oracle-72B", "oracle"),
    Invented("invented/Careful-7B", "noisy_oracle", seed=1, accuracy=0.8),
    Invented(
        "invented/Careful-twin-7B", "noisy_oracle", seed=2, accuracy=0.8
    ),  # as good, other mistakes
    Invented("invented/Guess-1B", "uniform", seed=3),
    Invented("invented/Silent-1B", "abstain"),
)


def answered(
    model: Invented,
    groups: Sequence[str] = GROUPS,
    *,
    limit: int | None = None,
    blind: bool = False,
    mini: bool = True,
    created: str | None = None,
    generation: dict[str, Any] | None = None,
) -> tuple[RunManifest, dict[str, list[Sample]]]:
    """Manifest and samples of one model's run, without verdicts and not yet scored.

    ``limit`` asks the first documents of each task alone; ``mini=False`` claims that the data are a
    release's.
    """
    policy = make_policy(model.policy, seed=model.seed, accuracy=model.accuracy)
    samples: dict[str, list[Sample]] = {}
    facts = {}
    for task in dict.fromkeys(leaf for group in groups for leaf in leaf_tasks(group)):
        spec = load_spec(task)
        everything = _documents(task)
        documents = everything[:limit]
        answers = sorted(document["target"] for document in everything)
        prompt_hash = spec.prompt_hash or ""
        answered = []
        for document in documents:
            question = PolicyQuestion.of(document, document["sample_id"], answers)
            said, sure = with_confidence(model.policy, policy(question), question, model.seed)
            staged = spec.stage1_template is not None  # the harness logs the first stage's prompt
            prompt = asked_prompt(spec, document)
            responses = [join_stages([said, said]) if staged else said]
            replies = tuple(
                Reply(text, probabilities=None if staged else sure) for text in responses
            )
            answered.append(Sample.answered(task, document, replies, prompt, prompt_hash))
        scored = scored_samples(spec, answered)
        samples[task] = with_judged_scores(spec, with_learned_metrics(spec, scored, []))
        settings = {**spec.generation, **(generation or {})}
        made = task_facts(spec, settings, len(everything), blind=blind)
        facts[task] = made.with_outcomes([sample.outcome for sample in scored])
    members = {
        name: tuple(leaf for leaf in leaf_tasks(name) if leaf in samples)
        for group in groups
        for name in _with_inner_groups(group)
    }
    data = {
        name: data_facts(name).model_copy(update={"mini": mini})
        for name in sorted({one.benchmark for one in facts.values()})
    }
    arguments = {"pretrained": model.name, "device": "cuda"}
    facts_of_model = {"revision": f"{model.seed:040d}", "dtype": "bfloat16", "batch_size": 1}
    manifest = RunManifest(
        created=created or START.isoformat(timespec="seconds"),
        processes=1,
        versions=versions(),
        model={
            "model": "medtasks_vlm",
            **arguments,
            **facts_of_model,
            **({"blind": True} if blind else {}),
        },
        settings={
            "model": "medtasks_vlm",
            "model_args": ",".join(f"{key}={value}" for key, value in arguments.items()),
            "batch_size": 1,
            "limit": limit,
            "gen_kwargs": None,
            "random_seed": 0,
        },
        tasks=facts,
        groups=members,
        data=data,
    )
    return manifest, samples


def make_run(model: Invented, groups: Sequence[str] = GROUPS, **options: Any) -> RunRecord:
    """The finished run of one model, without verdicts; ``options`` as :func:`answered`."""
    return RunRecord.scored(*answered(model, groups, **options))


def judged_by_stub(
    manifest: RunManifest, samples: dict[str, list[Sample]], url: str, store: Path
) -> RunRecord:
    """The finished run with the verdicts of the stub judge at ``url``."""
    settings = JudgeSettings(base_url=url, model=MODEL, api_key_env="MEDTASKS_STUB_KEY")
    judged = judge_all(samples, JudgeConfig(judges={MODEL: settings}, store=store), manifest)
    return RunRecord.scored(manifest.model_copy(update={"judge": judged.facts}), judged.samples)


def write_run_of(
    root: Path, model: Invented, groups: Sequence[str] = GROUPS, **options: Any
) -> Path:
    """The folder of one model's run, without verdicts; ``options`` as :func:`answered`."""
    return write_run(
        root / model.folder / "20261101_000000_medtasks", make_run(model, groups, **options)
    )


def write_runs(
    root: Path,
    models: Sequence[Invented] = MODELS,
    groups: Sequence[str] = GROUPS,
    *,
    judged: bool = True,
    **options: Any,
) -> dict[str, Path]:
    """Folders of several models' runs by the last part of the model's name, each a minute newer
    than the one before.
    """
    folders = {}
    with StubJudge() as stub:
        for number, model in enumerate(models):
            created = (START + timedelta(minutes=number)).isoformat(timespec="seconds")
            told = {"created": created, **options}
            if judged and any(
                load_spec(task).metadata.rubrics for group in groups for task in leaf_tasks(group)
            ):
                run = judged_by_stub(
                    *answered(model, groups, **told), stub.url, root / "verdicts.sqlite"
                )
            else:
                run = make_run(model, groups, **told)
            folders[model.folder] = write_run(
                root / model.folder / f"20261101_00{number:02d}00_medtasks", run
            )
    return folders


@functools.cache
def shared_runs() -> dict[str, Path]:
    """:func:`write_runs` of three models over the four benchmarks, once a process. Nobody may
    change these folders.
    """
    return write_runs(Path(tempfile.mkdtemp(prefix="medtasks-runs-")), MODELS[:3])


def _with_inner_groups(group: str) -> list[str]:
    """The group and the groups in it; nothing for a task."""
    spec = load_spec(group)
    if spec.kind == "task":
        return []
    return [group, *(inner for member in spec.members for inner in _with_inner_groups(member))]


_documents = functools.cache(task_documents)


def edit_json(path: Path, edit: Callable[[Any], None], line: int | None = None) -> None:
    """Edit a JSON file, or one line of JSON lines."""
    if line is None:
        content = json.loads(path.read_text(encoding="utf-8"))
        edit(content)
        path.write_text(json.dumps(content), encoding="utf-8")
        return
    lines = path.read_text(encoding="utf-8").split("\n")
    sample = json.loads(lines[line])
    edit(sample)
    lines[line] = json.dumps(sample)
    path.write_text("\n".join(lines), encoding="utf-8")
