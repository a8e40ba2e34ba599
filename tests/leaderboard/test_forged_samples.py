"""Samples with forged fields: what pages, exports and tables show is what an honest directory
gives, or is marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from forged_runs import board, check, on_a_release, places
from invented_runs import MODELS, write_runs
from medtasks.leaderboard.exports.inspect_logs import write_inspect_logs
from medtasks.leaderboard.publish import BoardOptions, publish
from view_server import Server, serving

import medtasks
from medtasks.runs.samples import JudgedResponse, JudgedScore, Repeat, Sample
from medtasks.scoring.run_folder import read_run, write_run
from medtasks.scoring.run_record import RunRecord

pytestmark = pytest.mark.slow

CAREFUL, GUESS = MODELS[1], MODELS[3]
GROUPS = ("med_cmr_mcq", "med_cmr_open")
OPEN = "med_cmr_open"
RANDOM = re.compile(r'<a [^>]*data-key="r">.*?</a>')
"""A link to a sample drawn at random."""
FORGED = "forged-value"
"""In every forged text."""
ALL_RIGHT = ((1.0, 1.0), (1.0, 1.0))


def document(sample: Sample, **fields: Any) -> dict[str, Any]:
    return {"document": {**sample.document, **fields}}


def verdicts(sample: Sample, **fields: Any) -> dict[str, Any]:
    """The verdict on an answer, with forged fields."""
    (response,) = sample.verdicts[OPEN]
    return {"verdicts": {OPEN: (response.model_copy(update=fields),)}}


def another_judge(sample: Sample) -> dict[str, Any]:
    (response,) = sample.verdicts[OPEN]
    (verdict,) = response.judges.values()
    return verdicts(sample, judges={**response.judges, f"{FORGED}-judge": verdict})


FORGERIES: dict[str, Any] = {
    "cluster": lambda _: {"cluster": FORGED},
    "media": lambda _: {"media": (f"{FORGED}.png",)},
    "prompt_hash": lambda _: {"prompt_hash": FORGED},
    "target": lambda one: {"target": one.filtered},
    "document.target": lambda one: document(one, target=FORGED),
    "document.question": lambda one: document(one, question=FORGED),
    "document.choices": lambda one: document(one, choices={"A": FORGED}),
    "document.ideal_response": lambda one: document(one, ideal_response=FORGED),
    "confidence": lambda _: {"confidence": 0.123456},
    "filtered": lambda _: {"filtered": FORGED},
    "reading": lambda _: {"reading": FORGED},
    "scored_in_part": lambda _: {"scored_in_part": True},
    "status": lambda _: {"status": FORGED},
    "scores.accuracy": lambda _: {"scores": {"accuracy": 0.123456}},
    "statistics": lambda _: {"statistics": {"accuracy": (1.0, 1.0)}},
    "limits": lambda _: {"limits": {"accuracy": ALL_RIGHT}},
    "pending": lambda _: {"pending": ("accuracy",)},
    "repeats": lambda _: {
        "repeats": (Repeat(filtered=FORGED, status="ok", statistics={"accuracy": (1.0, 1.0)}),) * 2
    },
    "judged": lambda _: {
        "judged": {"accuracy": JudgedScore(rubric=OPEN, judge=FORGED, limits=ALL_RIGHT)}
    },
}
"""By the field that a check names: a forgery of it in a sample with options."""
OF_VERDICTS: dict[str, Any] = {
    "verdicts": another_judge,
    "verdicts, undecided": lambda one: verdicts(one, open={"overall": FORGED}),
    "verdicts, text": lambda one: {
        "verdicts": {**one.verdicts, FORGED: (JudgedResponse(text=FORGED),)}
    },
    "judged, hash": lambda one: {
        "judged": {
            name: score.model_copy(update={"judge": FORGED}) for name, score in one.judged.items()
        }
    },
    "judged, limits": lambda one: {
        "judged": {
            name: score.model_copy(update={"limits": ALL_RIGHT})
            for name, score in one.judged.items()
        }
    },
}
"""Forgeries in a judged sample."""
SUBMITTED = {"responses", "failed", "probabilities"}
"""What a submission is, beside its verdicts."""
REFUSED = {"sample_id", "task", "prompt", "missed"}
"""Another one is refused, and never ranked (`test_forged.py`, `test_missed_rounds.py`)."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_runs(tmp_path_factory.mktemp("honest"), [CAREFUL, GUESS], GROUPS)


@pytest.fixture(scope="module")
def forged(runs: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guessed run, with another field forged in one sample after the other."""
    folder = runs[GUESS.folder]
    manifest, samples = read_run(folder)
    for group, forgeries in zip(GROUPS, (FORGERIES, OF_VERDICTS), strict=True):
        places = (
            (task, place)
            for task in samples
            if task.startswith(group)
            for place in range(len(samples[task]))
        )
        for forge, (task, place) in zip(forgeries.values(), places, strict=False):
            sample = samples[task][place]
            samples[task][place] = sample.model_copy(update=forge(sample))
    out = tmp_path_factory.mktemp("forged") / GUESS.folder / folder.name
    return write_run(out, RunRecord(manifest, samples, {}, {}))


@pytest.fixture(scope="module")
def both(runs: Mapping[str, Path], forged: Path) -> tuple[list[Path], list[Path]]:
    """The honest results, and the same with the forged run."""
    return [*runs.values()], [runs[CAREFUL.folder], forged]


def files(folder: Path) -> dict[str, str]:
    """All files of a directory as text, by path."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in paths
    }


def viewed(server: Server) -> Iterator[tuple[str, str]]:
    """The lists and the pages of the guessed run's samples, without the key of the run."""
    library = server.view.wait()
    for task in library.tasks:
        run = next(one for one in library.runs_of[task] if GUESS.folder.casefold() in one.model)
        lines = server.ask(f"samples.jsonl?{urlencode({'task': task, 'run': run.key})}").text
        pages = [("samples.html", {}), ("samples.csv", {}), ("samples.jsonl", {})]
        pages += [
            ("sample.html", {"id": json.loads(line)["sample_id"]}) for line in lines.splitlines()
        ]
        for page, more in pages:
            answer = server.ask(f"{page}?{urlencode({'task': task, 'run': run.key, **more})}")
            assert answer.status == 200
            text = answer.text.replace(run.key, "KEY").replace(server.token, "TOKEN")
            yield f"{task} {page} {more}", RANDOM.sub("", text)


def logged(results: list[Path], out: Path) -> list[Any]:
    """What the logs for Inspect have of the samples of all runs, but for their identities, which
    depend on the files of the run.
    """
    from inspect_ai.log import read_eval_log

    samples: list[Any] = []
    for path in write_inspect_logs(results, out).files:
        for one in read_eval_log(str(path)).samples or ():
            samples.append(json.loads(one.model_dump_json().replace(one.uuid or "", "UUID")))
    return sorted(samples, key=lambda one: (one["output"]["model"], str(one["id"]), one["epoch"]))


def test_every_field_of_a_sample_is_forged_or_is_what_a_submission_is(
    runs: Mapping[str, Path], forged: Path
) -> None:
    fields = {name.partition(".")[0].partition(",")[0] for name in (*FORGERIES, *OF_VERDICTS)}
    assert fields | SUBMITTED | REFUSED == {*Sample.model_fields}
    before, after = (read_run(folder)[1] for folder in (runs[GUESS.folder], forged))
    pairs = (
        (one, other)
        for task in before
        for one, other in zip(before[task], after[task], strict=True)
    )
    assert sum(one != other for one, other in pairs) == len(FORGERIES) + len(OF_VERDICTS)


def test_check_names_every_forged_field(forged: Path) -> None:
    found = {
        one.field: one.code for one in check(forged).findings if one.code in ("LB404", "LB405")
    }
    of_data = {
        name
        for name in FORGERIES
        if name.startswith(("cluster", "media", "prompt_hash", "target", "document"))
    }
    assert {name for name, code in found.items() if code == "LB404"} == of_data
    assert {name for name, code in found.items() if code == "LB405"} >= {
        *FORGERIES,
        "verdicts",
    } - of_data


def test_no_page_export_or_table_shows_a_claim(
    both: tuple[list[Path], list[Path]], tmp_path: Path
) -> None:
    honest, forged = both
    assert places(board(*forged)) == places(board(*honest)) == [CAREFUL.name, GUESS.name]
    assert (
        board(*forged).benchmarks[0].tables[0].rows[0].cells
        == board(*honest).benchmarks[0].tables[0].rows[0].cells
    )

    sites = []
    for name, results in (("honest", honest), ("forged", forged)):
        publish(
            results, tmp_path / name, BoardOptions(demonstration=True), cache=tmp_path / "cache"
        )
        sites.append(files(tmp_path / name))
    assert not any(FORGED in text for text in sites[1].values())
    samples = [
        {name: text for name, text in site.items() if name.startswith("data/samples/")}
        for site in sites
    ]
    assert samples[1] == samples[0]

    tables = []
    for results in both:
        table = medtasks.open(*results).samples().to_pandas().drop(columns="run")
        tables.append(table.sort_values(["model", "task", "sample_id"], ignore_index=True))
    assert tables[1].equals(tables[0])

    shown = []
    for results in both:
        with serving(results) as server:
            shown.append(dict(viewed(server)))
    for name, text in shown[1].items():
        assert FORGED not in text, name
    assert shown[1] == shown[0]


def test_logs_for_inspect_show_no_claim(
    both: tuple[list[Path], list[Path]], tmp_path: Path
) -> None:
    pytest.importorskip("inspect_ai.log")
    honest, forged = (
        logged(results, tmp_path / str(number)) for number, results in enumerate(both)
    )
    assert forged == honest


@pytest.fixture
def without_data(
    both: tuple[list[Path], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Path]:
    """The forged results where their data are not prepared."""
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "no-data"))
    return [on_a_release(folder, tmp_path / str(number)) for number, folder in enumerate(both[1])]


def test_what_cannot_be_verified_says_so_beside_the_sample(
    without_data: list[Path], tmp_path: Path
) -> None:
    publish(
        without_data, tmp_path / "site", BoardOptions(demonstration=True), cache=tmp_path / "cache"
    )
    doubt = "are as submitted, because the run's data are not prepared here"
    answers = [text for name, text in files(tmp_path / "site").items() if "/by-" in name]
    assert len(answers) > 1
    assert all(doubt in text for text in answers)
    table = medtasks.open(*without_data).samples().to_pandas()
    assert table["unverified"].str.contains(doubt).all()
    assert (table["filtered"] != FORGED).all()
    with serving(without_data) as server:
        for name, text in viewed(server):
            assert (
                doubt.replace("'", "&#39;") in text
                or doubt in text
                or "<small>not verified</small>" in text
            ), name
    pytest.importorskip("inspect_ai.log")
    assert all(
        doubt in one["metadata"]["unverified"] for one in logged(without_data, tmp_path / "logs")
    )


def test_a_sample_that_the_data_lack_is_marked(runs: Mapping[str, Path], tmp_path: Path) -> None:
    manifest, samples = read_run(runs[GUESS.folder])
    task = "med_cmr_mcq_su"
    samples[task][0] = samples[task][0].model_copy(update={"sample_id": FORGED, "target": FORGED})
    write_run(tmp_path / "stranger_medtasks", RunRecord(manifest, samples, {}, {}))
    with serving([tmp_path]) as server:
        pages = [text for name, text in viewed(server) if FORGED in name]
    assert len(pages) == 1
    assert "the data have no such sample" in pages[0]
